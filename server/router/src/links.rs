//! The links of this replica's runners.
//!
//! One owner task keeps which link of which runner is the current one (`registry`); one task for
//! each link hears the runner and the clock (`link`); whoever wants something of a link says so to the
//! runner himself (`handle`); everybody else holds a [`Links`]. Rules:
//! - generations: a newer link of a runner replaces the older, an older one is turned away, and
//!   the end of an older link never ends a newer one (docs/internals/contracts.md#a4);
//! - a link carries operations only once the verdicts on the runner's inventory are on their way,
//!   so that a `Forget` is never overtaken by an attempt to attach, and a recorded cancel is
//!   never missed;
//! - whatever a runner says that breaks the protocol ends its link with a reason. Operations
//!   survive the end of a link.

mod gate;
mod handle;
mod link;
mod registry;
mod reports;
mod seal;
mod shown;

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use futures_util::stream::BoxStream;
use proto::{sealing::KeyPlace, v1};
use shared_link::server::{self, Linked};
use shared_types::{
    Clock, Entropy, OperationId, RunnerId, SandboxId, SandboxSpec,
    limits::{AWAY_AT_MOST, HEARTBEAT_EVERY, LINK_LEASE, LINK_SILENCE},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use self::{gate::Gate, seal::LinkSealer};
pub(crate) use self::{
    handle::{Gone, LinkHandle, Reader},
    registry::Connection,
};
pub use crate::ports::{HelloFacts, LinkIdentity};
use crate::{
    bounds::STORE_PAUSE_AT_MOST,
    collect::{self, Collected, Collectors},
    ports::{LinkRows, Operations, PortError},
};

/// Follows how a runner is connected.
pub(crate) type Watch = watch::Receiver<Connection>;

/// How the runner is connected, once a link that is just being made carries operations or is gone:
/// what was stored before this was asked, the link that comes next finds.
pub(crate) async fn linked_or_not(watch: &mut Watch) -> Connection {
    let settled = watch.wait_for(|now| !matches!(now, Connection::Linking));
    match settled.await {
        Ok(connection) => connection.clone(),
        Err(_) => Connection::Offline { since: None },
    }
}

/// What the protocol needs to know of a connection.
pub(crate) fn linked(connection: &Connection) -> server::Connection<Linked> {
    match connection {
        Connection::Offline { since } => server::Connection::Offline { since: *since },
        Connection::Linking => server::Connection::Linking,
        Connection::Online(link) => server::Connection::Online(link.linked().clone()),
        Connection::Revoked => server::Connection::Revoked,
    }
}

/// What a runner says, until it says no more. It is read by the link's own task: a queue between
/// the two would take memory of every link and a wake-up of every frame.
pub type Inbound = BoxStream<'static, v1::RunnerFrame>;

/// The numbers of a link; the defaults are what the contract says.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// How often each end says that it lives (the server's own beats vary by 20 %).
    pub heartbeat_every: Duration,
    /// After this long without a frame the runner connects anew.
    pub silence: Duration,
    /// After this long without a frame the server ends the link.
    pub lease: Duration,
    /// How long a call waits for a runner that was heard of within its lease and has no link.
    pub away_at_most: Duration,
    /// How often it is stored when the runner was heard of, and asked whether the link still holds:
    /// what ends it elsewhere, a removed runner for instance, ends it here within that time.
    pub heard_every: Duration,
    /// What is open on a runner that was not heard of for this long is lost.
    pub lost_after: Duration,
    /// How long the runner may take to answer a cancel before the wish counts as recorded.
    pub cancel_within: Duration,
    /// The longest pause between two attempts to keep output that could not be kept, because the disk was
    /// full for instance.
    pub keep_again_after: Duration,
    /// How long a last word to a runner may take before the link is cut.
    pub goodbye_within: Duration,
    /// About how old a link becomes, give or take a tenth; the runner is asked to link again then.
    pub age_at_most: Option<Duration>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            heartbeat_every: HEARTBEAT_EVERY,
            silence: LINK_SILENCE,
            lease: LINK_LEASE,
            away_at_most: AWAY_AT_MOST,
            heard_every: Duration::from_secs(9),
            lost_after: Duration::from_secs(7 * 24 * 60 * 60),
            cancel_within: Duration::from_secs(15),
            keep_again_after: STORE_PAUSE_AT_MOST,
            goodbye_within: Duration::from_millis(500),
            age_at_most: None,
        }
    }
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    /// The runner closed the stream, or it broke.
    Closed,
    /// The runner said goodbye, for this reason; its next daemon will link again.
    Goodbye(String),
    /// The runner left for good, for this reason: it has nothing left to do or to tell.
    Left(String),
    /// Nothing was heard for as long as the lease.
    Silent,
    /// A newer link of the same runner took its place, or was there already.
    Replaced,
    /// The runner was revoked.
    Revoked,
    /// The runner is locked, because its folder was copied.
    Locked,
    /// The server stops.
    Shutdown,
    /// The key that signed the runner's access token holds no more.
    Rotated,
    /// The link reached its greatest age: the runner is to link again.
    Aged,
    /// The runner remembers less than it did: it is to begin a new journal and to link again.
    WentBack,
    /// The runner broke the protocol, or speaks another version of it.
    Violation(String),
    /// The link could not be served, for a reason on the server's side.
    Failed(String),
}

/// A handle to all links.
#[derive(Debug, Clone)]
pub struct Links {
    registry: registry::Handle,
    serving: Arc<Serving>,
    collectors: Collectors,
}

/// What every link's task needs.
struct Serving {
    rows: Arc<dyn LinkRows>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    options: LinkOptions,
    shutdown: CancellationToken,
    /// Links that are being served.
    links: AtomicU32,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Links {
    /// Starts the owner task, which ends when the last handle is dropped; `shutdown` ends every
    /// link.
    pub fn start(
        rows: Arc<dyn LinkRows>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: LinkOptions,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            registry: registry::start(),
            serving: Arc::new(Serving {
                rows,
                clock,
                entropy,
                options,
                shutdown,
                links: AtomicU32::new(0),
            }),
            collectors: Collectors::new(),
        }
    }

    /// Serves one link until it ends. The door has authenticated the runner, sent the challenge
    /// and checked the proof; it forwards frames both ways, sealed by [`Links::sealer`] as they leave, and lets a frame be at
    /// most [`shared_types::limits::MAX_FRAME_BYTES`] long. What the server has to say, a reason
    /// for the end included, goes to `outbound`, boxed, so that its room for frames is small.
    pub async fn attach(
        &self,
        identity: LinkIdentity,
        hello: v1::Hello,
        inbound: Inbound,
        outbound: mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> LinkEnd {
        let span = tracing::info_span!(
            "link",
            runner.id = %identity.runner,
            runner.name = %identity.name,
            link.generation = tracing::field::Empty
        );
        match self.spawn(span, identity, hello, inbound, outbound).await {
            Ok(end) => end,
            Err(error) => LinkEnd::Failed(error.to_string()),
        }
    }

    /// A task of its own, so that it also cleans up after a caller that is dropped. Started from a
    /// plain function, because an async one would keep room for the task in itself.
    fn spawn(
        &self,
        span: tracing::Span,
        identity: LinkIdentity,
        hello: v1::Hello,
        inbound: Inbound,
        outbound: mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> JoinHandle<LinkEnd> {
        let serve = link::serve(self.clone(), identity, hello, inbound, outbound);
        tokio::spawn(serve.instrument(span))
    }

    /// What the server says on a link of this runner leaves through the gate.
    pub async fn gate(&self, runner: RunnerId) -> Gate {
        self.registry.gate(runner).await
    }

    /// Seals what the server says on a link of this runner, with the key that will be in this place.
    pub async fn sealer(&self, runner: RunnerId, key: KeyPlace<v1::ServerFrame>) -> LinkSealer {
        let gate = self.gate(runner).await;
        LinkSealer::new(key, gate, Arc::clone(&self.serving.clock))
    }

    /// The runner is about to be revoked: when this returns its gate is closed, so that nothing is
    /// sealed after the commit. To be followed by [`Links::revoke`] or [`Links::unbar`].
    pub async fn bar(&self, runner: RunnerId) {
        self.registry.bar(runner).await;
    }

    /// The runner that was barred is not revoked after all. A link that it has ends, because what was
    /// to be sent meanwhile was not.
    pub async fn unbar(&self, runner: RunnerId) {
        self.registry.unbar(runner).await;
    }

    /// Ends the runner's link and every stream of its operations, and turns it away from now on.
    /// The revocation is committed before this is called.
    pub async fn revoke(&self, runner: RunnerId) {
        self.registry.revoke(runner).await;
    }

    /// Ends the runner's link and turns it away from now on; what runs on it is not lost before the
    /// runner is revoked. The lock is committed before this is called.
    pub async fn lock(&self, runner: RunnerId) {
        self.registry.lock(runner).await;
    }

    /// Ends every link, because the key that signed the access tokens holds no more. A runner that is
    /// still let in links again.
    pub async fn rotated(&self) {
        self.registry.rotated().await;
    }

    /// Whether the runner has a link here that carries operations.
    pub async fn online(&self, runner: RunnerId) -> bool {
        self.presence(runner).await.is_online()
    }

    /// Follows whether a runner is online.
    pub async fn presence(&self, runner: RunnerId) -> Presence {
        Presence(self.watch(runner).await)
    }

    pub(crate) async fn watch(&self, runner: RunnerId) -> Watch {
        self.registry.watch(runner).await
    }

    /// Has the runner make a sandbox like this, or start it at once; `false` where it has no link here.
    pub async fn ensure_sandbox(
        &self,
        runner: RunnerId,
        (sandbox, spec): (SandboxId, &SandboxSpec),
        start: bool,
    ) -> bool {
        match self.here(runner).await {
            Some(link) => link.ensure(sandbox, spec, start).await.is_ok(),
            None => false,
        }
    }

    /// Has the runner stop a sandbox; `false` where it has no link here.
    pub async fn stop_sandbox(&self, runner: RunnerId, sandbox: SandboxId) -> bool {
        match self.here(runner).await {
            Some(link) => link.stop_sandbox(sandbox).await.is_ok(),
            None => false,
        }
    }

    /// Has the runner remove a sandbox with its files; `false` where it has no link here.
    pub async fn remove_sandbox(&self, runner: RunnerId, sandbox: SandboxId) -> bool {
        match self.here(runner).await {
            Some(link) => link.remove_sandbox(sandbox).await.is_ok(),
            None => false,
        }
    }

    async fn here(&self, runner: RunnerId) -> Option<LinkHandle> {
        match &*self.watch(runner).await.borrow() {
            Connection::Online(link) => Some(link.clone()),
            _ => None,
        }
    }

    /// The operation, while it is being collected.
    pub fn collected(&self, id: OperationId) -> Option<Collected> {
        self.collectors.find(id)
    }

    /// What can be read of an operation that is placed; nothing, where these know none. Nothing is started
    /// by it.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn read(
        &self,
        operations: Arc<dyn Operations>,
        id: OperationId,
    ) -> Result<Option<Collected>, PortError> {
        let ports = self.ports(operations);
        self.collectors.read(&ports, id).await
    }

    pub(crate) fn collectors(&self) -> &Collectors {
        &self.collectors
    }

    /// What it takes to collect operations whose requests are not known.
    fn ports(&self, operations: Arc<dyn Operations>) -> collect::Ports {
        collect::Ports {
            links: self.clone(),
            operations,
            clock: Arc::clone(&self.serving.clock),
            fleet: None,
        }
    }

    /// What the runner's newest link here has shown of its memory.
    #[cfg(test)]
    pub(crate) async fn seen(&self, runner: RunnerId) -> Option<server::Seen> {
        self.registry.seen(runner).await
    }

    pub(crate) fn options(&self) -> &LinkOptions {
        &self.serving.options
    }
}

/// Whether one runner is online, as it changes.
#[derive(Debug, Clone)]
pub struct Presence(watch::Receiver<Connection>);

impl Presence {
    /// Whether it has a link here that carries operations.
    pub fn is_online(&self) -> bool {
        matches!(&*self.0.borrow(), Connection::Online(_))
    }

    /// Waits until it is (`true`) or is not (`false`) online; forever, once nothing can link any
    /// more.
    pub async fn until(&mut self, online: bool) {
        let wanted = |now: &Connection| matches!(now, Connection::Online(_)) == online;
        if self.0.wait_for(wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
