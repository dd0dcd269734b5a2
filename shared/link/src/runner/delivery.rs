//! The frames of one operation for one link: output within its credit, gaps, and at last the end.

use bytes::Bytes;
use proto::v1::{self, runner_frame};
use shared_sandbox::OutputStream;
use shared_types::{
    OperationId,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};

use crate::wire::{from_runner, stream_to_wire};

/// The place where the output of operations is kept.
pub trait Spool {
    /// Reads the stream at `from`; at most `max` bytes. The table asks only for output that was
    /// announced to it ([`super::OperationTable::output`]).
    fn read(
        &mut self,
        operation: OperationId,
        stream: OutputStream,
        from: u64,
        max: usize,
    ) -> SpoolPiece;
}

/// The next piece of a stream for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoolPiece {
    /// At least one byte.
    Bytes(Bytes),
    /// The output here is not kept; the stream goes on at this offset.
    Gap(u64),
    /// There is nothing to send yet. Where the operation has ended the rest counts as a gap.
    Nothing,
    /// The output is there, and not read yet, or the host lacks something to read it with, such as
    /// a descriptor. It is asked for again after [`super::OperationTable::can_read`] or
    /// [`super::OperationTable::read_again`].
    Later,
}

/// Both streams, in this order everywhere.
pub(super) const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// The position of the reader at the other end of the link.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    lanes: [Lane; 2],
    /// The stream whose turn it is, so that neither waits for the other.
    turn: usize,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    /// Everything below was sent on this link, or was there before.
    at: u64,
    credit: u64,
}

impl Delivery {
    /// A reader that has everything below these offsets, and room for one window more.
    pub(super) fn from(offsets: [u64; 2]) -> Self {
        Self {
            lanes: offsets.map(|at| Lane {
                at,
                credit: at.saturating_add(CREDIT_WINDOW_BYTES),
            }),
            turn: 0,
            ended: false,
        }
    }

    /// The reader has more room; credit never goes back.
    pub(super) fn credit(&mut self, stream: OutputStream, up_to: u64) {
        let lane = &mut self.lanes[stream as usize];
        lane.credit = lane.credit.max(up_to);
    }

    /// True if the end was sent, after which nothing follows.
    pub(super) fn is_over(&self) -> bool {
        self.ended
    }

    /// The next frame of output, where there is one that the reader has room for. `complete`: the
    /// operation has ended, so that what is not there will never be.
    pub(super) fn output(
        &mut self,
        id: OperationId,
        written: [u64; 2],
        complete: bool,
        spool: &mut impl Spool,
    ) -> Option<v1::RunnerFrame> {
        for index in [self.turn, 1 - self.turn] {
            let lane = &mut self.lanes[index];
            let up_to = lane.credit.min(written[index]);
            if lane.at >= up_to {
                continue;
            }
            let max = usize::try_from(up_to - lane.at).unwrap_or(usize::MAX);
            let max = max.min(OUTPUT_CHUNK_BYTES);
            let (operation, stream) = (id.to_string(), stream_to_wire(STREAMS[index]));
            let kind = match spool.read(id, STREAMS[index], lane.at, max) {
                SpoolPiece::Bytes(data) if !data.is_empty() => {
                    let offset = lane.at;
                    lane.at += data.len() as u64;
                    runner_frame::Kind::Output(v1::Output {
                        operation,
                        stream,
                        offset,
                        data,
                    })
                }
                SpoolPiece::Gap(to) if to > lane.at => {
                    let from = std::mem::replace(&mut lane.at, to);
                    runner_frame::Kind::Gap(v1::Gap {
                        operation,
                        stream,
                        from,
                        to,
                    })
                }
                SpoolPiece::Later => continue,
                _ if complete => {
                    let from = std::mem::replace(&mut lane.at, written[index]);
                    runner_frame::Kind::Gap(v1::Gap {
                        operation,
                        stream,
                        from,
                        to: written[index],
                    })
                }
                SpoolPiece::Bytes(_) | SpoolPiece::Gap(_) | SpoolPiece::Nothing => continue,
            };
            self.turn = 1 - index;
            return Some(from_runner(kind));
        }
        None
    }

    /// True if there is output that was not sent, though the reader has room for it.
    pub(super) fn is_behind(&self, written: [u64; 2]) -> bool {
        let mut lanes = self.lanes.iter().zip(written);
        lanes.any(|(lane, written)| lane.at < lane.credit.min(written))
    }

    /// True if only the end is left to send; `true` once only.
    pub(super) fn take_end(&mut self, written: [u64; 2]) -> bool {
        let all_told = (0..2).all(|index| self.lanes[index].at >= written[index]);
        let now = all_told && !self.ended;
        self.ended |= now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Exhausted, Memory};

    const ID: OperationId = OperationId::from_u128(1);

    fn spool(stdout: &[u8], stderr: &[u8]) -> (Memory, [u64; 2]) {
        let mut spool = Memory::default();
        spool.write(ID, OutputStream::Stdout, stdout);
        let written = spool.write(ID, OutputStream::Stderr, stderr);
        (spool, written)
    }

    fn told(
        delivery: &mut Delivery,
        written: [u64; 2],
        spool: &mut Memory,
    ) -> Vec<(i32, u64, usize)> {
        std::iter::from_fn(|| delivery.output(ID, written, false, spool))
            .map(|frame| match frame.kind {
                Some(runner_frame::Kind::Output(o)) => (o.stream, o.offset, o.data.len()),
                Some(runner_frame::Kind::Gap(gap)) => (-gap.stream, gap.from, gap.to as usize),
                other => panic!("unexpected {other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_streams_take_turns_and_the_end_comes_last() {
        let (mut spool, written) = spool(&[1; 100_000], &[2; 70_000]);
        let mut delivery = Delivery::from([0, 10]);
        assert!(!delivery.take_end(written));
        let expected = [
            (1, 0, 65_536),
            (2, 10, 65_536),
            (1, 65_536, 34_464),
            (2, 65_546, 4_454),
        ];
        assert_eq!(told(&mut delivery, written, &mut spool), expected);
        assert!(delivery.take_end(written));
        assert!(!delivery.take_end(written), "the end is told once");
    }

    #[test]
    fn nothing_is_told_beyond_the_credit() {
        let (mut spool, written) = spool(&[1; 1_500_000], b"");
        let mut delivery = Delivery::from([0, 0]);
        let frames = told(&mut delivery, written, &mut spool);
        let sent: usize = frames.iter().map(|(_, _, n)| n).sum();
        assert_eq!(sent as u64, CREDIT_WINDOW_BYTES);
        assert!(!delivery.take_end(written), "output is still to be told");
        delivery.credit(OutputStream::Stdout, 10);
        assert!(
            told(&mut delivery, written, &mut spool).is_empty(),
            "credit never goes back"
        );
        delivery.credit(OutputStream::Stdout, CREDIT_WINDOW_BYTES + 7);
        let frames = told(&mut delivery, written, &mut spool);
        assert_eq!(frames, [(1, CREDIT_WINDOW_BYTES, 7)]);
    }

    #[test]
    fn a_gap_is_told_before_what_follows_it() {
        let (mut spool, written) = spool(&[1; 5000], b"");
        spool.drop_range(ID, 1000..4000);
        let mut delivery = Delivery::from([0, 0]);
        let expected = [(1, 0, 1000), (-1, 1000, 4000), (1, 4000, 1000)];
        assert_eq!(told(&mut delivery, written, &mut spool), expected);
        assert!(delivery.take_end(written));
    }

    #[test]
    fn what_cannot_be_read_now_is_no_gap_and_is_told_later() {
        let (mut spool, written) = spool(b"abc", b"");
        let mut delivery = Delivery::from([0, 0]);
        assert!(delivery.output(ID, written, true, &mut Exhausted).is_none());
        assert!(!delivery.take_end(written), "something is still to be told");
        assert_eq!(told(&mut delivery, written, &mut spool), [(1, 0, 3)]);
        assert!(delivery.take_end(written));
    }

    #[test]
    fn what_the_spool_lacks_of_a_finished_stream_is_a_gap_and_not_a_wait_for_ever() {
        let (mut spool, _) = spool(b"", b"");
        let mut delivery = Delivery::from([0, 0]);
        assert!(delivery.output(ID, [9, 0], false, &mut spool).is_none());
        let frame = delivery.output(ID, [9, 0], true, &mut spool);
        let kind = frame.and_then(|frame| frame.kind);
        assert!(matches!(kind, Some(runner_frame::Kind::Gap(gap)) if (gap.from, gap.to) == (0, 9)));
        assert!(delivery.take_end([9, 0]));
    }
}
