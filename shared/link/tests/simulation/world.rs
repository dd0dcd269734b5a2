//! Everything at once: one seed decides who moves next, and what fails when.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use shared_link::server::StoredIntent;
use shared_sandbox::Operation;
use shared_types::{OperationId, Timestamp, clock::BootMoment, event::Place};

use super::{
    PLACE, RUNNER,
    dice::Dice,
    oracle::Checks,
    plan::{self, Scope},
    runner::Runner,
    server::Server,
    store::{Row, Store},
    wire::Wire,
};

/// Steps with faults, at most.
const STEPS: u64 = 4000;

/// Steps without faults in which everything has to end.
const STEPS_TO_THE_END: u64 = 60_000;

/// Lines that are kept for whoever looks into a failure.
const TRACE: usize = 400;

pub(crate) struct World {
    pub(crate) dice: Dice,
    /// Chance in what is kept of output.
    pub(crate) keeping: Dice,
    /// Chance in what is done to files.
    pub(crate) changing: Dice,
    /// Whether output is kept and committed.
    pub(crate) keeps: bool,
    /// Whether files are changed.
    changes: bool,
    /// Whether anything may fail.
    pub(crate) faults: bool,
    pub(crate) server_time: Duration,
    /// How often the server's host was started.
    server_boots: u64,
    pub(crate) runner_time: Duration,
    /// How far the wall clock is off.
    wall: i64,
    pub(crate) store: Store,
    /// None while it is down.
    pub(crate) server: Option<Server>,
    pub(crate) runner: Runner,
    pub(crate) wires: BTreeMap<u64, Wire>,
    keys: u64,
    /// Operations that nobody asked for yet.
    plan: Vec<Operation>,
    pub(crate) to_close: Vec<OperationId>,
    /// Operations that were placed when the runner's memory went.
    lost_memory: BTreeSet<OperationId>,
    /// The server's process alone knows that the runner's state went back: it does not die now.
    pub(crate) only_heard: bool,
    pub(crate) checks: Checks,
    trace: VecDeque<String>,
}

/// The server's process died; whatever was going on in it is over.
pub(crate) struct Crashed;

impl World {
    pub(crate) fn new(seed: u64, scope: Scope) -> Self {
        let mut dice = Dice::new(seed);
        let mut keeping = Dice::new(!seed);
        let mut changing = Dice::new(seed.rotate_left(32));
        Self {
            plan: plan::operations(scope, &mut dice, &mut keeping, &mut changing),
            changes: scope >= Scope::Changing,
            dice,
            keeping,
            changing,
            keeps: scope >= Scope::Keeping,
            faults: true,
            server_time: Duration::ZERO,
            server_boots: 0,
            runner_time: Duration::ZERO,
            wall: 0,
            store: Store {
                tells: scope >= Scope::Telling,
                ..Store::default()
            },
            server: Some(Server::new()),
            runner: Runner::new(),
            wires: BTreeMap::new(),
            keys: 0,
            to_close: Vec::new(),
            lost_memory: BTreeSet::new(),
            only_heard: false,
            checks: Checks::default(),
            trace: VecDeque::new(),
        }
    }

    /// Runs to the end and holds what happened to the contract.
    pub(crate) fn run(&mut self) {
        let steps = self.dice.below(STEPS);
        for _ in 0..steps {
            self.fault();
            self.step();
        }
        self.faults = false;
        self.say("nothing fails from now on".into());
        // Everything ends over the link that is there, or the next one where that has to come.
        self.until_idle(0);
        for (id, row) in &self.store.rows {
            assert!(row.intent.outcome.is_some(), "{id} waits for another link");
        }
        // What one inventory's answer begins, the next one's finds settled and lets go.
        for _ in 0..3 {
            let links = self.store.generation;
            self.cut();
            self.until_idle(links + 1);
        }
        self.checks
            .at_the_end(&self.store, &self.runner.host, &self.lost_memory);
        let left = self.runner.table.unfinished();
        assert_eq!(left.running, 0, "something still counts as running");
        assert_eq!(left.unforgotten, 0, "the runner still remembers something");
    }

    /// Until nobody has anything to do, over a link of this generation or a later one.
    fn until_idle(&mut self, generation: u64) {
        let mut steps = 0;
        while self.store.generation < generation || !self.busy().is_empty() {
            self.step();
            steps += 1;
            assert!(steps < STEPS_TO_THE_END, "no end: {:?}", self.busy());
        }
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

    /// The server's wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        let micros = i64::try_from(self.server_time.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(1_789_000_000_000_000 + micros + self.wall)
    }

    /// The clock of the server's host, which is started anew now and then.
    pub(crate) fn moment(&self) -> BootMoment {
        BootMoment {
            boot: self.server_boots.to_string(),
            at: self.server_time,
        }
    }

    /// Changes what is stored. The process may die just before or just after.
    pub(crate) fn commit<T>(&mut self, change: impl FnOnce(&mut Store) -> T) -> Result<T, Crashed> {
        let dies = self.faults && !self.only_heard && self.dice.one_in(40);
        if dies && self.dice.one_in(2) {
            return Err(Crashed);
        }
        let changed = change(&mut self.store);
        if dies { Err(Crashed) } else { Ok(changed) }
    }

    pub(crate) fn memory_is_gone(&mut self) {
        self.lost_memory.extend(self.store.rows.keys().copied());
    }

    /// Whether a reader may miss output: the runner that had it forgot it.
    pub(crate) fn may_be_cut(&self, id: OperationId) -> bool {
        self.store.rows[&id].closed || self.lost_memory.contains(&id)
    }

    /// How much an operation is to write to stdout and stderr.
    pub(crate) fn output_of(&mut self) -> [u64; 2] {
        [0, 0].map(|_| match self.dice.below(16) {
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
        let busy = [
            (!self.plan.is_empty(), "something is to be placed"),
            (
                self.store.rows.values().any(|row| !row.closed),
                "a call is open",
            ),
            (!self.runner.is_linked(), "the runner has no link"),
            (
                server.and_then(Server::linked).is_none(),
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
        let moved = match self.dice.below(16) {
            0..=3 => {
                self.runner_step();
                Ok(())
            }
            4..=6 => self.any_link(),
            7..=9 => self.any_follow(),
            10 => self.any_errand(),
            11 | 12 => {
                if self.changes {
                    self.meddle();
                }
                self.host_step();
                Ok(())
            }
            13 => self.client(),
            14 => {
                self.late_order();
                self.stale_order();
                Ok(())
            }
            _ => {
                self.let_time_pass();
                Ok(())
            }
        };
        if moved.is_err() {
            self.server_crash();
        }
    }

    fn any_link(&mut self) -> Result<(), Crashed> {
        let wires = self.server.as_ref().map(Server::wires).unwrap_or_default();
        match self.dice.pick(&wires) {
            Some(wire) => self.link_step(wire),
            None => Ok(()),
        }
    }

    fn any_follow(&mut self) -> Result<(), Crashed> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        let keys: Vec<_> = server.follows.keys().copied().collect();
        match self.dice.pick(&keys) {
            Some(key) => self.follow_step(key),
            None => Ok(()),
        }
    }

    fn any_errand(&mut self) -> Result<(), Crashed> {
        match self.server.is_some() && self.dice.one_in(2) {
            true => self.errand_step(),
            false => Ok(()),
        }
    }

    /// The engine and the people: operations are asked for, read again, cancelled, closed.
    fn client(&mut self) -> Result<(), Crashed> {
        if self.server.is_none() {
            self.server = Some(Server::new());
            self.store.epoch.0 += 1;
            self.say("server: is up".into());
            return Ok(());
        }
        if let Some(id) = self.to_close.pop() {
            return self.close(id);
        }
        let ids: Vec<_> = self.store.rows.keys().copied().collect();
        match self.dice.below(12) {
            0..=4 => return self.place(),
            5..=8 => self.resume(&ids),
            9 if self.faults => {
                if let Some(id) = self.dice.pick(&ids)
                    && !self.store.rows[&id].closed
                {
                    return self.cancel(id);
                }
            }
            10 if self.faults => self.leave(),
            11 if self.faults && self.dice.one_in(4) => {
                if let Some(id) = self.dice.pick(&ids) {
                    let followed = self.server.as_ref().is_some_and(|server| {
                        server.follows.values().any(|following| following.id == id)
                    });
                    if !followed {
                        return self.close(id);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn place(&mut self) -> Result<(), Crashed> {
        let linked = self.server.as_ref().and_then(Server::linked).cloned();
        let (Some(linked), Some(operation)) = (linked, self.plan.last().cloned()) else {
            return Ok(());
        };
        let operation = Operation {
            epoch: self.store.epoch,
            ..operation
        };
        let id = operation.id;
        let intent = StoredIntent {
            digest: operation.request.digest(),
            owner: operation.owner,
            epoch: operation.epoch,
            place: Place {
                runner: RUNNER,
                runner_name: "runner".into(),
                sandbox: PLACE,
                isolation: Default::default(),
            },
            incarnation: linked.incarnation,
            outcome: None,
            cancel_requested: false,
            closed: false,
            effect: operation.effect,
            start_by: Some(self.moment().after(operation.limits.start_within)),
        };
        self.say(format!("place {id}"));
        if intent.incarnation != *self.runner.table.incarnation() {
            // The server has not heard yet that the memory it means is gone.
            self.lost_memory.insert(id);
        }
        let row = Row {
            operation,
            intent,
            closed: false,
        };
        self.plan.pop();
        let again = (row.operation.clone(), self.store.rows.len());
        let placed = self.commit(|store| store.rows.insert(id, row));
        if placed.is_err() && self.store.rows.len() == again.1 {
            self.plan.push(again.0);
        }
        placed?;
        self.follow(id, Some(linked.generation));
        Ok(())
    }

    /// Whoever asked for an operation asks again: after a crash, or because another wants it.
    fn resume(&mut self, ids: &[OperationId]) {
        if let Some(id) = self.dice.pick(ids)
            && !self.store.rows[&id].closed
        {
            let server = self.server.as_ref().expect("it is up");
            let followed = server.follows.values().any(|following| following.id == id);
            match followed {
                true if self.faults && self.dice.one_in(10) => self.follow(id, None),
                true => self.ask(id),
                false => self.follow(id, None),
            }
        }
    }

    /// A reader goes away.
    fn leave(&mut self) {
        let server = self.server.as_mut().expect("it is up");
        let keys: Vec<_> = server.follows.keys().copied().collect();
        if let Some(key) = self.dice.pick(&keys)
            && let Some(following) = server.follows.get_mut(&key)
        {
            following.has_reader = false;
        }
    }

    fn let_time_pass(&mut self) {
        let by = match self.dice.below(100) {
            0 => {
                let link = self.server.as_ref().and_then(Server::wake_at);
                let link = link.map_or(Duration::MAX, |at| at.saturating_sub(self.server_time));
                let runner = self.runner.wake_at().saturating_sub(self.runner_time);
                link.min(runner).min(Duration::from_secs(60))
            }
            1..=9 => Duration::from_millis(self.dice.below(1000)),
            _ => Duration::from_millis(self.dice.below(5)),
        };
        self.server_time += by;
        self.runner_time += by;
    }

    /// Something fails, now and then.
    fn fault(&mut self) {
        if !self.dice.one_in(120) {
            return;
        }
        match self.dice.below(24) {
            0..=8 => self.cut(),
            9..=11 => self.server_crash(),
            12 => self.runner_crash(false),
            13 => self.runner_crash(true),
            14..=16 => self.take_snapshot(),
            17..=19 => self.restore_snapshot(),
            // One end is suspended; its monotonic clock stands still.
            20 | 21 => self.server_time += Duration::from_secs(self.dice.below(120)),
            22 => self.runner_time += Duration::from_secs(self.dice.below(120)),
            _ => self.wall += (self.dice.below(7_200_000_000) as i64) - 3_600_000_000,
        }
    }

    fn cut(&mut self) {
        let wires: Vec<_> = self.wires.keys().copied().collect();
        if let Some(key) = wires.last()
            && let Some(wire) = self.wires.get_mut(key)
        {
            wire.cut(&mut self.dice);
            self.say(format!("wire {key} is cut"));
        }
    }

    fn server_crash(&mut self) {
        if self.only_heard {
            return;
        }
        self.say("server: crashes".into());
        self.checks.tally.server_crashes += 1;
        self.server = None;
        // Sometimes its host died as well.
        let with_its_host = self.checks.tally.server_crashes.is_multiple_of(8);
        self.server_boots += u64::from(self.changes && with_its_host);
        for kept in self.store.outputs.values_mut() {
            kept.crash(&mut self.keeping);
        }
        self.to_close.clear();
        for wire in self.wires.values_mut() {
            wire.cut(&mut self.dice);
        }
    }
}
