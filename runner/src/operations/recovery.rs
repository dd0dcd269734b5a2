//! The work of a new daemon. The journal holds the promises, the supervisors' directories hold the
//! results.
//!
//! - A command that runs is attached to; one that has ended is reported with all of its output.
//! - An operation that was accepted and provably never ran is let go of: if it comes again, it
//!   starts.
//! - A change that was under way is settled effect by effect, by what is at each path.
//! - After another boot nothing of this runs any more; what left no trace is lost.
//! - Directories that the journal does not know are cleared: their commands are stopped, because
//!   no reader will ask for them.
//!
//! The journal may have lost its end, also without a trace of that. A command whose start record
//! has a [`Claim`] is then taken up from there. As more than that may be gone, the journal goes on
//! under another id. An operation that the server placed before, and does not find in the
//! inventory, is then lost, and never sent again.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use runner_host::SettledChange;
use shared_link::runner::OperationTable;
use shared_sandbox::Outcome;
use shared_types::{Clock, Entropy, Incarnation, JournalId, OperationId, Refusal, RefusalCode};
use tokio::sync::{mpsc, watch};

use super::{
    JournalEntry, ORDERS_WAITING, OperationsHandle, OperationsInbox, OperationsService,
    OperationsUnderWay, Unfinished, WISHES_WAITING,
    claim::Claim,
    disk::Disk,
    files::{Files, bytes_on_disk},
    journaled::{Journaled, LocalRecords},
    renewals,
};
use crate::{
    docker::ContainerPool,
    journal::{self, JournalError, Repair},
    policy::Guard,
    processes::{self, LeftOperation, Processes, Spool},
    sandboxes::ServedSandboxes,
};

/// The parts of a runner's operations.
pub(crate) struct OperationsParts {
    /// All that are served from the start.
    pub(crate) sandboxes: ServedSandboxes,
    /// Makes more of them.
    pub(crate) pool: Option<ContainerPool>,
    /// The remains of earlier daemons, each with its directory. No two directories have the same
    /// name, in any sandbox.
    pub(crate) left: Vec<(PathBuf, LeftOperation)>,
    pub(crate) journal: journal::OpenedJournal<JournalEntry>,
    /// The machine's policy.
    pub(crate) guard: Guard,
    /// The host's present boot.
    pub(crate) boot: String,
    /// True if a command waits until its records are on the disk.
    pub(crate) sync_before_start: bool,
    /// The longest time for which commands may go on without a link.
    pub(crate) disconnect_for: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The point at which the daemon dies.
    #[cfg(test)]
    pub(crate) fault: Option<super::tests::Fault>,
}

impl OperationsHandle {
    /// The handle, and the service to be run beside it, with everything that earlier daemons left
    /// settled.
    ///
    /// # Errors
    /// A result cannot be written down.
    pub(crate) async fn open(
        found: OperationsParts,
    ) -> Result<(Self, OperationsService), JournalError> {
        let (orders, orders_waiting) = mpsc::channel(ORDERS_WAITING);
        let (wishes, wishes_waiting) = mpsc::channel(WISHES_WAITING);
        let (unfinished_now, unfinished) = watch::channel(Unfinished::default());
        let incarnation = Incarnation {
            journal: found.journal.id,
            boot: found.boot.clone(),
        };
        let mut known = LocalRecords::default();
        let mut records = known.read(found.journal.records, found.sandboxes.first());
        let same_boot = known.boot == found.boot;
        if !same_boot {
            records.begin_boot();
        }
        known.boot = found.boot;
        let now = found.clock.boot_time();
        let first = found.sandboxes.first();
        let (mut table, open) = OperationTable::restore(incarnation, first, records, now);
        table.remove_sandbox(first);
        for served in found.sandboxes.ids() {
            table.add_sandbox(served);
        }
        let mut service = OperationsService {
            sandboxes: found.sandboxes,
            pool: found.pool,
            clock: found.clock,
            table,
            journaled: Journaled {
                journal: found.journal.journal,
                known,
                #[cfg(test)]
                fault: found.fault,
            },
            inbox: OperationsInbox {
                orders: orders_waiting,
                wishes: wishes_waiting,
            },
            unfinished: unfinished_now,
            outgoing: None,
            under_way: OperationsUnderWay::default(),
            files: Files::default(),
            disk: Disk::default(),
            guard: found.guard,
            renewals: renewals(found.disconnect_for),
            sync_before_start: found.sync_before_start,
            disconnect_for: found.disconnect_for,
        };
        let left = found.left.into_iter();
        let left = left.map(|(path, left)| (processes::name(&path).to_owned(), (path, left)));
        let left = left.collect();
        let doubted = service.adopt(&left, found.journal.repaired.as_ref()).await;
        if doubted {
            let journal = JournalId::generate(service.clock.as_ref(), found.entropy.as_ref());
            tracing::warn!(journal.id = %journal, "the journal goes on under another id: records of it are gone");
            service.table.distrust(journal);
        }
        let remembered = Remembered { same_boot, doubted };
        service.settle(open, left, remembered).await?;
        let handle = Self {
            orders,
            wishes,
            unfinished,
        };
        Ok((handle, service))
    }
}

/// The trust in the journal.
#[derive(Debug, Clone, Copy)]
struct Remembered {
    /// It was written in this boot of the host.
    same_boot: bool,
    /// Some of it is gone.
    doubted: bool,
}

impl OperationsService {
    /// Takes up what the journal does not know from the start records of the directories that it
    /// does not name. Returns whether records of the journal are gone.
    async fn adopt(
        &mut self,
        left: &HashMap<String, (PathBuf, LeftOperation)>,
        repaired: Option<&Repair>,
    ) -> bool {
        let mut doubted = matches!(repaired, Some(Repair::Cut { .. }));
        let set_aside = matches!(repaired, Some(Repair::SetAside { .. }));
        for (directory, (path, left)) in left {
            let places = &self.journaled.known.places;
            if places.values().any(|placed| placed == directory) {
                continue;
            }
            let (runs, named) = match left {
                LeftOperation::Fenced(_) => continue,
                // Its operation is not known: it may be any that is open.
                LeftOperation::Unreadable(_)
                | LeftOperation::Ended {
                    operation: None, ..
                } => {
                    doubted = true;
                    continue;
                }
                LeftOperation::Running(_) => (true, None),
                LeftOperation::Ended { operation, .. } => (false, *operation),
            };
            let start = Processes::start_record(path.clone()).await;
            let claim = start.as_ref().and_then(|start| start.claim.as_deref());
            let claim = claim.and_then(Claim::read);
            let operation = start.map(|start| start.operation).or(named);
            doubted |= match (claim, operation) {
                (Some(claim), _) => {
                    // Of a journal that is gone it is not known which one it was: what is of a sandbox of
                    // this runner is of this runner's.
                    let ours = claim.journal == self.table.incarnation().journal
                        || (set_aside && self.table.has_sandbox(claim.sandbox));
                    ours && self.take_up(claim, directory)
                }
                (None, Some(id)) if self.table.is_open(id) => self.place(id, directory),
                (None, Some(id)) => runs && !self.table.remembers(id) && !self.table.is_over(id),
                (None, None) => true,
            };
        }
        doubted
    }

    /// Takes up what a start record claims; whether the journal should have had that.
    fn take_up(&mut self, claim: Claim, directory: &str) -> bool {
        let accepted = claim.into_accepted();
        let id = accepted.operation;
        if self.table.is_over(id) || (self.table.remembers(id) && !self.table.is_open(id)) {
            return false;
        }
        self.table.adopt(accepted, self.clock.boot_time());
        self.place(id, directory)
    }

    /// Places an open operation where the journal does not say where it is.
    fn place(&mut self, id: OperationId, directory: &str) -> bool {
        let places = &mut self.journaled.known.places;
        if places.contains_key(&id) {
            return false;
        }
        tracing::warn!(operation.id = %id, process.directory = directory, "the journal has lost where a command is; its supervisor says it");
        places.insert(id, directory.to_owned());
        true
    }

    async fn settle(
        &mut self,
        open: Vec<OperationId>,
        mut left: HashMap<String, (PathBuf, LeftOperation)>,
        remembered: Remembered,
    ) -> Result<(), JournalError> {
        let Remembered { same_boot, doubted } = remembered;
        if !same_boot && !doubted {
            self.journaled.write_boot(&mut self.table)?;
        }
        let (mut released, mut unreadable) = (Vec::new(), Vec::new());
        let places: Vec<_> = self.journaled.known.places.drain().collect();
        for (id, directory) in places {
            if !self.table.remembers(id) {
                continue;
            }
            match left.remove(&directory) {
                Some((path, left)) => {
                    if let LeftOperation::Unreadable(_) = &left {
                        unreadable.push(path);
                    }
                    self.journaled.known.places.insert(id, directory);
                    released.extend(self.found(id, left));
                }
                None if self.table.is_open(id) => {
                    let reason = "the directory with its records is gone";
                    self.table.ended(id, lost(reason), 0);
                }
                None => {}
            }
        }
        for &id in &open {
            if !self.under_way.work.contains_key(&id) && self.table.is_open(id) {
                self.without_a_place(id, same_boot).await;
            }
        }
        self.forget_changes();
        if doubted {
            let journal = self.table.incarnation().journal;
            self.journaled
                .begin_anew(&mut self.table, journal, self.clock.as_ref())?;
        } else {
            self.journaled.write(&mut self.table, false)?;
        }
        for id in open {
            self.trace_end(id, None);
        }
        // Not before it is written down that nothing is known of them. Else the next daemon would
        // find a place in the journal without a directory, and call the operation lost. And where
        // the directory was the reason to doubt the journal, it would not find that reason any
        // more.
        released.into_iter().for_each(Spool::forget);
        for (directory, (path, left)) in left {
            match left {
                LeftOperation::Unreadable(_) => unreadable.push(path),
                left => clear(&directory, left),
            }
        }
        for directory in unreadable {
            tracing::warn!(directory = %directory.display(), "leaving a directory that cannot be understood");
            Processes::set_aside(directory).await;
        }
        Ok(())
    }

    /// A directory is there of an operation. Returns what is to be removed of one that never began.
    fn found(&mut self, id: OperationId, left: LeftOperation) -> Option<Spool> {
        match left {
            LeftOperation::Running(process) => {
                tracing::info!(operation.id = %id, "a command goes on under the new daemon");
                self.attend(id, process);
            }
            LeftOperation::Ended {
                operation,
                outcome,
                files,
            } => {
                let outcome = match operation.is_none_or(|recorded| recorded == id) {
                    true => outcome,
                    false => lost("the host died before its end was on the disk"),
                };
                self.table.ended(id, outcome, bytes_on_disk(&files));
                self.files.add(id, files);
            }
            LeftOperation::Fenced(spool) => {
                self.journaled.known.forget(id);
                self.table.release(id);
                return Some(spool);
            }
            LeftOperation::Unreadable(reason) => {
                tracing::error!(operation.id = %id, reason, "the records of a command cannot be used");
                self.table.ended(id, lost(&reason), 0);
            }
        }
        None
    }

    /// An operation that has no directory: either one on files, or one that never got that far.
    async fn without_a_place(&mut self, id: OperationId, same_boot: bool) {
        let sandbox = self.table.sandbox_of(id);
        let sandbox = sandbox.and_then(|sandbox| self.sandboxes.get(sandbox));
        let settled = match self.journaled.known.changes.of(id) {
            Some((change, later)) => match sandbox {
                Some(sandbox) => sandbox.settle(change.clone(), later).await,
                None => {
                    let reason = "the workspace in which it changed files is not served any more";
                    return self.table.ended(id, lost(reason), 0);
                }
            },
            None if same_boot => SettledChange::NotApplied,
            None => SettledChange::Unclear,
        };
        match settled {
            SettledChange::Applied(outcome) => self.table.ended(id, outcome, 0),
            SettledChange::NotApplied => self.table.release(id),
            SettledChange::Unclear => {
                let reason = match same_boot {
                    true => "what is there is neither as it was nor as it was to be",
                    false => "the host was restarted while it was under way",
                };
                self.table.ended(id, lost(reason), 0);
            }
        }
    }
}

/// Removes what no operation is known for; a command that runs there is stopped first.
fn clear(directory: &str, left: LeftOperation) {
    match left {
        LeftOperation::Running(mut process) => {
            tracing::warn!(directory, "stopping a command that is not in the journal");
            process.control.orphan();
            tokio::spawn(async move {
                while process.events.recv().await.is_some() {}
                process.spool.forget();
            });
        }
        LeftOperation::Ended { files, .. } | LeftOperation::Fenced(files) => files.forget(),
        // It is evidence, and stays for a person.
        LeftOperation::Unreadable(_) => {}
    }
}

pub(super) fn lost(reason: &str) -> Outcome {
    let message = format!("what became of the operation is not known: {reason}");
    Outcome::Refused(Refusal::new(RefusalCode::Lost, message))
}
