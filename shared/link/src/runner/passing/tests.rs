use bytes::Bytes;
use shared_sandbox::{Command, Exec, Signal, TerminalSize};

use super::*;

const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

fn of(input: bool, terminal: bool) -> PassingOrders {
    PassingOrders::begin(&Request::Exec(Exec {
        input,
        terminal: terminal.then_some(SIZE),
        ..Exec::new(Command::Shell("cat".into()))
    }))
}

fn piece(offset: u64, data: &'static [u8], end: bool) -> Option<Input> {
    let data = Bytes::from_static(data);
    Some(Input { offset, data, end })
}

/// Input for a process.
fn input(
    passing: &mut PassingOrders,
    offset: u64,
    data: &'static [u8],
    end: bool,
) -> Option<Input> {
    passing.input(piece(offset, data, end)?)
}

fn code(told: Option<Result<u64, Refusal>>) -> Option<RefusalCode> {
    told?.err().map(|refusal| refusal.code)
}

#[test]
fn what_was_passed_on_is_never_passed_on_again() {
    let mut passing = of(true, false);
    assert_eq!(
        input(&mut passing, 0, b"abc", false),
        piece(0, b"abc", false)
    );
    assert_eq!(input(&mut passing, 0, b"abc", false), None);
    assert_eq!(
        input(&mut passing, 1, b"bcde", false),
        piece(3, b"de", false)
    );
    assert_eq!(input(&mut passing, 5, b"", true), piece(5, b"", true));
    assert_eq!(input(&mut passing, 0, b"abcde", true), None);
    assert_eq!(passing.tell(), None, "nothing of this is refused");
}

#[test]
fn a_hole_is_refused_and_so_is_what_comes_after_the_end() {
    let mut passing = of(true, false);
    assert_eq!(input(&mut passing, 1, b"b", false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
    assert_eq!(input(&mut passing, 0, b"ab", true), piece(0, b"ab", true));
    assert_eq!(input(&mut passing, 2, b"c", false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
}

#[test]
fn no_more_than_a_window_is_passed_on_beyond_what_is_taken() {
    let mut passing = of(true, false);
    let chunk = &[0; INPUT_CHUNK_BYTES];
    let mut at = 0;
    while input(&mut passing, at, chunk, false).is_some() {
        at += chunk.len() as u64;
    }
    assert_eq!(at, INPUT_WINDOW_BYTES);
    assert_eq!(code(passing.tell()), Some(RefusalCode::ResourceExhausted));
    passing.taken(1);
    assert_eq!(passing.tell(), Some(Ok(1)));
    assert!(input(&mut passing, at, b"x", false).is_some());
    assert!(input(&mut passing, at + 1, b"x", false).is_none());
}

#[test]
fn what_takes_no_input_and_has_no_terminal_refuses_both() {
    let mut passing = of(false, false);
    passing.attached();
    assert_eq!(passing.tell(), None);
    assert_eq!(input(&mut passing, 0, b"abc", false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
    let answer = passing.control(1, Control::Resize(SIZE));
    assert!(
        matches!(answer, PassingDecision::Answer(Err(refusal)) if refusal.code == RefusalCode::Invalid)
    );
    let signal = Control::Signal(Signal::Interrupt);
    assert_eq!(passing.control(2, signal), PassingDecision::Do);
}

#[test]
fn of_a_resize_that_is_sent_again_the_supervisor_says_what_became_of_it() {
    let mut passing = of(false, true);
    let resize = Control::Resize(SIZE);
    assert_eq!(passing.control(5, resize), PassingDecision::Do);
    assert_eq!(passing.control(5, resize), PassingDecision::Wait);
    assert!(passing.controlled(5));
    assert!(!passing.controlled(5));
    // Whether a later one was done first, or this one before a restart, is not known here.
    for id in [5, 4, 6] {
        assert_eq!(passing.control(id, resize), PassingDecision::Do);
        assert!(passing.controlled(id));
    }
}

#[test]
fn the_answers_that_are_waited_for_are_bounded() {
    let mut passing = of(false, true);
    let resize = Control::Resize(SIZE);
    for id in 1..=MAX_CONTROLS_WAITING as u64 {
        assert_eq!(passing.control(id, resize), PassingDecision::Do);
    }
    let one_more = passing.control(100, resize);
    assert!(
        matches!(one_more, PassingDecision::Answer(Err(refusal)) if refusal.code == RefusalCode::ResourceExhausted)
    );
    assert!(passing.controlled(1));
    assert_eq!(passing.control(100, resize), PassingDecision::Do);
}

#[test]
fn after_a_restart_nothing_is_said_of_input_before_it_is_known() {
    let mut passing = PassingOrders::found(of(true, false).takes());
    passing.attached();
    assert_eq!(passing.tell(), None);
    passing.taken(7);
    assert_eq!(passing.tell(), Some(Ok(7)));
    assert_eq!(input(&mut passing, 5, b"67x", false), piece(7, b"x", false));
}
