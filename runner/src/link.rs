//! The runner's link to its server: kept for as long as the daemon runs, and opened again whenever it
//! is lost. Operations do not depend on it: they go on (see [`crate::operations`]).
//!
//! Some ends are proved by the server and do not get better by trying again: it has dismissed the
//! runner, or speaks another protocol. They end the daemon with one clear line. Everything else is
//! tried again, with full jitter, also a refusal without a proof: anything on the way can refuse. A
//! host that has got another network since the last attempt tries again at once.

mod frames;
mod hearing;
mod session;

use std::{sync::Arc, time::Duration};

use shared_link::runner::LinkEndReason;
use shared_telemetry::runner::{LINK_FAILURES, LINKED};
use shared_types::{Clock, Digest, Entropy, JournalId};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use hearing::Unproven;
pub(crate) use session::Introduction;
use session::{LinkContext, LinkProgress};

use crate::{
    backoff::Backoff,
    connection::Transport,
    endpoints::Endpoints,
    enrolment::{EnrolmentError, Proven},
    home::{EnrolledHome, Home, HomeError},
    key::RunnerKey,
    model_server::{KnownModels, ModelServer},
    network::NetworkNews,
    operations::{OperationsGone, OperationsHandle},
    room::DiskRoom,
};

/// An attempt that takes longer than this after a change of the host's network is started again.
const OVERTAKEN: Duration = Duration::from_secs(1);

/// Keeps the link.
pub(crate) struct LinkKeeper {
    pub(crate) endpoints: Endpoints,
    pub(crate) home: Home,
    pub(crate) enrolled: EnrolledHome,
    pub(crate) key: RunnerKey,
    pub(crate) introduction: Introduction,
    pub(crate) operations: OperationsHandle,
    pub(crate) room: watch::Receiver<Option<DiskRoom>>,
    pub(crate) model_server: Option<ModelServer>,
    /// The models of that server, as last seen.
    pub(crate) models: KnownModels,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) backoff: Backoff,
    /// Ends the link politely, and then [`LinkKeeper::run`].
    pub(crate) goodbye: CancellationToken,
}

impl LinkKeeper {
    /// Runs until it has to say goodbye, or until trying again cannot help.
    pub(crate) async fn run(mut self) -> Result<(), LinkError> {
        let goodbye = self.goodbye.clone();
        loop {
            let mut progress = LinkProgress::default();
            // From before the attempt on: what comes while it fails is not missed.
            let mut news = NetworkNews::listen();
            // It watches for the goodbye itself, because it may have something to end.
            let ended = self.once(&mut progress, &mut news).await;
            LINKED.set(&[], 0.0);
            let Err(error) = ended else {
                return Ok(());
            };
            LINK_FAILURES.add(&[error.word()], 1);
            if goodbye.is_cancelled() {
                return Ok(());
            }
            if error.is_final() {
                return Err(error);
            }
            if matches!(error, LinkError::Changed) {
                continue;
            }
            if let LinkError::Ended(LinkEndReason::NewJournal) = error {
                let journal = JournalId::generate(self.clock.as_ref(), self.entropy.as_ref());
                self.operations.begin_journal(journal).await;
            }
            let served = progress.welcomed.map(|since| since.elapsed());
            let wait = self.backoff.failed(served, self.random());
            let wait = wait.max(self.spread(&error));
            // The end of the link is logged, and a server that only wants another one is no
            // trouble.
            if !error.is_age() {
                tracing::warn!(
                    runner.id = %self.introduction.runner,
                    server = %self.endpoints.last(),
                    %error,
                    failures = self.backoff.failures(),
                    wait_ms = wait.as_millis() as u64,
                    "no link to the server; trying again"
                );
            }
            tokio::select! {
                () = self.pause(wait, &mut news) => {}
                () = goodbye.cancelled() => return Ok(()),
            }
        }
    }

    /// Waits before the next attempt: for so long, or less where the host's network changes.
    async fn pause(&mut self, wait: Duration, news: &mut NetworkNews) {
        let until = Instant::now() + wait;
        let changed = async {
            news.heard().await;
            sleep(self.backoff.hurry_in(self.clock.boot_time())).await;
        };
        tokio::select! {
            () = sleep_until(until) => return,
            () = changed => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        let (now, random) = (self.clock.boot_time(), self.random());
        let wait = self.backoff.hurry(left, now, random);
        tracing::info!(
            runner.id = %self.introduction.runner,
            wait_ms = wait.as_millis() as u64,
            "the host has another address or route; trying again"
        );
        sleep(wait).await;
    }

    /// Connects, proves itself and serves one link; `progress` says how far that came.
    async fn once(
        &mut self,
        progress: &mut LinkProgress,
        news: &mut NetworkNews,
    ) -> Result<(), LinkError> {
        let goodbye = self.goodbye.clone();
        // A request before the change of the network may never be answered.
        let patience = self.backoff.hurry_in(self.clock.boot_time()).max(OVERTAKEN);
        let overtaken = async {
            news.heard().await;
            sleep(patience).await;
        };
        let (proven, token) = tokio::select! {
            connected = self.connect() => connected?,
            () = goodbye.cancelled() => return Ok(()),
            () = overtaken => return Err(LinkError::Overtaken),
        };
        self.remember(proven.certificate);
        let transport = proven.reached.transport;
        let session = LinkContext {
            introduction: &self.introduction,
            home: &self.home,
            key: &self.key,
            server: &self.enrolled.server_identity,
            operations: &self.operations,
            room: &self.room,
            model_server: self.model_server.as_ref(),
            models: &self.models,
            entropy: &self.entropy,
            clock: &self.clock,
            goodbye: &self.goodbye,
        };
        let ended = session.run(proven, &token, progress).await;
        if let Some(noting) = progress.noting.take() {
            // The note that is written last counts.
            let _ = noting.await;
        }
        self.home.note_link(None);
        // It passes calls, and perhaps no stream. A server that only takes its time, or has reason
        // to end the link, has sent something first.
        if ended.is_err() && !progress.heard {
            self.endpoints.remember(transport == Transport::Grpc);
        }
        ended
    }

    /// The access token lives in memory only, and serves one link.
    async fn connect(&mut self) -> Result<(Proven, String), EnrolmentError> {
        let route = self.endpoints.next().await?;
        let identity = &self.enrolled.server_identity;
        let proven = Proven::connect(&route, identity, self.entropy.as_ref()).await;
        let over = proven.as_ref().map(|proven| proven.reached.transport);
        // The transport that passed is tried first the next time, and one that did not is not.
        self.endpoints
            .remember(matches!(over, Ok(Transport::WebSocket)));
        let mut proven = proven?;
        let token = proven
            .authenticate(&self.key, &self.home, self.enrolled.runner, identity)
            .await?;
        Ok((proven, token))
    }

    /// Notes a certificate that changed; the server's identity has vouched for the new one.
    fn remember(&mut self, certificate: Option<[u8; 32]>) {
        let certificate = certificate.and_then(|hash| Digest::from_slice(&hash));
        if certificate == self.enrolled.certificate {
            return;
        }
        self.enrolled.certificate = certificate;
        let noted = self.home.change(|enrolled| {
            enrolled.certificate = certificate;
            Ok::<_, HomeError>(())
        });
        match noted {
            Ok(_) => {
                tracing::info!(server = %self.endpoints.last(), "another certificate is presented than at the last link; the server's identity vouches for it");
            }
            Err(error) => {
                tracing::warn!(%error, "the server's new certificate cannot be remembered")
            }
        }
    }

    /// The longest time for which a server that ends sound links keeps this runner away, so that not
    /// all come at once.
    fn spread(&self, error: &LinkError) -> Duration {
        match error {
            LinkError::Ended(
                LinkEndReason::Goodbye {
                    reconnect_within, ..
                }
                | LinkEndReason::Aged { reconnect_within },
            ) => reconnect_within.mul_f64(self.random() as f64 / u64::MAX as f64),
            _ => Duration::ZERO,
        }
    }

    fn random(&self) -> u64 {
        let mut random = [0; 8];
        self.entropy.fill(&mut random);
        u64::from_be_bytes(random)
    }
}

/// The reason why there is no link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Connect(#[from] EnrolmentError),
    /// A status at the end of a link, which anything on the way can say.
    #[error("the server, or something between here and there, refuses the link: {}", .0.message())]
    Refused(Status),
    #[error("the connection was lost: {}", .0.message())]
    Lost(Status),
    #[error("the server ended the link")]
    Closed,
    /// A link says at its beginning what there is.
    #[error("the runner serves other workspaces now")]
    Changed,
    #[error("the host has got another address or route since the attempt began")]
    Overtaken,
    #[error("the server sent an access token that cannot be used")]
    AccessToken,
    #[error(transparent)]
    Unproven(#[from] Unproven),
    #[error(transparent)]
    Ended(#[from] LinkEndReason),
    #[error(transparent)]
    Gone(#[from] OperationsGone),
}

impl LinkError {
    /// True if trying again cannot help.
    pub(crate) fn is_final(&self) -> bool {
        // Of a welcome that was sealed.
        let proved = matches!(self, Self::Ended(LinkEndReason::Version(_)));
        proved || self.is_dismissal() || matches!(self, Self::Gone(_))
    }

    /// Its kind, for metrics.
    fn word(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Refused(_) | Self::AccessToken => "refused",
            Self::Lost(_) => "lost",
            Self::Closed => "closed",
            Self::Changed => "changed",
            Self::Overtaken => "network_changed",
            Self::Unproven(_) => "unproven",
            Self::Ended(LinkEndReason::Aged { .. }) => "aged",
            Self::Ended(_) | Self::Gone(_) => "ended",
        }
    }

    /// True if the link was sound, and only reached its greatest age.
    fn is_age(&self) -> bool {
        matches!(self, Self::Ended(LinkEndReason::Aged { .. }))
    }

    /// True if the server has proved that this runner was removed or locked.
    pub(crate) fn is_dismissal(&self) -> bool {
        matches!(self, Self::Connect(EnrolmentError::Dismissed(_)))
    }

    fn of(status: Status) -> Self {
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition => {
                Self::Refused(status)
            }
            _ => Self::Lost(status),
        }
    }
}

#[cfg(test)]
mod tests;
