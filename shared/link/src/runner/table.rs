//! The runner's memory of operations (contract A5, A17, A23), without IO: orders and events go in,
//! frames and [`Act`]s come out.
//!
//! An operation that is known is attached to and never started again. Losing a link ends nothing:
//! output and ends are kept within bounds, and told again to whoever attaches. Reads are the
//! exception: they need no memory, may be sent again, and are dropped once their end was told.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use proto::v1::{self, cancel_answer::Answer, runner_frame};
use shared_sandbox::{ExitCause, Outcome, OutputStream, Request};
use shared_types::{
    Digest, Epoch, Incarnation, JournalId, OperationId, Owner, Refusal, RefusalCode, SandboxId,
};

use super::{
    admission::{Admission, Load, RESERVED_BYTES, View, admit},
    delivery::Delivery,
    memory::{Epochs, Tombstones},
    orders::{Incoming, Order, cancel_refused, refused},
};
use crate::{
    retained::Retained,
    wire::{self, from_runner},
};

/// Answers that wait for the link, at most; until there is room no order is taken from it.
const MAX_WAITING_ANSWERS: usize = 256;

/// What the table cannot do itself.
#[derive(Debug, PartialEq)]
pub enum Act {
    /// Perform the request.
    Start {
        /// Which one.
        operation: OperationId,
        /// What is asked.
        request: Request,
        /// It is stopped after running this long.
        run_for: Duration,
    },
    /// Stop what was started.
    Stop(OperationId),
}

/// Tells the links of one runner apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkId(u64);

/// A link as the table begins it: what the hello says of the runner's memory.
#[derive(Debug)]
pub struct Opened {
    /// Which one.
    pub link: LinkId,
    /// What the memory is worth.
    pub incarnation: Incarnation,
    /// Operations accepted since the journal began.
    pub journal_sequence: u64,
    /// What is remembered.
    pub inventory: Vec<v1::InventoryEntry>,
}

/// What is left to do before the runner may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Operations that run.
    pub running: usize,
    /// What the server is yet to forget; 0 without a link, because nobody can.
    pub unforgotten: usize,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Table {
    incarnation: Incarnation,
    sandbox: SandboxId,
    entries: HashMap<OperationId, Entry>,
    epochs: Epochs,
    tombstones: Tombstones,
    /// Operations that were accepted since the journal began.
    accepted: u64,
    draining: bool,
    /// The present link, or the last one.
    link: LinkId,
    linked: bool,
    running: usize,
    /// Kept of operations that ended, in bytes.
    retained_bytes: usize,
    /// To be sent before any output.
    answers: VecDeque<v1::RunnerFrame>,
    /// Operations that may have something to tell, each once; the first has its turn.
    ready: VecDeque<OperationId>,
}

#[derive(Debug, Clone)]
struct Entry {
    digest: Digest,
    owner: Owner,
    only_reads: bool,
    kept: [Retained; 2],
    end: Option<End>,
    /// The reader on the present link.
    delivery: Option<Delivery>,
    is_ready: bool,
    /// A cancel was carried out before it ended.
    stopped: bool,
    /// The present link waits for the answer to a cancel.
    answer_owed: bool,
}

#[derive(Debug, Clone)]
struct End {
    frame: v1::RunnerFrame,
    /// What a cancel is answered with from now on.
    answer: Answer,
    retained_bytes: usize,
}

impl Table {
    /// A table that knows nothing.
    pub fn new(incarnation: Incarnation, sandbox: SandboxId) -> Self {
        Self {
            incarnation,
            sandbox,
            entries: HashMap::new(),
            epochs: Epochs::default(),
            tombstones: Tombstones::default(),
            accepted: 0,
            draining: false,
            link: LinkId(0),
            linked: false,
            running: 0,
            retained_bytes: 0,
            answers: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// What this memory is worth.
    pub fn incarnation(&self) -> &Incarnation {
        &self.incarnation
    }

    /// A new link replaces the one before; nothing is told to it until it attaches.
    pub fn open_link(&mut self) -> Opened {
        self.unlink();
        self.link = LinkId(self.link.0 + 1);
        self.linked = true;
        let remembered = self.entries.iter().filter(|(_, entry)| !entry.only_reads);
        let inventory = remembered.map(|(id, entry)| v1::InventoryEntry {
            operation: id.to_string(),
            ended: entry.end.is_some(),
        });
        Opened {
            link: self.link,
            incarnation: self.incarnation.clone(),
            journal_sequence: self.journal_sequence(),
            inventory: inventory.collect(),
        }
    }

    /// The link is gone. What runs goes on. Returns whether it was the present one; a newer one
    /// stays.
    pub fn close_link(&mut self, link: LinkId) -> bool {
        let present = link == self.link;
        if present {
            self.unlink();
        }
        present
    }

    fn unlink(&mut self) {
        self.linked = false;
        self.answers.clear();
        self.ready.clear();
        for entry in self.entries.values_mut() {
            entry.delivery = None;
            entry.is_ready = false;
            entry.answer_owed = false;
        }
        let done = self
            .entries
            .iter()
            .filter(|(_, e)| e.only_reads && e.end.is_some());
        let done: Vec<_> = done.map(|(id, _)| *id).collect();
        done.into_iter().for_each(|id| self.remove(id));
    }

    /// Forgets everything and begins a new journal: what is remembered is not what happened.
    /// Returns what is to be stopped, because nobody will ask for it.
    pub fn begin_journal(&mut self, journal: JournalId) -> Vec<OperationId> {
        let incarnation = Incarnation {
            journal,
            boot: self.incarnation.boot.clone(),
        };
        let before = std::mem::replace(self, Self::new(incarnation, self.sandbox));
        self.link = before.link;
        self.draining = before.draining;
        let running = before.entries.into_iter().filter(|(_, e)| e.end.is_none());
        running.map(|(id, _)| id).collect()
    }

    /// Takes nothing new from now on.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Does what the server wants over this link; nothing, if it is not the present one.
    pub fn order(&mut self, link: LinkId, order: Order) -> Option<Act> {
        if link != self.link || !self.linked {
            return None;
        }
        match order {
            Order::Operation(incoming) => self.operation(*incoming),
            Order::Credit {
                operation,
                stream,
                up_to,
            } => {
                self.credit(operation, stream, up_to);
                None
            }
            Order::Cancel {
                operation,
                epoch,
                incarnation,
            } => self.cancel(operation, epoch, incarnation),
            Order::Forget(operation) => {
                self.forget(operation);
                None
            }
        }
    }

    /// A command wrote something.
    pub fn output(&mut self, id: OperationId, stream: OutputStream, data: &[u8]) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.kept[stream as usize].append(data);
            self.make_ready(id);
        }
    }

    /// An operation ended.
    pub fn ended(&mut self, id: OperationId, outcome: Outcome) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if entry.end.is_some() {
            return;
        }
        self.running -= 1;
        if entry.only_reads && entry.delivery.is_none() {
            self.entries.remove(&id);
            return;
        }
        let answer = cancel_answer(&outcome, entry.stopped);
        let end = wire::ended(id, outcome);
        let kept: usize = entry.kept.iter().map(Retained::retained_bytes).sum();
        let retained_bytes = kept + prost::Message::encoded_len(&end);
        self.retained_bytes += retained_bytes;
        entry.end = Some(End {
            frame: end,
            answer,
            retained_bytes,
        });
        if std::mem::take(&mut entry.answer_owed) {
            self.answers.push_back(answered(id, answer));
        }
        self.make_ready(id);
    }

    /// Whether there is room for the answer to one more order.
    pub fn takes_orders(&self) -> bool {
        self.answers.len() < MAX_WAITING_ANSWERS
    }

    /// Whether [`Table::next_frame`] may have something.
    pub fn has_frames(&self) -> bool {
        !self.answers.is_empty() || !self.ready.is_empty()
    }

    /// The next frame for the link: answers first, then each operation in turn, so that a loud
    /// one starves nothing.
    pub fn next_frame(&mut self) -> Option<v1::RunnerFrame> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.is_ready = false;
            let Some(delivery) = &mut entry.delivery else {
                continue;
            };
            if let Some(output) = delivery.output(id, &entry.kept) {
                self.make_ready(id);
                return Some(output);
            }
            if let Some(end) = &entry.end
                && delivery.take_end(&entry.kept)
            {
                let frame = end.frame.clone();
                if entry.only_reads {
                    self.remove(id);
                }
                return Some(frame);
            }
        }
        None
    }

    /// What all operations take.
    fn load(&self) -> Load {
        Load {
            running: self.running,
            remembered: self.entries.len(),
            retained_bytes: self.retained_bytes + self.running * RESERVED_BYTES,
        }
    }

    /// Operations accepted since the journal began.
    pub fn journal_sequence(&self) -> u64 {
        self.accepted
    }

    /// How far the table is from having nothing left to do.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished {
            running: self.running,
            unforgotten: if self.linked { self.entries.len() } else { 0 },
        }
    }

    fn operation(&mut self, incoming: Incoming) -> Option<Act> {
        let id = incoming.id;
        let view = View {
            incarnation: &self.incarnation,
            sandbox: self.sandbox,
            epoch: self.epochs.of(&incoming.owner),
            known: self.entries.get(&id).map(|entry| entry.digest),
            tombstoned: self.tombstones.contains(id),
            draining: self.draining,
            load: self.load(),
        };
        let act = match (admit(&view, &incoming), incoming.request) {
            (Admission::Refuse(refusal), _) => {
                self.answers.push_back(refused(id.to_string(), refusal));
                return None;
            }
            (Admission::Start, Some(request)) => {
                let entry = Entry::new(incoming.digest, incoming.owner, &request);
                self.entries.insert(id, entry);
                self.running += 1;
                self.accepted += 1;
                Some(Act::Start {
                    operation: id,
                    request,
                    run_for: incoming.run_for,
                })
            }
            (Admission::Start | Admission::Attach, _) => None,
        };
        self.epochs.see(incoming.owner, incoming.epoch);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.delivery = Some(Delivery::from(incoming.from));
        }
        self.answers
            .push_back(from_runner(runner_frame::Kind::Accepted(v1::Accepted {
                operation: id.to_string(),
            })));
        self.make_ready(id);
        act
    }

    fn credit(&mut self, id: OperationId, stream: OutputStream, up_to: u64) {
        let entry = self.entries.get_mut(&id);
        if let Some(delivery) = entry.and_then(|entry| entry.delivery.as_mut()) {
            delivery.credit(stream, up_to);
            self.make_ready(id);
        }
    }

    fn cancel(
        &mut self,
        id: OperationId,
        epoch: Epoch,
        incarnation: Option<Incarnation>,
    ) -> Option<Act> {
        if incarnation.as_ref() != Some(&self.incarnation) {
            let message = "the runner was started anew since: what it did before is gone";
            let refusal = Refusal::new(RefusalCode::Fenced, message);
            self.answers
                .push_back(cancel_refused(id.to_string(), refusal));
            return None;
        }
        let Some(entry) = self.entries.get_mut(&id) else {
            let answer = self.tombstones.add(id, Answer::NeverStarted);
            self.answers.push_back(answered(id, answer));
            return None;
        };
        if epoch < self.epochs.of(&entry.owner) {
            let message = "a newer holder of the operation's owner exists";
            let refusal = Refusal::new(RefusalCode::StaleEpoch, message);
            self.answers
                .push_back(cancel_refused(id.to_string(), refusal));
            return None;
        }
        if let Some(end) = &entry.end {
            self.answers.push_back(answered(id, end.answer));
            return None;
        }
        entry.stopped = true;
        entry.answer_owed = true;
        Some(Act::Stop(id))
    }

    /// What still runs is not forgotten: its end is yet to be told.
    fn forget(&mut self, id: OperationId) {
        let entry = self.entries.get(&id);
        if let Some(end) = entry.and_then(|entry| entry.end.as_ref()) {
            self.tombstones.add(id, end.answer);
            self.remove(id);
        }
    }

    fn remove(&mut self, id: OperationId) {
        let end = self.entries.remove(&id).and_then(|entry| entry.end);
        self.retained_bytes -= end.map_or(0, |end| end.retained_bytes);
    }

    fn make_ready(&mut self, id: OperationId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.delivery.as_ref().is_some_and(|d| !d.is_over())
            && !entry.is_ready
        {
            entry.is_ready = true;
            self.ready.push_back(id);
        }
    }
}

impl Entry {
    fn new(digest: Digest, owner: Owner, request: &Request) -> Self {
        Self {
            digest,
            owner,
            only_reads: request.only_reads(),
            kept: [Retained::new(), Retained::new()],
            end: None,
            delivery: None,
            is_ready: false,
            stopped: false,
            answer_owed: false,
        }
    }
}

/// What a cancel is answered with once the operation has ended like this. It is read from the end,
/// so that asking again gives the same answer, and a cancel that came too late does not claim it.
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

#[cfg(test)]
mod tests;
