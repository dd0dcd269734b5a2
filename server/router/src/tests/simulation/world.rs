//! Everything at once: one seed decides who moves next, and what fails when.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use shared_sandbox::{Operation, OutputStream};
use shared_types::{Generation, OperationId, ReplicaId, event::Choice};

use super::{
    RUNNER,
    dice::Dice,
    machine::Machine,
    oracle::Checks,
    peers::{Ask, Call},
    plan,
    runner::Runner,
    server::Server,
    watch_for_panics,
    wire::Wire,
};
use crate::tests::double::Store;

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
    pub(super) seed: u64,
    pub(crate) server_time: Duration,
    pub(crate) runner_time: Duration,
    /// The store as nobody has it.
    pub(crate) store: Store,
    /// Those that servers run on.
    pub(crate) machines: Vec<Machine>,
    /// Servers that were started so far.
    pub(super) replicas: u128,
    /// Servers that are no more, and whose leases have not ended.
    pub(super) dead: Vec<ReplicaId>,
    /// Calls between servers, and those that are on their way.
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) asks: Vec<(usize, Ask)>,
    /// Who held the link when servers were last told, and those that are about to hear.
    pub(super) held: (Option<ReplicaId>, Generation),
    pub(super) hints: Vec<usize>,
    pub(crate) runner: Runner,
    pub(crate) wires: BTreeMap<u64, Wire>,
    keys: u64,
    /// All that is asked for.
    pub(crate) operations: BTreeMap<OperationId, Operation>,
    /// Those that are not placed yet.
    pub(super) plan: Vec<OperationId>,
    pub(super) to_close: Vec<OperationId>,
    /// What readers have said that they have.
    pub(crate) confirmed: BTreeMap<(OperationId, OutputStream), u64>,
    /// Operations that were placed when the runner's memory went.
    pub(crate) lost_memory: BTreeSet<OperationId>,
    /// Operations of which some output could not be kept for a while.
    pub(super) unkept: BTreeSet<OperationId>,
    /// The server's process alone knows that the runner's state went back: it does not die now.
    pub(super) only_heard: bool,
    pub(crate) checks: Checks,
    trace: VecDeque<String>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        watch_for_panics();
        let mut dice = Dice::new(seed);
        let store = Store::default();
        store.rows().choice = Choice::User {
            runner: RUNNER,
            name: "runner".to_owned(),
            workspace: None,
        };
        store.rows().epoch.0 = 1;
        let operations = plan::operations(&mut dice).into_iter();
        let operations: BTreeMap<_, _> = operations.map(|asked| (asked.id, asked)).collect();
        let machines = if dice.one_in(4) { 1 } else { 2 };
        let machines = (0..machines).map(|number| Machine::new(number, seed));
        let mut world = Self {
            machines: machines.collect(),
            replicas: 0,
            dead: Vec::new(),
            calls: BTreeMap::new(),
            asks: Vec::new(),
            held: (None, Generation(0)),
            hints: Vec::new(),
            plan: operations.keys().rev().copied().collect(),
            dice,
            faults: true,
            seed,
            server_time: Duration::ZERO,
            runner_time: Duration::ZERO,
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
        };
        for machine in 0..world.machines.len() {
            world.start_server(machine);
        }
        world
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
        if self.has_refused() {
            self.checks.tally.count("refused by the store");
        }
        // Everything ends over the link that is there, or the next one where that has to come: also what the
        // store did not answer for a while, and what could not be kept.
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
        for machine in &self.machines {
            machine.storm.calm_down();
        }
        self.unstall_calls();
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
        for machine in &self.machines {
            machine.storm.spare(spares);
        }
    }

    pub(super) fn is_closed(&self, id: OperationId) -> bool {
        let intent = self.store.rows().intent(id);
        intent.is_some_and(|intent| intent.closed)
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
        let wires: Vec<_> = self.servers().flat_map(Server::wires).collect();
        let is_up = |machine: &Machine| machine.server.is_some();
        let is_idle = |machine: usize| {
            let server = self.machines[machine].server.as_ref();
            server.is_none_or(|server| server.is_idle(self.loans(machine)))
        };
        let table = self.runner.table.unfinished();
        let is_open = |id: &OperationId| !self.is_closed(*id);
        let busy = [
            (!self.plan.is_empty(), "something is to be placed"),
            (self.operations.keys().any(is_open), "a call is open"),
            (!self.runner.is_linked(), "the runner has no link"),
            (!self.machines.iter().all(is_up), "a server is down"),
            (
                !self.servers().all(Server::is_linked),
                "a server has no link",
            ),
            (!(0..self.machines.len()).all(is_idle), "a server is busy"),
            (
                self.has_busy_calls() || !self.hints.is_empty(),
                "something is between servers",
            ),
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
        if self.has_peers() {
            self.peer_step();
        }
        self.hear();
    }

    fn any_link(&mut self) {
        let wires: Vec<_> = self.servers().flat_map(Server::wires).collect();
        if let Some(wire) = self.dice.pick(&wires) {
            self.link_step(wire);
        }
    }

    fn server_step(&mut self) {
        if self.dice.one_in(4) {
            self.hint();
        }
        for machine in 0..self.machines.len() {
            let steps = self.dice.below(12);
            let machine = &self.machines[machine];
            if let Some(server) = &machine.server {
                let storm = Arc::clone(&machine.storm);
                server.go_on(steps, || storm.dies());
            }
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
        for machine in &self.machines {
            machine.clock.clock.advance(by);
            if let Some(server) = &machine.server {
                server.let_time_pass(by);
            }
        }
        self.leases_end();
    }
}
