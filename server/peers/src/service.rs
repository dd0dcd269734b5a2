//! The answers to other servers.

use std::{pin::Pin, sync::Arc};

use futures_util::{StreamExt as _, stream};
use proto::peer_v1 as wire;
use server_app::{App, AppError, SessionKey};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::wire::messages;

/// See the module. Who may ask was decided by the handshake of the connection.
pub(crate) struct PeerService {
    pub(crate) app: Arc<App>,
    pub(crate) stop: CancellationToken,
}

type Pieces = Pin<Box<dyn Stream<Item = Result<wire::Live, Status>> + Send>>;

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
}

fn status(error: AppError) -> Status {
    match error {
        AppError::NotFound(_) => Status::not_found(error.to_string()),
        _ => Status::unavailable(error.to_string()),
    }
}
