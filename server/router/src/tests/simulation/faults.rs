//! What fails, when the dice say so.

use std::time::Duration;

use super::world::World;

impl World {
    /// Something fails, now and then.
    pub(super) fn fault(&mut self) {
        if !self.dice.one_in(120) {
            return;
        }
        let machine = self.any_machine();
        let kinds = if self.has_peers() { 46 } else { 34 };
        match self.dice.below(kinds) {
            0..=8 => self.cut(),
            9..=11 => self.server_crash(machine),
            12 => self.runner_crash(false),
            13 => self.runner_crash(true),
            14..=16 => self.take_snapshot(),
            17..=19 => self.restore_snapshot(),
            // One end is suspended; its monotonic clock stands still.
            20 | 21 => {
                let time = Duration::from_secs(self.dice.below(120));
                self.machines[machine].clock.clock.suspend(time);
            }
            22 => self.runner_time += Duration::from_secs(self.dice.below(120)),
            23 => {
                let forward = self.dice.below(7_200_000_000) as i64 - 3_600_000_000;
                self.machines[machine].clock.clock.set_wall(forward);
            }
            24..=26 => self.stall(),
            27 | 28 => {
                let refuses = self.dice.one_in(2);
                self.say(format!("the store refuses to {machine}: {refuses}"));
                self.machines[machine].storm.refuse(refuses);
            }
            29 => {
                let is_away = self.dice.one_in(2);
                self.say(format!("the store is away for {machine}: {is_away}"));
                self.machines[machine].storm.go_away(is_away);
                if is_away {
                    self.checks.tally.count("store away");
                }
            }
            30..=33 => self.fill(),
            34..=39 => self.cut_call(),
            40..=42 => self.stall_calls(),
            43 => self.unstall_calls(),
            44 => self.end_a_lease(machine),
            _ => self.drain(machine),
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

    pub(super) fn cut(&mut self) {
        if let Some((key, wire)) = self.wires.iter_mut().last() {
            wire.cut(&mut self.dice);
            let line = format!("wire {key} is cut");
            self.say(line);
        }
    }

    /// A server gives its link away.
    fn drain(&mut self, machine: usize) {
        self.say(format!("server {machine}: drains"));
        if let Some(server) = self.server(machine) {
            let links = server.links.clone();
            server.spawn(async move { links.drain().await });
        }
    }

    /// A server is held for dead, and lives.
    fn end_a_lease(&mut self, machine: usize) {
        if let Some(server) = self.server(machine) {
            let replica = server.store.replica();
            self.say(format!("the lease of server {machine} ends, {replica}"));
            self.store.end_lease(replica);
        }
    }
}
