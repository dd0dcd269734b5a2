//! The current link of each runner: the owner task and its handle.

use std::{collections::HashMap, sync::Arc, time::Duration};

use shared_link::server::{self, KnownMemory, Slot, TurnedAway};
use shared_types::{Generation, RunnerId, Timestamp};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

use tokio_util::sync::CancellationToken;

use super::{LinkEnd, LinkHandle, gate::Gate, shown::ReportedMemory};

/// Requests to the owner task that may wait.
const REQUESTS: usize = 256;

/// Entries below which the owner task does not look for unneeded ones.
const SWEEP_FROM: usize = 64;

/// The time after the end of a link when the owner task looks for unneeded entries. By then the end is mostly stored
/// and its door has let go. Many links end at once, and one look is enough for all.
const SWEEP_AFTER: Duration = Duration::from_secs(5);

/// The connection of a runner to this replica.
pub(crate) type RunnerConnection = server::RunnerConnection<LinkHandle>;

/// Speaks to the owner task.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    requests: mpsc::Sender<RegistryRequest>,
}

enum RegistryRequest {
    Register {
        runner: RunnerId,
        generation: Generation,
        shown: Arc<ReportedMemory>,
        reply: oneshot::Sender<Result<oneshot::Receiver<LinkEnd>, TurnedAway>>,
    },
    Ready {
        runner: RunnerId,
        link: LinkHandle,
    },
    Unregister {
        runner: RunnerId,
        generation: Generation,
        since: Timestamp,
        may_borrow: bool,
        reply: oneshot::Sender<Option<Borrowing>>,
    },
    Watch {
        runner: RunnerId,
        may_borrow: bool,
        reply: oneshot::Sender<(watch::Receiver<RunnerConnection>, Option<Borrowing>)>,
    },
    Borrowed {
        runner: RunnerId,
        of: Borrowing,
        connection: RunnerConnection,
    },
    Searches {
        reply: oneshot::Sender<Vec<(RunnerId, Borrowing)>>,
    },
    EndBorrowing {
        runner: RunnerId,
        of: Borrowing,
        reply: oneshot::Sender<bool>,
    },
    Changed {
        runner: Option<RunnerId>,
        reply: oneshot::Sender<Vec<(RunnerId, Generation)>>,
    },
    Seen {
        runner: RunnerId,
        reply: oneshot::Sender<Option<KnownMemory>>,
    },
    Gate {
        runner: RunnerId,
        reply: oneshot::Sender<Gate>,
    },
    Bar {
        runner: RunnerId,
        reply: oneshot::Sender<()>,
    },
    Unbar {
        runner: RunnerId,
    },
    Revoke {
        runner: RunnerId,
    },
    Lock {
        runner: RunnerId,
    },
    Replaced {
        runner: RunnerId,
        generation: Generation,
    },
    EndAll(LinkEnd),
}

/// Starts the owner task, which ends when the last handle is dropped.
pub(super) fn start() -> Handle {
    let (requests, inbox) = mpsc::channel(REQUESTS);
    tokio::spawn(run(inbox));
    Handle { requests }
}

/// The search for a runner's link at other replicas, for those here who follow the runner's connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Borrowing {
    /// The rows may have changed.
    pub(super) changed: Arc<Notify>,
    /// The runner has linked here, or was revoked.
    pub(super) over: CancellationToken,
}

impl Borrowing {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.changed, &other.changed)
    }
}

impl Handle {
    /// Makes this link the runner's current one and ends an older one. The returned receiver tells when this one has to
    /// end. `shown`: the runner's memory as the link shows it.
    pub(super) async fn register(
        &self,
        runner: RunnerId,
        generation: Generation,
        shown: Arc<ReportedMemory>,
    ) -> Result<oneshot::Receiver<LinkEnd>, TurnedAway> {
        self.ask(|reply| RegistryRequest::Register {
            runner,
            generation,
            shown,
            reply,
        })
        .await
    }

    /// The runner's memory as its newest link here has shown it, as long as it may not be stored.
    pub(super) async fn seen(&self, runner: RunnerId) -> Option<KnownMemory> {
        self.ask(|reply| RegistryRequest::Seen { runner, reply })
            .await
    }

    /// Lets the link carry operations from now on.
    pub(super) async fn ready(&self, runner: RunnerId, link: LinkHandle) {
        self.tell(RegistryRequest::Ready { runner, link }).await;
    }

    /// Ends the link. Nothing happens if it is not the current one any more. Returns the search that is to begin, if
    /// the connection is followed.
    pub(super) async fn unregister(
        &self,
        runner: RunnerId,
        generation: Generation,
        since: Timestamp,
        may_borrow: bool,
    ) -> Option<Borrowing> {
        self.ask(|reply| RegistryRequest::Unregister {
            runner,
            generation,
            since,
            may_borrow,
            reply,
        })
        .await
    }

    /// Follows the connection of the runner. Also returns the search that is to begin, if the runner has no link here
    /// and none has begun. `may_borrow`: links of other replicas may be used.
    pub(super) async fn watch(
        &self,
        runner: RunnerId,
        may_borrow: bool,
    ) -> (watch::Receiver<RunnerConnection>, Option<Borrowing>) {
        self.ask(|reply| RegistryRequest::Watch {
            runner,
            may_borrow,
            reply,
        })
        .await
    }

    /// The searches that are to begin for the connections that are followed already.
    pub(super) async fn searches(&self) -> Vec<(RunnerId, Borrowing)> {
        self.ask(|reply| RegistryRequest::Searches { reply }).await
    }

    /// The search has found this, which those who follow the runner see from now on.
    pub(super) async fn borrowed(
        &self,
        runner: RunnerId,
        of: &Borrowing,
        connection: RunnerConnection,
    ) {
        let of = of.clone();
        self.tell(RegistryRequest::Borrowed {
            runner,
            of,
            connection,
        })
        .await;
    }

    /// Ends the search unless the connection is followed; returns true if it is over.
    pub(super) async fn end_borrowing(&self, runner: RunnerId, of: &Borrowing) -> bool {
        let of = of.clone();
        self.ask(|reply| RegistryRequest::EndBorrowing { runner, of, reply })
            .await
    }

    /// The row of this runner's link may have changed, or without a runner any. Searches look again. Returns the links
    /// here that may be over.
    pub(super) async fn changed(&self, runner: Option<RunnerId>) -> Vec<(RunnerId, Generation)> {
        self.ask(|reply| RegistryRequest::Changed { runner, reply })
            .await
    }

    pub(super) async fn gate(&self, runner: RunnerId) -> Gate {
        self.ask(|reply| RegistryRequest::Gate { runner, reply })
            .await
    }

    pub(super) async fn bar(&self, runner: RunnerId) {
        self.ask(|reply| RegistryRequest::Bar { runner, reply })
            .await;
    }

    pub(super) async fn unbar(&self, runner: RunnerId) {
        self.tell(RegistryRequest::Unbar { runner }).await;
    }

    pub(super) async fn revoke(&self, runner: RunnerId) {
        self.tell(RegistryRequest::Revoke { runner }).await;
    }

    pub(super) async fn lock(&self, runner: RunnerId) {
        self.tell(RegistryRequest::Lock { runner }).await;
    }

    /// Records that another replica holds a newer link than this one.
    pub(super) async fn replaced(&self, runner: RunnerId, generation: Generation) {
        self.tell(RegistryRequest::Replaced { runner, generation })
            .await;
    }

    /// Ends this link, which does not hold any more.
    pub(super) async fn turned_away(
        &self,
        runner: RunnerId,
        generation: Generation,
        why: TurnedAway,
    ) {
        match why {
            TurnedAway::Revoked => self.revoke(runner).await,
            TurnedAway::Locked => self.lock(runner).await,
            TurnedAway::Older => self.replaced(runner, generation).await,
        }
    }

    /// Ends links whose access tokens are no longer valid.
    pub(super) async fn rotated(&self) {
        self.tell(RegistryRequest::EndAll(LinkEnd::Rotated)).await;
    }

    /// Ends all links, which other replicas are to hold.
    pub(super) async fn drain(&self) {
        self.tell(RegistryRequest::EndAll(LinkEnd::Drained)).await;
    }

    async fn tell(&self, request: RegistryRequest) {
        if self.requests.send(request).await.is_err() {
            the_runtime_ends().await
        }
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> RegistryRequest) -> T {
        let (reply, answer) = oneshot::channel();
        self.tell(request(reply)).await;
        match answer.await {
            Ok(answer) => answer,
            Err(_) => the_runtime_ends().await,
        }
    }
}

/// Waits forever. The owner task lives as long as a handle does, so it is gone only because the runtime is being
/// dropped; the asker will be dropped next.
async fn the_runtime_ends<T>() -> T {
    std::future::pending().await
}

async fn run(mut inbox: mpsc::Receiver<RegistryRequest>) {
    let mut registry = Registry::new();
    let mut sweep_at = None;
    loop {
        let request = match sweep_at {
            None => inbox.recv().await,
            Some(at) => match timeout_at(at, inbox.recv()).await {
                Ok(request) => request,
                Err(_) => {
                    sweep_at = registry.sweep().then(|| Instant::now() + SWEEP_AFTER);
                    continue;
                }
            },
        };
        let Some(request) = request else { return };
        if matches!(request, RegistryRequest::Unregister { .. }) {
            sweep_at.get_or_insert_with(|| Instant::now() + SWEEP_AFTER);
        }
        registry.handle(request);
    }
}

struct Registry {
    /// A revoked runner stays while a link that was let in before has its gate, so that it cannot register after. The
    /// store turns away later links.
    entries: HashMap<RunnerId, RunnerEntry>,
    sweep_at: usize,
}

struct RunnerEntry {
    slot: Slot<LinkHandle>,
    /// The state of the slot, for those that follow it.
    connection: watch::Sender<RunnerConnection>,
    /// Ends the current link.
    stop: Option<oneshot::Sender<LinkEnd>>,
    /// The gate that the frames of its links pass.
    gate: Gate,
    /// It is locked, for good.
    locked: bool,
    /// The memory that the newest link has shown. Its task holds it as well, until it is stored.
    shown: Option<Arc<ReportedMemory>>,
    /// The search for its link elsewhere, and what that has found.
    borrowing: Option<(Borrowing, RunnerConnection)>,
}

impl Registry {
    fn new() -> Self {
        Self {
            entries: HashMap::new(),
            sweep_at: SWEEP_FROM,
        }
    }

    fn handle(&mut self, request: RegistryRequest) {
        // A reply without a waiting asker is no loss: the asker was dropped.
        match request {
            RegistryRequest::Register {
                runner,
                generation,
                shown,
                reply,
            } => drop(reply.send(self.entry(runner).register(generation, shown))),
            RegistryRequest::Ready { runner, link } => {
                self.entry(runner)
                    .change(|slot| slot.ready(link.generation(), link));
            }
            RegistryRequest::Unregister {
                runner,
                generation,
                since,
                may_borrow,
                reply,
            } => {
                let entry = self.entry(runner);
                entry.change(|slot| slot.unregister(generation, since));
                let may_borrow = may_borrow && entry.connection.receiver_count() > 0;
                drop(reply.send(may_borrow.then(|| entry.search()).flatten()));
            }
            RegistryRequest::Watch {
                runner,
                may_borrow,
                reply,
            } => {
                let entry = self.entry(runner);
                let search = may_borrow.then(|| entry.search()).flatten();
                drop(reply.send((entry.connection.subscribe(), search)));
            }
            RegistryRequest::Borrowed {
                runner,
                of,
                connection,
            } => self.entry(runner).borrowed(&of, connection),
            RegistryRequest::Searches { reply } => {
                let entries = self.entries.iter_mut();
                let followed = entries.filter(|(_, entry)| entry.connection.receiver_count() > 0);
                let begun = followed.filter_map(|(id, entry)| Some((*id, entry.search()?)));
                drop(reply.send(begun.collect()));
            }
            RegistryRequest::EndBorrowing { runner, of, reply } => {
                let is_over = self.entry(runner).end_borrowing(&of);
                let _ = reply.send(is_over);
            }
            RegistryRequest::Changed { runner, reply } => {
                let entries = self.entries.iter();
                let entries = entries.filter(|(id, _)| runner.is_none_or(|only| only == **id));
                let here = entries.filter_map(|(id, entry)| Some((*id, entry.look_again()?)));
                drop(reply.send(here.collect()));
            }
            RegistryRequest::Seen { runner, reply } => {
                let shown = self.entries.get(&runner);
                let shown = shown.and_then(|entry| entry.shown.as_ref());
                drop(reply.send(shown.map(|shown| shown.seen())));
            }
            RegistryRequest::Gate { runner, reply } => {
                drop(reply.send(self.entry(runner).gate.clone()));
            }
            RegistryRequest::Bar { runner, reply } => {
                self.entry(runner).gate.close();
                let _ = reply.send(());
            }
            RegistryRequest::Unbar { runner } => self.entry(runner).unbar(),
            RegistryRequest::Revoke { runner } => self.entry(runner).revoke(),
            RegistryRequest::Lock { runner } => self.entry(runner).lock(),
            RegistryRequest::Replaced { runner, generation } => {
                if let Some(entry) = self.entries.get_mut(&runner) {
                    entry.replaced(generation);
                }
            }
            RegistryRequest::EndAll(end) => {
                let all = self.entries.values_mut();
                all.for_each(|entry| entry.end(end.clone()));
            }
        }
    }

    fn entry(&mut self, runner: RunnerId) -> &mut RunnerEntry {
        if self.entries.len() >= self.sweep_at && !self.entries.contains_key(&runner) {
            self.sweep();
        }
        self.entries.entry(runner).or_insert_with(RunnerEntry::new)
    }

    /// Drops the unneeded entries, and gives their memory back. Returns whether more entries will be unneeded soon.
    fn sweep(&mut self) -> bool {
        self.entries.retain(|_, entry| entry.is_needed());
        let room = SWEEP_FROM + 2 * self.entries.len();
        self.sweep_at = room;
        self.entries.shrink_to(room);
        self.entries.values().any(RunnerEntry::is_ending)
    }
}

impl RunnerEntry {
    fn new() -> Self {
        let slot = Slot::new();
        Self {
            connection: watch::Sender::new(slot.connection().clone()),
            slot,
            stop: None,
            gate: Gate::open(),
            locked: false,
            shown: None,
            borrowing: None,
        }
    }

    /// The connection as those see it who follow it.
    fn seen(&self) -> RunnerConnection {
        match (self.slot.connection(), &self.borrowing) {
            (RunnerConnection::Offline { .. }, Some((_, found))) => found.clone(),
            (own, _) => own.clone(),
        }
    }

    fn tell(&self) {
        self.connection.send_replace(self.seen());
    }

    /// A search that is to begin, unless there is one, or a link here.
    fn search(&mut self) -> Option<Borrowing> {
        if self.borrowing.is_some() {
            return None;
        }
        let RunnerConnection::Offline { since } = *self.slot.connection() else {
            return None;
        };
        let search = Borrowing::default();
        // Where it was here just now, callers hear that it is away, and else what the search finds.
        let first = match since {
            Some(_) => RunnerConnection::Offline { since },
            None => RunnerConnection::Linking,
        };
        self.borrowing = Some((search.clone(), first));
        self.tell();
        Some(search)
    }

    fn borrowed(&mut self, of: &Borrowing, connection: RunnerConnection) {
        if let Some((search, found)) = &mut self.borrowing
            && search.is(of)
        {
            let offline = |now: &RunnerConnection| matches!(now, RunnerConnection::Offline { .. });
            let is_news = !(offline(found) && offline(&connection));
            *found = connection;
            // Each of those who follow it would read the runner's row again.
            if is_news {
                self.tell();
            }
        }
    }

    fn end_borrowing(&mut self, of: &Borrowing) -> bool {
        match &self.borrowing {
            Some((search, _)) if search.is(of) && self.connection.receiver_count() > 0 => false,
            Some((search, _)) if search.is(of) => {
                self.borrowing = None;
                self.tell();
                true
            }
            _ => true,
        }
    }

    /// Has a search look at the row again; returns the generation of a link here.
    fn look_again(&self) -> Option<Generation> {
        if let Some((search, _)) = &self.borrowing {
            search.changed.notify_one();
        }
        self.slot.current()
    }

    fn stop_searching(&mut self) {
        if let Some((search, _)) = self.borrowing.take() {
            search.over.cancel();
        }
    }

    fn register(
        &mut self,
        generation: Generation,
        shown: Arc<ReportedMemory>,
    ) -> Result<oneshot::Receiver<LinkEnd>, TurnedAway> {
        if self.locked && !self.is_revoked() {
            return Err(TurnedAway::Locked);
        }
        self.slot.register(generation)?;
        self.shown = Some(shown);
        let (stop, stopped) = oneshot::channel();
        if let Some(older) = self.stop.replace(stop) {
            let _ = older.send(LinkEnd::Replaced);
        }
        self.stop_searching();
        self.change(|_| true);
        Ok(stopped)
    }

    fn revoke(&mut self) {
        self.gate.close();
        self.slot.revoke();
        self.stop_searching();
        self.change(|_| true);
        if let Some(current) = self.stop.take() {
            let _ = current.send(LinkEnd::Revoked);
        }
    }

    /// Locks the runner. Its link ends as any other does: its operations continue, as far as the server knows.
    fn lock(&mut self) {
        self.gate.close();
        self.locked = true;
        if let Some(current) = self.stop.take() {
            let _ = current.send(LinkEnd::Locked);
        }
    }

    fn unbar(&mut self) {
        if self.is_barred_for_good() {
            return;
        }
        self.gate = Gate::open();
        if let Some(current) = self.stop.take() {
            let why = "the runner could not be removed";
            let _ = current.send(LinkEnd::Failed(why.to_owned()));
        }
    }

    fn replaced(&mut self, generation: Generation) {
        if self.slot.is_current(generation)
            && let Some(current) = self.stop.take()
        {
            let _ = current.send(LinkEnd::Replaced);
        }
    }

    fn end(&mut self, end: LinkEnd) {
        if let Some(current) = self.stop.take() {
            let _ = current.send(end);
        }
    }

    /// Tells those that follow the slot, if this changed it.
    fn change(&mut self, change: impl FnOnce(&mut Slot<LinkHandle>) -> bool) {
        if change(&mut self.slot) {
            self.tell();
        }
    }

    /// True if its link is over, and has not let go of everything yet.
    fn is_ending(&self) -> bool {
        !self.slot.is_taken() && (self.gate.is_shared() || self.is_unstored())
    }

    /// True if a link's task may have yet to store the memory that it has shown.
    fn is_unstored(&self) -> bool {
        let held = |shown: &Arc<ReportedMemory>| Arc::strong_count(shown) > 1;
        self.shown.as_ref().is_some_and(held)
    }

    fn is_needed(&self) -> bool {
        // A pending revocation is stored nowhere else yet.
        let barred = !self.gate.is_open() && !self.is_barred_for_good();
        self.slot.is_taken()
            || self.gate.is_shared()
            || barred
            || self.borrowing.is_some()
            || self.is_unstored()
            || self.connection.receiver_count() > 0
    }

    fn is_barred_for_good(&self) -> bool {
        self.locked || self.is_revoked()
    }

    fn is_revoked(&self) -> bool {
        matches!(self.slot.connection(), RunnerConnection::Revoked)
    }
}

#[cfg(test)]
mod tests;
