//! The operations of this runner: one task owns what is remembered of them, everybody else has a
//! [`Operations`] handle.
//!
//! The task outlives every link. It reads all output at once, whoever listens, so that a slow
//! server never slows a command; towards the link it waits for room.

use std::{collections::HashMap, pin::Pin};

use futures_util::{Stream, StreamExt as _, stream};
use proto::v1;
use runner_host::{Host, HostEvent, Stop};
pub(crate) use shared_link::runner::{LinkId, Opened, Order, Unfinished};
use shared_link::{
    retained::{Next, Retained},
    runner::{Act, Piece, Spool, Table},
};
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{Incarnation, JournalId, OperationId, Refusal, RefusalCode, SandboxId};
use tokio::sync::{
    mpsc::{self, OwnedPermit},
    oneshot, watch,
};
use tokio::time::Instant;
use tokio_stream::{StreamMap, wrappers::ReceiverStream};

/// Orders that wait for the table.
const ORDERS_WAITING: usize = 64;

/// Other wishes that wait for the table.
const WISHES_WAITING: usize = 8;

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
    /// The handle, and the service to be run beside it.
    pub(crate) fn new(
        host: Host,
        incarnation: Incarnation,
        sandbox: SandboxId,
    ) -> (Self, OperationsService) {
        let (orders, orders_waiting) = mpsc::channel(ORDERS_WAITING);
        let (wishes, wishes_waiting) = mpsc::channel(WISHES_WAITING);
        let (unfinished_now, unfinished) = watch::channel(Unfinished::default());
        let service = OperationsService {
            host,
            table: Table::new(incarnation, sandbox),
            orders: orders_waiting,
            wishes: wishes_waiting,
            unfinished: unfinished_now,
            outgoing: None,
            stops: HashMap::new(),
            events: StreamMap::new(),
            began: Instant::now(),
            output: Output::default(),
        };
        let handle = Self {
            orders,
            wishes,
            unfinished,
        };
        (handle, service)
    }

    /// Begins a link: frames go to `outgoing` until it is dropped, closed or replaced.
    pub(crate) async fn open_link(
        &self,
        outgoing: mpsc::Sender<v1::RunnerFrame>,
    ) -> Result<Opened, Gone> {
        let (reply, opened) = oneshot::channel();
        let wish = Wish::OpenLink { outgoing, reply };
        self.wishes.send(wish).await.map_err(|_| Gone)?;
        opened.await.map_err(|_| Gone)
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

    /// Takes nothing new from now on.
    pub(crate) async fn drain(&self) {
        self.wish(Wish::Drain).await;
    }

    /// Stops everything that runs.
    pub(crate) async fn orphan(&self) {
        self.wish(Wish::Orphan).await;
    }

    /// What is left to do, now and whenever it changes.
    pub(crate) fn unfinished(&self) -> watch::Receiver<Unfinished> {
        self.unfinished.clone()
    }

    async fn wish(&self, wish: Wish) {
        // Without the task there is nothing left to be wished for; the daemon sees that it ended.
        let _ = self.wishes.send(wish).await;
    }
}

#[derive(Debug)]
enum Wish {
    OpenLink {
        outgoing: mpsc::Sender<v1::RunnerFrame>,
        reply: oneshot::Sender<Opened>,
    },
    CloseLink(LinkId),
    BeginJournal(JournalId),
    Drain,
    Orphan,
}

/// The task behind [`Operations`].
pub(crate) struct OperationsService {
    host: Host,
    table: Table,
    orders: mpsc::Receiver<(LinkId, Order)>,
    wishes: mpsc::Receiver<Wish>,
    unfinished: watch::Sender<Unfinished>,
    /// Of the present link.
    outgoing: Option<mpsc::Sender<v1::RunnerFrame>>,
    /// Of everything that runs.
    stops: HashMap<OperationId, Stop>,
    events: StreamMap<OperationId, Events>,
    began: Instant,
    output: Output,
}

/// The output of commands, in memory.
#[derive(Default)]
struct Output(HashMap<OperationId, [Retained; 2]>);

impl Spool for Output {
    fn read(
        &mut self,
        operation: OperationId,
        stream: OutputStream,
        from: u64,
        max: usize,
    ) -> Piece {
        let kept = self.0.get(&operation).map(|kept| &kept[stream as usize]);
        match kept.map(|kept| kept.next(from, u64::MAX, max)) {
            Some(Next::Chunk { data, .. }) => Piece::Bytes(data),
            Some(Next::Gap { to, .. }) => Piece::Gap(to),
            Some(Next::Nothing) | None => Piece::Nothing,
        }
    }
}

/// What comes out of one operation; `None` is the end of the channel.
type Events = Pin<Box<dyn Stream<Item = Option<HostEvent>> + Send>>;

enum Event {
    Wish(Wish),
    Order(LinkId, Order),
    Host(OperationId, Option<HostEvent>),
    Room(OwnedPermit<v1::RunnerFrame>),
    LinkGone,
    NobodyLeft,
}

impl OperationsService {
    /// Runs until every handle is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            match self.next_event().await {
                Event::Wish(wish) => self.wish(wish),
                Event::Order(link, order) => self.order(link, order),
                Event::Host(id, event) => self.host_event(id, event),
                Event::Room(permit) => self.send(permit),
                // The session sees it as well, and closes the link.
                Event::LinkGone => self.outgoing = None,
                Event::NobodyLeft => return,
            }
            let now = self.table.unfinished();
            self.unfinished.send_if_modified(|before| {
                let changed = *before != now;
                *before = now;
                changed
            });
        }
    }

    async fn next_event(&mut self) -> Event {
        let outgoing = self.outgoing.clone().filter(|_| self.table.has_frames());
        tokio::select! {
            wish = self.wishes.recv() => wish.map_or(Event::NobodyLeft, Event::Wish),
            Some((link, order)) = self.orders.recv(), if self.table.takes_orders() => {
                Event::Order(link, order)
            }
            Some((id, event)) = self.events.next() => Event::Host(id, event),
            permit = room(outgoing) => permit.map_or(Event::LinkGone, Event::Room),
        }
    }

    fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::OpenLink { outgoing, reply } => {
                self.outgoing = Some(outgoing);
                // A link that gave up meanwhile is closed or replaced by its owner.
                let _ = reply.send(self.table.open_link());
            }
            Wish::CloseLink(link) if self.table.close_link(link) => self.outgoing = None,
            Wish::CloseLink(_) => {}
            Wish::BeginJournal(journal) => {
                for id in self.table.begin_journal(journal) {
                    self.stops.get(&id).inspect(|stop| stop.orphan());
                    self.output.0.remove(&id);
                }
            }
            Wish::Drain => self.table.drain(),
            Wish::Orphan => self.stops.values().for_each(Stop::orphan),
        }
    }

    fn order(&mut self, link: LinkId, order: Order) {
        match self.table.order(link, order, self.began.elapsed()) {
            Some(Act::Start {
                operation,
                request,
                run_for,
            }) => {
                let performing = self.host.perform(request, run_for);
                self.stops.insert(operation, performing.stop);
                let events = ReceiverStream::new(performing.events).map(Some);
                let events = events.chain(stream::once(async { None }));
                self.events.insert(operation, Box::pin(events));
            }
            Some(Act::Stop(operation)) => {
                self.stops.get(&operation).inspect(|stop| stop.cancel());
            }
            Some(Act::Drop(operation)) => {
                self.output.0.remove(&operation);
            }
            // Nothing that this runner starts takes any.
            Some(Act::Control { operation, id, .. }) => {
                let message = "this runner passes nothing on to commands";
                let refusal = Refusal::new(RefusalCode::Unsupported, message);
                self.table.controlled(operation, id, Err(refusal));
            }
            Some(Act::Input(..) | Act::Commit { .. }) | None => {}
        }
        self.table.take_records();
    }

    fn host_event(&mut self, id: OperationId, event: Option<HostEvent>) {
        match event {
            Some(HostEvent::Output { stream, data }) => {
                let kept = self.output.0.entry(id).or_default();
                kept[stream as usize].append(&data);
                self.table.output(id, [kept[0].end(), kept[1].end()]);
            }
            Some(HostEvent::Changing(announced)) => announced.go_ahead(),
            Some(HostEvent::Ended(outcome)) => {
                self.stops.remove(&id);
                let kept = self.output.0.get(&id);
                let kept = kept.map_or(0, |kept| kept.iter().map(Retained::retained_bytes).sum());
                self.table.ended(id, outcome, kept as u64);
            }
            // After the end this changes nothing.
            None => {
                self.stops.remove(&id);
                let message = "the runner lost sight of the operation";
                let lost = Refusal::new(RefusalCode::Lost, message);
                self.table.ended(id, Outcome::Refused(lost), 0);
            }
        }
    }

    /// Fills the room that the link has.
    fn send(&mut self, permit: OwnedPermit<v1::RunnerFrame>) {
        let mut permit = Some(permit);
        while let Some(room) = permit.take() {
            let Some(frame) = self.table.next_frame(&mut self.output) else {
                return;
            };
            permit = room.send(frame).try_reserve_owned().ok();
        }
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
