//! The operations of this runner: one task owns what is remembered of them, and all other tasks
//! have an [`OperationsHandle`] handle.
//!
//! The task outlives every link, and what it remembers outlives the daemon. Commands run under
//! supervisors of their own, and a new daemon reads the journal, finds them and goes on (see
//! `recovery`). The order is always the same: the table decides, the journal has it, it is done,
//! the server learns it. A slow server never slows a command, because its output goes to disk
//! first.

mod changes;
mod claim;
mod disk;
mod downloads;
mod files;
mod guarded;
mod journaled;
mod recovery;
mod spans;
mod start;
mod work;

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{
    FutureExt as _,
    stream::{FuturesUnordered, StreamExt as _},
};
use proto::v1;
use shared_link::runner::{Act, OperationTable, SandboxReport};
pub(crate) use shared_link::runner::{LinkId, OpenedLink, Order, Unfinished};
use shared_telemetry::runner::OPERATIONS_RUNNING;
use shared_types::{Clock, JournalId, OperationId, SandboxId};
use tokio::{
    sync::{
        mpsc::{self, OwnedPermit},
        oneshot, watch,
    },
    time::{Interval, MissedTickBehavior, interval},
};
use tokio_stream::StreamMap;

use self::{
    disk::Disk,
    files::Files,
    journaled::Journaled,
    spans::Begun,
    start::{StartTimes, Starting, Taken},
    work::{Happened, Happenings, OperationControl},
};
pub(crate) use self::{journaled::JournalEntry, recovery::OperationsParts};
use crate::{
    docker::ContainerPool,
    journal::JournalError,
    policy::Guard,
    sandboxes::{ServedSandbox, ServedSandboxes},
};

/// Orders that wait for the table.
const ORDERS_WAITING: usize = 64;

/// Other wishes that wait for the table.
const WISHES_WAITING: usize = 8;

/// The most events of one operation that are reported together.
const GATHERED_AT_MOST: usize = 16;

/// The number of renewals of commands within the time that they may go on without one, while there
/// is a link. It is also the runtime's next timer as a rule: a timer that is due after it can be
/// set without waking the runtime up.
const RENEWALS: u32 = 100;

/// The operations, as seen by links and by the daemon.
#[derive(Debug, Clone)]
pub(crate) struct OperationsHandle {
    orders: mpsc::Sender<(LinkId, Order)>,
    wishes: mpsc::Sender<OperationsRequest>,
    unfinished: watch::Receiver<Unfinished>,
}

/// The task that owns the operations has ended; the daemon cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("the runner's table of operations is gone")]
pub(crate) struct OperationsGone;

impl OperationsHandle {
    /// Begins a link: frames go to `outgoing` until it is dropped, closed or replaced.
    pub(crate) async fn open_link(
        &self,
        outgoing: mpsc::Sender<v1::RunnerFrame>,
    ) -> Result<OpenedLink, OperationsGone> {
        let (reply, opened) = oneshot::channel();
        let wish = OperationsRequest::OpenLink { outgoing, reply };
        self.wishes.send(wish).await.map_err(|_| OperationsGone)?;
        opened.await.map_err(|_| OperationsGone)
    }

    /// The server has welcomed the link.
    pub(crate) async fn welcomed(&self, link: LinkId) {
        self.wish(OperationsRequest::Welcomed(link)).await;
    }

    /// Passes an order on; waits while the link has no room for the answers.
    pub(crate) async fn order(&self, link: LinkId, order: Order) -> Result<(), OperationsGone> {
        self.orders
            .send((link, order))
            .await
            .map_err(|_| OperationsGone)
    }

    /// Ends a link; a newer one stays.
    pub(crate) async fn close_link(&self, link: LinkId) {
        self.wish(OperationsRequest::CloseLink(link)).await;
    }

    /// Forgets everything: what is remembered is not what happened.
    pub(crate) async fn begin_journal(&self, journal: JournalId) {
        self.wish(OperationsRequest::BeginJournal(journal)).await;
    }

    /// Serves a sandbox from now on; one with the same id is replaced.
    pub(crate) async fn add_sandbox(&self, id: SandboxId, sandbox: ServedSandbox) {
        self.wish(OperationsRequest::AddSandbox(id, sandbox)).await;
    }

    /// Serves a sandbox no longer: nothing new starts there, and what is under way goes on.
    pub(crate) async fn remove_sandbox(&self, id: SandboxId) {
        self.wish(OperationsRequest::RemoveSandbox(id)).await;
    }

    /// Takes nothing new from now on.
    pub(crate) async fn drain(&self) {
        self.wish(OperationsRequest::Drain).await;
    }

    /// Stops everything that runs.
    pub(crate) async fn orphan(&self) {
        self.wish(OperationsRequest::Orphan).await;
    }

    /// The unfinished work, now and whenever it changes.
    pub(crate) fn unfinished(&self) -> watch::Receiver<Unfinished> {
        self.unfinished.clone()
    }

    async fn wish(&self, wish: OperationsRequest) {
        // Without the task no wish can be fulfilled; the daemon sees that it ended.
        let _ = self.wishes.send(wish).await;
    }
}

#[derive(Debug)]
enum OperationsRequest {
    OpenLink {
        outgoing: mpsc::Sender<v1::RunnerFrame>,
        reply: oneshot::Sender<OpenedLink>,
    },
    Welcomed(LinkId),
    CloseLink(LinkId),
    BeginJournal(JournalId),
    AddSandbox(SandboxId, ServedSandbox),
    RemoveSandbox(SandboxId),
    Drain,
    Orphan,
}

/// The task behind [`OperationsHandle`].
pub(crate) struct OperationsService {
    sandboxes: ServedSandboxes,
    /// Makes more of them, as the server wants them.
    pool: Option<ContainerPool>,
    clock: Arc<dyn Clock>,
    table: OperationTable,
    journaled: Journaled,
    inbox: OperationsInbox,
    unfinished: watch::Sender<Unfinished>,
    /// Of the present link.
    outgoing: Option<mpsc::Sender<v1::RunnerFrame>>,
    under_way: OperationsUnderWay,
    files: Files,
    disk: Disk,
    guard: Guard,
    renewals: Interval,
    sync_before_start: bool,
    disconnect_for: Duration,
}

/// The receiving ends of the handle.
struct OperationsInbox {
    orders: mpsc::Receiver<(LinkId, Order)>,
    wishes: mpsc::Receiver<OperationsRequest>,
}

/// The operations that are under way.
#[derive(Default)]
struct OperationsUnderWay {
    work: HashMap<OperationId, OperationControl>,
    /// Commands that are about to start.
    starting: FuturesUnordered<Starting>,
    /// The operations that this daemon has begun and that are not over; for metrics and traces.
    begun: HashMap<OperationId, Begun>,
    happenings: StreamMap<OperationId, Happenings>,
}

enum OperationsEvent {
    Wish(OperationsRequest),
    Order(LinkId, Order),
    Taken(OperationId, Box<Taken>),
    Happened(OperationId, Happened),
    Room(OwnedPermit<v1::RunnerFrame>),
    /// Of a download there may be more to tell.
    Read(OperationId),
    /// Of the pool's sandboxes.
    News(Vec<SandboxReport>),
    Renew,
    LinkGone,
    NobodyLeft,
}

impl OperationsService {
    /// Runs until every handle is dropped.
    ///
    /// # Errors
    /// A promise cannot be written down. Commands go on without the daemon.
    pub(crate) async fn run(mut self) -> Result<(), JournalError> {
        loop {
            match self.next_event().await {
                OperationsEvent::Wish(wish) => self.wish(wish)?,
                OperationsEvent::Order(link, order) => self.order(link, order)?,
                OperationsEvent::Taken(id, taken) => self.taken(id, *taken)?,
                OperationsEvent::Happened(id, happened) => {
                    self.happened(id, happened)?;
                    self.gather()?;
                }
                OperationsEvent::Room(permit) => self.send(permit),
                OperationsEvent::Read(id) => self.table.can_read(id),
                OperationsEvent::News(reports) => {
                    for report in reports {
                        self.table.report(report);
                    }
                }
                OperationsEvent::Renew => {
                    self.renew();
                    self.look_for_room_again();
                }
                // The session sees it as well, and closes the link.
                OperationsEvent::LinkGone => self.outgoing = None,
                OperationsEvent::NobodyLeft => return Ok(()),
            }
            self.close_dropped();
            let now = self.table.unfinished();
            self.unfinished.send_if_modified(|before| {
                let changed = *before != now;
                *before = now;
                if changed {
                    OPERATIONS_RUNNING.set(&[], now.running as f64);
                }
                changed
            });
        }
    }

    async fn next_event(&mut self) -> OperationsEvent {
        let tells = self.table.has_frames() && !self.table.can_wait();
        let outgoing = self.outgoing.clone().filter(|_| tells);
        tokio::select! {
            wish = self.inbox.wishes.recv() => wish.map_or(OperationsEvent::NobodyLeft, OperationsEvent::Wish),
            Some((link, order)) = self.inbox.orders.recv(), if self.table.takes_orders() => {
                OperationsEvent::Order(link, order)
            }
            Some((id, taken)) = self.under_way.starting.next() => OperationsEvent::Taken(id, Box::new(taken)),
            Some((id, happened)) = self.under_way.happenings.next() => OperationsEvent::Happened(id, happened),
            Some(id) = self.files.downloads.read_on() => OperationsEvent::Read(id),
            reports = news(self.pool.as_ref()) => OperationsEvent::News(reports),
            permit = room(outgoing) => permit.map_or(OperationsEvent::LinkGone, OperationsEvent::Room),
            _ = self.renewals.tick() => OperationsEvent::Renew,
        }
    }

    /// Takes the events of an operation together, such as the last output and the end.
    fn gather(&mut self) -> Result<(), JournalError> {
        for _ in 0..GATHERED_AT_MOST {
            let Some(Some((id, happened))) = self.under_way.happenings.next().now_or_never() else {
                break;
            };
            self.happened(id, happened)?;
        }
        Ok(())
    }

    fn wish(&mut self, wish: OperationsRequest) -> Result<(), JournalError> {
        match wish {
            OperationsRequest::OpenLink { outgoing, reply } => {
                self.outgoing = Some(outgoing);
                // A link that gave up in between is closed or replaced by its owner.
                let _ = reply.send(self.table.open_link());
                self.renew();
            }
            OperationsRequest::Welcomed(link) => self.table.welcomed(link),
            OperationsRequest::CloseLink(link) if self.table.close_link(link) => {
                self.renew();
                self.outgoing = None;
            }
            OperationsRequest::CloseLink(_) => {}
            OperationsRequest::BeginJournal(journal) => self.begin_journal(journal)?,
            OperationsRequest::AddSandbox(id, sandbox) => {
                self.sandboxes.add(id, sandbox);
                self.table.add_sandbox(id);
            }
            OperationsRequest::RemoveSandbox(id) => {
                self.table.remove_sandbox(id);
                self.sandboxes.remove(id);
            }
            OperationsRequest::Drain => self.table.drain(),
            OperationsRequest::Orphan => self
                .under_way
                .work
                .values_mut()
                .for_each(OperationControl::orphan),
        }
        Ok(())
    }

    fn order(&mut self, link: LinkId, order: Order) -> Result<(), JournalError> {
        let mut order = order;
        if matches!(order, Order::Operation(_)) {
            self.look_for_room();
            self.ask_policy(&mut order);
        }
        match self.table.order(link, order, self.clock.boot_time()) {
            Some(Act::Start {
                operation,
                sandbox,
                request,
                start_within,
                run_for,
            }) => {
                let taken_up = self.clock.boot_time();
                let times = StartTimes {
                    taken_up,
                    start_by: taken_up.saturating_add(start_within),
                    run_for,
                };
                let begun = Begun {
                    kind: request.kind(),
                    at: self.clock.now(),
                };
                self.under_way.begun.insert(operation, begun);
                self.begin(operation, sandbox, request, times)
            }
            act => {
                self.journaled.write(&mut self.table, false)?;
                self.act(act);
                Ok(())
            }
        }
    }

    /// Does what needs no room in the journal.
    fn act(&mut self, act: Option<Act>) {
        match act {
            Some(Act::Stop(operation)) => {
                self.under_way
                    .work
                    .entry(operation)
                    .and_modify(OperationControl::cancel);
            }
            Some(Act::Commit {
                operation,
                stream,
                up_to,
            }) => {
                self.under_way
                    .work
                    .entry(operation)
                    .and_modify(|work| work.commit(stream, up_to));
            }
            Some(Act::Drop(operation)) => self.drop_files(operation),
            Some(Act::LetGo(operation, why)) => self.let_go(operation, why),
            Some(Act::Input(operation, input)) => {
                self.under_way
                    .work
                    .entry(operation)
                    .and_modify(|work| work.input(&input));
            }
            Some(Act::Control {
                operation,
                id,
                control,
            }) => {
                self.under_way
                    .work
                    .entry(operation)
                    .and_modify(|work| work.control(id, control));
            }
            Some(Act::Sandbox(id, order)) => self.pooled(id, order),
            Some(Act::Start { .. }) | None => {}
        }
    }

    /// A runner that is cut off lets its commands go on for a while, and no longer. The host may have
    /// what it lacked to read their output.
    fn renew(&mut self) {
        self.table.read_again();
        self.guard.read();
        if let Some(pool) = &self.pool {
            pool.rest(&self.table.busy_sandboxes());
        }
        if self.outgoing.is_some() {
            self.under_way
                .work
                .values_mut()
                .for_each(|work| work.renew(self.disconnect_for));
        }
    }

    /// Fills the room that the link has.
    fn send(&mut self, permit: OwnedPermit<v1::RunnerFrame>) {
        let mut permit = Some(permit);
        while let Some(room) = permit.take() {
            let Some(frame) = self.table.next_frame(&mut self.files) else {
                return;
            };
            permit = room.send(frame).try_reserve_owned().ok();
        }
    }
}

fn renewals(disconnect_for: Duration) -> Interval {
    let mut renewals = interval((disconnect_for / RENEWALS).max(Duration::from_millis(1)));
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    renewals
}

/// Waits until there is something to report of the pool's sandboxes; without a pool, for ever.
async fn news(pool: Option<&ContainerPool>) -> Vec<SandboxReport> {
    match pool {
        Some(pool) => pool.news().await,
        None => std::future::pending().await,
    }
}

/// Waits until the link takes a frame; without a link, or with nothing to send, for ever.
async fn room(
    outgoing: Option<mpsc::Sender<v1::RunnerFrame>>,
) -> Option<OwnedPermit<v1::RunnerFrame>> {
    match outgoing {
        Some(outgoing) => outgoing.reserve_owned().await.ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
