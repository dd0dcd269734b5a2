//! A table as records, and back.

use std::time::Duration;

use shared_types::{Incarnation, OperationId, SandboxId};

use super::Table;
use crate::runner::{
    passing::Passing,
    record::{Accepted, Record},
};

impl Table {
    /// The table that wrote these records, in this order, and what it does not know the end of:
    /// the driver finds out, and says so with [`Table::output`], [`Table::ended`] or
    /// [`Table::release`].
    pub fn restore(
        incarnation: Incarnation,
        sandbox: SandboxId,
        records: impl IntoIterator<Item = Record>,
    ) -> (Self, Vec<OperationId>) {
        let mut table = Self::new(incarnation, sandbox);
        records.into_iter().for_each(|record| table.replay(record));
        let open = table.entries.iter().filter(|(_, e)| e.end.is_none());
        let open = open.map(|(id, _)| *id).collect();
        table.unwritten.clear();
        (table, open)
    }

    fn replay(&mut self, record: Record) {
        match record {
            Record::Sequence(accepted) => self.accepted = accepted,
            Record::Accepted(accepted) => {
                self.accepted += 1;
                let passing = Passing::found(accepted.takes);
                self.remember(accepted, false, passing, Duration::ZERO);
            }
            Record::Epoch { owner, epoch } => self.epochs.see(owner, epoch, Duration::ZERO),
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
            Record::Receipt(receipt) => {
                self.remove(receipt.operation);
                self.receipts.add(receipt, Duration::ZERO);
            }
        }
    }

    /// What the journal is to have before anything else is done; empty afterwards.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.unwritten)
    }

    /// Everything that is worth a record, in place of all records so far.
    pub fn all_records(&self) -> Vec<Record> {
        let remembered = self.entries.iter().filter(|(_, e)| !e.only_reads);
        let remembered: Vec<_> = remembered.collect();
        // Each of them counts itself when it is read again.
        let before = self.accepted - remembered.len() as u64;
        let mut records = vec![Record::Sequence(before)];
        let epochs = self.epochs.all();
        records.extend(epochs.map(|(owner, epoch)| Record::Epoch { owner, epoch }));
        for (id, entry) in remembered {
            records.push(Record::Accepted(Accepted {
                operation: *id,
                digest: entry.digest,
                owner: entry.owner,
                epoch: entry.epoch,
                takes: entry.passing.takes(),
            }));
            records.extend(entry.end.as_ref().map(|end| Record::Ended {
                operation: *id,
                outcome: end.outcome.clone(),
                stopped: entry.stopped,
            }));
        }
        records.extend(self.receipts.all().map(Record::Receipt));
        records
    }
}
