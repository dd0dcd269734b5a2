use shared_sandbox::OutputStream::{Stderr, Stdout};
use shared_types::RefusalCode;

use super::*;

fn output(stream: OutputStream, offset: u64, data: &'static str) -> Mail {
    Mail::Output {
        stream,
        offset,
        data: Bytes::from_static(data.as_bytes()),
    }
}

#[test]
fn single_bytes_are_joined_and_the_end_comes_after_them() {
    let mut inbox = OutputInbox::new();
    let (seat, _) = inbox.attach();
    for offset in 0..1000 {
        inbox
            .put(seat, output(Stdout, offset, "x"))
            .expect("in order");
        inbox
            .put(seat, output(Stderr, offset, "x"))
            .expect("in order");
    }
    let refused = Mail::Refused(Refusal::new(RefusalCode::NotFound, "unknown"));
    inbox.put(seat, refused.clone()).expect("the last one");
    for expected in [Stdout, Stderr] {
        let Some(Mail::Output { stream, data, .. }) = inbox.take() else {
            panic!("the output comes first");
        };
        assert_eq!((stream, data.len()), (expected, 1000));
    }
    assert_eq!(inbox.take(), Some(refused));
}

#[test]
fn small_pieces_hold_nothing_of_their_frames_and_a_large_one_is_held_as_it_came() {
    let mut inbox = OutputInbox::new();
    let (seat, _) = inbox.attach();
    let frames = [100, OUTPUT_CHUNK_BYTES, 100, 100].map(|length| Bytes::from(vec![7; length]));
    let mut offset = 0;
    for data in frames.clone() {
        let length = data.len() as u64;
        let piece = Mail::Output {
            stream: Stdout,
            offset,
            data,
        };
        inbox.put(seat, piece).expect("in order");
        offset += length;
    }
    let is_held = frames.each_ref().map(|frame| !frame.is_unique());
    assert_eq!(is_held, [false, true, false, false]);
    let pieces: Vec<_> = std::iter::from_fn(|| inbox.take())
        .map(|mail| match mail {
            Mail::Output { data, .. } => data.len(),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(pieces, [100, OUTPUT_CHUNK_BYTES, 200]);
}

#[test]
fn what_an_earlier_seat_still_says_is_dropped() {
    let mut inbox = OutputInbox::new();
    let (old, _) = inbox.attach();
    inbox.put(old, output(Stdout, 0, "abc")).expect("in order");
    let (new, offsets) = inbox.attach();
    assert_eq!(offsets, [0, 0], "nothing was taken yet");
    inbox
        .put(old, output(Stdout, 99, "late"))
        .expect("nobody looks at it");
    inbox.put(old, Mail::Detached).expect("nobody looks at it");
    inbox
        .put(new, output(Stdout, 0, "abcdef"))
        .expect("a repeat and more");
    inbox.put(new, Mail::Detached).expect("the last one");
    assert_eq!(inbox.take(), Some(output(Stdout, 0, "abcdef")));
    assert_eq!(inbox.take(), Some(Mail::Detached));
}

#[test]
fn a_runner_that_sends_gap_after_gap_is_stopped() {
    let mut inbox = OutputInbox::new();
    let (seat, _) = inbox.attach();
    let mut offset = 0;
    let stopped = loop {
        let gap = Mail::Gap {
            stream: Stdout,
            from: offset + 1,
            to: offset + 2,
        };
        let sent = inbox.put(seat, output(Stdout, offset, "x"));
        match sent.and_then(|()| inbox.put(seat, gap)) {
            Ok(()) => offset += 2,
            Err(error) => break error,
        }
    };
    assert_eq!(stopped, InboxError::TooManyGaps);
    assert!(offset <= MAX_PIECES as u64);
}

#[test]
fn answers_are_bounded_wait_for_no_output_and_belong_to_their_seat() {
    let mut inbox = OutputInbox::new();
    let (seat, _) = inbox.attach();
    inbox.put(seat, output(Stdout, 0, "abc")).expect("in order");
    for up_to in 0..10_000 {
        let taken = ControlAnswer::InputTaken(up_to);
        inbox.put_answer(seat, taken).expect("the last one counts");
    }
    assert_eq!(inbox.take_answer(), Some(ControlAnswer::InputTaken(9999)));
    assert_eq!(inbox.take_answer(), None);
    let done = |id| ControlAnswer::Done { id, result: Ok(()) };
    let put = (0..).map(|id| inbox.put_answer(seat, done(id)));
    let refused = put.take(1000).find_map(Result::err);
    assert_eq!(refused, Some(InboxError::TooManyAnswers));
    let (next, _) = inbox.attach();
    inbox.put_answer(seat, done(1)).expect("nobody looks at it");
    assert_eq!(inbox.take_answer(), None);
    inbox.put_answer(next, done(2)).expect("there is room");
    assert_eq!(inbox.take_answer(), Some(done(2)));
}
