use proptest::prelude::*;

use super::*;

const HEAD: usize = 16;
const TAIL: usize = 12;

/// What happens to a stream.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>),
    /// The reader gives this much more credit and reads once.
    Read {
        credit: u64,
        max_chunk: usize,
    },
    /// The reader forgets everything after this share of what it has, as after a reconnect.
    GoBack {
        share: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Append),
        (0..20u64, 1..30usize).prop_map(|(credit, max_chunk)| Step::Read { credit, max_chunk }),
        any::<u8>().prop_map(|share| Step::GoBack { share }),
    ];
    prop::collection::vec(step, 0..60)
}

/// A reader's view of a stream: bytes, and holes where gaps were told.
#[derive(Default)]
struct Reader {
    seen: Vec<Option<u8>>,
    credit: u64,
}

impl Reader {
    fn take(&mut self, next: Next) {
        match next {
            Next::Chunk { offset, data } => {
                assert_eq!(
                    offset,
                    self.seen.len() as u64,
                    "bytes come where they were asked"
                );
                assert!(!data.is_empty());
                assert!(
                    offset + data.len() as u64 <= self.credit,
                    "within the credit"
                );
                self.seen.extend(data.iter().copied().map(Some));
            }
            Next::Gap { from, to } => {
                assert_eq!(from, self.seen.len() as u64);
                assert!(from < to);
                self.seen.resize(to as usize, None);
            }
            Next::Nothing => {}
        }
    }
}

proptest! {
    #[test]
    fn a_reader_gets_an_exact_prefix_with_told_gaps_only_and_memory_stays_bounded(steps in steps()) {
        let mut stream = Retained::with_bounds(HEAD, TAIL);
        let mut written = Vec::new();
        let mut reader = Reader::default();
        for step in steps {
            match step {
                Step::Append(data) => {
                    stream.append(&data);
                    written.extend(data);
                }
                Step::Read { credit, max_chunk } => {
                    reader.credit = reader.credit.max(reader.seen.len() as u64) + credit;
                    let next = stream.next(reader.seen.len() as u64, reader.credit, max_chunk);
                    if let Next::Chunk { data, .. } = &next {
                        prop_assert!(data.len() <= max_chunk);
                    }
                    reader.take(next);
                }
                Step::GoBack { share } => {
                    let kept = reader.seen.len() * usize::from(share) / 256;
                    reader.seen.truncate(kept);
                }
            }
            prop_assert!(stream.retained_bytes() <= HEAD + TAIL);
            prop_assert_eq!(stream.end(), written.len() as u64);
            prop_assert_eq!(stream.checksum(), crc32fast::hash(&written));
            for (place, byte) in reader.seen.iter().enumerate() {
                prop_assert!(byte.is_none_or(|byte| byte == written[place]));
                prop_assert!(byte.is_some() || place >= HEAD, "the head is never in a gap");
            }
        }
    }

    #[test]
    fn a_late_reader_gets_the_whole_head_one_gap_and_the_whole_tail(
        appends in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        max_chunk in 1..30usize,
    ) {
        let mut stream = Retained::with_bounds(HEAD, TAIL);
        appends.iter().for_each(|data| stream.append(data));
        let written = appends.concat();
        let mut reader = Reader { credit: u64::MAX, ..Reader::default() };
        while (reader.seen.len() as u64) < stream.end() {
            reader.take(stream.next(reader.seen.len() as u64, u64::MAX, max_chunk));
        }
        let missing = written.len().saturating_sub(HEAD + TAIL);
        let expected: Vec<_> = written
            .iter()
            .enumerate()
            .map(|(place, byte)| (place < HEAD || place >= HEAD + missing).then_some(*byte))
            .collect();
        prop_assert_eq!(reader.seen, expected);
    }
}

#[test]
fn without_credit_nothing_is_told_not_even_a_gap() {
    let mut stream = Retained::with_bounds(2, 2);
    stream.append(b"abcdefgh");
    assert_eq!(stream.next(2, 2, 10), Next::Nothing);
    assert_eq!(stream.next(2, 3, 10), Next::Gap { from: 2, to: 6 });
    assert_eq!(stream.next(8, u64::MAX, 10), Next::Nothing);
    assert_eq!(stream.next(99, u64::MAX, 10), Next::Nothing);
}

#[test]
fn a_stream_of_many_small_pieces_holds_no_more_memory_than_its_bounds() {
    let mut stream = Retained::new();
    for _ in 0..50_000 {
        stream.append(&[b'x'; 100]);
    }
    assert!(stream.retained_bytes() <= MAX_RETAINED_BYTES);
    let mut quiet = Retained::new();
    quiet.append(b"done");
    assert!(
        quiet.retained_bytes() < 64,
        "a quiet stream costs next to nothing"
    );
}
