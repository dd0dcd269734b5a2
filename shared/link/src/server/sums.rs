//! A check that the output of an operation is what was written (docs/internals/contracts.md#a12). The part that brings
//! its end compares both streams with the checksums in it.
//!
//! An end is not believed if it reports less or more than what came, even if its checksums fit. For missing output the
//! runner sends a gap before the end.
//!
//! Output is summed as it comes. Output that is kept from before, over an earlier link or by an earlier process, is
//! read once when the end is known, a piece at a time. Where some of a stream is missing, nothing is claimed of it:
//! that is a gap, and reported as one.

use crc32fast::Hasher;
use shared_sandbox::{Outcome, OutputStream, StreamEnd};

use super::refusals::{cut_short, damaged, never_came};

/// The sums of two streams.
#[derive(Debug)]
pub struct Sums {
    sums: [Option<Sum>; 2],
    /// The end of the output that came on each stream, with or without gaps.
    came: [u64; 2],
}

#[derive(Debug)]
struct Sum {
    /// The offset where the kept output ends, and where the output that comes begins.
    begin: u64,
    /// Of what is kept, as far as it was read.
    kept: Hasher,
    read: u64,
    came: Hasher,
    at: u64,
}

impl Sums {
    /// The sums of streams after this many kept bytes of each.
    pub fn after(kept: [u64; 2]) -> Self {
        let sums = kept.map(|begin| {
            Some(Sum {
                begin,
                kept: Hasher::new(),
                read: 0,
                came: Hasher::new(),
                at: begin,
            })
        });
        Self { sums, came: kept }
    }

    /// The next bytes came.
    pub fn add(&mut self, stream: OutputStream, data: &[u8]) {
        let came = &mut self.came[stream as usize];
        *came = came.saturating_add(data.len() as u64);
        if let Some(sum) = &mut self.sums[stream as usize] {
            sum.came.update(data);
            sum.at = sum.at.saturating_add(data.len() as u64);
        }
    }

    /// The bytes up to this offset never come.
    pub fn miss(&mut self, stream: OutputStream, up_to: u64) {
        let came = &mut self.came[stream as usize];
        *came = up_to.max(*came);
        self.sums[stream as usize] = None;
    }

    /// The kept output that must be read before this end can be believed: a stream, and the offset to begin at.
    pub fn unread(&self, outcome: &Outcome) -> Option<(OutputStream, u64)> {
        ends(outcome).find_map(|(stream, end)| {
            let sum = self.summing(stream, end)?;
            (sum.read < sum.begin).then_some((stream, sum.read))
        })
    }

    /// The first bytes that are kept from there on, and where they begin; nothing where there are none.
    pub fn read(&mut self, stream: OutputStream, kept: Option<(u64, &[u8])>) {
        let Some(sum) = &mut self.sums[stream as usize] else {
            return;
        };
        match kept {
            Some((offset, data)) if offset == sum.read && !data.is_empty() => {
                let room = usize::try_from(sum.begin - sum.read).unwrap_or(usize::MAX);
                let data = &data[..data.len().min(room)];
                sum.kept.update(data);
                sum.read += data.len() as u64;
            }
            _ => self.sums[stream as usize] = None,
        }
    }

    /// The outcome as the runner reports it. Where the output is certainly not what was written, a refusal instead:
    /// the operation ran, and its output is not known. Call it once nothing is unread.
    pub fn held_to(&self, outcome: Outcome) -> Outcome {
        let Outcome::Exited(record) = &outcome else {
            return outcome;
        };
        // The output that came was written: an end that reports less is not this command's.
        let knows_less =
            |(stream, end): &(OutputStream, StreamEnd)| end.offset < self.came[*stream as usize];
        if let Some((stream, _)) = ends(&outcome).find(knows_less) {
            return Outcome::Refused(cut_short(stream, record));
        }
        // Nor is one that reports more: all output, or a gap for it, comes before the end.
        let claims_more =
            |(stream, end): &(OutputStream, StreamEnd)| end.offset > self.came[*stream as usize];
        if let Some((stream, _)) = ends(&outcome).find(claims_more) {
            return Outcome::Refused(never_came(stream, record));
        }
        let differs = |(stream, end): &(OutputStream, StreamEnd)| {
            let sum = self.summing(*stream, *end).map(Sum::of_all);
            sum.is_some() && sum != end.checksum
        };
        match ends(&outcome).find(differs) {
            Some((stream, _)) => Outcome::Refused(damaged(stream, record)),
            None => outcome,
        }
    }

    /// The sum of a stream that is here up to its end and has a checksum.
    fn summing(&self, stream: OutputStream, end: StreamEnd) -> Option<&Sum> {
        let sum = self.sums[stream as usize].as_ref();
        sum.filter(|sum| sum.at == end.offset && end.checksum.is_some())
    }
}

impl Sum {
    fn of_all(&self) -> u32 {
        let mut all = self.kept.clone();
        all.combine(&self.came);
        all.finalize()
    }
}

fn ends(outcome: &Outcome) -> impl Iterator<Item = (OutputStream, StreamEnd)> + use<> {
    let ends = match outcome {
        Outcome::Exited(record) => Some([
            (OutputStream::Stdout, record.stdout),
            (OutputStream::Stderr, record.stderr),
        ]),
        _ => None,
    };
    ends.into_iter().flatten()
}
