//! The server's process: the router as it is, on the store's double, in a runtime of its own. A crash drops
//! the runtime where it stands; the store stays.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use proto::v1::{self, runner_frame};
use shared_types::{
    Clock, TenantId, Timestamp, clock::ManualClock, entropy::SeededEntropy, limits::HELLO_WITHIN,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
    task::yield_now,
    time::advance,
};
use tokio_util::sync::CancellationToken;

use super::{
    RUNNER,
    peers::{Ask, Asks},
    readers::{News, Reader},
    wire::Received,
    world::World,
};
use crate::{
    SandboxRouter,
    links::{LinkEnd, LinkOptions, Links, Presence},
    tests::double::Store,
};
use server_records::LinkIdentity;

/// Frames that wait within the server, each way.
const FRAMES: usize = 4;

/// The greatest age of a link, in worlds whose links have one.
const AGE_AT_MOST: Duration = Duration::from_secs(20);

/// What a process of the server holds.
pub(crate) struct Server {
    runtime: Runtime,
    /// The store as this one has it.
    pub(crate) store: Store,
    pub(crate) links: Links,
    pub(crate) sandbox: SandboxRouter,
    presence: Presence,
    /// By wire.
    connections: BTreeMap<u64, Connection>,
    pub(crate) readers: BTreeMap<u64, Reader>,
    pub(crate) news: mpsc::UnboundedSender<News>,
    heard: mpsc::UnboundedReceiver<News>,
    /// What it asks of other servers; none if there can be none.
    asks: Option<mpsc::UnboundedReceiver<Ask>>,
}

enum Connection {
    /// The challenge was sent; the hello is to come by then.
    Called(Duration),
    Linked {
        /// None once the runner's end was heard to be over.
        inbound: Option<mpsc::Sender<v1::RunnerFrame>>,
        outbound: mpsc::Receiver<Box<v1::ServerFrame>>,
    },
}

/// The clocks of the server's host, which is started anew now and then.
#[derive(Debug)]
pub(crate) struct HostClock {
    pub(crate) clock: ManualClock,
    pub(crate) boot: String,
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn boot_time(&self) -> Duration {
        self.clock.boot_time()
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}

impl Server {
    pub(crate) fn start(store: Store, clock: &Arc<HostClock>, seed: u64, has_peers: bool) -> Self {
        let mut builder = Builder::new_current_thread();
        // The world moves between any two steps of its tasks, or less often, which is faster.
        let steps_at_once = if seed.is_multiple_of(3) { 1 } else { 6 };
        let builder = builder.enable_time().start_paused(true);
        let runtime = builder.event_interval(steps_at_once).build();
        let runtime = runtime.expect("a runtime");
        let options = LinkOptions {
            keep_again_after: Duration::from_secs(3),
            age_at_most: seed.is_multiple_of(4).then_some(AGE_AT_MOST),
            ..LinkOptions::default()
        };
        let (ports, clock) = (Arc::new(store.clone()), Arc::clone(clock) as Arc<dyn Clock>);
        let entropy = Arc::new(SeededEntropy::new(seed));
        let (asking, asks) = mpsc::unbounded_channel();
        let (links, presence) = runtime.block_on(async {
            let stop = CancellationToken::new();
            let links = Links::start(ports.clone(), clock.clone(), entropy, options, stop);
            if has_peers {
                links.borrow_by(Arc::new(Asks(asking))).await;
            }
            let presence = links.presence(RUNNER).await;
            (links, presence)
        });
        let (news, heard) = mpsc::unbounded_channel();
        Self {
            runtime,
            store,
            sandbox: SandboxRouter::new(links.clone(), ports.clone(), ports.clone(), ports, clock),
            links,
            presence,
            connections: BTreeMap::new(),
            readers: BTreeMap::new(),
            news,
            heard,
            asks: has_peers.then_some(asks),
        }
    }

    pub(crate) fn wires(&self) -> Vec<u64> {
        self.connections.keys().copied().collect()
    }

    /// Does it beside everything else.
    pub(crate) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::AbortHandle {
        self.runtime.spawn(task).abort_handle()
    }

    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Its tasks go on by so many steps or a few times as many, unless the process dies.
    pub(crate) fn go_on(&self, steps: u64, dies: impl Fn() -> bool) {
        self.runtime.block_on(async {
            for _ in 0..steps {
                if dies() {
                    break;
                }
                yield_now().await;
            }
        });
    }

    pub(crate) fn let_time_pass(&self, by: Duration) {
        self.runtime.block_on(advance(by));
    }

    pub(crate) fn next_news(&mut self) -> Option<News> {
        self.heard.try_recv().ok()
    }

    /// What it asks of another server.
    pub(crate) fn next_ask(&mut self) -> Option<Ask> {
        self.asks.as_mut()?.try_recv().ok()
    }

    pub(crate) fn has_wire(&self, wire: u64) -> bool {
        self.connections.contains_key(&wire)
    }

    /// A runner calls.
    pub(crate) fn accept(&mut self, wire: u64, now: Duration) {
        let called = Connection::Called(now + HELLO_WITHIN);
        self.connections.insert(wire, called);
    }

    pub(crate) fn is_linked(&self) -> bool {
        self.presence.is_online()
    }

    /// Whether nobody in it has anything to do or to say. It lends so many links.
    pub(crate) fn is_idle(&self, loans: usize) -> bool {
        let idle = self
            .connections
            .values()
            .all(|connection| match connection {
                Connection::Called(_) => false,
                Connection::Linked { inbound, outbound } => {
                    let inbound = inbound.as_ref();
                    outbound.is_empty()
                        && inbound.is_some_and(|inbound| inbound.capacity() == FRAMES)
                }
            });
        // The owner of the links has one; of a link one serves it, one stores what its runner reports of
        // sandboxes and one says how it ended. With fewer it has not asked yet for what is open there; and of
        // two links one is about to end. Without a link of its own it looks for one elsewhere, or uses that.
        let searches = usize::from(self.asks.is_some() && self.connections.is_empty());
        let resting = 1 + 3 * self.connections.len() + searches + loans;
        idle && self.connections.len() < 2
            && self.readers.is_empty()
            && self.links.collectors().is_empty()
            && self.runtime.metrics().num_alive_tasks() == resting
    }

    /// The door passes the runner's first message on.
    fn link(&self, wire: u64, hello: v1::Hello) -> Connection {
        let (to_server, mut frames) = mpsc::channel(FRAMES);
        let inbound = stream::poll_fn(move |context| frames.poll_recv(context)).boxed();
        let (to_runner, outbound) = mpsc::channel(FRAMES);
        let (links, news) = (self.links.clone(), self.news.clone());
        let identity = LinkIdentity {
            tenant: TenantId::from_u128(1),
            runner: RUNNER,
            name: "runner".to_owned(),
        };
        self.spawn(async move {
            let end = links.attach(identity, hello, inbound, to_runner).await;
            let _ = news.send(News::LinkEnded(wire, end));
        });
        Connection::Linked {
            inbound: Some(to_server),
            outbound,
        }
    }
}

impl World {
    /// A frame passes between a wire and the link behind it.
    pub(crate) fn link_step(&mut self, wire: u64) {
        let Some(machine) = self.find_server(|server| server.has_wire(wire)) else {
            return;
        };
        let server = self.machines[machine].server.as_mut();
        let Some(connection) = server.and_then(|server| server.connections.remove(&wire)) else {
            return;
        };
        let kept = match connection {
            Connection::Called(until) => self.answer(machine, wire, until),
            Connection::Linked { inbound, outbound } if self.dice.one_in(2) => {
                self.up(wire, inbound, outbound)
            }
            Connection::Linked { inbound, outbound } => self.down(wire, inbound, outbound),
        };
        let Some(connection) = kept else {
            self.say(format!("wire {wire}: ends at the server"));
            if let Some(wire) = self.wires.get_mut(&wire) {
                wire.down.close();
            }
            return;
        };
        if let Some(server) = self.server(machine) {
            server.connections.insert(wire, connection);
        }
    }

    fn answer(&mut self, machine: usize, wire: u64, until: Duration) -> Option<Connection> {
        match self.wires.get_mut(&wire)?.up.receive() {
            Received::Frame(frame) => {
                let Some(runner_frame::Kind::Hello(hello)) = frame.kind else {
                    panic!("the first frame is no hello");
                };
                Some(self.server(machine)?.link(wire, *hello))
            }
            Received::Nothing if self.server_time <= until => Some(Connection::Called(until)),
            Received::Nothing | Received::End => None,
        }
    }

    fn up(
        &mut self,
        wire: u64,
        inbound: Option<mpsc::Sender<v1::RunnerFrame>>,
        outbound: mpsc::Receiver<Box<v1::ServerFrame>>,
    ) -> Option<Connection> {
        let lane = &mut self.wires.get_mut(&wire)?.up;
        let room = inbound.as_ref().filter(|inbound| inbound.capacity() > 0);
        let is_over = match room.map(|room| (room, lane.receive())) {
            Some((room, Received::Frame(frame))) => room.try_send(frame).is_err(),
            Some((_, Received::End)) => true,
            Some((_, Received::Nothing)) | None => false,
        };
        let inbound = inbound.filter(|_| !is_over);
        Some(Connection::Linked { inbound, outbound })
    }

    fn down(
        &mut self,
        wire: u64,
        inbound: Option<mpsc::Sender<v1::RunnerFrame>>,
        mut outbound: mpsc::Receiver<Box<v1::ServerFrame>>,
    ) -> Option<Connection> {
        let lane = &mut self.wires.get_mut(&wire)?.down;
        if outbound.is_closed() && (outbound.is_empty() || !lane.has_room()) {
            return None;
        }
        if lane.has_room()
            && let Ok(frame) = outbound.try_recv()
        {
            self.checks.sent_down(wire, &frame);
            lane.send(*frame);
        }
        Some(Connection::Linked { inbound, outbound })
    }

    /// Why a link ended at the server.
    pub(crate) fn link_ended(&mut self, wire: u64, end: LinkEnd) {
        self.say(format!("wire {wire}: the link is over: {end:?}"));
        match end {
            LinkEnd::Violation(why) => panic!("the server holds the runner for broken: {why}"),
            LinkEnd::Failed(why) => assert!(self.has_refused(), "the link failed: {why}"),
            LinkEnd::Revoked | LinkEnd::Locked | LinkEnd::Shutdown | LinkEnd::Rotated => {
                panic!("nobody wanted that: {end:?}")
            }
            LinkEnd::Closed
            | LinkEnd::Goodbye(_)
            | LinkEnd::Left(_)
            | LinkEnd::Silent
            | LinkEnd::Replaced
            | LinkEnd::Drained
            | LinkEnd::Aged
            | LinkEnd::WentBack => {}
        }
    }
}
