//! The operations of this runner: one task owns what is remembered of them, and all other tasks
//! have an [`Operations`] handle.
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
    start::{Starting, Taken, Times},
    work::{Happened, Happenings, Work},
};
pub(crate) use self::{journaled::JournalEntry, recovery::OperationsParts};
use crate::{
    docker::Pool,
    journal::JournalError,
    policy::Guard,
    sandboxes::{Sandbox, Sandboxes},
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
pub(crate) struct Operations {
    orders: mpsc::Sender<(LinkId, Order)>,
    wishes: mpsc::Sender<Wish>,
    unfinished: watch::Receiver<Unfinished>,
}

/// The task that owns the operations has ended; the daemon cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("the runner's table of operations is gone")]
pub(crate) struct Gone;

impl Operations {
    /// Begins a link: frames go to `outgoing` until it is dropped, closed or replaced.
    pub(crate) async fn open_link(
        &self,
        outgoing: mpsc::Sender<v1::RunnerFrame>,
    ) -> Result<OpenedLink, Gone> {
        let (reply, opened) = oneshot::channel();
        let wish = Wish::OpenLink { outgoing, reply };
        self.wishes.send(wish).await.map_err(|_| Gone)?;
        opened.await.map_err(|_| Gone)
    }

    /// The server has welcomed the link.
    pub(crate) async fn welcomed(&self, link: LinkId) {
        self.wish(Wish::Welcomed(link)).await;
    }

    /// Passes an order on; waits while the link has no room for the answers.
    pub(crate) async fn order(&self, link: LinkId, order: Order) -> Result<(), Gone> {
        self.orders.send((link, order)).await.map_err(|_| Gone)
    }

    /// Ends a link; a newer one stays.
    pub(crate) async fn close_link(&self, link: LinkId) {
        self.wish(Wish::CloseLink(link)).await;
    }

    /// Forgets everything: what is remembered is not what happened.
    pub(crate) async fn begin_journal(&self, journal: JournalId) {
        self.wish(Wish::BeginJournal(journal)).await;
    }

    /// Serves a sandbox from now on; one with the same id is replaced.
    pub(crate) async fn add_sandbox(&self, id: SandboxId, sandbox: Sandbox) {
        self.wish(Wish::AddSandbox(id, sandbox)).await;
    }

    /// Serves a sandbox no longer: nothing new starts there, and what is under way goes on.
    pub(crate) async fn remove_sandbox(&self, id: SandboxId) {
        self.wish(Wish::RemoveSandbox(id)).await;
    }

    /// Takes nothing new from now on.
    pub(crate) async fn drain(&self) {
        self.wish(Wish::Drain).await;
    }

    /// Stops everything that runs.
    pub(crate) async fn orphan(&self) {
        self.wish(Wish::Orphan).await;
    }

    /// The unfinished work, now and whenever it changes.
    pub(crate) fn unfinished(&self) -> watch::Receiver<Unfinished> {
        self.unfinished.clone()
    }

    async fn wish(&self, wish: Wish) {
        // Without the task no wish can be fulfilled; the daemon sees that it ended.
        let _ = self.wishes.send(wish).await;
    }
}

#[derive(Debug)]
enum Wish {
    OpenLink {
        outgoing: mpsc::Sender<v1::RunnerFrame>,
        reply: oneshot::Sender<OpenedLink>,
    },
    Welcomed(LinkId),
    CloseLink(LinkId),
    BeginJournal(JournalId),
    AddSandbox(SandboxId, Sandbox),
    RemoveSandbox(SandboxId),
    Drain,
    Orphan,
}

/// The task behind [`Operations`].
pub(crate) struct OperationsService {
    sandboxes: Sandboxes,
    /// Makes more of them, as the server wants them.
    pool: Option<Pool>,
    clock: Arc<dyn Clock>,
    table: OperationTable,
    journaled: Journaled,
    orders: mpsc::Receiver<(LinkId, Order)>,
    wishes: mpsc::Receiver<Wish>,
    unfinished: watch::Sender<Unfinished>,
    /// Of the present link.
    outgoing: Option<mpsc::Sender<v1::RunnerFrame>>,
    under_way: UnderWay,
    files: Files,
    disk: Disk,
    guard: Guard,
    renewals: Interval,
    sync_before_start: bool,
    disconnect_for: Duration,
}

/// The operations that are under way.
#[derive(Default)]
struct UnderWay {
    work: HashMap<OperationId, Work>,
    /// Commands that are about to start.
    starting: FuturesUnordered<Starting>,
    /// The operations that this daemon has begun and that are not over; for metrics and traces.
    begun: HashMap<OperationId, Begun>,
    happenings: StreamMap<OperationId, Happenings>,
}

enum Event {
    Wish(Wish),
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
                Event::Wish(wish) => self.wish(wish)?,
                Event::Order(link, order) => self.order(link, order)?,
                Event::Taken(id, taken) => self.taken(id, *taken)?,
                Event::Happened(id, happened) => {
                    self.happened(id, happened)?;
                    self.gather()?;
                }
                Event::Room(permit) => self.send(permit),
                Event::Read(id) => self.table.can_read(id),
                Event::News(reports) => {
                    for report in reports {
                        self.table.report(report);
                    }
                }
                Event::Renew => {
                    self.renew();
                    self.look_for_room_again();
                }
                // The session sees it as well, and closes the link.
                Event::LinkGone => self.outgoing = None,
                Event::NobodyLeft => return Ok(()),
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

    async fn next_event(&mut self) -> Event {
        let tells = self.table.has_frames() && !self.table.can_wait();
        let outgoing = self.outgoing.clone().filter(|_| tells);
        tokio::select! {
            wish = self.wishes.recv() => wish.map_or(Event::NobodyLeft, Event::Wish),
            Some((link, order)) = self.orders.recv(), if self.table.takes_orders() => {
                Event::Order(link, order)
            }
            Some((id, taken)) = self.under_way.starting.next() => Event::Taken(id, Box::new(taken)),
            Some((id, happened)) = self.under_way.happenings.next() => Event::Happened(id, happened),
            Some(id) = self.files.downloads.read_on() => Event::Read(id),
            reports = news(self.pool.as_ref()) => Event::News(reports),
            permit = room(outgoing) => permit.map_or(Event::LinkGone, Event::Room),
            _ = self.renewals.tick() => Event::Renew,
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

    fn wish(&mut self, wish: Wish) -> Result<(), JournalError> {
        match wish {
            Wish::OpenLink { outgoing, reply } => {
                self.outgoing = Some(outgoing);
                // A link that gave up in between is closed or replaced by its owner.
                let _ = reply.send(self.table.open_link());
                self.renew();
            }
            Wish::Welcomed(link) => self.table.welcomed(link),
            Wish::CloseLink(link) if self.table.close_link(link) => {
                self.renew();
                self.outgoing = None;
            }
            Wish::CloseLink(_) => {}
            Wish::BeginJournal(journal) => self.begin_journal(journal)?,
            Wish::AddSandbox(id, sandbox) => {
                self.sandboxes.add(id, sandbox);
                self.table.add_sandbox(id);
            }
            Wish::RemoveSandbox(id) => {
                self.table.remove_sandbox(id);
                self.sandboxes.remove(id);
            }
            Wish::Drain => self.table.drain(),
            Wish::Orphan => self.under_way.work.values_mut().for_each(Work::orphan),
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
                let times = Times {
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
                    .and_modify(Work::cancel);
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
async fn news(pool: Option<&Pool>) -> Vec<SandboxReport> {
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
