//! What fails, when the dice say so.

use std::{sync::Arc, time::Duration};

use shared_types::{Clock as _, clock::ManualClock};

use super::{server::HostClock, world::World};

impl World {
    /// Something fails, now and then.
    pub(super) fn fault(&mut self) {
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
            27 | 28 => {
                let refuses = self.dice.one_in(2);
                self.say(format!("the store refuses: {refuses}"));
                self.storm.refuse(refuses);
            }
            29 => {
                let is_away = self.dice.one_in(2);
                self.say(format!("the store is away: {is_away}"));
                self.storm.go_away(is_away);
                if is_away {
                    self.checks.tally.count("store away");
                }
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

    pub(super) fn cut(&mut self) {
        if let Some((key, wire)) = self.wires.iter_mut().last() {
            wire.cut(&mut self.dice);
            let line = format!("wire {key} is cut");
            self.say(line);
        }
    }

    pub(super) fn server_crash(&mut self) {
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
