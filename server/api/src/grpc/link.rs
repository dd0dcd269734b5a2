//! The link as a bidirectional stream of gRPC.

use std::{pin::Pin, sync::Arc};

use futures_util::{StreamExt as _, future::ready, stream};
use proto::v1;
use server_app::App;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    edge::serve::ConnectionPermit,
    link::{Caller, FRAMES, ServedLink},
};

pub(super) struct LinkService {
    app: Arc<App>,
}

impl LinkService {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

type FrameStream = Pin<Box<dyn Stream<Item = Result<v1::ServerFrame, Status>> + Send>>;

#[tonic::async_trait]
impl v1::runner_link_server::RunnerLink for LinkService {
    type LinkStream = FrameStream;

    async fn link(
        &self,
        request: Request<Streaming<v1::RunnerFrame>>,
    ) -> Result<Response<FrameStream>, Status> {
        let caller = Caller::of(request.metadata().as_ref(), &self.app)?;
        let (challenge, sealer) = caller.challenge(&self.app).await;
        let (outbound, frames) = mpsc::channel(FRAMES);
        let (refuse, refused) = oneshot::channel();
        let place = request.extensions().get::<ConnectionPermit>().cloned();
        if let Some(place) = &place {
            place.may_greet();
        }
        let link = ServedLink {
            app: self.app.clone(),
            caller,
            inbound: request.into_inner(),
            place: place.clone(),
        };
        tokio::spawn(async move {
            // A runner that is gone hears no reason.
            let _ = refuse.send(link.run(challenge, outbound).await);
            drop(place);
        });
        // The reason comes after every frame, because by then no task sends frames any more.
        let reason = stream::once(refused).filter_map(async |ended| ended.ok()?.err().map(Err));
        let frames = ReceiverStream::new(frames)
            .scan(sealer, |sealer, frame| ready(sealer.seal(frame)))
            .map(Ok);
        Ok(Response::new(Box::pin(frames.chain(reason))))
    }
}
