//! The door of the link: authenticates the stream, then hands its frames to the router.
//!
//! Before the runner has proved itself it may hold one stream for ten seconds and send one frame
//! of 64 KiB; everything behind [`server_app::App::attach`] is bounded by the protocol itself.

use std::pin::Pin;

use futures_util::{
    StreamExt as _,
    future::ready,
    stream::{self, BoxStream},
};
use prost::Message as _;
use proto::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    v1::{self, runner_frame, server_frame},
};
use server_app::{App, LinkChallenge, LinkClaims, LinkIdentity};
use shared_types::limits::{HELLO_WITHIN, MAX_HELLO_BYTES};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use super::status;
use crate::serve::Place;

/// Frames that may wait in each direction.
const FRAMES: usize = 64;

pub(super) struct Service {
    app: App,
}

impl Service {
    pub(super) fn new(app: App) -> Self {
        Self { app }
    }
}

type Frames = Pin<Box<dyn Stream<Item = Result<v1::ServerFrame, Status>> + Send>>;

#[tonic::async_trait]
impl v1::runner_link_server::RunnerLink for Service {
    type LinkStream = Frames;

    async fn link(
        &self,
        request: Request<Streaming<v1::RunnerFrame>>,
    ) -> Result<Response<Frames>, Status> {
        let token = request
            .metadata()
            .get("authorization")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| Status::unauthenticated("an access token is needed"))?
            .to_owned();
        let claims = self
            .app
            .enrolment
            .check_link_token(&token)
            .ok_or_else(|| Status::unauthenticated("the access token does not hold"))?;
        let (challenge, mut tickets) = self.app.enrolment.challenge_link();
        let (outbound, frames) = mpsc::channel(FRAMES);
        let (refuse, refused) = oneshot::channel();
        let place = request.extensions().get::<Place>().cloned();
        let link = Link {
            app: self.app.clone(),
            token,
            claims,
            inbound: request.into_inner(),
        };
        tokio::spawn(async move {
            // A runner that is gone hears no reason.
            let _ = refuse.send(link.run(challenge, outbound).await);
            drop(place);
        });
        // The reason comes after every frame, because by then nobody sends frames any more.
        let reason = stream::once(refused).filter_map(async |ended| ended.ok()?.err().map(Err));
        let frames = ReceiverStream::new(frames).map(move |mut frame: Box<v1::ServerFrame>| {
            tickets.sign(&mut frame);
            Ok(*frame)
        });
        Ok(Response::new(Box::pin(frames.chain(reason))))
    }
}

struct Link {
    app: App,
    token: String,
    claims: LinkClaims,
    inbound: Streaming<v1::RunnerFrame>,
}

impl Link {
    /// Serves the link to its end; an error is what the runner is told at last.
    async fn run(
        mut self,
        challenge: LinkChallenge,
        outbound: mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> Result<(), Status> {
        // On the heap, and gone once it is proved: a link that waits needs none of it.
        let (identity, hello) = match Box::pin(self.hello(challenge, &outbound)).await {
            Ok(proved) => proved,
            Err(refused) => {
                tracing::info!(runner.id = %self.claims.runner, reason = refused.message(), "a link was refused");
                return Err(refused);
            }
        };
        let Self { app, inbound, .. } = self;
        let (inbound, mut broken) = readable(inbound);
        app.attach(identity, hello, inbound, outbound).await;
        broken.try_recv().map_or(Ok(()), Err)
    }

    /// The runner's first frame, once it has proved that it holds the key which the token names.
    async fn hello(
        &mut self,
        challenge: LinkChallenge,
        outbound: &mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> Result<(LinkIdentity, v1::Hello), Status> {
        let kind = server_frame::Kind::Challenge(v1::Challenge {
            nonce: challenge.nonce().to_vec(),
        });
        outbound
            .send(Box::new(kind.into()))
            .await
            .map_err(|_| Status::cancelled("the runner is gone"))?;
        let frame = tokio::time::timeout(HELLO_WITHIN, self.inbound.message())
            .await
            .map_err(|_| Status::deadline_exceeded("no hello came within 10 s"))??
            .ok_or_else(|| Status::cancelled("the runner is gone"))?;
        if frame.encoded_len() > MAX_HELLO_BYTES {
            return Err(Status::resource_exhausted("a hello may have 64 KiB"));
        }
        let Some(runner_frame::Kind::Hello(hello)) = frame.kind else {
            return Err(Status::invalid_argument("the first frame must be a hello"));
        };
        if hello.protocol_version < OLDEST_PROTOCOL_VERSION {
            // The runner takes this code for final: trying again would not help it.
            return Err(Status::failed_precondition(format!(
                "the runner speaks version {} of the link protocol, this server {OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION}: upgrade gantry-runner",
                hello.protocol_version
            )));
        }
        let identity = self
            .app
            .enrolment
            .prove_link(&self.claims, challenge, &self.token, &hello)
            .await
            .map_err(|error| status(&error))?;
        Ok((identity, *hello))
    }
}

/// The frames up to the first that cannot be read, such as one that is too large, and what is
/// wrong with that.
fn readable(
    inbound: Streaming<v1::RunnerFrame>,
) -> (
    BoxStream<'static, v1::RunnerFrame>,
    oneshot::Receiver<Status>,
) {
    let (breaks, broken) = oneshot::channel();
    let frames = inbound.scan(Some(breaks), |breaks, frame| {
        if let Err(unreadable) = &frame
            && let Some(breaks) = breaks.take()
        {
            tracing::info!(reason = unreadable.message(), "a link broke");
            // A link that ends meanwhile has its own reason.
            let _ = breaks.send(unreadable.clone());
        }
        ready(frame.ok())
    });
    (frames.boxed(), broken)
}
