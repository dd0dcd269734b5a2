//! The ways in which the table carries out the server's orders.

use std::time::Duration;

use proto::v1::{self, cancel_answer::Answer, runner_frame};
use shared_sandbox::{Outcome, OutputStream, Request};
use shared_types::{Epoch, Incarnation, OperationId, Owner, Refusal, RefusalCode, SandboxId};

use super::{Act, LinkId, OperationTable, TableEntry, answered};
use crate::{
    runner::{
        admission::{Admission, Load, RESERVED_BYTES, RunnerView, Share, TOO_MANY_OWNERS, admit},
        delivery::Delivery,
        orders::{Incoming, Order, cancel_refused, refused},
        passing::PassingOrders,
        record::{Accepted, Receipt, Record, Takes},
    },
    wire::from_runner,
};

impl OperationTable {
    /// Carries out an order of the server over this link; does nothing if it is not the present
    /// link. `now` is of a clock that goes on as long as the host's boot does, with the daemon or
    /// without.
    pub fn order(&mut self, link: LinkId, order: Order, now: Duration) -> Option<Act> {
        if link != self.link || !self.linked {
            return None;
        }
        self.receipts.expire(now);
        let entries = &self.entries;
        let is_remembered = |owner: &Owner| entries.values().any(|entry| entry.owner == *owner);
        self.epochs.expire(now, is_remembered);
        match order {
            Order::Operation(incoming) => self.operation(*incoming, now),
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
                owner,
                epoch,
                incarnation,
            } => {
                let stopped = self.cancel(operation, owner, epoch, incarnation, now);
                stopped.unwrap_or_else(|refusal| {
                    let refused = cancel_refused(operation.to_string(), refusal);
                    self.answers.push_back(refused);
                    None
                })
            }
            Order::Commit {
                operation,
                stream,
                up_to,
            } => self
                .entries
                .contains_key(&operation)
                .then_some(Act::Commit {
                    operation,
                    stream,
                    up_to,
                }),
            Order::Input { operation, piece } => self.pass_input(operation, piece),
            Order::Control {
                operation,
                id,
                control,
            } => self.pass_control(operation, id, control),
            Order::Forget(operation) => self.forget(operation, now),
            Order::LetGo(operation) => self.let_go(operation),
            Order::Sandbox(sandbox, order) => Some(Act::Sandbox(sandbox, order)),
        }
    }

    fn operation(&mut self, incoming: Incoming, now: Duration) -> Option<Act> {
        let id = incoming.id;
        let is_patient = incoming.request.as_ref().is_some_and(Self::is_patient);
        let view = RunnerView {
            incarnation: &self.incarnation,
            has_sandbox: self.sandboxes.contains(&incoming.sandbox),
            epoch: self.epochs.of(&incoming.owner),
            has_room_for_owner: self.epochs.has_room_for(&incoming.owner),
            known: self
                .entries
                .get(&id)
                .map(|entry| (entry.sandbox, entry.digest)),
            over: self.receipts.contains(id),
            draining: self.load.draining,
            load: Load {
                of_sandbox: self.share_of(incoming.sandbox),
                ..self.load()
            },
        };
        let act = match (admit(&view, &incoming), incoming.request) {
            (Admission::Refuse(refusal), _) => {
                self.answers.push_back(refused(id.to_string(), refusal));
                return None;
            }
            (Admission::Start, Some(request)) => {
                let only_reads = request.only_reads();
                let accepted = Accepted {
                    operation: id,
                    sandbox: Some(incoming.sandbox),
                    digest: incoming.digest,
                    owner: incoming.owner,
                    epoch: incoming.epoch,
                    at: Some(now),
                    takes: Takes::of(&request),
                    trace: incoming.trace,
                };
                if only_reads {
                    self.see_epoch(incoming.owner, incoming.epoch, now);
                } else {
                    self.journal.accepted += 1;
                    self.journal
                        .unwritten
                        .push(Record::Accepted(accepted.clone()));
                }
                let passing = PassingOrders::begin(&request);
                self.remember(accepted, only_reads, passing, now);
                Some(Act::Start {
                    operation: id,
                    sandbox: incoming.sandbox,
                    request,
                    start_within: incoming.start_within,
                    run_for: incoming.run_for,
                })
            }
            (Admission::Start | Admission::Attach, _) => None,
        };
        self.see_epoch(incoming.owner, incoming.epoch, now);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.delivery = Some(Delivery::from(incoming.from));
            entry.passing.attached();
        }
        self.answers
            .push_back(from_runner(runner_frame::Kind::Accepted(v1::Accepted {
                operation: id.to_string(),
                // Set when the frame is sent: the journal may have no room for this operation.
                journal_sequence: 0,
            })));
        if act.is_none() || !is_patient {
            self.make_ready(id);
        }
        act
    }

    /// True if no reader acts on hearing that this was accepted. Most commands end soon, and the
    /// others report that they have begun. An operation that takes input is not patient: its reader
    /// waits to learn how much it has taken.
    fn is_patient(request: &Request) -> bool {
        matches!(request, Request::Exec(_)) && !request.takes_input()
    }

    /// The load of all operations.
    pub(super) fn load(&self) -> Load {
        Load {
            of_sandbox: Share::default(),
            running: self.load.running,
            remembered: self.entries.len(),
            retained_bytes: self.load.retained_bytes + self.load.running as u64 * RESERVED_BYTES,
            receipts_full: self.receipts.is_full(),
            disk_short: self.load.disk_short,
        }
    }

    /// The part of the load that this sandbox's operations take, where it is not the only one.
    fn share_of(&self, sandbox: SandboxId) -> Share {
        let mut share = Share::default();
        if self.sandboxes.len() > 1 {
            for entry in self.entries.values().filter(|e| e.sandbox == sandbox) {
                share.remembered += 1;
                share.running += usize::from(entry.end.is_none());
            }
        }
        share
    }

    fn see_epoch(&mut self, owner: Owner, epoch: Epoch, now: Duration) {
        if epoch > self.epochs.of(&owner) {
            let at = Some(now);
            self.journal
                .unwritten
                .push(Record::Epoch { owner, epoch, at });
        }
        self.epochs.see(owner, epoch, now);
    }

    fn credit(&mut self, id: OperationId, stream: OutputStream, up_to: u64) {
        let entry = self.entries.get_mut(&id);
        if let Some(delivery) = entry.and_then(|entry| entry.delivery.as_mut()) {
            delivery.credit(stream, up_to);
            self.make_ready(id);
        }
    }

    /// An unknown operation is kept from ever starting, and its owner's epoch is kept with it.
    fn cancel(
        &mut self,
        id: OperationId,
        owner: Owner,
        epoch: Epoch,
        incarnation: Option<Incarnation>,
        now: Duration,
    ) -> Result<Option<Act>, Refusal> {
        use RefusalCode::{Fenced, ResourceExhausted, StaleEpoch};
        let refuse = |code, message: &str| Err(Refusal::new(code, message));
        if incarnation.as_ref() != Some(&self.incarnation) {
            let message = "the runner was restarted: it does not know what it did before";
            return refuse(Fenced, message);
        }
        // The owner of a known operation is known, too.
        let owner = self.entries.get(&id).map_or(owner, |entry| entry.owner);
        if epoch < self.epochs.of(&owner) {
            return refuse(StaleEpoch, "a newer holder of the operation's owner exists");
        }
        let known = self.entries.contains_key(&id) || self.receipts.contains(id);
        if !known && self.receipts.is_full() {
            let message = "the runner keeps as many receipts as it can: try again later";
            return refuse(ResourceExhausted, message);
        }
        if !self.epochs.has_room_for(&owner) {
            return refuse(ResourceExhausted, TOO_MANY_OWNERS);
        }
        self.see_epoch(owner, epoch, now);
        let answer = match self.entries.get_mut(&id) {
            Some(TableEntry { end: Some(end), .. }) => end.answer,
            Some(entry) => {
                entry.stopped = true;
                entry.answer_owed = true;
                return Ok(Some(Act::Stop(id)));
            }
            None => self.receipts.answer(id).unwrap_or_else(|| {
                self.keep_receipt(id, Answer::NeverStarted, now);
                Answer::NeverStarted
            }),
        };
        self.answers.push_back(answered(id, answer));
        Ok(None)
    }

    /// An operation that still runs is not forgotten: its end is yet to be sent.
    fn forget(&mut self, id: OperationId, now: Duration) -> Option<Act> {
        let entry = self.entries.get(&id)?;
        let answer = entry.end.as_ref()?.answer;
        // Kept for as long as the receipt.
        self.epochs.see(entry.owner, entry.epoch, now);
        self.keep_receipt(id, answer, now);
        self.remove(id);
        Some(Act::Drop(id))
    }

    /// The reader of a read has left, and no other reader needs it. There is no receipt: the next
    /// reader starts it again. A link that has asked for it is sent an end all the same. By that
    /// end the server tells the earlier output from the output for the next reader.
    fn let_go(&mut self, id: OperationId) -> Option<Act> {
        let entry = self.entries.get(&id).filter(|entry| entry.only_reads)?;
        let is_asked_for = entry.delivery.is_some();
        let refusal = Refusal::new(RefusalCode::Fenced, "its reader has left");
        self.ended(id, Outcome::Refused(refusal.clone()), 0);
        if is_asked_for {
            let end = refused(id.to_string(), refusal.clone());
            self.answers.push_back(end);
        }
        self.remove(id);
        Some(Act::LetGo(id, refusal))
    }

    fn keep_receipt(&mut self, operation: OperationId, answer: Answer, now: Duration) {
        let receipt = Receipt::new(operation, answer, now);
        self.journal
            .unwritten
            .push(Record::Receipt(receipt.clone()));
        self.receipts.add(receipt, now);
    }
}
