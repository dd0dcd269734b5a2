//! The door of the link: authenticates the stream, then hands its frames to the router.
//!
//! Before the runner has proved itself it may hold one stream for ten seconds and send one frame
//! of 64 KiB; everything behind [`server_app::App::attach`] is bounded by the protocol itself.

use std::{pin::Pin, time::Duration};

use prost::Message as _;
use proto::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    v1::{self, runner_frame, server_frame},
};
use server_app::{App, LinkChallenge, LinkClaims, LinkIdentity};
use shared_types::limits::{HELLO_WITHIN, MAX_HELLO_BYTES};
use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::status;
use crate::serve::Place;

/// Frames that may wait in each direction.
const FRAMES: usize = 64;
/// How long a runner may take to take what was said last.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

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
        let (outbound, frames) = mpsc::channel(FRAMES);
        let place = request.extensions().get::<Place>().cloned();
        let link = Link {
            app: self.app.clone(),
            token,
            claims,
            inbound: request.into_inner(),
            outbound,
        };
        tokio::spawn(async move {
            link.run().await;
            drop(place);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(frames))))
    }
}

struct Link {
    app: App,
    token: String,
    claims: LinkClaims,
    inbound: Streaming<v1::RunnerFrame>,
    outbound: mpsc::Sender<Result<v1::ServerFrame, Status>>,
}

impl Link {
    async fn run(mut self) {
        let challenge = self.app.enrolment.challenge_link();
        let (identity, hello) = match self.hello(&challenge).await {
            Ok(proved) => proved,
            Err(refused) => {
                tracing::info!(runner.id = %self.claims.runner, reason = refused.message(), "a link was refused");
                let _ = self.outbound.send(Err(refused)).await;
                return;
            }
        };
        let (to_router, from_runner) = mpsc::channel(FRAMES);
        let (to_runner, from_router) = mpsc::channel(FRAMES);
        let (last_word, ended) = (self.outbound.clone(), CancellationToken::new());
        // Each of the three ends the others: by dropping its end of a channel, and a runner that
        // takes nothing any more is not waited for.
        let (_, read, ()) = tokio::join!(
            async {
                let attached = self
                    .app
                    .attach(identity, challenge, hello, from_runner, to_runner);
                attached.await;
                ended.cancel();
            },
            pump_in(self.inbound, to_router),
            async {
                tokio::select! {
                    () = pump_out(from_router, self.outbound) => {}
                    () = last_words_were_due(&ended) => {}
                }
            },
        );
        if let Err(unreadable) = read {
            // A runner that takes nothing any more, or is gone, hears no reason.
            let _ = last_word.try_send(Err(unreadable));
        }
    }

    /// The runner's first frame, once it has proved that it holds the key which the token names.
    async fn hello(
        &mut self,
        challenge: &LinkChallenge,
    ) -> Result<(LinkIdentity, v1::Hello), Status> {
        let frame = v1::ServerFrame {
            kind: Some(server_frame::Kind::Challenge(v1::Challenge {
                nonce: challenge.nonce.to_vec(),
            })),
        };
        self.outbound
            .send(Ok(frame))
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
            .prove_link(&self.claims, challenge, &self.token, &hello.signature)
            .await
            .map_err(|error| status(&error))?;
        Ok((identity, hello))
    }
}

async fn last_words_were_due(ended: &CancellationToken) {
    ended.cancelled().await;
    tokio::time::sleep(LAST_WORDS_WITHIN).await;
}

/// Reads until either end has enough; an error is a frame that cannot be read, such as one that
/// is too large.
async fn pump_in(
    mut inbound: Streaming<v1::RunnerFrame>,
    to_router: mpsc::Sender<v1::RunnerFrame>,
) -> Result<(), Status> {
    loop {
        let message = tokio::select! {
            message = inbound.message() => message,
            () = to_router.closed() => return Ok(()),
        };
        match message {
            Ok(Some(frame)) => {
                if to_router.send(frame).await.is_err() {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(unreadable) => {
                tracing::info!(reason = unreadable.message(), "a link broke");
                return Err(unreadable);
            }
        }
    }
}

async fn pump_out(
    mut from_router: mpsc::Receiver<v1::ServerFrame>,
    outbound: mpsc::Sender<Result<v1::ServerFrame, Status>>,
) {
    while let Some(frame) = from_router.recv().await {
        if outbound.send(Ok(frame)).await.is_err() {
            return;
        }
    }
}
