//! The links of this replica's runners.
//!
//! One owner task keeps the current link of each runner (`registry`). One task for each link hears the runner and the
//! clock (`link`). A caller that wants something of a link sends the frame itself (`handle`). All others hold a
//! [`Links`]. Rules:
//! - generations: a newer link of a runner replaces the older, an older one is turned away, and the end of an older
//!   link never ends a newer one (docs/internals/contracts.md#a4);
//! - a link carries operations only once the verdicts on the runner's inventory are on their way. So an attempt to
//!   attach never overtakes a `Forget`, and a recorded cancel is never missed;
//! - a link that another replica holds is borrowed from it (`borrowed`, `lent`), and is then used as one of this replica;
//! - a frame of the runner that breaks the protocol ends its link with a reason. Operations survive the end of a link.

mod asks;
mod borrowed;
mod figures;
mod gate;
mod handle;
mod lent;
mod link;
mod registry;
mod reports;
mod seal;
mod shown;

use std::{
    sync::{Arc, OnceLock, atomic::AtomicU32},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use proto::{sealing::KeyPlace, v1};
use shared_link::server::{self, AskKind, Figures, Linked, TurnedAway};
use shared_types::{
    Clock, Entropy, Generation, OperationId, RunnerId, SandboxId, SandboxSpec, TenantId, Timestamp,
    TraceContext,
    limits::{AWAY_AT_MOST, HEARTBEAT_EVERY, LINK_LEASE, LINK_SILENCE},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::figures::FleetFigures;
pub use self::{
    asks::ModelAnswer,
    borrowed::{LentAnswer, LinkHolders, NotLent},
    gate::Gate,
    lent::LentLink,
    seal::LinkSealer,
};
pub(crate) use self::{
    handle::{LinkGone, LinkHandle, OutputReader},
    registry::RunnerConnection,
};
use crate::{
    bounds::{LINKING_WITHIN, STORE_PAUSE_AT_MOST},
    collect::{self, Collected, Collectors},
};
use server_records::{LinkIdentity, LinkRows, LinkState, Operations, PortError};

/// Follows the connection of a runner.
pub(crate) type ConnectionWatch = watch::Receiver<RunnerConnection>;

/// The connection of the runner, once a link that is just being made carries operations or is gone. The next link finds
/// everything that was stored before this call.
pub(crate) async fn linked_or_not(watch: &mut ConnectionWatch) -> RunnerConnection {
    let settled = watch.wait_for(|now| !matches!(now, RunnerConnection::Linking));
    match settled.await {
        Ok(connection) => connection.clone(),
        Err(_) => RunnerConnection::Offline { since: None },
    }
}

/// The state of a connection in the protocol's terms.
pub(crate) fn linked(connection: &RunnerConnection) -> server::RunnerConnection<Linked> {
    match connection {
        RunnerConnection::Offline { since } => server::RunnerConnection::Offline { since: *since },
        RunnerConnection::Linking => server::RunnerConnection::Linking,
        RunnerConnection::Online(link) => server::RunnerConnection::Online(link.linked().clone()),
        RunnerConnection::Revoked => server::RunnerConnection::Revoked,
    }
}

/// The frames of a runner, until it sends no more. The link's own task reads them: a queue between the two would take
/// memory of every link and a wake-up of every frame.
pub type Inbound = BoxStream<'static, v1::RunnerFrame>;

/// The numbers of a link; the defaults are those of the contract.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The pause between two heartbeats of each end (the server's own vary by 20 %).
    pub heartbeat_every: Duration,
    /// The time without a frame after which the runner connects again.
    pub silence: Duration,
    /// The time without a frame after which the server ends the link.
    pub lease: Duration,
    /// The longest wait of a call for a runner that was heard of within its lease and has no link.
    pub away_at_most: Duration,
    /// The pause between two stores of the runner's last-heard time. At each the store is asked if the link still
    /// holds. So an end elsewhere, for instance of a removed runner, ends the link here within that time.
    pub heard_every: Duration,
    /// The time without a sign of a runner after which its open operations are lost.
    pub lost_after: Duration,
    /// The time in which the runner must answer a cancel; then the request counts as recorded.
    pub cancel_within: Duration,
    /// The longest pause between two attempts to keep output that could not be kept, for instance because the disk was
    /// full.
    pub keep_again_after: Duration,
    /// The longest time for a last frame to a runner before the link is cut.
    pub goodbye_within: Duration,
    /// The age at which the runner is asked to link again, give or take a tenth.
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

/// The reason why a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    /// The runner closed the stream, or it broke.
    Closed,
    /// The runner said goodbye, for this reason; its next daemon will link again.
    Goodbye(String),
    /// The runner left for good, for this reason: it has nothing left to do or to report.
    Left(String),
    /// No frame came for as long as the lease.
    Silent,
    /// A newer link of the same runner took its place, or was there already.
    Replaced,
    /// The runner was revoked.
    Revoked,
    /// The runner is locked, because its folder was copied.
    Locked,
    /// The server stops.
    Shutdown,
    /// The server drains: another one is to hold the link.
    Drained,
    /// The key that signed the runner's access token is no longer valid.
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
    serving: Arc<LinkServices>,
    collectors: Collectors,
}

/// The parts of the server that every link's task uses.
struct LinkServices {
    rows: Arc<dyn LinkRows>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    options: LinkOptions,
    shutdown: CancellationToken,
    /// Links that are being served.
    links: AtomicU32,
    figures: FleetFigures,
    /// The way to other replicas, if there can be any.
    holders: OnceLock<Arc<dyn LinkHolders>>,
}

impl std::fmt::Debug for LinkServices {
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
            serving: Arc::new(LinkServices {
                rows,
                clock,
                entropy,
                options,
                shutdown,
                links: AtomicU32::new(0),
                figures: FleetFigures::default(),
                holders: OnceLock::new(),
            }),
            collectors: Collectors::new(),
        }
    }

    /// Serves one link until it ends. The door has authenticated the runner, sent the challenge and checked the proof.
    /// It forwards frames both ways, sealed by [`Links::sealer`] as they leave, and lets a frame be at most
    /// [`shared_types::limits::MAX_FRAME_BYTES`] long. The server's frames, with a reason for the end, go to
    /// `outbound`, boxed, so that its room for frames is small.
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

    /// Starts a task of its own, so that it also cleans up after a caller that is dropped. It is a plain function,
    /// because an async one would keep room for the task in itself.
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

    /// The figures that a runner reported last, if it is linked to this process.
    pub fn figures(&self, runner: RunnerId) -> Option<Figures> {
        self.serving.figures.of(runner)
    }

    /// Brings the metrics of the linked runners up to date.
    pub fn update_metrics(&self) {
        self.serving.figures.update_metrics();
    }

    /// The gate that the server's frames on a link of this runner pass.
    pub async fn gate(&self, runner: RunnerId) -> Gate {
        self.registry.gate(runner).await
    }

    /// A sealer for the server's frames on a link of this runner, with the key that will be in this place.
    pub async fn sealer(&self, runner: RunnerId, key: KeyPlace<v1::ServerFrame>) -> LinkSealer {
        let gate = self.gate(runner).await;
        LinkSealer::new(key, gate, Arc::clone(&self.serving.clock))
    }

    /// Closes the gate of a runner that is about to be revoked, so that nothing is sealed after the commit. Call
    /// [`Links::revoke`] or [`Links::unbar`] afterwards.
    pub async fn bar(&self, runner: RunnerId) {
        self.registry.bar(runner).await;
    }

    /// Takes back a bar, because the runner is not revoked after all. Its link ends, because frames were not sent in
    /// between.
    pub async fn unbar(&self, runner: RunnerId) {
        self.registry.unbar(runner).await;
    }

    /// Ends the runner's link and every stream of its operations, and turns it away from now on.
    /// The revocation is committed before this is called.
    pub async fn revoke(&self, runner: RunnerId) {
        self.registry.revoke(runner).await;
    }

    /// Ends the runner's link and turns it away from now on. Its operations are not lost before the runner is revoked.
    /// The lock is committed before this is called.
    pub async fn lock(&self, runner: RunnerId) {
        self.registry.lock(runner).await;
    }

    /// Ends every link, because the key that signed the access tokens is no longer valid. A runner that is still let in
    /// links again.
    pub async fn rotated(&self) {
        self.registry.rotated().await;
    }

    /// Ends every link, because other servers are to hold them. The runners link again at random moments.
    pub async fn drain(&self) {
        self.registry.drain().await;
    }

    /// Tells if the runner has a link that carries operations, here or at another replica that lends it.
    pub async fn online(&self, runner: RunnerId) -> bool {
        self.presence(runner).await.is_online()
    }

    /// Follows the presence of a runner.
    pub async fn presence(&self, runner: RunnerId) -> Presence {
        Presence(self.watch(runner).await)
    }

    /// Uses links of other replicas from now on, by way of these calls. Called once.
    pub async fn borrow_by(&self, holders: Arc<dyn LinkHolders>) {
        let _ = self.serving.holders.set(holders);
        for (runner, search) in self.registry.searches().await {
            self.search(runner, Some(search));
        }
    }

    /// Lends the link of this generation to another replica; none if this replica does not hold it.
    pub async fn lend(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        generation: Generation,
    ) -> Option<LentLink> {
        let (mut watch, _) = self.registry.watch(runner, false).await;
        let settled = timeout(LINKING_WITHIN, linked_or_not(&mut watch)).await;
        match settled {
            Ok(RunnerConnection::Online(link))
                if link.generation() == generation && !link.is_borrowed() =>
            {
                Some(LentLink::of(self, tenant, runner, link))
            }
            _ => None,
        }
    }

    /// The rows of all runners' links may have changed at other replicas. A link of this one asks for its row itself, a
    /// little later.
    pub async fn all_changed_elsewhere(&self) {
        self.registry.changed(None).await;
    }

    /// The row of this runner's link may have changed at another replica.
    pub async fn changed_elsewhere(&self, runner: RunnerId) {
        for (runner, generation) in self.registry.changed(Some(runner)).await {
            let why = match self.serving.rows.holder(runner).await {
                Ok(LinkState::Barred(why)) => why,
                Ok(LinkState::Elsewhere(newer)) if newer.generation > generation => {
                    TurnedAway::Older
                }
                // The link asks by itself, a little later.
                Ok(_) | Err(_) => continue,
            };
            self.registry.turned_away(runner, generation, why).await;
        }
    }

    pub(crate) async fn watch(&self, runner: RunnerId) -> ConnectionWatch {
        let holders = self.serving.holders.get();
        let (watch, search) = self.registry.watch(runner, holders.is_some()).await;
        self.search(runner, search);
        watch
    }

    async fn unregister(&self, runner: RunnerId, generation: Generation, since: Timestamp) {
        let (registry, holders) = (&self.registry, self.serving.holders.get());
        let search = registry.unregister(runner, generation, since, holders.is_some());
        self.search(runner, search.await);
    }

    fn search(&self, runner: RunnerId, search: Option<registry::Borrowing>) {
        let holders = self.serving.holders.get();
        if let (Some(holders), Some(search)) = (holders, search) {
            let borrower = borrowed::Borrower {
                links: self.clone(),
                holders: Arc::clone(holders),
                runner,
                search,
            };
            // Detached on purpose: it ends with the last follower of the runner.
            tokio::spawn(
                self.serving
                    .shutdown
                    .clone()
                    .run_until_cancelled_owned(borrower.run()),
            );
        }
    }

    /// Has the runner make a sandbox like this, or start it at once; `false` if it has no link.
    pub async fn ensure_sandbox(
        &self,
        runner: RunnerId,
        sandbox: SandboxId,
        spec: &SandboxSpec,
        start: bool,
    ) -> bool {
        match self.usable(runner).await {
            Some(link) => link.ensure(sandbox, spec, start).await.is_ok(),
            None => false,
        }
    }

    /// Has the runner stop a sandbox; `false` if it has no link.
    pub async fn stop_sandbox(&self, runner: RunnerId, sandbox: SandboxId) -> bool {
        match self.usable(runner).await {
            Some(link) => link.stop_sandbox(sandbox).await.is_ok(),
            None => false,
        }
    }

    /// Has the runner remove a sandbox with its files; `false` if it has no link.
    pub async fn remove_sandbox(&self, runner: RunnerId, sandbox: SandboxId) -> bool {
        match self.usable(runner).await {
            Some(link) => link.remove_sandbox(sandbox).await.is_ok(),
            None => false,
        }
    }

    /// Asks the model server of a runner's machine; none if the runner has no link. A link that is just being made
    /// is waited for. The caller checks that the runner has a model server.
    pub async fn ask_model(
        &self,
        runner: RunnerId,
        kind: AskKind,
        body: &Bytes,
        trace: Option<TraceContext>,
    ) -> Option<ModelAnswer> {
        let link = self.usable(runner).await?;
        ModelAnswer::begin(&link, kind, body, trace).await.ok()
    }

    /// The runner's link, here or borrowed.
    async fn usable(&self, runner: RunnerId) -> Option<LinkHandle> {
        let mut watch = self.watch(runner).await;
        let settled = timeout(LINKING_WITHIN, linked_or_not(&mut watch)).await;
        match settled {
            Ok(RunnerConnection::Online(link)) => Some(link),
            _ => None,
        }
    }

    /// The operation, while it is being collected.
    pub fn collected(&self, id: OperationId) -> Option<Collected> {
        self.collectors.find(id)
    }

    /// A placed operation to read; none if these operations know no such one. It starts nothing.
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

    /// The parts of the server that collect operations without their requests.
    fn ports(&self, operations: Arc<dyn Operations>) -> collect::Ports {
        collect::Ports {
            links: self.clone(),
            operations,
            clock: Arc::clone(&self.serving.clock),
            fleet: None,
        }
    }

    /// The runner's memory as its newest link here has shown it.
    #[cfg(test)]
    pub(crate) async fn seen(&self, runner: RunnerId) -> Option<server::KnownMemory> {
        self.registry.seen(runner).await
    }

    pub(crate) fn options(&self) -> &LinkOptions {
        &self.serving.options
    }
}

/// The presence of one runner, as it changes.
#[derive(Debug, Clone)]
pub struct Presence(watch::Receiver<RunnerConnection>);

impl Presence {
    /// True if it has a link here that carries operations.
    pub fn is_online(&self) -> bool {
        matches!(&*self.0.borrow(), RunnerConnection::Online(_))
    }

    /// Waits until it is (`true`) or is not (`false`) online; forever, once no link can come any more.
    pub async fn until(&mut self, online: bool) {
        let wanted = |now: &RunnerConnection| matches!(now, RunnerConnection::Online(_)) == online;
        if self.0.wait_for(wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
