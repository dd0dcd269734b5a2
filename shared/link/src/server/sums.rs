//! A check that the output of an operation is what was written (docs/internals/contracts.md#a12). The part that brings
//! its end compares both streams with the checksums in it.
//!
//! An end is not believed if it reports less or more than what came, even if its checksums fit. For missing output the
//! runner sends a gap before the end.
//!
//! Output is summed as it comes. Output that is kept from before, over an earlier link or by an earlier process, is
//! read once when the end is known, a piece at a time. Where some of a stream is missing, nothing is claimed of it:
//! that is a gap, and reported as one.

use shared_sandbox::{Outcome, OutputStream, StreamEnd};

use super::{
    checksum::Sum,
    progress::OutputProgress,
    refusals::{cut_short, damaged, never_came},
};

/// The kept output that must be read before this end can be believed: a stream, and the offset to begin at.
pub(super) fn unread(
    progress: &[OutputProgress; 2],
    outcome: &Outcome,
) -> Option<(OutputStream, u64)> {
    ends(outcome).find_map(|(stream, end)| {
        let progress = &progress[stream as usize];
        summing(progress, end)?;
        progress.unsummed().map(|from| (stream, from))
    })
}

/// The outcome as the runner reports it. Where the output is certainly not what was written, a refusal instead:
/// the operation ran, and its output is not known. Call it once nothing is unread.
pub(super) fn held_to(progress: &[OutputProgress; 2], outcome: Outcome) -> Outcome {
    let Outcome::Exited(record) = &outcome else {
        return outcome;
    };
    let came = |stream: OutputStream| progress[stream as usize].came();
    // The output that came was written: an end that reports less is not this command's.
    let knows_less = |(stream, end): &(OutputStream, StreamEnd)| end.offset < came(*stream);
    if let Some((stream, _)) = ends(&outcome).find(knows_less) {
        return Outcome::Refused(cut_short(stream, record));
    }
    // Nor is one that reports more: all output, or a gap for it, comes before the end.
    let claims_more = |(stream, end): &(OutputStream, StreamEnd)| end.offset > came(*stream);
    if let Some((stream, _)) = ends(&outcome).find(claims_more) {
        return Outcome::Refused(never_came(stream, record));
    }
    let differs = |(stream, end): &(OutputStream, StreamEnd)| {
        let sum = summing(&progress[*stream as usize], *end).map(Sum::of_all);
        sum.is_some() && sum != end.checksum
    };
    match ends(&outcome).find(differs) {
        Some((stream, _)) => Outcome::Refused(damaged(stream, record)),
        None => outcome,
    }
}

/// The sum of a stream that is here up to its end and has a checksum.
fn summing(progress: &OutputProgress, end: StreamEnd) -> Option<&Sum> {
    let sum = progress.sum();
    sum.filter(|_| progress.came() == end.offset && end.checksum.is_some())
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
