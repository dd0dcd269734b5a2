//! The content of the runner's journal: the table's records, and the place of each operation on
//! this host.

use std::collections::{HashMap, HashSet};

use runner_host::Change;
use serde::{Deserialize, Serialize};
use shared_link::runner::{Accepted, OperationTable, Record, Records};
use shared_types::{Clock, JournalId, OperationId, SandboxId};

use super::changes::Changes;
use crate::journal::{Journal, JournalError};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// The host's boot under which what follows was written.
    Boot(String),
    /// For the table of operations.
    Table(Record),
    /// A command is about to be handed to the supervisor in this directory.
    Placed {
        operation: OperationId,
        directory: String,
    },
    /// A file is about to be changed.
    Changing {
        operation: OperationId,
        /// Where; absent in what a runner with one sandbox wrote, and then its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxId>,
        change: Change,
    },
}

/// The journal, and what of it is not in the table.
pub(super) struct Journaled {
    pub(super) journal: Journal<JournalEntry>,
    pub(super) known: LocalRecords,
    /// The point at which the daemon dies.
    #[cfg(test)]
    pub(super) fault: Option<super::tests::Fault>,
}

/// The places of operations on this host.
#[derive(Debug, Default)]
pub(super) struct LocalRecords {
    pub(super) boot: String,
    /// The directories of commands.
    pub(super) places: HashMap<OperationId, String>,
    /// The changes of files that are not settled yet.
    pub(super) changes: Changes,
}

impl LocalRecords {
    /// Splits what a journal holds; the table's part comes back. What names no sandbox is of the first.
    pub(super) fn read(&mut self, entries: Vec<JournalEntry>, first: SandboxId) -> Records {
        let (mut records, mut accepted) = (Records::default(), HashSet::new());
        for entry in entries {
            match entry {
                JournalEntry::Boot(boot) => {
                    if boot != self.boot {
                        records.begin_boot();
                    }
                    self.boot = boot;
                }
                JournalEntry::Table(record) => {
                    // Where it is accepted again, it begins again.
                    if let Record::Accepted(Accepted { operation, .. }) = record
                        && !accepted.insert(operation)
                    {
                        self.forget(operation);
                    }
                    records.push(record);
                }
                JournalEntry::Placed {
                    operation,
                    directory,
                } => {
                    self.places.insert(operation, directory);
                }
                JournalEntry::Changing {
                    operation,
                    sandbox,
                    change,
                } => {
                    let sandbox = Some(sandbox.unwrap_or(first));
                    self.changes.add(operation, sandbox, change);
                }
            }
        }
        records
    }

    /// Everything that a journal is to have, in place of all records so far.
    fn live<'a>(&'a self, table: &OperationTable) -> impl Iterator<Item = JournalEntry> + use<'a> {
        let places = self
            .places
            .iter()
            .map(|(operation, directory)| JournalEntry::Placed {
                operation: *operation,
                directory: directory.clone(),
            });
        let changes =
            self.changes
                .all()
                .map(|(operation, sandbox, change)| JournalEntry::Changing {
                    operation,
                    sandbox,
                    change: change.clone(),
                });
        let records = table.all_records().into_iter().map(JournalEntry::Table);
        std::iter::once(JournalEntry::Boot(self.boot.clone()))
            .chain(records)
            .chain(places)
            .chain(changes)
    }

    pub(super) fn forget(&mut self, operation: OperationId) {
        self.places.remove(&operation);
        self.changes.forget(operation);
    }
}

impl Journaled {
    /// Writes down what is new with the table. `begins`: something new begins with it, for which
    /// there must be room beyond the reserve.
    pub(super) fn write(
        &mut self,
        table: &mut OperationTable,
        begins: bool,
    ) -> Result<(), JournalError> {
        let entries: Vec<_> = news(table).collect();
        if entries.is_empty() {
            return Ok(());
        }
        match self.put(&entries, begins) {
            // The table has what the entries say, and so has a journal that is made shorter.
            Err(JournalError::TooLarge) if !begins => self.compact(table)?,
            written => written?,
        }
        self.compact_in_time(table);
        Ok(())
    }

    /// Checks that there is room for this end of an operation, if need be after a compaction.
    pub(super) fn has_room_for_end(
        &mut self,
        table: &mut OperationTable,
        end: Record,
    ) -> Result<(), JournalError> {
        let end = JournalEntry::Table(end);
        match self.journal.has_room_for_end(&end) {
            Err(JournalError::TooLarge) => {
                self.compact(table)?;
                table.take_records();
                self.journal.has_room_for_end(&end)
            }
            room => room,
        }
    }

    /// Writes down at once that a command was accepted, and where it will be.
    pub(super) fn write_placed(
        &mut self,
        table: &mut OperationTable,
        operation: OperationId,
        directory: &str,
    ) -> Result<(), JournalError> {
        let placed = JournalEntry::Placed {
            operation,
            directory: directory.to_owned(),
        };
        let entries: Vec<_> = news(table).chain([placed]).collect();
        self.put(&entries, true)?;
        self.known.places.insert(operation, directory.to_owned());
        self.compact_in_time(table);
        Ok(())
    }

    /// Writes down the host's present boot.
    pub(super) fn write_boot(&mut self, table: &mut OperationTable) -> Result<(), JournalError> {
        let boot = self.known.boot.clone();
        match self.put(&[JournalEntry::Boot(boot)], false) {
            Err(JournalError::TooLarge) => {
                self.compact(table)?;
                table.take_records();
                Ok(())
            }
            written => written,
        }
    }

    /// Writes down where a command will be.
    pub(super) fn place(
        &mut self,
        operation: OperationId,
        directory: &str,
    ) -> Result<(), JournalError> {
        let directory = directory.to_owned();
        let entry = JournalEntry::Placed {
            operation,
            directory: directory.clone(),
        };
        self.put(&[entry], false)?;
        self.known.places.insert(operation, directory);
        Ok(())
    }

    /// Writes down what is to become of a file, where there is room beyond the reserve: that is for ends.
    pub(super) fn change(
        &mut self,
        operation: OperationId,
        sandbox: Option<SandboxId>,
        change: Change,
    ) -> Result<(), JournalError> {
        let entry = JournalEntry::Changing {
            operation,
            sandbox,
            change: change.clone(),
        };
        self.put(&[entry], true)?;
        self.known.changes.add(operation, sandbox, change);
        Ok(())
    }

    /// Everything new that the journal gets goes through here.
    fn put(&mut self, entries: &[JournalEntry], begins: bool) -> Result<(), JournalError> {
        #[cfg(test)]
        super::tests::Fault::reached(self.fault, entries, false);
        if begins {
            self.journal.append(entries)?;
        } else {
            self.journal.append_end(entries)?;
        }
        #[cfg(test)]
        super::tests::Fault::reached(self.fault, entries, true);
        Ok(())
    }

    /// Puts a journal with this id into place that has all that is known: all of it, or the one
    /// before stays.
    pub(super) fn begin_anew(
        &mut self,
        table: &mut OperationTable,
        journal: JournalId,
        clock: &dyn Clock,
    ) -> Result<(), JournalError> {
        let live = self.known.live(table);
        self.journal.begin_anew(journal, clock, live)?;
        table.take_records();
        Ok(())
    }

    /// Leaves records out of the journal that are not needed any more, once it is worth it.
    fn compact_in_time(&mut self, table: &OperationTable) {
        if !self.journal.wants_compaction() {
            return;
        }
        if let Err(error) = self.compact(table) {
            tracing::warn!(%error, "the journal cannot be made shorter; it goes on as it is");
        }
    }

    /// Has the journal hold what is known, and nothing else.
    fn compact(&mut self, table: &OperationTable) -> Result<(), JournalError> {
        let live = self.known.live(table);
        #[cfg(test)]
        let live = live.inspect(|entry| super::tests::Fault::shortened(self.fault, entry, false));
        let compacted = self.journal.compact(live);
        #[cfg(test)]
        super::tests::Fault::shortened(self.fault, &JournalEntry::Table(Record::Sequence(0)), true);
        compacted
    }
}

/// The table's records that the journal does not have yet.
fn news(table: &mut OperationTable) -> impl Iterator<Item = JournalEntry> {
    table.take_records().into_iter().map(JournalEntry::Table)
}
