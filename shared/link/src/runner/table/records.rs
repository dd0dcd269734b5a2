//! A table as records, and back.

use std::time::Duration;

use shared_types::{Incarnation, OperationId, Owner, SandboxId};

use super::OperationTable;
use crate::runner::{
    memory::Receipts,
    passing::PassingOrders,
    record::{Accepted, Record, Records},
};

impl OperationTable {
    /// The table that wrote these records, in this order, and what it does not know the end of:
    /// the driver finds out, and says so with [`OperationTable::output`], [`OperationTable::ended`] or
    /// [`OperationTable::release`]. Records that name no sandbox are of the first one, which is also the only one
    /// until others are added. It is `now` on the clock of [`OperationTable::order`].
    pub fn restore(
        incarnation: Incarnation,
        first_sandbox: SandboxId,
        records: Records,
        now: Duration,
    ) -> (Self, Vec<OperationId>) {
        let mut table = Self::new(incarnation, first_sandbox);
        let (of_earlier_boots, of_this_boot) = records.into_parts();
        for record in of_earlier_boots {
            table.replay(record, now);
        }
        table.begin_boot();
        for record in of_this_boot {
            table.replay(record, now);
        }
        let open = table.entries.iter().filter(|(_, e)| e.end.is_none());
        let open = open.map(|(id, _)| *id).collect();
        table.journal.unwritten.clear();
        (table, open)
    }

    /// Remembers an operation that was accepted, and whose records are gone: its end is not known
    /// yet. Does nothing where it is remembered or must never start. It is `now` on the clock of
    /// [`OperationTable::order`].
    pub fn adopt(&mut self, accepted: Accepted, now: Duration) {
        let id = accepted.operation;
        if !self.remembers(id) && !self.is_over(id) {
            self.journal
                .unwritten
                .push(Record::Accepted(accepted.clone()));
            self.replay(Record::Accepted(accepted), now);
        }
    }

    /// The host was restarted: what could still come from before is of another incarnation.
    fn begin_boot(&mut self) {
        self.receipts = Receipts::default();
        let entries = &self.entries;
        let is_remembered = |owner: &Owner| entries.values().any(|entry| entry.owner == *owner);
        self.epochs.begin_clock(is_remembered);
    }

    fn replay(&mut self, record: Record, now: Duration) {
        let heard = |at: Option<Duration>| at.map_or(now, |at| at.min(now));
        match record {
            Record::Sequence(accepted) => self.journal.accepted = accepted,
            Record::Accepted(accepted) => {
                self.journal.accepted += 1;
                let passing = PassingOrders::found(accepted.takes);
                let at = heard(accepted.at);
                self.remember(accepted, false, passing, at);
            }
            Record::Epoch { owner, epoch, at } => self.epochs.see(owner, epoch, heard(at)),
            Record::Ended {
                operation,
                outcome,
                stopped,
            } => {
                if let Some(entry) = self.entries.get_mut(&operation) {
                    entry.stopped = stopped;
                }
                self.ended(operation, outcome, 0);
            }
            Record::Released(operation) => self.release(operation),
            Record::Receipts(mut block) => {
                block.until = block.until.min(now);
                self.receipts.add_block(block);
            }
            Record::Receipt(receipt) => {
                let at = heard(receipt.at);
                if let Some(entry) = self.entries.get(&receipt.operation) {
                    self.epochs.see(entry.owner, entry.epoch, at);
                }
                self.remove(receipt.operation);
                self.receipts.add(receipt, at);
            }
        }
    }

    /// The records that the journal must have before anything else is done; empty afterwards.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.journal.unwritten)
    }

    /// Everything that is worth a record, in place of all records so far.
    pub fn all_records(&self) -> Vec<Record> {
        let remembered = self.entries.iter().filter(|(_, e)| !e.only_reads);
        let remembered: Vec<_> = remembered.collect();
        // Each of them counts itself when it is read again.
        let before = self.journal.accepted - remembered.len() as u64;
        let mut records = vec![Record::Sequence(before)];
        let epochs = self.epochs.all().into_iter();
        records.extend(epochs.map(|(owner, epoch, at)| Record::Epoch {
            owner,
            epoch,
            at: Some(at),
        }));
        for (id, entry) in remembered {
            records.extend(self.accepted(*id).map(Record::Accepted));
            records.extend(entry.end.as_ref().map(|end| Record::Ended {
                operation: *id,
                outcome: end.outcome.clone(),
                stopped: entry.stopped,
            }));
        }
        records.extend(self.receipts.records());
        records
    }
}
