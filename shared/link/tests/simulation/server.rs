//! The server's process: its links and the operations that it follows. All of it is gone after a crash;
//! the store stays.

mod operations;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    rc::Rc,
    time::Duration,
};

use proto::v1::{self, runner_frame, server_frame};
use shared_link::server::{
    Answer, Command, Connection, Follow, HelloFacts, Inbox, InboxError, Link, Linked, Mail, Over,
    Post, Seat, Seen, Slot, Times, facts,
};
use shared_sandbox::CancelAnswer;
use shared_types::{Generation, OperationId, limits::HELLO_WITHIN};

use super::{
    RUNNER,
    oracle::Reading,
    wire::Received,
    world::{Crashed, World},
};

pub(crate) const TIMES: Times = Times {
    heartbeat_every: Duration::from_secs(10),
    silence: Duration::from_secs(30),
    lease: Duration::from_secs(45),
};

/// What a process of the server holds.
pub(crate) struct Server {
    slot: Slot<Linked>,
    /// The highest generation that was let in, and what its link has shown of the runner's memory.
    newest: Generation,
    seen: Option<Seen>,
    /// Counts the changes of the slot.
    version: u64,
    /// By wire.
    links: BTreeMap<u64, ServerLink>,
    pub(crate) follows: BTreeMap<u64, Following>,
    /// Whether the runner never starts what it was asked about.
    fenced: BTreeMap<OperationId, bool>,
    /// What is to be done as soon as no link is just being made.
    errands: Vec<(OperationId, Errand)>,
}

/// What nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    /// It is to be stopped, which is recorded.
    Cancel,
    /// Its call has ended without its outcome.
    Settle,
    /// The runner said that it never starts.
    NeverStarted,
}

struct ServerLink {
    stage: Stage,
    wishes: VecDeque<Command<Seated>>,
    /// Cancels of which somebody waits for the answer.
    cancels: BTreeSet<OperationId>,
    /// A newer one took its place.
    stopped: bool,
}

enum Stage {
    /// The challenge was sent; the hello is to come by then.
    Called(Duration),
    Introduced(Box<HelloFacts>),
    Claimed(Box<HelloFacts>, Generation, Link<Seated>),
    Registered(Box<HelloFacts>, Generation, Link<Seated>),
    Judged(Linked, Link<Seated>, Vec<OperationId>),
    Ready(Generation, Link<Seated>),
    Gone,
}

pub(crate) struct Following {
    pub(crate) id: OperationId,
    pub(crate) key: u64,
    pub(crate) machine: Follow,
    pub(crate) inbox: Rc<RefCell<Inbox>>,
    /// The slot's version that the machine knows.
    seen: Option<u64>,
    /// The wire of the link that it knows.
    pub(crate) link: Option<u64>,
    /// The wire over which the runner was asked to fence it.
    fencing: Option<u64>,
    /// Its end is stored.
    is_stored: bool,
    pub(crate) reading: Reading,
    pub(crate) has_reader: bool,
    /// How much of the input the reader has handed over.
    pub(crate) input: u64,
}

/// One seat in an inbox; dropping it detaches.
pub(crate) struct Seated {
    inbox: Rc<RefCell<Inbox>>,
    seat: Seat,
}

impl Post for Seated {
    fn put(&self, mail: Mail) -> Result<(), InboxError> {
        self.inbox.borrow_mut().put(self.seat, mail)
    }

    fn put_answer(&self, answer: Answer) -> Result<(), InboxError> {
        self.inbox.borrow_mut().put_answer(self.seat, answer)
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let _ = self.put(Mail::Detached);
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            slot: Slot::new(),
            newest: Generation(0),
            seen: None,
            version: 0,
            links: BTreeMap::new(),
            follows: BTreeMap::new(),
            fenced: BTreeMap::new(),
            errands: Vec::new(),
        }
    }

    pub(crate) fn wires(&self) -> Vec<u64> {
        self.links.keys().copied().collect()
    }

    /// What it has seen of the runner's memory, stored or not.
    pub(crate) fn seen(&self) -> Option<&Seen> {
        self.seen.as_ref()
    }

    /// Whether somebody in it reads an operation's output.
    pub(crate) fn reads(&self, id: OperationId) -> bool {
        self.follows.values().any(|following| following.id == id)
    }

    pub(crate) fn following(&mut self, id: OperationId) -> Option<&mut Following> {
        let mut follows = self.follows.values_mut();
        follows.find(|following| following.id == id)
    }

    /// Whether nobody in it has anything to do or to say.
    pub(crate) fn is_idle(&self) -> bool {
        let busy = self.links.values().any(|link| match &link.stage {
            Stage::Ready(_, machine) => machine.has_frames() || !link.wishes.is_empty(),
            _ => true,
        });
        self.follows.is_empty() && self.errands.is_empty() && !busy
    }

    /// A runner calls.
    pub(crate) fn accept(&mut self, wire: u64, now: Duration) {
        let link = ServerLink {
            stage: Stage::Called(now + HELLO_WITHIN),
            wishes: VecDeque::new(),
            cancels: BTreeSet::new(),
            stopped: false,
        };
        self.links.insert(wire, link);
    }

    pub(crate) fn linked(&self) -> Option<&Linked> {
        match self.slot.connection() {
            Connection::Online(linked) => Some(linked),
            _ => None,
        }
    }

    /// When a link wants to be told the time.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let links = self.links.values().filter_map(|link| match &link.stage {
            Stage::Ready(_, machine) => Some(machine.wake_at()),
            _ => None,
        });
        links.min()
    }

    /// The wire of the link of this generation, if it carries operations.
    fn wire_of(&self, generation: Generation) -> Option<u64> {
        let mut links = self.links.iter();
        links
            .find(|(_, link)| matches!(&link.stage, Stage::Ready(g, _) if *g == generation))
            .map(|(wire, _)| *wire)
    }

    pub(crate) fn wish(&mut self, wire: Option<u64>, command: Command<Seated>) -> bool {
        match wire.and_then(|wire| self.links.get_mut(&wire)) {
            Some(link) => {
                link.wishes.push_back(command);
                true
            }
            None => false,
        }
    }
}

impl World {
    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("asked only while it runs")
    }

    /// Something happens to one link.
    pub(crate) fn link_step(&mut self, wire: u64) -> Result<(), Crashed> {
        let Some(mut link) = self.server().links.remove(&wire) else {
            return Ok(());
        };
        let gone = self.move_link(wire, &mut link)?;
        if gone || link.stopped {
            self.end_link(wire, link);
        } else {
            self.server().links.insert(wire, link);
        }
        Ok(())
    }

    /// Returns whether the link is over.
    fn move_link(&mut self, wire: u64, link: &mut ServerLink) -> Result<bool, Crashed> {
        link.stage = match std::mem::replace(&mut link.stage, Stage::Gone) {
            Stage::Called(until) if self.server_time > until => return Ok(true),
            Stage::Called(until) => match self.wires.get_mut(&wire).map(|wire| wire.up.receive()) {
                Some(Received::Frame(frame)) => {
                    let Some(runner_frame::Kind::Hello(hello)) = frame.kind else {
                        panic!("the first frame is no hello");
                    };
                    let facts = facts(RUNNER, *hello).expect("a hello that can be read");
                    Stage::Introduced(Box::new(facts))
                }
                Some(Received::Nothing) => Stage::Called(until),
                Some(Received::End) | None => return Ok(true),
            },
            Stage::Introduced(facts) => {
                let heard = self.server.as_ref().and_then(Server::seen);
                let mut all_seen = self.store.seen.iter().chain(heard);
                if all_seen.any(|seen| facts.went_back(seen)) {
                    self.say(format!("link {wire}: the journal went back"));
                    let new_journal = server_frame::Kind::NewJournal(v1::NewJournal::default());
                    self.send_down(wire, new_journal);
                    return Ok(true);
                }
                let generation = self.commit(|store| store.claim(&facts))?;
                self.say(format!("link {wire}: claimed as {generation}"));
                let now = self.server_time;
                let machine = Link::new(&facts, generation, TIMES, now);
                Stage::Claimed(facts, generation, machine)
            }
            Stage::Claimed(facts, generation, machine) => {
                let server = self.server();
                if server.slot.register(generation).is_err() {
                    return Ok(true);
                }
                assert!(generation > server.newest, "an older link is let in");
                server.newest = generation;
                server.seen = Some(Seen {
                    incarnation: facts.incarnation.clone(),
                    journal_sequence: facts.journal_sequence,
                    accepted_sequence: facts.journal_sequence,
                });
                server.version += 1;
                server.links.values_mut().for_each(|older| {
                    older.stopped |= matches!(
                        older.stage,
                        Stage::Registered(..) | Stage::Judged(..) | Stage::Ready(..)
                    );
                });
                Stage::Registered(facts, generation, machine)
            }
            Stage::Registered(facts, generation, mut machine) => {
                self.commit(|store| store.settle_unheard(&facts, generation))?;
                self.sync_before_verdicts();
                let found = machine.judge(self.store.verdicts(&facts));
                let incarnation = facts.incarnation;
                let linked = Linked {
                    generation,
                    incarnation,
                };
                Stage::Judged(linked, machine, found)
            }
            Stage::Judged(linked, machine, found) => {
                let generation = linked.generation;
                let server = self.server();
                if server.slot.ready(generation, linked.clone()) {
                    server.version += 1;
                }
                for id in found {
                    self.collect(id);
                }
                Stage::Ready(generation, machine)
            }
            Stage::Ready(generation, mut machine) => {
                let over = self.serve(wire, link, &mut machine);
                let accepted = machine.accepted_sequence();
                link.stage = Stage::Ready(generation, machine);
                self.remember(generation, accepted, over)?;
                return Ok(over);
            }
            Stage::Gone => return Ok(true),
        };
        Ok(false)
    }

    /// What the runner has accepted is stored now and then, and when the link ends.
    fn remember(
        &mut self,
        generation: Generation,
        accepted: u64,
        over: bool,
    ) -> Result<(), Crashed> {
        let server = self.server();
        if server.newest == generation
            && let Some(seen) = &mut server.seen
        {
            seen.accepted_sequence = accepted;
        }
        match over || self.dice.one_in(16) {
            true => self.commit(|store| store.heard(generation, accepted)),
            false => Ok(()),
        }
    }

    /// One event of a link that serves; returns whether it is over.
    fn serve(&mut self, wire: u64, link: &mut ServerLink, machine: &mut Link<Seated>) -> bool {
        let now = self.server_time;
        let room = self
            .wires
            .get(&wire)
            .is_some_and(|wire| wire.down.has_room());
        if machine.has_frames() && room && self.dice.one_in(2) {
            if let Some(frame) = machine.next_frame() {
                self.checks.sent_down(wire, &frame);
                self.wires
                    .entry(wire)
                    .and_modify(|wire| wire.down.send(frame));
            }
            return false;
        }
        if !machine.has_frames()
            && let Some(command) = link.wishes.pop_front()
        {
            machine.command(command);
            return false;
        }
        let random = self.dice.below(256) as u8;
        if let Err(over) = machine.tick(now, random) {
            assert_eq!(over, Over::Silent);
            self.say(format!("link {wire}: silent"));
            return true;
        }
        match self.wires.get_mut(&wire).map(|wire| wire.up.receive()) {
            Some(Received::Frame(frame)) => match machine.frame(frame, now) {
                Ok(Some(answered)) => {
                    let waits = link.cancels.remove(&answered.id);
                    let never_starts = answered.answer == Ok(CancelAnswer::NeverStarted);
                    self.server().fenced.insert(answered.id, never_starts);
                    if answered.answer == Ok(CancelAnswer::NeverStarted) {
                        self.checks.never_started.insert(answered.id);
                        if waits {
                            let errand = (answered.id, Errand::NeverStarted);
                            self.server().errands.push(errand);
                        }
                    }
                    false
                }
                Ok(None) => false,
                Err(Over::Goodbye(_) | Over::Left(_)) => true,
                Err(over) => panic!("the server holds the runner for broken: {over:?}"),
            },
            Some(Received::Nothing) => false,
            Some(Received::End) | None => true,
        }
    }

    fn end_link(&mut self, wire: u64, link: ServerLink) {
        self.say(format!("link {wire}: ends at the server"));
        let generation = match &link.stage {
            Stage::Registered(_, generation, _) | Stage::Ready(generation, _) => Some(*generation),
            Stage::Judged(linked, ..) => Some(linked.generation),
            _ => None,
        };
        drop(link);
        let now = self.wall();
        let server = self.server();
        if let Some(generation) = generation
            && server.slot.unregister(generation, now)
        {
            server.version += 1;
        }
        if let Some(wire) = self.wires.get_mut(&wire) {
            wire.down.close();
        }
    }

    pub(crate) fn send_down(&mut self, wire: u64, kind: server_frame::Kind) {
        if let Some(wire) = self.wires.get_mut(&wire) {
            wire.down.send(kind.into());
        }
    }
}
