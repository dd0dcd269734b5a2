//! How much of its output the reader of an operation was told, and whether it is what was written.

use shared_sandbox::{OperationEvent, Outcome, OutputStream, StreamEnd};

use super::{super::refusals::damaged, Follow, Step};

/// Checksums of two streams. Where some of a stream did not come this way, nothing is claimed of it.
#[derive(Debug)]
pub(super) struct Sums([Option<crc32fast::Hasher>; 2]);

impl Sums {
    /// Of streams of which so much came another way.
    pub(super) fn after(told: [u64; 2]) -> Self {
        Self(told.map(|told| (told == 0).then(crc32fast::Hasher::new)))
    }

    /// The next bytes came.
    pub(super) fn add(&mut self, stream: OutputStream, data: &[u8]) {
        if let Some(sum) = &mut self.0[stream as usize] {
            sum.update(data);
        }
    }

    /// The next bytes never come.
    pub(super) fn miss(&mut self, stream: OutputStream) {
        self.0[stream as usize] = None;
    }

    /// Whether what came, up to `told`, is certainly not what was written.
    fn differ(&self, stream: OutputStream, told: u64, end: StreamEnd) -> bool {
        let sum = self.0[stream as usize].as_ref();
        let sum = sum.map(|sum| sum.clone().finalize());
        told == end.offset && sum.is_some() && end.checksum.is_some() && sum != end.checksum
    }
}

impl Follow {
    pub(super) fn output(&mut self, event: OperationEvent, stream: OutputStream, up_to: u64) {
        self.told[stream as usize] = up_to;
        self.steps.push_back(Step::Tell(event));
        self.steps.push_back(Step::Taken(stream, up_to));
    }

    /// The outcome as the runner tells it; where the output that came is not what was written, that
    /// the operation ran and that nobody knows what it wrote.
    pub(super) fn held_to_its_sums(&self, outcome: Outcome) -> Outcome {
        let Outcome::Exited(record) = &outcome else {
            return outcome;
        };
        let ends = [
            (OutputStream::Stdout, record.stdout),
            (OutputStream::Stderr, record.stderr),
        ];
        let differs = |(stream, end): &(OutputStream, StreamEnd)| {
            self.sums.differ(*stream, self.told[*stream as usize], *end)
        };
        match ends.iter().find(|end| differs(end)) {
            Some((stream, _)) => Outcome::Refused(damaged(*stream, record)),
            None => outcome,
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
