//! The table's part in passing things on to operations. A frame for an operation that the present
//! link has not asked for does nothing: only asking needs a ticket, and this inherits it
//! (docs/internals/contracts.md#b6).

use proto::v1;
use shared_sandbox::{Control, Input};
use shared_types::{OperationId, Refusal, RefusalCode};

use super::{Act, OperationTable, TableEntry};
use crate::{
    runner::passing::{PassingDecision, PassingOrders},
    wire,
};

impl OperationTable {
    /// The operation's input below this offset is taken. After a restart a link learns the offset
    /// from the first such report.
    pub fn input_taken(&mut self, id: OperationId, up_to: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.passing.taken(up_to);
            self.make_ready(id);
        }
    }

    /// The resize or signal with this id was carried out, now or before, or cannot be.
    pub fn controlled(&mut self, operation: OperationId, id: u64, result: Result<(), Refusal>) {
        if let Some(entry) = self.entries.get_mut(&operation)
            && entry.passing.controlled(id)
            && entry.delivery.is_some()
        {
            self.answers.push_back(wire::done(operation, id, result));
        }
    }

    pub(super) fn pass_input(&mut self, id: OperationId, piece: Input) -> Option<Act> {
        let entry = self.attached(id)?;
        // Input that a process did not read before its end is no loss.
        let act = match &entry.end {
            None => entry.passing.input(piece),
            Some(_) => None,
        };
        self.make_ready(id);
        act.map(|input| Act::Input(id, input))
    }

    pub(super) fn pass_control(
        &mut self,
        operation: OperationId,
        id: u64,
        control: Control,
    ) -> Option<Act> {
        let entry = self.attached(operation)?;
        let decision = match &entry.end {
            None => entry.passing.control(id, control),
            Some(_) => PassingDecision::Answer(Err(Refusal::new(
                RefusalCode::NotFound,
                "the operation has ended",
            ))),
        };
        match decision {
            PassingDecision::Do => Some(Act::Control {
                operation,
                id,
                control,
            }),
            PassingDecision::Answer(result) => {
                self.answers.push_back(wire::done(operation, id, result));
                None
            }
            PassingDecision::Wait => None,
        }
    }

    /// The frame that reports an operation's input to the link.
    pub(super) fn input_frame(
        id: OperationId,
        passing: &mut PassingOrders,
    ) -> Option<v1::RunnerFrame> {
        let told = passing.tell()?;
        Some(wire::input_taken(id, told))
    }

    /// The operation, if the present link has asked for it.
    fn attached(&mut self, id: OperationId) -> Option<&mut TableEntry> {
        self.entries
            .get_mut(&id)
            .filter(|entry| entry.delivery.is_some())
    }
}
