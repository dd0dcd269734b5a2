//! The daemon dies, or the whole host, or an older state of it comes back: what is found then.

use std::time::Duration;

use shared_link::{runner::OperationTable, server::KnownMemory};
use shared_sandbox::Outcome;
use shared_types::{Epoch, Incarnation, OperationId, Refusal, RefusalCode};

use super::Runner;
use crate::tests::simulation::{
    RUNNER,
    changing::{self, Changes, Entry},
    place,
    world::World,
};

/// An older state of the host.
pub(super) struct Snapshot {
    table: OperationTable,
    changes: Changes,
    incarnation: Incarnation,
    sequence: u64,
    /// How many files had been changed.
    changed: usize,
}

impl World {
    /// The daemon dies, or with `host` the whole machine; a new one reads the journal.
    pub(crate) fn runner_crash(&mut self, host: bool) {
        self.say(format!("runner: crashes, host {host}"));
        let Runner {
            table,
            journal,
            synced,
            boots,
            ..
        } = &mut self.runner;
        let mut incarnation = table.incarnation().clone();
        if host {
            let unsynced = (journal.len() - (*synced).min(journal.len())) as u64;
            journal.truncate(journal.len() - self.dice.below(unsynced + 1) as usize);
            *boots += 1;
            incarnation.boot = format!("boot-{boots}");
            self.runner.host.die();
        } else {
            self.runner.host.lose_daemon();
        }
        self.restore(incarnation, host);
        if host {
            self.memory_is_gone();
        }
    }

    /// A new daemon reads the journal.
    fn restore(&mut self, incarnation: Incarnation, host_died: bool) {
        if incarnation.boot != self.runner.table.incarnation().boot {
            self.runner.journal.push(Entry::Boot);
        }
        let (records, changes) = changing::read(&self.runner.journal);
        self.runner.changes = changes;
        let (mut table, open) =
            OperationTable::restore(incarnation, place(), records, self.runner_time);
        for id in open {
            if !self.settle_change(&mut table, id) {
                self.recover(&mut table, id, host_died);
            }
        }
        self.replace_memory(table);
        self.runner.write_down();
        self.forget_changes();
    }

    /// A new daemon finds out what became of an operation.
    fn recover(&self, table: &mut OperationTable, id: OperationId, host_died: bool) {
        let host = &self.runner.host;
        table.output(id, host.readable(id));
        if let Some(process) = host.running.get(&id) {
            table.input_taken(id, process.given.taken());
            return;
        }
        match host.ends.get(&id) {
            Some(outcome) => table.ended(id, outcome.clone(), 0),
            None if host_died => {
                let lost = Refusal::new(RefusalCode::Lost, "the host was started anew");
                table.ended(id, Outcome::Refused(lost), 0);
            }
            None => table.release(id),
        }
    }

    /// The host's state is kept, to be restored later.
    pub(crate) fn take_snapshot(&mut self) {
        let kept = self.runner.snapshot.as_ref();
        let ours = self.runner.table.incarnation();
        if kept.is_some_and(|kept| kept.incarnation == *ours) {
            return;
        }
        let Some(linked) = &self.runner.session else {
            return;
        };
        let incarnation = linked.opened.incarnation.clone();
        let sequence = self.runner.table.journal_sequence();
        self.runner.snapshot = Some(Snapshot {
            table: self.runner.table.clone(),
            changes: self.runner.changes.clone(),
            incarnation,
            sequence,
            changed: self.runner.host.disk.changed(),
        });
        self.say("runner: snapshot".into());
    }

    /// An older state of the host comes back. One case is left out, because no protocol sees it that
    /// does not ask the server before it begins anything: something was accepted since, or a file
    /// changed, and the word of that has not reached the server, or has died with it before it was
    /// stored.
    pub(crate) fn restore_snapshot(&mut self) {
        let Some(snapshot) = self.runner.snapshot.take() else {
            return;
        };
        let (incarnation, sequence) = (&snapshot.incarnation, snapshot.sequence);
        let tells = |seen: &KnownMemory| {
            let highest = seen.journal_sequence.max(seen.accepted_sequence);
            seen.incarnation != *incarnation || sequence < highest
        };
        let ours = &self.runner.table;
        let harmless = ours.incarnation() == incarnation
            && ours.journal_sequence() == sequence
            && self.runner.host.disk.changed() == snapshot.changed;
        let seen = self.store.shown_by(RUNNER);
        let stored = seen.as_ref().is_some_and(tells);
        // Of several servers the runner may link to one that has heard nothing.
        let machine = &self.machines[0];
        let server = machine.server.as_ref().filter(|_| !self.has_peers());
        let heard = server.and_then(|server| server.block_on(server.links.seen(RUNNER)));
        // Asking has let the server go on.
        let dies = machine.storm.dies();
        if dies || (!harmless && !stored && !heard.as_ref().is_some_and(tells)) {
            self.runner.snapshot = Some(snapshot);
            return;
        }
        let in_one_link = seen.as_ref().is_some_and(|seen| {
            seen.incarnation == *incarnation && sequence >= seen.journal_sequence
        });
        if in_one_link && !harmless {
            self.checks.tally.count("restored within a link");
        }
        self.spare_the_server(!harmless && !stored);
        self.say("runner: an older state is restored".into());
        self.runner.host.die();
        self.runner.table = snapshot.table;
        self.runner.changes = snapshot.changes;
        self.runner.compact();
        self.restore(snapshot.incarnation, true);
        self.memory_is_gone();
    }

    fn replace_memory(&mut self, table: OperationTable) {
        if let Some(linked) = self.runner.session.take()
            && let Some(wire) = self.wires.get_mut(&linked.wire)
        {
            wire.cut(&mut self.dice);
        }
        self.runner.table = table;
        self.runner.late.clear();
        self.runner.epoch = Epoch(0);
        self.runner.connect_at = self.runner_time + Duration::from_millis(self.dice.below(5000));
    }
}
