//! Everything at once: one seed decides who moves next, and what fails when.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use shared_sandbox::{
    CancelAnswer, Operation, OperationEvent, Outcome, OutputStream, Retention, Sandbox as _,
};
use shared_types::{
    Clock as _, OperationId, RefusalCode, Timestamp, clock::ManualClock, event::Choice,
};

use super::{
    PANICKED, RUNNER,
    dice::Dice,
    oracle::{Checks, Reading, Rules},
    plan::{self, retention},
    readers::{Asker, News, Reader, Told},
    runner::Runner,
    server::{HostClock, Server},
    storm::Storm,
    watch_for_panics,
    wire::Wire,
};
use crate::{is_kept_nowhere, tests::double::Store};

/// Steps with faults, at most.
const STEPS: u64 = 3000;

/// Steps without faults in which everything has to end.
const STEPS_TO_THE_END: u64 = 200_000;

/// How often it is looked whether everything has ended, in steps.
const LOOK_EVERY: u64 = 8;

/// Lines that are kept for whoever looks into a failure.
const TRACE: usize = 4000;

pub(crate) struct World {
    pub(crate) dice: Dice,
    /// Whether anything may fail.
    pub(crate) faults: bool,
    seed: u64,
    pub(crate) server_time: Duration,
    pub(crate) runner_time: Duration,
    clock: Arc<HostClock>,
    /// How often the server's host was started.
    server_boots: u64,
    pub(crate) storm: Arc<Storm>,
    pub(crate) store: Store,
    /// None while it is down.
    pub(crate) server: Option<Server>,
    pub(crate) runner: Runner,
    pub(crate) wires: BTreeMap<u64, Wire>,
    keys: u64,
    /// All that is asked for.
    pub(crate) operations: BTreeMap<OperationId, Operation>,
    /// Those that are not placed yet.
    plan: Vec<OperationId>,
    to_close: Vec<OperationId>,
    /// What readers have said that they have.
    pub(crate) confirmed: BTreeMap<(OperationId, OutputStream), u64>,
    /// Operations that were placed when the runner's memory went.
    pub(crate) lost_memory: BTreeSet<OperationId>,
    /// Operations of which some output could not be kept for a while.
    unkept: BTreeSet<OperationId>,
    /// The server's process alone knows that the runner's state went back: it does not die now.
    only_heard: bool,
    pub(crate) checks: Checks,
    trace: VecDeque<String>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        watch_for_panics();
        let mut dice = Dice::new(seed);
        let storm = Arc::new(Storm::new(!seed));
        let store = Store::under(storm.clone());
        store.rows().choice = Choice::User {
            runner: RUNNER,
            name: "runner".to_owned(),
        };
        store.rows().epoch.0 = 1;
        let operations = plan::operations(&mut dice).into_iter();
        let operations: BTreeMap<_, _> = operations.map(|asked| (asked.id, asked)).collect();
        let clock = ManualClock::at(Timestamp::from_micros(1_789_000_000_000_000));
        let clock = Arc::new(HostClock {
            clock,
            boot: "0".to_owned(),
        });
        Self {
            server: Some(Server::start(&store, &clock, seed)),
            plan: operations.keys().rev().copied().collect(),
            dice,
            faults: true,
            seed,
            server_time: Duration::ZERO,
            runner_time: Duration::ZERO,
            clock,
            server_boots: 0,
            storm,
            store,
            runner: Runner::new(),
            wires: BTreeMap::new(),
            keys: 0,
            operations,
            to_close: Vec::new(),
            confirmed: BTreeMap::new(),
            lost_memory: BTreeSet::new(),
            unkept: BTreeSet::new(),
            only_heard: false,
            checks: Checks::default(),
            trace: VecDeque::new(),
        }
    }

    /// Runs to the end and holds what happened to the contract.
    pub(crate) fn run(&mut self) {
        for (id, operation) in &self.operations {
            let line = format!("{id}: {:?}", operation.request);
            let line = line.get(..200).unwrap_or(&line).to_owned();
            self.trace.push_back(line);
        }
        let steps = self.dice.below(STEPS);
        for _ in 0..steps {
            self.fault();
            self.step();
        }
        self.nothing_fails();
        if self.storm.has_refused() {
            // What was given up while the store did not answer waits for another link.
            self.checks.tally.count("refused by the store");
            self.over_another_link();
        }
        // Everything ends over the link that is there, or the next one where that has to come.
        self.until_idle(0);
        for id in self.operations.keys() {
            let intent = self.store.rows().intent(*id);
            let ended = intent.is_some_and(|intent| intent.outcome.is_some());
            assert!(ended, "{id} waits for another link");
        }
        // What one inventory's answer begins, the next one's finds settled and lets go.
        for _ in 0..3 {
            self.over_another_link();
        }
        let asked = (&self.operations, &self.lost_memory);
        self.checks
            .at_the_end(&self.store, &self.runner.host, asked);
        self.check_kept();
        let left = self.runner.table.unfinished();
        assert_eq!(left.running, 0, "something still counts as running");
        assert_eq!(left.unforgotten, 0, "the runner still remembers something");
    }

    fn nothing_fails(&mut self) {
        self.say("nothing fails from now on".into());
        self.faults = false;
        self.storm.calm_down();
        self.store.free_the_disk();
        for wire in self.wires.values_mut() {
            wire.stall(false, false);
        }
    }

    fn over_another_link(&mut self) {
        let links = self.generation();
        self.cut();
        self.until_idle(links + 1);
    }

    /// Until nobody has anything to do, over a link of this generation or a later one.
    fn until_idle(&mut self, generation: u64) {
        let mut steps = 0;
        while self.generation() < generation || !self.busy().is_empty() {
            for _ in 0..LOOK_EVERY {
                self.step();
            }
            steps += LOOK_EVERY;
            assert!(steps < STEPS_TO_THE_END, "no end: {:?}", self.busy());
        }
    }

    fn generation(&self) -> u64 {
        self.store.generation_of(RUNNER).0
    }

    pub(crate) fn say(&mut self, line: String) {
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let time = self.server_time.as_millis();
        self.trace.push_back(format!("{time:>9} {line}"));
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.trace.iter().cloned().collect()
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.keys += 1;
        self.keys
    }

    pub(crate) fn memory_is_gone(&mut self) {
        let placed: Vec<_> = self.store.rows().intents.keys().copied().collect();
        self.lost_memory.extend(placed);
    }

    pub(crate) fn spare_the_server(&mut self, spares: bool) {
        self.only_heard = spares;
        self.storm.spare(spares);
    }

    fn is_closed(&self, id: OperationId) -> bool {
        let intent = self.store.rows().intent(id);
        intent.is_some_and(|intent| intent.closed)
    }

    /// Whether a reader may miss output: the runner that had it forgot it, or it cannot be kept now. Only
    /// who asks with the request waits for that.
    fn may_be_cut(&self, id: OperationId, calls: bool) -> bool {
        let waits = calls && retention(&self.operations[&id].request) == Retention::All;
        let is_unkept = !waits && self.unkept.contains(&id);
        is_unkept || self.is_closed(id) || self.lost_memory.contains(&id)
    }

    /// How much an operation is to write to stdout and stderr.
    pub(crate) fn output_of(&mut self) -> [u64; 2] {
        [0, 0].map(|_| match self.dice.below(24) {
            0 => self.dice.below(6 << 20),
            1 => 0,
            _ => self.dice.below(200_000),
        })
    }

    /// Who still has something to do.
    fn busy(&self) -> Vec<&'static str> {
        let server = self.server.as_ref();
        let wires = server.map(Server::wires).unwrap_or_default();
        let table = self.runner.table.unfinished();
        let is_open = |id: &OperationId| !self.is_closed(*id);
        let busy = [
            (!self.plan.is_empty(), "something is to be placed"),
            (self.operations.keys().any(is_open), "a call is open"),
            (!self.runner.is_linked(), "the runner has no link"),
            (
                !server.is_some_and(Server::is_linked),
                "the server has no link",
            ),
            (!server.is_some_and(Server::is_idle), "the server is busy"),
            (table.running > 0, "something runs"),
            (
                self.runner.table.has_frames(),
                "the runner has frames to send",
            ),
            (
                wires.iter().any(|wire| self.wires[wire].is_busy()),
                "frames are in flight",
            ),
        ];
        busy.into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, what)| what)
            .collect()
    }

    /// Somebody moves.
    fn step(&mut self) {
        match self.dice.below(16) {
            0..=3 => self.runner_step(),
            4..=7 => self.any_link(),
            8..=10 => self.server_step(),
            11 | 12 => {
                self.meddle();
                self.host_step();
            }
            13 => self.client(),
            14 => {
                self.late_order();
                self.stale_order();
            }
            _ => self.let_time_pass(),
        }
        self.hear();
    }

    fn any_link(&mut self) {
        let wires = self.server.as_ref().map(Server::wires).unwrap_or_default();
        if let Some(wire) = self.dice.pick(&wires) {
            self.link_step(wire);
        }
    }

    fn server_step(&mut self) {
        let steps = self.dice.below(12);
        if let Some(server) = &self.server {
            let storm = Arc::clone(&self.storm);
            server.go_on(steps, || storm.dies());
        }
    }

    /// What the server's tasks have done is held to the contract.
    fn hear(&mut self) {
        self.note_placed();
        while let Some(news) = self.server.as_mut().and_then(Server::next_news) {
            match news {
                News::Told(key, told) => self.told(key, told),
                News::LinkEnded(wire, end) => self.link_ended(wire, end),
                News::Cancelled(id, Ok(CancelAnswer::NeverStarted)) => {
                    self.checks.never_started.insert(id);
                }
                News::Cancelled(id, answer) => self.say(format!("cancel of {id}: {answer:?}")),
            }
        }
        assert!(!PANICKED.load(Ordering::Relaxed), "a task has panicked");
        if self.storm.dies() {
            self.server_crash();
        }
    }

    fn note_placed(&mut self) {
        while let Some(id) = self.plan.last().copied() {
            let Some(intent) = self.store.rows().intent(id) else {
                return;
            };
            self.say(format!("{id} is placed"));
            self.plan.pop();
            if intent.incarnation != *self.runner.table.incarnation() {
                // The server has not heard yet that the memory it means is gone.
                self.lost_memory.insert(id);
            }
        }
    }

    fn told(&mut self, key: u64, told: Told) {
        let server = self.server.as_mut().expect("it was told just now");
        let Some(mut reader) = server.readers.remove(&key) else {
            return;
        };
        let id = reader.id;
        match told {
            Told::Refused(refusal) => {
                let is_known = refusal.code != RefusalCode::Conflict;
                assert!(is_known, "{id} is refused: {refusal}");
                return self.say(format!("reader {key} of {id} is refused: {refusal}"));
            }
            Told::Over => return self.say(format!("reader {key} of {id} is told no more")),
            Told::Confirms(stream, up_to) => {
                let confirmed = self.confirmed.entry((id, stream)).or_default();
                *confirmed = up_to.max(*confirmed);
            }
            Told::Resized(size) => self.check_resized(id, size),
            Told::Event(event) => self.event(&mut reader, &event),
            Told::Offered(event) => self.reads(&mut reader, &event),
            Told::Stored(outcome) => self.end_told(&reader, &outcome),
        }
        if let Some(server) = &mut self.server {
            server.readers.insert(key, reader);
        }
    }

    fn event(&mut self, reader: &mut Reader, event: &OperationEvent) {
        self.reads(reader, event);
        match event {
            OperationEvent::InputTaken(up_to) => self.check_taken(reader.id, *up_to),
            OperationEvent::Gap { .. } => self.checks.tally.count("gaps"),
            OperationEvent::Ended(outcome) => self.end_told(reader, outcome),
            _ => {}
        }
    }

    fn reads(&mut self, reader: &mut Reader, event: &OperationEvent) {
        let id = reader.id;
        if matches!(event, OperationEvent::Gap { .. }) {
            self.say(format!("a reader of {id} is told: {event:?}"));
        }
        let rules = Rules {
            may_be_cut: self.may_be_cut(id, reader.calls),
            retention: retention(&self.operations[&id].request),
            host: &self.runner.host,
        };
        reader.reading.event(id, event, &rules);
    }

    /// Of an end that is stored.
    fn end_told(&mut self, reader: &Reader, outcome: &Outcome) {
        self.say(format!("a reader of {} is told its end", reader.id));
        self.checks.told_end(reader.id, outcome, &self.store);
        if reader.calls {
            self.to_close.push(reader.id);
        }
    }

    /// Whether a call of the engine waits for it.
    pub(crate) fn is_called(&self, id: OperationId) -> bool {
        let readers = self
            .server
            .iter()
            .flat_map(|server| server.readers.values());
        readers
            .into_iter()
            .any(|reader| reader.id == id && reader.calls)
    }

    /// Whether somebody reads it.
    pub(crate) fn is_read(&self, id: OperationId) -> bool {
        let mut readers = self
            .server
            .iter()
            .flat_map(|server| server.readers.values());
        readers.any(|reader| reader.id == id)
    }

    /// The engine and the people: operations are asked for, read, cancelled, closed.
    fn client(&mut self) {
        if self.server.is_none() {
            return self.server_starts();
        }
        if let Some(id) = self.to_close.pop() {
            return self.close(id);
        }
        let placed = self.operations.keys().filter(|id| !self.plan.contains(id));
        let placed: Vec<_> = placed.copied().collect();
        let one = self.dice.pick(&placed);
        match (self.dice.below(14), one) {
            (0..=4, _) => self.place(),
            (5..=8, Some(id)) => self.resume(id),
            (9 | 10, Some(id)) if self.faults => self.watch(id),
            (11, Some(id)) if self.faults && !self.is_closed(id) => self.cancel(id),
            (12, _) if self.faults => self.leave(),
            (13, Some(id)) if self.faults && self.dice.one_in(4) && !self.is_called(id) => {
                self.close(id);
            }
            _ => {}
        }
    }

    fn server_starts(&mut self) {
        self.storm.revive();
        self.store.rows().epoch.0 += 1;
        let seed = self.seed ^ self.store.rows().epoch.0 << 32;
        self.server = Some(Server::start(&self.store, &self.clock, seed));
        self.say("server: is up".into());
    }

    fn place(&mut self) {
        if let Some(id) = self.plan.last().copied()
            && !self.is_called(id)
        {
            self.call(id);
        }
    }

    /// Whoever asked for an operation asks again: after a crash, or because another wants it.
    fn resume(&mut self, id: OperationId) {
        let again = self.faults && self.dice.one_in(10);
        if !self.is_closed(id) && (again || !self.is_called(id)) {
            self.call(id);
        }
    }

    fn call(&mut self, id: OperationId) {
        let operation = Operation {
            epoch: self.store.rows().epoch,
            ..self.operations[&id].clone()
        };
        self.ask(id, true, [0, 0], |asker| asker.call(operation));
    }

    fn watch(&mut self, id: OperationId) {
        if is_kept_nowhere(&self.operations[&id].request) {
            return;
        }
        let written = self.runner.host.written(id);
        let from = written.map(|written| self.dice.below(2) * self.dice.below(written + 1));
        if from != [0, 0] {
            self.checks.tally.count("read from within");
        }
        self.ask(id, false, from, |asker| asker.watch(id, from));
    }

    fn ask<F>(
        &mut self,
        id: OperationId,
        calls: bool,
        from: [u64; 2],
        work: impl FnOnce(Asker) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = self.fresh();
        let Some(asker) = self.asker(key) else {
            return;
        };
        self.say(format!(
            "reader {key} asks for {id}, calls {calls}, from {from:?}"
        ));
        let work = work(asker);
        if let Some(server) = &mut self.server {
            let reader = Reader {
                id,
                calls,
                reading: Reading::from(from),
                task: server.spawn(work),
            };
            server.readers.insert(key, reader);
        }
    }

    fn asker(&self, key: u64) -> Option<Asker> {
        let server = self.server.as_ref()?;
        Some(Asker {
            key,
            store: self.store.clone(),
            sandbox: server.sandbox.clone(),
            storm: Arc::clone(&self.storm),
            news: server.news.clone(),
        })
    }

    fn cancel(&mut self, id: OperationId) {
        self.say(format!("cancel {id}"));
        if let Some(server) = &self.server {
            let (sandbox, news) = (server.sandbox.clone(), server.news.clone());
            let epoch = self.store.rows().epoch;
            server.spawn(async move {
                let answer = sandbox.cancel(id, epoch).await;
                let _ = news.send(News::Cancelled(id, answer));
            });
        }
    }

    /// A reader goes away.
    fn leave(&mut self) {
        let Some(server) = &mut self.server else {
            return;
        };
        let keys: Vec<_> = server.readers.keys().copied().collect();
        if let Some(key) = self.dice.pick(&keys)
            && let Some(reader) = server.readers.remove(&key)
        {
            reader.task.abort();
            self.say(format!("reader {key} leaves"));
        }
    }

    fn close(&mut self, id: OperationId) {
        self.say(format!("the call of {id} ends"));
        let operation = self.operations[&id].clone();
        if let (Some(asker), Some(server)) = (self.asker(0), &self.server) {
            server.spawn(asker.close(operation));
        }
    }

    fn let_time_pass(&mut self) {
        let hurries = if self.faults { 0 } else { 9 };
        let by = match self.dice.below(100) {
            at if at <= hurries => {
                let runner = self.runner.wake_at().saturating_sub(self.runner_time);
                runner.min(Duration::from_secs(15))
            }
            ..20 => Duration::from_millis(self.dice.below(500)),
            _ => Duration::from_millis(self.dice.below(5)),
        };
        self.server_time += by;
        self.runner_time += by;
        self.clock.clock.advance(by);
        if let Some(server) = &self.server {
            server.let_time_pass(by);
        }
    }

    /// Something fails, now and then.
    fn fault(&mut self) {
        if !self.dice.one_in(120) {
            return;
        }
        match self.dice.below(34) {
            0..=8 => self.cut(),
            9..=11 => self.server_crash(),
            12 => self.runner_crash(false),
            13 => self.runner_crash(true),
            14..=16 => self.take_snapshot(),
            17..=19 => self.restore_snapshot(),
            // One end is suspended; its monotonic clock stands still.
            20 | 21 => self
                .clock
                .clock
                .suspend(Duration::from_secs(self.dice.below(120))),
            22 => self.runner_time += Duration::from_secs(self.dice.below(120)),
            23 => {
                let forward = self.dice.below(7_200_000_000) as i64 - 3_600_000_000;
                self.clock.clock.set_wall(forward);
            }
            24..=26 => self.stall(),
            27..=29 => {
                let refuses = self.dice.one_in(2);
                self.say(format!("the store refuses: {refuses}"));
                self.storm.refuse(refuses);
            }
            _ => self.fill(),
        }
    }

    fn fill(&mut self) {
        let full = self.dice.one_in(2);
        self.say(format!("the disk is full: {full}"));
        self.store.area().fill(full);
        if full {
            self.checks.tally.count("disk full");
            self.unkept.extend(self.operations.keys().copied());
        }
    }

    fn stall(&mut self) {
        let (up, down) = (self.dice.one_in(2), self.dice.one_in(2));
        if let Some(wire) = self.wires.values_mut().last() {
            wire.stall(up, down);
            self.say(format!("the newest wire stalls: up {up}, down {down}"));
        }
    }

    fn cut(&mut self) {
        if let Some((key, wire)) = self.wires.iter_mut().last() {
            wire.cut(&mut self.dice);
            let line = format!("wire {key} is cut");
            self.say(line);
        }
    }

    fn server_crash(&mut self) {
        if self.only_heard || self.server.is_none() {
            return;
        }
        self.say("server: crashes".into());
        self.checks.tally.count("server crashes");
        self.server = None;
        // Sometimes its host died as well.
        if self.dice.one_in(8) {
            self.server_boots += 1;
            self.clock = Arc::new(HostClock {
                clock: ManualClock::at(self.clock.clock.now()),
                boot: self.server_boots.to_string(),
            });
        }
        let dice = &mut self.dice;
        self.store.area().crash(|at_most| dice.below(at_most + 1));
        self.to_close.clear();
        for wire in self.wires.values_mut() {
            wire.cut(&mut self.dice);
        }
    }
}
