//! The output that the reader of an operation received, compared with what was written.

use shared_sandbox::{OperationEvent, Outcome, OutputStream};

use super::{Follow, FollowStep, Phase};
use crate::server::{progress::OutputProgress, sums};

impl Follow {
    pub(super) fn output(&mut self, event: OperationEvent, stream: OutputStream) {
        let up_to = self.progress[stream as usize].came();
        self.steps.push_back(FollowStep::Tell(event));
        self.steps.push_back(FollowStep::Taken(stream, up_to));
    }

    /// The runner tells an end. It is believed once the output, with what is kept of it, is summed:
    /// before it is stored, and never again.
    pub(super) fn ended(&mut self, outcome: Outcome) {
        if let Some(unread) = sums::unread(&self.progress, &outcome) {
            self.phase = Phase::Summing(outcome, unread);
            return;
        }
        let outcome = sums::held_to(&self.progress, outcome);
        self.tell_missing(&outcome);
        self.phase = Phase::Offering(outcome);
    }

    /// The first bytes that are kept of the stream from that offset on, and where they begin; nothing
    /// where there are none.
    pub fn kept(&mut self, kept: Option<(u64, &[u8])>) {
        if let Phase::Summing(outcome, (stream, _)) = &self.phase {
            let (outcome, stream) = (outcome.clone(), *stream);
            self.progress[stream as usize].kept(kept);
            self.ended(outcome);
        }
    }

    /// Tells gaps for output that the outcome says was written, and that did not come.
    pub(super) fn tell_missing(&mut self, outcome: &Outcome) {
        for (stream, to) in outcome.output() {
            if let Some(from) = self.progress[stream as usize].end(to) {
                let gap = OperationEvent::Gap { stream, from, to };
                self.steps.push_back(FollowStep::Tell(gap));
            }
        }
    }

    /// True if the reader received less output than an operation with this outcome has written.
    pub fn output_is_missing(&self, outcome: &Outcome) -> bool {
        let mut ends = outcome.output().into_iter();
        ends.any(|(stream, end)| self.progress[stream as usize].lacks(end))
    }

    /// The ends of stdout and stderr as far as they came, gaps included.
    pub fn came(&self) -> [u64; 2] {
        self.progress.each_ref().map(OutputProgress::came)
    }

    /// The output before these offsets is durable, and need not be kept by the runner any more. Returns true if that is
    /// more than before.
    pub fn durable(&mut self, up_to: [u64; 2]) -> bool {
        let [stdout, stderr] = &mut self.progress;
        stdout.durable(up_to[0]) | stderr.durable(up_to[1])
    }

    /// The reader has the output before these offsets, and the runner need not keep it any more.
    pub fn confirmed(&mut self, up_to: [u64; 2]) {
        for (progress, up_to) in self.progress.iter_mut().zip(up_to) {
            progress.commit(up_to);
        }
    }
}
