//! How much of its output the reader of an operation was told, and whether it is what was written.

use shared_sandbox::{OperationEvent, Outcome, OutputStream};

use super::{End, Follow, Phase, Step};

impl Follow {
    pub(super) fn output(&mut self, event: OperationEvent, stream: OutputStream, up_to: u64) {
        self.told[stream as usize] = up_to;
        self.steps.push_back(Step::Tell(event));
        self.steps.push_back(Step::Taken(stream, up_to));
    }

    /// An end is known. It is believed once the output, with what is kept of it, is summed.
    pub(super) fn ended(&mut self, end: End) {
        if let Some(unread) = self.sums.unread(end.outcome()) {
            self.phase = Phase::Summing(end, unread);
            return;
        }
        let outcome = self.sums.held_to(end.outcome().clone());
        self.phase = match end {
            End::Told(_) => {
                self.tell_missing(&outcome);
                Phase::Offering(outcome)
            }
            End::Stored(stored) if stored == outcome => Phase::Settling(outcome),
            // It stays stored; who reads what was not written is told so all the same.
            End::Stored(_) => {
                self.end(outcome);
                Phase::Over
            }
        };
    }

    /// The first bytes that are kept of the stream from that offset on, and where they begin; nothing
    /// where there are none.
    pub fn kept(&mut self, kept: Option<(u64, &[u8])>) {
        if let Phase::Summing(end, (stream, _)) = &self.phase {
            let (end, stream) = (end.clone(), *stream);
            self.sums.read(stream, kept);
            self.ended(end);
        }
    }

    /// Output of which the outcome says that it was written, and which did not come.
    pub(super) fn tell_missing(&mut self, outcome: &Outcome) {
        for (stream, to) in output_ends(outcome) {
            let from = std::mem::replace(&mut self.told[stream as usize], to);
            if from < to {
                let gap = OperationEvent::Gap { stream, from, to };
                self.steps.push_back(Step::Tell(gap));
            }
        }
    }

    pub(super) fn output_is_missing(&self, outcome: &Outcome) -> bool {
        let mut ends = output_ends(outcome).into_iter();
        ends.any(|(stream, end)| self.told[stream as usize] < end)
    }
}

/// Where the output ends, as far as the outcome says.
fn output_ends(outcome: &Outcome) -> Vec<(OutputStream, u64)> {
    match outcome {
        Outcome::Exited(record) => vec![
            (OutputStream::Stdout, record.stdout.offset),
            (OutputStream::Stderr, record.stderr.offset),
        ],
        Outcome::Downloaded(downloaded) => vec![(OutputStream::Stdout, downloaded.bytes)],
        _ => Vec::new(),
    }
}
