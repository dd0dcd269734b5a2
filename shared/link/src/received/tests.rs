use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const WINDOW: u64 = 64;

#[test]
fn a_repeat_is_dropped_and_an_overlap_is_cut() {
    let mut stream = StreamReader::new(0, WINDOW);
    assert_eq!(
        stream.data(0, Bytes::from_static(b"abcd")),
        Ok(Some((0, Bytes::from_static(b"abcd"))))
    );
    assert_eq!(stream.data(1, Bytes::from_static(b"bc")), Ok(None));
    assert_eq!(
        stream.data(2, Bytes::from_static(b"cdef")),
        Ok(Some((4, Bytes::from_static(b"ef"))))
    );
}

#[test]
fn a_hole_is_a_violation_and_changes_nothing() {
    let mut stream = StreamReader::new(10, WINDOW);
    let hole = Violation::Hole {
        expected: 10,
        offset: 11,
    };
    assert_eq!(stream.data(11, Bytes::from_static(b"x")), Err(hole));
    assert_eq!(stream.gap(11, 12), Err(hole));
    assert_eq!(stream.next(), 10);
}

#[test]
fn data_beyond_the_credit_is_a_violation() {
    let mut stream = StreamReader::new(0, 4);
    assert_eq!(
        stream.data(0, Bytes::from_static(b"abcde")),
        Err(Violation::BeyondCredit { end: 5, granted: 4 })
    );
    assert!(stream.data(0, Bytes::from_static(b"abcd")).is_ok());
    assert_eq!(
        stream.data(4, Bytes::from_static(b"e")),
        Err(Violation::BeyondCredit { end: 5, granted: 4 })
    );
}

#[test]
fn credit_is_granted_when_half_the_window_is_taken() {
    let mut stream = StreamReader::new(0, 8);
    stream
        .data(0, Bytes::from_static(b"abcdefgh"))
        .expect("it is within the credit");
    assert_eq!(stream.taken(3), None);
    assert_eq!(stream.taken(4), Some(12));
    assert_eq!(stream.taken(4), None);
}

#[test]
fn a_gap_beyond_the_credit_moves_the_credit_along() {
    let mut stream = StreamReader::new(0, 8);
    assert_eq!(stream.gap(0, 1000), Ok(Some((0, 1000))));
    assert_eq!(stream.taken(1000), Some(1008));
    assert!(stream.data(1000, Bytes::from_static(b"abcdefgh")).is_ok());
}

#[test]
fn offsets_at_the_end_of_numbers_do_not_overflow() {
    for last in [MAX_NUMBER, u64::MAX] {
        let offset = last - 1;
        let overflow = Violation::Overflow { offset };
        let mut stream = StreamReader::new(offset, WINDOW);
        let data = Bytes::from_static(b"abc");
        assert_eq!(stream.data(offset, data), Err(overflow));
        assert_eq!(stream.gap(offset, u64::MAX), Err(overflow));
        assert_eq!(stream.taken(u64::MAX), None);
    }
}

/// The byte that every stream has at `offset`.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A writer that keeps what was written from `kept` on and honours its credit.
#[derive(Debug, Default)]
struct Writer {
    written: u64,
    kept: u64,
    sent: u64,
    credit: u64,
}

#[derive(Debug, Clone)]
enum Frame {
    Data(u64, Bytes),
    Gap(u64, u64),
}

impl Writer {
    /// The next frame of at most `length` bytes, beginning up to `back` bytes too early.
    fn frame(&mut self, length: u64, back: u64) -> Option<Frame> {
        if self.sent < self.kept {
            let gap = Frame::Gap(self.sent, self.kept);
            self.sent = self.kept;
            return Some(gap);
        }
        let end = self.written.min(self.sent + length).min(self.credit);
        if end <= self.sent {
            return None;
        }
        let begin = self.sent.saturating_sub(back).max(self.kept);
        self.sent = end;
        Some(Frame::Data(begin, (begin..end).map(byte).collect()))
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64),
    Evict(u64),
    Send { length: u64, back: u64 },
    Deliver,
    Take(u64),
    Reconnect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..200u64).prop_map(Step::Write),
        1 => (1..200u64).prop_map(Step::Evict),
        6 => (1..40u64, 0..20u64).prop_map(|(length, back)| Step::Send { length, back }),
        6 => Just(Step::Deliver),
        4 => (1..50u64).prop_map(Step::Take),
        1 => Just(Step::Reconnect),
    ];
    prop::collection::vec(step, 0..200)
}

/// Both ends of a stream and what is in flight between them.
struct Line {
    writer: Writer,
    stream: StreamReader,
    in_flight: VecDeque<Frame>,
    /// The offset of the next byte that the reader has seen, in data or in a gap.
    seen: u64,
}

impl Line {
    fn new() -> Self {
        Self {
            writer: Writer {
                credit: WINDOW,
                ..Writer::default()
            },
            stream: StreamReader::new(0, WINDOW),
            in_flight: VecDeque::new(),
            seen: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        let writer = &mut self.writer;
        match *step {
            Step::Write(bytes) => writer.written += bytes,
            Step::Evict(bytes) => writer.kept = (writer.kept + bytes).min(writer.written),
            Step::Send { length, back } => self.in_flight.extend(writer.frame(length, back)),
            Step::Deliver => self.deliver(),
            Step::Take(bytes) => {
                let up_to = (self.stream.taken_up_to() + bytes).min(self.stream.next());
                if let Some(credit) = self.stream.taken(up_to) {
                    assert!(credit > self.writer.credit, "credit never goes back");
                    self.writer.credit = credit;
                }
            }
            Step::Reconnect => {
                self.in_flight.clear();
                self.writer.sent = self.stream.resume();
                self.writer.credit = self.writer.sent + WINDOW;
            }
        }
    }

    fn deliver(&mut self) {
        match self.in_flight.pop_front() {
            None => {}
            Some(Frame::Data(offset, data)) => {
                let new = self
                    .stream
                    .data(offset, data)
                    .expect("the writer is honest");
                if let Some((begin, data)) = new {
                    assert_eq!(begin, self.seen, "bytes come in order, once");
                    self.seen += data.len() as u64;
                    assert!((begin..self.seen).map(byte).eq(data), "and unchanged");
                }
            }
            Some(Frame::Gap(from, to)) => {
                if let Some((begin, end)) = self.stream.gap(from, to).expect("it is honest") {
                    assert_eq!(begin, self.seen);
                    assert!(end <= self.writer.kept, "only what is gone is a gap");
                    self.seen = end;
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_on_the_way_every_byte_arrives_once_or_is_a_recorded_gap(steps in steps()) {
        let mut line = Line::new();
        for step in &steps {
            line.step(step);
        }
        // Nothing goes wrong any more: all that was written must arrive.
        for _ in 0..10_000 {
            line.step(&Step::Send { length: 40, back: 0 });
            line.step(&Step::Deliver);
            line.step(&Step::Take(WINDOW));
        }
        prop_assert_eq!(line.seen, line.writer.written);
        prop_assert_eq!(line.stream.taken_up_to(), line.writer.written);
    }

    #[test]
    fn a_writer_of_anything_never_makes_more_wait_than_the_window(
        frames in prop::collection::vec((0..300u64, 0..100usize, 0..100u64), 0..100)
    ) {
        let mut stream = StreamReader::new(0, WINDOW);
        let mut waiting = 0;
        for (offset, length, take) in frames {
            if let Ok(Some((_, data))) = stream.data(offset, vec![0; length].into()) {
                waiting += data.len() as u64;
            }
            prop_assert!(waiting <= WINDOW);
            prop_assert_eq!(stream.next() - stream.taken_up_to(), waiting);
            let take = take.min(waiting);
            stream.taken(stream.taken_up_to() + take);
            waiting -= take;
        }
    }
}
