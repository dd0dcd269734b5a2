//! The frames of the table for its present link: the inventory, then answers, and the output and
//! the end of each operation that this link has asked for.

use std::collections::VecDeque;

use proto::v1;
use shared_types::{OperationId, SandboxState};

use super::{LinkId, MAX_PATIENT_ANSWERS, MAX_WAITING_ANSWERS, OpenedLink, OperationTable};
use crate::{runner::delivery::Spool, wire};

impl OperationTable {
    /// A new link replaces the one before; it gets no frames of the table until it is welcomed.
    pub fn open_link(&mut self) -> OpenedLink {
        self.unlink();
        self.link = LinkId(self.link.0 + 1);
        self.linked = true;
        let remembered = self.entries.iter().filter(|(_, entry)| !entry.only_reads);
        let inventory = remembered.map(|(id, entry)| v1::InventoryEntry {
            operation: id.to_string(),
            ended: entry.end.is_some(),
        });
        OpenedLink {
            link: self.link,
            incarnation: self.incarnation.clone(),
            journal_sequence: self.journal_sequence(),
            inventory: inventory.collect(),
        }
    }

    /// The server has welcomed the link, and receives the states of the pool's sandboxes. Before
    /// that a link carries nothing but the runner's proof of its identity.
    pub fn welcomed(&mut self, link: LinkId) {
        if self.linked && link == self.link {
            self.pool.untold = Some(self.pool.reports.keys().copied().collect());
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
        self.pool.untold = None;
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

    /// True if there is room for the answer to one more order.
    pub fn takes_orders(&self) -> bool {
        self.answers.len() < MAX_WAITING_ANSWERS
    }

    /// True if [`OperationTable::next_frame`] may have something.
    pub fn has_frames(&self) -> bool {
        !self.answers.is_empty() || !self.ready.is_empty() || self.tells_of_sandboxes()
    }

    fn tells_of_sandboxes(&self) -> bool {
        self.pool
            .untold
            .as_ref()
            .is_some_and(|untold| !untold.is_empty())
    }

    /// True if every frame that waits can go with a later one. Such frames say that commands were
    /// accepted which have not begun. A later frame comes when one of them begins or ends
    /// ([`OperationTable::output`], [`OperationTable::ended`]).
    pub fn can_wait(&self) -> bool {
        let is_patient = |answer: &v1::RunnerFrame| {
            matches!(answer.kind, Some(v1::runner_frame::Kind::Accepted(_)))
        };
        self.ready.is_empty()
            && !self.tells_of_sandboxes()
            && (1..=MAX_PATIENT_ANSWERS).contains(&self.answers.len())
            && self.answers.iter().all(is_patient)
    }

    /// The next frame for the link: answers first, then each operation in turn, so that a loud
    /// one starves nothing.
    pub fn next_frame(&mut self, spool: &mut impl Spool) -> Option<v1::RunnerFrame> {
        if let Some(mut answer) = self.answers.pop_front() {
            if let Some(v1::runner_frame::Kind::Accepted(accepted)) = &mut answer.kind {
                accepted.journal_sequence = self.journal_sequence();
            }
            return Some(answer);
        }
        while let Some(sandbox) = self.pool.untold.as_mut().and_then(VecDeque::pop_front) {
            let Some(report) = self.pool.reports.get(&sandbox) else {
                continue;
            };
            let frame = wire::report(report);
            if report.state == SandboxState::Removed {
                self.pool.reports.remove(&sandbox);
            }
            return Some(frame);
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            entry.is_ready = false;
            let Some(delivery) = &mut entry.delivery else {
                continue;
            };
            let written = entry.written;
            if let Some(told) = Self::input_frame(id, &mut entry.passing) {
                self.make_ready(id);
                return Some(told);
            }
            if let Some(output) = delivery.output(id, written, entry.end.is_some(), spool) {
                self.make_ready(id);
                return Some(output);
            }
            if let Some(end) = &entry.end
                && delivery.take_end(written)
            {
                let frame = wire::ended(id, end.outcome.clone());
                if entry.only_reads {
                    self.remove(id);
                }
                return Some(frame);
            }
        }
        None
    }

    /// Asks again for output that could not be read ([`super::super::SpoolPiece::Later`]).
    pub fn read_again(&mut self) {
        let behind = self.entries.iter().filter(|(_, entry)| {
            let delivery = entry.delivery.as_ref();
            delivery.is_some_and(|delivery| delivery.is_behind(entry.written))
        });
        let behind: Vec<_> = behind.map(|(id, _)| *id).collect();
        behind.into_iter().for_each(|id| self.make_ready(id));
    }

    /// The same of one operation, once what it waits for is there.
    pub fn can_read(&mut self, id: OperationId) {
        self.make_ready(id);
    }

    pub(super) fn make_ready(&mut self, id: OperationId) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.delivery.as_ref().is_some_and(|d| !d.is_over())
            && !entry.is_ready
        {
            entry.is_ready = true;
            self.ready.push_back(id);
        }
    }
}
