//! The output that the reader of an operation received, compared with what was written.

use shared_sandbox::{OperationEvent, Outcome, OutputStream};

use super::{Follow, Phase, Step};

impl Follow {
    pub(super) fn output(&mut self, event: OperationEvent, stream: OutputStream, up_to: u64) {
        self.told[stream as usize] = up_to;
        self.steps.push_back(Step::Tell(event));
        self.steps.push_back(Step::Taken(stream, up_to));
    }

    /// The runner tells an end. It is believed once the output, with what is kept of it, is summed:
    /// before it is stored, and never again.
    pub(super) fn ended(&mut self, outcome: Outcome) {
        if let Some(unread) = self.sums.unread(&outcome) {
            self.phase = Phase::Summing(outcome, unread);
            return;
        }
        let outcome = self.sums.held_to(outcome);
        self.tell_missing(&outcome);
        self.phase = Phase::Offering(outcome);
    }

    /// The first bytes that are kept of the stream from that offset on, and where they begin; nothing
    /// where there are none.
    pub fn kept(&mut self, kept: Option<(u64, &[u8])>) {
        if let Phase::Summing(outcome, (stream, _)) = &self.phase {
            let (outcome, stream) = (outcome.clone(), *stream);
            self.sums.read(stream, kept);
            self.ended(outcome);
        }
    }

    /// Tells gaps for output that the outcome says was written, and that did not come.
    pub(super) fn tell_missing(&mut self, outcome: &Outcome) {
        for (stream, to) in outcome.output() {
            let from = std::mem::replace(&mut self.told[stream as usize], to);
            if from < to {
                let gap = OperationEvent::Gap { stream, from, to };
                self.steps.push_back(Step::Tell(gap));
            }
        }
    }

    /// True if the reader received less output than an operation with this outcome has written.
    pub fn output_is_missing(&self, outcome: &Outcome) -> bool {
        let mut ends = outcome.output().into_iter();
        ends.any(|(stream, end)| self.told[stream as usize] < end)
    }
}
