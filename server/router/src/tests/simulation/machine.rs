//! A machine that a server runs on: its clock, the fate of what the server asks the store, and the server, while it is
//! up.

use std::sync::Arc;

use server_records::LinkHolder;
use shared_types::{Clock as _, ReplicaId, Timestamp, clock::ManualClock};

use super::{
    RUNNER,
    server::{HostClock, Server},
    storm::Storm,
    world::World,
};
use crate::tests::double::Store;

pub(crate) struct Machine {
    number: usize,
    pub(super) clock: Arc<HostClock>,
    /// How often it was started.
    boots: u64,
    pub(crate) storm: Arc<Storm>,
    /// None while it is down.
    pub(crate) server: Option<Server>,
}

impl Machine {
    /// One whose server is not up.
    pub(super) fn new(number: usize, seed: u64) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(1_789_000_000_000_000));
        Self {
            number,
            clock: clock_of(number, 0, clock),
            boots: 0,
            storm: Arc::new(Storm::new(!seed ^ ((number as u64) << 40))),
            server: None,
        }
    }

    fn start(&mut self, store: &Store, replica: u128, seed: u64, has_peers: bool) {
        let replica = ReplicaId::from_u128(replica);
        let store = store.at_under(replica, self.storm.clone());
        let seed = seed ^ ((self.number as u64) << 48);
        self.server = Some(Server::start(store, &self.clock, seed, has_peers));
    }

    /// The machine dies as well, and begins anew.
    fn boot(&mut self) {
        self.boots += 1;
        let clock = ManualClock::at(self.clock.clock.now());
        self.clock = clock_of(self.number, self.boots, clock);
    }
}

fn clock_of(machine: usize, boots: u64, clock: ManualClock) -> Arc<HostClock> {
    let boot = format!("{machine}-{boots}");
    Arc::new(HostClock { clock, boot })
}

impl World {
    /// The servers that are up.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        let servers = self.machines.iter();
        servers.filter_map(|machine| machine.server.as_ref())
    }

    /// The machines whose servers are up.
    pub(crate) fn running(&self) -> Vec<usize> {
        let machines = self.machines.iter().enumerate();
        let up = machines.filter(|(_, machine)| machine.server.is_some());
        up.map(|(number, _)| number).collect()
    }

    /// A machine whose server is up.
    pub(crate) fn any_server(&mut self) -> Option<usize> {
        let up = self.running();
        self.dice.pick(&up)
    }

    /// Any machine.
    pub(crate) fn any_machine(&mut self) -> usize {
        self.dice.below(self.machines.len() as u64) as usize
    }

    /// The machine whose server is like this.
    pub(crate) fn find_server(&self, is: impl Fn(&Server) -> bool) -> Option<usize> {
        let mut machines = self.machines.iter();
        machines.position(|machine| machine.server.as_ref().is_some_and(&is))
    }

    pub(crate) fn server(&mut self, machine: usize) -> Option<&mut Server> {
        self.machines[machine].server.as_mut()
    }

    /// True if there are several servers.
    pub(crate) fn has_peers(&self) -> bool {
        self.machines.len() > 1
    }

    /// Whether the store has refused something to somebody.
    pub(crate) fn has_refused(&self) -> bool {
        self.machines.iter().any(|at| at.storm.has_refused())
    }

    pub(super) fn start_server(&mut self, machine: usize) {
        self.replicas += 1;
        let (replica, has_peers) = (self.replicas, self.has_peers());
        let seed = self.seed ^ self.store.rows().epoch.0 << 32;
        let at = &mut self.machines[machine];
        at.storm.revive();
        at.start(&self.store, replica, seed, has_peers);
    }

    pub(super) fn server_crash(&mut self, machine: usize) {
        let Some(server) = self.machines[machine].server.take() else {
            return;
        };
        if self.only_heard {
            self.machines[machine].server = Some(server);
            return;
        }
        self.say(format!("server {machine}: crashes"));
        self.checks.tally.count("server crashes");
        self.dead.push(server.store.replica());
        let dice = &mut self.dice;
        let area = server.store.area();
        area.crash(|at_most| dice.below(at_most + 1));
        // Sometimes its machine died as well.
        if self.dice.one_in(8) {
            self.machines[machine].boot();
        }
        for wire in server.wires() {
            if let Some(wire) = self.wires.get_mut(&wire) {
                wire.cut(&mut self.dice);
            }
        }
        self.to_close.clear();
        drop(server);
        self.cut_calls_of(machine);
    }

    /// The lease of a server that is no more ends, some time later.
    pub(super) fn leases_end(&mut self) {
        let times = if self.faults { 40 } else { 4 };
        if self.dice.one_in(times)
            && let Some(replica) = self.dead.pop()
        {
            self.say(format!("the lease of {replica} ends"));
            self.store.end_lease(replica);
        }
    }

    /// Other servers are told that a link has changed, mostly.
    pub(super) fn tell_of_links(&mut self) {
        let holder = self.store.holder_of(RUNNER);
        let now = (holder, self.store.generation_of(RUNNER));
        if !self.has_peers() || self.held == now {
            return;
        }
        if self.held.0.is_some() && holder.is_some() && self.held.0 != holder {
            self.checks.tally.count("links moved");
        }
        self.held = now;
        self.say(format!("the link: {now:?}"));
        for machine in self.running() {
            if !self.faults || !self.dice.one_in(4) {
                self.hints.push(machine);
            }
        }
    }

    /// A server hears that a link has changed.
    pub(super) fn hint(&mut self) {
        if self.hints.is_empty() {
            return;
        }
        let at = self.dice.below(self.hints.len() as u64) as usize;
        let machine = self.hints.swap_remove(at);
        if let Some(server) = self.server(machine) {
            let links = server.links.clone();
            server.spawn(async move { links.changed_elsewhere(RUNNER).await });
        }
    }
}

/// Whether this is the link of that server.
pub(super) fn is_of(link: &LinkHolder, server: &Server) -> bool {
    link.replica == server.store.replica()
}
