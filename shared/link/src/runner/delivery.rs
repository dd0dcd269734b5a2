//! What one link is told of one operation: output within its credit, gaps, and at last the end.

use crate::retained::{Next, Retained};
use proto::v1::{self, runner_frame};
use shared_sandbox::OutputStream;
use shared_types::{
    OperationId,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};

use crate::wire::{from_runner, stream_to_wire};

/// Both streams, in this order everywhere.
pub(super) const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// Where the reader at the other end of the link stands.
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

    /// Whether the end was told, after which nothing follows.
    pub(super) fn is_over(&self) -> bool {
        self.ended
    }

    /// The next frame of output, where there is one that the reader has room for.
    pub(super) fn output(
        &mut self,
        id: OperationId,
        kept: &[Retained; 2],
    ) -> Option<v1::RunnerFrame> {
        for index in [self.turn, 1 - self.turn] {
            let lane = &mut self.lanes[index];
            let operation = || id.to_string();
            let stream = stream_to_wire(STREAMS[index]);
            let kind = match kept[index].next(lane.at, lane.credit, OUTPUT_CHUNK_BYTES) {
                Next::Chunk { offset, data } => {
                    lane.at = offset + data.len() as u64;
                    runner_frame::Kind::Output(v1::Output {
                        operation: operation(),
                        stream,
                        offset,
                        data,
                    })
                }
                Next::Gap { from, to } => {
                    lane.at = to;
                    runner_frame::Kind::Gap(v1::Gap {
                        operation: operation(),
                        stream,
                        from,
                        to,
                    })
                }
                Next::Nothing => continue,
            };
            self.turn = 1 - index;
            return Some(from_runner(kind));
        }
        None
    }

    /// Whether the end is all that is left to be told; `true` once only.
    pub(super) fn take_end(&mut self, kept: &[Retained; 2]) -> bool {
        let all_told = (0..2).all(|index| self.lanes[index].at >= kept[index].end());
        let now = all_told && !self.ended;
        self.ended |= now;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(stdout: &[u8], stderr: &[u8]) -> [Retained; 2] {
        let mut kept = [Retained::new(), Retained::new()];
        kept[0].append(stdout);
        kept[1].append(stderr);
        kept
    }

    fn told(delivery: &mut Delivery, kept: &[Retained; 2]) -> Vec<(i32, u64, usize)> {
        std::iter::from_fn(|| delivery.output(OperationId::from_u128(1), kept))
            .map(|frame| match frame.kind {
                Some(runner_frame::Kind::Output(o)) => (o.stream, o.offset, o.data.len()),
                Some(runner_frame::Kind::Gap(gap)) => (-gap.stream, gap.from, gap.to as usize),
                other => panic!("unexpected {other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_streams_take_turns_and_the_end_comes_last() {
        let kept = kept(&[1; 100_000], &[2; 70_000]);
        let mut delivery = Delivery::from([0, 10]);
        assert!(!delivery.take_end(&kept));
        let expected = [
            (1, 0, 65_536),
            (2, 10, 65_536),
            (1, 65_536, 34_464),
            (2, 65_546, 4_454),
        ];
        assert_eq!(told(&mut delivery, &kept), expected);
        assert!(delivery.take_end(&kept));
        assert!(!delivery.take_end(&kept), "the end is told once");
    }

    #[test]
    fn nothing_is_told_beyond_the_credit() {
        let kept = kept(&[1; 1_500_000], b"");
        let mut delivery = Delivery::from([0, 0]);
        let sent: usize = told(&mut delivery, &kept).iter().map(|(_, _, n)| n).sum();
        assert_eq!(sent as u64, CREDIT_WINDOW_BYTES);
        assert!(!delivery.take_end(&kept), "output is still to be told");
        delivery.credit(OutputStream::Stdout, 10);
        assert!(
            told(&mut delivery, &kept).is_empty(),
            "credit never goes back"
        );
        delivery.credit(OutputStream::Stdout, CREDIT_WINDOW_BYTES + 7);
        assert_eq!(told(&mut delivery, &kept), [(1, CREDIT_WINDOW_BYTES, 7)]);
    }

    #[test]
    fn a_gap_is_told_before_what_follows_it() {
        let kept = kept(&vec![1; 5 << 20], b"");
        let mut delivery = Delivery::from([1 << 20, 0]);
        assert_eq!(told(&mut delivery, &kept)[0], (-1, 1 << 20, 4 << 20));
        delivery.credit(OutputStream::Stdout, u64::MAX);
        let after: usize = told(&mut delivery, &kept).iter().map(|(_, _, n)| n).sum();
        assert_eq!(after, 1 << 20);
        assert!(delivery.take_end(&kept));
    }
}
