use shared_sandbox::{Command, Exec, Signal, TerminalSize};

use super::*;

const SIZE: TerminalSize = TerminalSize {
    rows: 24,
    columns: 80,
};

fn of(input: bool, terminal: bool) -> Passing {
    Passing::begin(&Request::Exec(Exec {
        input,
        terminal: terminal.then_some(SIZE),
        ..Exec::new(Command::Shell("cat".into()))
    }))
}

fn piece(offset: u64, data: &'static [u8], end: bool) -> Option<Input> {
    let data = Bytes::from_static(data);
    Some(Input { offset, data, end })
}

fn code(told: Option<Result<u64, Refusal>>) -> Option<RefusalCode> {
    told?.err().map(|refusal| refusal.code)
}

#[test]
fn what_was_passed_on_is_never_passed_on_again() {
    let mut passing = of(true, false);
    assert_eq!(
        passing.input(0, "abc".into(), false),
        piece(0, b"abc", false)
    );
    assert_eq!(passing.input(0, "abc".into(), false), None);
    assert_eq!(
        passing.input(1, "bcde".into(), false),
        piece(3, b"de", false)
    );
    assert_eq!(passing.input(5, "".into(), true), piece(5, b"", true));
    assert_eq!(passing.input(0, "abcde".into(), true), None);
    assert_eq!(passing.tell(), None, "nothing of this is refused");
}

#[test]
fn a_hole_is_refused_and_so_is_what_comes_after_the_end() {
    let mut passing = of(true, false);
    assert_eq!(passing.input(1, "b".into(), false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
    assert_eq!(passing.input(0, "ab".into(), true), piece(0, b"ab", true));
    assert_eq!(passing.input(2, "c".into(), false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
}

#[test]
fn no_more_than_a_window_is_passed_on_beyond_what_is_taken() {
    let mut passing = of(true, false);
    let chunk = Bytes::from_static(&[0; INPUT_CHUNK_BYTES]);
    let mut at = 0;
    while passing.input(at, chunk.clone(), false).is_some() {
        at += chunk.len() as u64;
    }
    assert_eq!(at, INPUT_WINDOW_BYTES);
    assert_eq!(code(passing.tell()), Some(RefusalCode::ResourceExhausted));
    passing.taken(1);
    assert_eq!(passing.tell(), Some(Ok(1)));
    assert!(passing.input(at, Bytes::from_static(b"x"), false).is_some());
    assert!(
        passing
            .input(at + 1, Bytes::from_static(b"x"), false)
            .is_none()
    );
}

#[test]
fn what_takes_no_input_and_has_no_terminal_refuses_both() {
    let mut passing = of(false, false);
    passing.attached();
    assert_eq!(passing.tell(), None);
    assert_eq!(passing.input(0, "abc".into(), false), None);
    assert_eq!(code(passing.tell()), Some(RefusalCode::Invalid));
    let answer = passing.control(1, Control::Resize(SIZE));
    assert!(
        matches!(answer, Decision::Answer(Err(refusal)) if refusal.code == RefusalCode::Invalid)
    );
    let signal = Control::Signal(Signal::Interrupt);
    assert_eq!(passing.control(2, signal), Decision::Do);
}

#[test]
fn a_resize_is_done_once_and_its_answer_is_given_as_often_as_it_is_asked_for() {
    let mut passing = of(false, true);
    let resize = Control::Resize(SIZE);
    assert_eq!(passing.control(5, resize), Decision::Do);
    assert_eq!(passing.control(5, resize), Decision::Wait);
    assert!(passing.controlled(5));
    assert!(!passing.controlled(5));
    assert_eq!(passing.control(5, resize), Decision::Answer(Ok(())));
    assert_eq!(
        passing.control(4, resize),
        Decision::Answer(Ok(())),
        "older"
    );
    assert_eq!(passing.control(6, resize), Decision::Do);
}

#[test]
fn the_answers_that_are_waited_for_are_bounded() {
    let mut passing = of(false, true);
    let resize = Control::Resize(SIZE);
    for id in 1..=MAX_CONTROLS_WAITING as u64 {
        assert_eq!(passing.control(id, resize), Decision::Do);
    }
    let one_more = passing.control(100, resize);
    assert!(
        matches!(one_more, Decision::Answer(Err(refusal)) if refusal.code == RefusalCode::ResourceExhausted)
    );
    assert!(passing.controlled(1));
    assert_eq!(passing.control(100, resize), Decision::Do);
}

#[test]
fn after_a_restart_nothing_is_said_of_input_before_it_is_known() {
    let mut passing = Passing::found(of(true, false).takes());
    passing.attached();
    assert_eq!(passing.tell(), None);
    passing.taken(7);
    assert_eq!(passing.tell(), Some(Ok(7)));
    assert_eq!(passing.input(5, "67x".into(), false), piece(7, b"x", false));
}
