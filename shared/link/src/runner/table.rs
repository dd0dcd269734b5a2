//! The runner's memory of operations (docs/internals/contracts.md#a5, #a17, #a23), without IO:
//! orders and events go in, frames, [`Act`]s and [`Record`]s come out.
//!
//! A reader attaches to an operation that is known; it is never started again. Losing a link ends
//! nothing: ends are kept, output stays in its [`Spool`](super::Spool), and each reader that attaches
//! receives both again. Reads are the exception: they need no memory, may be sent again, and are dropped
//! once their end was sent.
//!
//! Records hold what must outlive the daemon. The driver writes them down before it does what the table
//! says and before it sends any frame: nothing is promised that a restart forgets.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use proto::v1::{self, cancel_answer::Answer, runner_frame};
use shared_sandbox::{Control, ExitCause, Input, Outcome, OutputStream, Request};
use shared_types::{
    Digest, Epoch, Incarnation, JournalId, OperationId, Owner, Refusal, SandboxId, TraceContext,
};

use super::{
    delivery::Delivery,
    memory::{Epochs, Receipts},
    orders::SandboxOrder,
    passing::PassingOrders,
    record::{Accepted, Record},
};
use crate::wire::{SandboxReport, from_runner};

/// Answers that wait for the link, at most; until there is room no order is taken from it.
const MAX_WAITING_ANSWERS: usize = 256;

/// Answers that may wait for what comes next, at most.
const MAX_PATIENT_ANSWERS: usize = 16;

/// An act that the driver does for the table.
#[derive(Debug, PartialEq)]
pub enum Act {
    /// Perform the request.
    Start {
        /// The operation.
        operation: OperationId,
        /// The sandbox where it happens: one of the runner's.
        sandbox: SandboxId,
        /// The request.
        request: Request,
        /// From now on it may wait this long to be started.
        start_within: Duration,
        /// It is stopped after running this long.
        run_for: Duration,
    },
    /// Stop what was started.
    Stop(OperationId),
    /// Output below this offset is durable with the server: it may be dropped here.
    Commit {
        /// The operation.
        operation: OperationId,
        /// The stream.
        stream: OutputStream,
        /// The first byte that is still needed.
        up_to: u64,
    },
    /// Pass this on as its input; it continues what was passed on before.
    Input(OperationId, Input),
    /// Do this to its process, unless its supervisor has done it under this id before:
    /// [`OperationTable::controlled`].
    Control {
        /// The operation.
        operation: OperationId,
        /// Larger than any before.
        id: u64,
        /// The control.
        control: Control,
    },
    /// Drop what is kept of it.
    Drop(OperationId),
    /// Stop a read, where it still runs, and drop what is kept of it. The table takes no more news of it:
    /// it may be started again at once. It ended with this refusal.
    LetGo(OperationId, Refusal),
    /// Do this with a sandbox of the pool. What comes for it afterwards counts on that.
    Sandbox(SandboxId, SandboxOrder),
}

/// Tells the links of one runner apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkId(u64);

/// A link as the table begins it: what the hello says of the runner's memory.
#[derive(Debug)]
pub struct OpenedLink {
    /// The new link.
    pub link: LinkId,
    /// The identity of the runner's memory.
    pub incarnation: Incarnation,
    /// Operations accepted since the journal began.
    pub journal_sequence: u64,
    /// The operations that are remembered.
    pub inventory: Vec<v1::InventoryEntry>,
}

/// The work that is left before the runner may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Operations that run.
    pub running: usize,
    /// Operations that the server has yet to forget; 0 without a link, because then it cannot.
    pub unforgotten: usize,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct OperationTable {
    incarnation: Incarnation,
    /// That of records which name none.
    first_sandbox: SandboxId,
    /// The sandboxes where something new may happen.
    sandboxes: HashSet<SandboxId>,
    entries: HashMap<OperationId, TableEntry>,
    epochs: Epochs,
    receipts: Receipts,
    journal: JournalState,
    load: TableLoad,
    /// The present link, or the last one.
    link: LinkId,
    linked: bool,
    /// To be sent before any output.
    answers: VecDeque<v1::RunnerFrame>,
    /// Operations that may have something to tell, each once; the first has its turn.
    ready: VecDeque<OperationId>,
    /// Reads that are gone, unknown to the driver.
    dropped: Vec<OperationId>,
    pool: PoolReports,
}

/// The records of the table, and those of them that wait for the journal.
#[derive(Debug, Clone, Default)]
struct JournalState {
    /// Operations that were accepted since the journal began.
    accepted: u64,
    /// Those of them that the journal had no room for.
    unwritten_accepted: u64,
    /// The records that the journal does not have yet.
    unwritten: Vec<Record>,
}

/// The runner's own reasons to accept no more operations.
#[derive(Debug, Clone, Default)]
struct TableLoad {
    draining: bool,
    disk_short: bool,
    running: usize,
    /// Kept of operations that ended, in bytes.
    retained_bytes: u64,
}

/// The states of the pool's sandboxes.
#[derive(Debug, Clone, Default)]
struct PoolReports {
    /// The state of each sandbox of the pool.
    reports: HashMap<SandboxId, SandboxReport>,
    /// Those that the link has not been sent; nothing until the server has welcomed it.
    untold: Option<VecDeque<SandboxId>>,
}

#[derive(Debug, Clone)]
struct TableEntry {
    sandbox: SandboxId,
    digest: Digest,
    owner: Owner,
    epoch: Epoch,
    only_reads: bool,
    /// The number of bytes of each stream that can be read.
    written: [u64; 2],
    end: Option<EntryEnd>,
    /// The reader on the present link.
    delivery: Option<Delivery>,
    is_ready: bool,
    /// A cancel was carried out before it ended.
    stopped: bool,
    /// The present link waits for the answer to a cancel.
    answer_owed: bool,
    /// Its input, resizes and signals.
    passing: PassingOrders,
    /// The span, as it came.
    trace: Option<TraceContext>,
}

#[derive(Debug, Clone)]
struct EntryEnd {
    outcome: Outcome,
    /// The answer to a cancel from now on.
    answer: Answer,
    retained_bytes: u64,
}

impl OperationTable {
    /// A table that knows nothing, of a runner with one sandbox.
    pub fn new(incarnation: Incarnation, first_sandbox: SandboxId) -> Self {
        Self {
            incarnation,
            first_sandbox,
            sandboxes: HashSet::from([first_sandbox]),
            entries: HashMap::new(),
            epochs: Epochs::default(),
            receipts: Receipts::default(),
            journal: JournalState::default(),
            load: TableLoad::default(),
            link: LinkId(0),
            linked: false,
            answers: VecDeque::new(),
            ready: VecDeque::new(),
            dropped: Vec::new(),
            pool: PoolReports::default(),
        }
    }

    /// True if the operation is remembered.
    pub fn remembers(&self, id: OperationId) -> bool {
        self.entries.contains_key(&id)
    }

    /// True if the operation is remembered and its end is not known yet.
    pub fn is_open(&self, id: OperationId) -> bool {
        self.entries
            .get(&id)
            .is_some_and(|entry| entry.end.is_none())
    }

    /// True if the operation is gone, and must never start.
    pub fn is_over(&self, id: OperationId) -> bool {
        self.receipts.contains(id)
    }

    /// The record of acceptance, where the operation is remembered and outlives the daemon.
    pub fn accepted(&self, id: OperationId) -> Option<Accepted> {
        let entry = self.entries.get(&id).filter(|entry| !entry.only_reads)?;
        Some(Accepted {
            operation: id,
            sandbox: Some(entry.sandbox),
            digest: entry.digest,
            owner: entry.owner,
            epoch: entry.epoch,
            at: self.epochs.heard_at(&entry.owner),
            takes: entry.passing.takes(),
            trace: entry.trace,
        })
    }

    /// The span of a remembered operation, as the server sees it.
    pub fn trace_of(&self, id: OperationId) -> Option<TraceContext> {
        self.entries.get(&id)?.trace
    }

    /// The outcome of a remembered operation that has ended.
    pub fn outcome(&self, id: OperationId) -> Option<&Outcome> {
        Some(&self.entries.get(&id)?.end.as_ref()?.outcome)
    }

    /// The identity of this memory.
    pub fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    /// The runner has one more sandbox, in which operations may start from now on.
    pub fn add_sandbox(&mut self, sandbox: SandboxId) {
        self.sandboxes.insert(sandbox);
    }

    /// Nothing new starts in this sandbox any more. Its remembered operations stay: readers attach to
    /// them, and they end and are forgotten as all others.
    pub fn remove_sandbox(&mut self, sandbox: SandboxId) {
        self.sandboxes.remove(&sandbox);
    }

    /// True if operations may start in this sandbox.
    pub fn has_sandbox(&self, sandbox: SandboxId) -> bool {
        self.sandboxes.contains(&sandbox)
    }

    /// A sandbox of the pool has this state now. The link learns it once it is welcomed, and so does
    /// every later one.
    pub fn report(&mut self, report: SandboxReport) {
        let sandbox = report.sandbox;
        if let Some(untold) = &mut self.pool.untold
            && !untold.contains(&sandbox)
        {
            untold.push_back(sandbox);
        }
        self.pool.reports.insert(sandbox, report);
    }

    /// The sandboxes where operations are open.
    pub fn busy_sandboxes(&self) -> HashSet<SandboxId> {
        let open = self.entries.values().filter(|entry| entry.end.is_none());
        open.map(|entry| entry.sandbox).collect()
    }

    /// The sandbox of a remembered operation.
    pub fn sandbox_of(&self, id: OperationId) -> Option<SandboxId> {
        self.entries.get(&id).map(|entry| entry.sandbox)
    }

    /// Forgets everything and begins a new journal: what is remembered is not what happened. Returns the
    /// operations that the driver must stop and drop, because no link will ask for them.
    pub fn begin_journal(&mut self, journal: JournalId) -> Vec<OperationId> {
        let incarnation = Incarnation {
            journal,
            boot: self.incarnation.boot.clone(),
        };
        let before = std::mem::replace(self, Self::new(incarnation, self.first_sandbox));
        self.sandboxes = before.sandboxes;
        self.pool.reports = before.pool.reports;
        self.link = before.link;
        self.load.draining = before.load.draining;
        before.entries.into_keys().collect()
    }

    /// Goes on as another journal that has all that is remembered: there was more, and it is gone.
    /// So what the server placed before and does not find in the inventory is lost to it, and never
    /// sent again.
    pub fn distrust(&mut self, journal: JournalId) {
        self.incarnation.journal = journal;
    }

    /// Takes nothing new from now on.
    pub fn drain(&mut self) {
        self.load.draining = true;
    }

    /// Tells the table if the disk has no more room than is to be kept free. Then nothing starts that
    /// needs some.
    pub fn disk_is_short(&mut self, short: bool) {
        self.load.disk_short = short;
    }

    /// So much of stdout and stderr can be read; it never goes back. Nothing, where it has begun.
    pub fn output(&mut self, id: OperationId, written: [u64; 2]) {
        if let Some(entry) = self.entries.get_mut(&id) {
            for (before, now) in entry.written.iter_mut().zip(written) {
                *before = now.max(*before);
            }
            self.make_ready(id);
        }
    }

    /// It was accepted and never ran, and this memory vouches for that: it may be started again if it
    /// comes again.
    pub fn release(&mut self, id: OperationId) {
        if self.entries.get(&id).is_some_and(|e| e.end.is_none()) {
            self.entries.remove(&id);
            self.load.running -= 1;
            self.journal.unwritten.push(Record::Released(id));
        }
    }

    /// The record of an operation's end; nothing, where it has an end already, or only reads.
    pub fn end_record(&self, id: OperationId, outcome: &Outcome) -> Option<Record> {
        let entry = self.entries.get(&id)?;
        let is_kept = !entry.only_reads && entry.end.is_none();
        is_kept.then(|| Record::Ended {
            operation: id,
            outcome: outcome.clone(),
            stopped: entry.stopped,
        })
    }

    /// An operation ended; so many bytes are kept of its output.
    pub fn ended(&mut self, id: OperationId, outcome: Outcome, kept_bytes: u64) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if let Some(end) = &mut entry.end {
            // A restored table learns from the host how much is kept.
            self.load.retained_bytes = self.load.retained_bytes - end.retained_bytes + kept_bytes;
            end.retained_bytes = kept_bytes;
            return;
        }
        self.load.running -= 1;
        entry.passing.end();
        if entry.only_reads && entry.delivery.is_none() {
            self.entries.remove(&id);
            self.dropped.push(id);
            return;
        }
        if let Outcome::Exited(record) = &outcome {
            entry.written = [record.stdout.offset, record.stderr.offset];
        }
        if !entry.only_reads {
            self.journal.unwritten.push(Record::Ended {
                operation: id,
                outcome: outcome.clone(),
                stopped: entry.stopped,
            });
        }
        let answer = cancel_answer(&outcome, entry.stopped);
        self.load.retained_bytes += kept_bytes;
        entry.end = Some(EntryEnd {
            outcome,
            answer,
            retained_bytes: kept_bytes,
        });
        if std::mem::take(&mut entry.answer_owed) {
            self.answers.push_back(answered(id, answer));
        }
        self.make_ready(id);
    }

    /// Reads that are gone without an [`Act::Drop`]: what is kept open for them can go. Empty
    /// afterwards.
    pub fn take_dropped(&mut self) -> Vec<OperationId> {
        std::mem::take(&mut self.dropped)
    }

    /// Operations accepted since the journal began, as it will say when it is read again.
    pub fn journal_sequence(&self) -> u64 {
        self.journal.accepted - self.journal.unwritten_accepted
    }

    /// The operation that was just accepted did not begin, because the journal has no room for it. It has
    /// this outcome, which has no record either. The owner's newer epoch must be written down all the
    /// same.
    pub fn not_begun(&mut self, id: OperationId, outcome: Outcome) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let (owner, epoch) = (entry.owner, entry.epoch);
        if !entry.only_reads {
            self.journal.unwritten_accepted += 1;
        }
        self.ended(id, outcome, 0);
        let at = self.epochs.heard_at(&owner);
        self.journal.unwritten = vec![Record::Epoch { owner, epoch, at }];
    }

    /// The work that the table has left.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished {
            running: self.load.running,
            unforgotten: if self.linked { self.entries.len() } else { 0 },
        }
    }

    fn remember(
        &mut self,
        accepted: Accepted,
        only_reads: bool,
        passing: PassingOrders,
        now: Duration,
    ) {
        self.epochs.see(accepted.owner, accepted.epoch, now);
        let entry = TableEntry {
            sandbox: accepted.sandbox.unwrap_or(self.first_sandbox),
            digest: accepted.digest,
            owner: accepted.owner,
            epoch: accepted.epoch,
            only_reads,
            written: [0, 0],
            end: None,
            delivery: None,
            is_ready: false,
            stopped: false,
            answer_owed: false,
            passing,
            trace: accepted.trace,
        };
        self.entries.insert(accepted.operation, entry);
        self.load.running += 1;
    }

    fn remove(&mut self, id: OperationId) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        if entry.only_reads {
            self.dropped.push(id);
        }
        match entry.end {
            Some(end) => self.load.retained_bytes -= end.retained_bytes,
            None => self.load.running -= 1,
        }
    }
}

/// The answer to a cancel once the operation has ended like this. It is read from the end, so that asking
/// again gives the same answer, and a cancel that came too late does not claim it.
fn cancel_answer(outcome: &Outcome, stopped: bool) -> Answer {
    let by_the_cancel = match outcome {
        Outcome::Exited(record) => record.cause == ExitCause::Cancelled,
        Outcome::Failed(_) | Outcome::Refused(_) => stopped,
        _ => false,
    };
    if by_the_cancel {
        Answer::Cancelled
    } else {
        Answer::AlreadyExited
    }
}

fn answered(id: OperationId, answer: Answer) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::CancelAnswer(v1::CancelAnswer {
        operation: id.to_string(),
        answer: answer.into(),
        refusal: None,
    }))
}

mod link;
mod orders;
mod passing;
mod records;
#[cfg(test)]
mod tests;
