//! The door of the link, whatever carries it: authenticates the stream, then hands its frames to
//! the router.
//!
//! Before the runner has proved itself it may hold one stream for ten seconds and send one frame
//! of 64 KiB, and its connection is a stranger's (`serve/strangers`); everything behind [`server_app::App::attach`] is bounded by the protocol itself.

use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, future::ready, stream::BoxStream};
use http::{HeaderMap, header::AUTHORIZATION};
use prost::Message as _;
use proto::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION,
    sealing::{NotSealed, Opener},
    v1::{self, runner_frame, server_frame},
};
use server_app::{App, LinkChallenge, LinkClaims, LinkIdentity, LinkSealer};
use shared_types::{
    RunnerId,
    limits::{HELLO_WITHIN, MAX_HELLO_BYTES},
};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::{edge::serve::ConnectionPermit, status::status};

/// Frames that may wait in each direction.
pub(crate) const FRAMES: usize = 64;

/// The bearer of a valid access token.
pub(crate) struct Caller {
    token: String,
    claims: LinkClaims,
}

impl Caller {
    /// Reads the token of a call.
    pub(crate) fn of(headers: &HeaderMap, app: &App) -> Result<Self, Status> {
        let token = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| Status::unauthenticated("an access token is needed"))?
            .to_owned();
        let claims = app
            .enrolment
            .check_link_token(&token)
            .ok_or_else(|| Status::unauthenticated("the access token does not hold"))?;
        Ok(Self { token, claims })
    }

    /// The challenge of its link, and what seals all that the server says there.
    pub(crate) async fn challenge(&self, app: &App) -> (LinkChallenge, LinkSealer) {
        app.enrolment
            .challenge_link(&self.claims, &self.token)
            .await
    }
}

/// A link from its challenge on.
pub(crate) struct ServedLink<S> {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    /// The runner's frames; an error is the last of them.
    pub(crate) inbound: S,
    /// That of its connection.
    pub(crate) place: Option<ConnectionPermit>,
}

impl<S> ServedLink<S>
where
    S: Stream<Item = Result<v1::RunnerFrame, Status>> + Send + Unpin + 'static,
{
    /// Serves the link to its end. An error is the last thing that the runner receives.
    pub(crate) async fn run(
        mut self,
        challenge: LinkChallenge,
        outbound: mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> Result<(), Status> {
        // The handshake is on the heap and freed at its end: a link that waits needs none of it.
        let (identity, opener, hello) = match Box::pin(self.hello(challenge, &outbound)).await {
            Ok(proved) => proved,
            Err(refused) => {
                tracing::info!(runner.id = %self.caller.claims.runner, reason = refused.message(), "a link was refused");
                return Err(refused);
            }
        };
        if let Some(place) = &self.place {
            place.let_in();
        }
        let (inbound, mut broken) = readable(self.inbound, opener, identity.runner);
        self.app.attach(identity, hello, inbound, outbound).await;
        broken.try_recv().map_or(Ok(()), Err)
    }

    async fn may_link(&self) -> Result<(), Status> {
        let taken = self.app.takes_links();
        taken.map_err(|why| Status::unavailable(why.to_string()))?;
        let may = self.app.enrolment.may_link(&self.caller.claims).await;
        may.map_err(|error| status(&error))
    }

    /// The runner's hello, once the runner has proved that it holds the key in the token.
    async fn hello(
        &mut self,
        challenge: LinkChallenge,
        outbound: &mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> Result<(LinkIdentity, Opener<v1::RunnerFrame>, v1::Hello), Status> {
        self.may_link().await?;
        let kind = server_frame::Kind::Challenge(challenge.said().clone());
        outbound
            .send(Box::new(kind.into()))
            .await
            .map_err(|_| Status::cancelled("the runner is gone"))?;
        let Ok(frame) = tokio::time::timeout(HELLO_WITHIN, self.inbound.next()).await else {
            // If the runner was removed in the meantime, that is the better reason.
            self.may_link().await?;
            return Err(Status::deadline_exceeded("no hello came within 10 s"));
        };
        let frame = frame.ok_or_else(|| Status::cancelled("the runner is gone"))??;
        if frame.encoded_len() > MAX_HELLO_BYTES {
            return Err(too_large_a_hello());
        }
        let Some(runner_frame::Kind::Proof(proof)) = frame.kind else {
            return Err(Status::invalid_argument("the first frame must be a proof"));
        };
        let Caller { token, claims } = &self.caller;
        if proof.protocol_version < OLDEST_PROTOCOL_VERSION {
            let version = proof.protocol_version;
            self.app.runners.version_refused(claims, version).await;
            return Err(Status::failed_precondition(format!(
                "the runner speaks version {version} of the link protocol, this server {OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION}: upgrade gantry-runner"
            )));
        }
        let (identity, opener) = self
            .app
            .enrolment
            .prove_link(claims, challenge, token, &proof)
            .await
            .map_err(|error| status(&error))?;
        let hello = opener.first(&proof.hello.unwrap_or_default());
        match hello.map_err(not_sealed)?.kind {
            Some(runner_frame::Kind::Hello(hello)) => Ok((identity, opener, *hello)),
            _ => Err(Status::invalid_argument("a proof carries a hello")),
        }
    }
}

fn not_sealed(reason: NotSealed) -> Status {
    Status::unauthenticated(reason.to_string())
}

/// The refusal of a first frame that is too long.
pub(crate) fn too_large_a_hello() -> Status {
    Status::resource_exhausted("a hello may have 64 KiB")
}

/// The runner's frames up to the first unreadable one, such as one that is too large or not sealed, and the reason.
fn readable(
    inbound: impl Stream<Item = Result<v1::RunnerFrame, Status>> + Send + 'static,
    mut opener: Opener<v1::RunnerFrame>,
    runner: RunnerId,
) -> (
    BoxStream<'static, v1::RunnerFrame>,
    oneshot::Receiver<Status>,
) {
    let (breaks, broken) = oneshot::channel();
    let frames = inbound.scan(Some(breaks), move |breaks, frame| {
        let frame = frame.and_then(|frame| opener.open(frame).map_err(not_sealed));
        if let Err(unreadable) = &frame
            && let Some(breaks) = breaks.take()
        {
            tracing::info!(runner.id = %runner, reason = unreadable.message(), "a link broke");
            // A link that has ended has its own reason.
            let _ = breaks.send(unreadable.clone());
        }
        ready(frame.ok())
    });
    (frames.boxed(), broken)
}
