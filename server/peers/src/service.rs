//! The answers to other servers.

use std::{pin::Pin, sync::Arc};

use futures_util::{StreamExt as _, future::ready, stream};
use proto::peer_v1::{self as wire, BorrowOrder, borrow_answer, borrow_order};
use server_app::{App, AppError, LentAnswer, SessionKey};
use shared_types::Generation;
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::{Request, Response, Status, Streaming};

use crate::wire::messages;

/// See the module. Who may ask was decided by the handshake of the connection.
pub(crate) struct PeerService {
    pub(crate) app: Arc<App>,
    pub(crate) stop: CancellationToken,
}

type Pieces = Pin<Box<dyn Stream<Item = Result<wire::Live, Status>> + Send>>;
type Answers = Pin<Box<dyn Stream<Item = Result<wire::BorrowAnswer, Status>> + Send>>;

/// Answers of one loan that wait on their way to the other server.
const ANSWERS: usize = 64;

#[tonic::async_trait]
impl wire::peer_server::Peer for PeerService {
    type FollowStream = Pieces;

    async fn follow(
        &self,
        request: Request<wire::FollowRequest>,
    ) -> Result<Response<Pieces>, Status> {
        let wire::FollowRequest { tenant, session } = request.into_inner();
        let (Ok(tenant), Ok(session)) = (tenant.parse(), session.parse()) else {
            return Err(Status::invalid_argument("tenant or session is no id"));
        };
        let feed = self.app.peers.follow(SessionKey { tenant, session }).await;
        let feed = feed.map_err(status)?;
        let pieces = stream::unfold((feed, self.stop.clone()), async |(mut feed, stop)| {
            let next = stop.run_until_cancelled(feed.next()).await??;
            let messages = messages(next).into_iter().map(Ok);
            Some((stream::iter(messages), (feed, stop)))
        });
        let pieces = pieces.flatten();
        Ok(Response::new(Box::pin(pieces)))
    }

    type BorrowStream = Answers;

    async fn borrow(
        &self,
        request: Request<Streaming<BorrowOrder>>,
    ) -> Result<Response<Answers>, Status> {
        let mut orders = request.into_inner();
        let first = orders.message().await?.and_then(|first| first.kind);
        let Some(borrow_order::Kind::Link(named)) = first else {
            return Err(Status::invalid_argument("the first order names no link"));
        };
        let (Ok(tenant), Ok(runner)) = (named.tenant.parse(), named.runner.parse()) else {
            return Err(Status::invalid_argument("tenant or runner is no id"));
        };
        let generation = Generation(named.generation);
        let lent = self.app.peers.lend(tenant, runner, generation).await;
        let lent = lent.ok_or_else(|| {
            Status::failed_precondition("this server does not hold that link of the runner")
        })?;
        let frames = orders.scan((), |(), order| ready(order.ok()));
        let frames = frames.filter_map(|order| {
            ready(match order.kind {
                Some(borrow_order::Kind::Frame(frame)) => Some(frame),
                Some(borrow_order::Kind::Link(_)) | None => None,
            })
        });
        let (answers, lent_answers) = mpsc::channel(ANSWERS);
        // The stream of answers carries the loan: both end together.
        let serving = self
            .stop
            .clone()
            .run_until_cancelled_owned(lent.serve(frames, answers));
        let serving = AbortOnDropHandle::new(tokio::spawn(serving));
        let is_lent = borrow_answer::Kind::Lent(wire::Lent {});
        let answers = ReceiverStream::new(lent_answers).map(move |answer| {
            let _ = &serving;
            match answer {
                LentAnswer::Frame(frame) => borrow_answer::Kind::Frame(frame),
                LentAnswer::Superseded(id) => borrow_answer::Kind::Superseded(id.to_string()),
            }
        });
        let answers = stream::once(ready(is_lent)).chain(answers);
        let answers = answers.map(|kind| Ok(wire::BorrowAnswer { kind: Some(kind) }));
        Ok(Response::new(Box::pin(answers)))
    }
}

fn status(error: AppError) -> Status {
    match error {
        AppError::NotFound(_) => Status::not_found(error.to_string()),
        _ => Status::unavailable(error.to_string()),
    }
}
