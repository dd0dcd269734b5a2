use bytes::Bytes;
use shared_sandbox::{Command, Exec, Signal};

use super::{super::progress::COMMIT_EVERY, *};

const ID: OperationId = OperationId::from_u128(1);

fn passing(input: bool) -> PassingControls {
    let exec = Exec {
        input,
        ..Exec::new(Command::Shell("cat".into()))
    };
    let mut passing = PassingControls::new(ID, Some(&Request::Exec(exec)));
    passing.attached();
    passing
}

fn piece(offset: u64, data: &'static [u8], end: bool) -> Input {
    let data = Bytes::from_static(data);
    Input { offset, data, end }
}

/// Every frame that there is, with ids from `first` on.
fn frames(passing: &mut PassingControls, first: u64) -> Vec<String> {
    frames_with(passing, &mut streams(), first)
}

fn streams() -> [OutputProgress; 2] {
    [0, 0].map(OutputProgress::after)
}

/// The same, with the commits of these streams.
fn frames_with(
    passing: &mut PassingControls,
    progress: &mut [OutputProgress; 2],
    first: u64,
) -> Vec<String> {
    let mut next = first;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    std::iter::from_fn(|| passing.next_frame(progress, &mut fresh))
        .map(|kind| match kind {
            server_frame::Kind::Input(input) => {
                let end = if input.end { " end" } else { "" };
                format!("input {}+{}{end}", input.offset, input.data.len())
            }
            server_frame::Kind::Signal(signal) => format!("signal {}", signal.id),
            server_frame::Kind::Commit(commit) => format!("commit {}", commit.up_to),
            other => panic!("unexpected {other:?}"),
        })
        .collect()
}

#[test]
fn input_is_sent_once_the_runner_says_where_it_stands_and_again_over_the_next_link() {
    let mut passing = passing(true);
    assert!(!passing.takes_input(), "nobody knows where it stands");
    assert_eq!(passing.answer(ControlAnswer::InputTaken(0)), None);
    assert_eq!(passing.tell(), Some(0));
    assert_eq!(passing.input(&piece(0, b"abcd", true)), Ok(4));
    assert_eq!(frames(&mut passing, 1), ["input 0+4 end"]);
    passing.attached();
    assert_eq!(frames(&mut passing, 1), [""; 0]);
    passing.answer(ControlAnswer::InputTaken(3));
    assert_eq!(passing.tell(), Some(3));
    assert_eq!(passing.tell(), None);
    assert_eq!(frames(&mut passing, 1), ["input 3+1 end"]);
}

#[test]
fn what_is_to_be_done_keeps_its_id_until_it_is_answered() {
    let mut passing = passing(false);
    passing.control(70, Control::Signal(Signal::Interrupt));
    passing.control(71, Control::Signal(Signal::Terminate));
    assert_eq!(frames(&mut passing, 5), ["signal 5", "signal 6"]);
    let done = passing.answer(ControlAnswer::Done {
        id: 5,
        result: Ok(()),
    });
    assert_eq!(done.map(|controlled| controlled.key), Some(70));
    passing.attached();
    assert_eq!(frames(&mut passing, 9), ["signal 6"]);
    let unknown = ControlAnswer::Done {
        id: 5,
        result: Ok(()),
    };
    assert_eq!(passing.answer(unknown), None);
}

#[test]
fn commits_never_decrease_and_are_sent_anew_over_each_link() {
    let (mut passing, mut progress) = (passing(false), streams());
    progress[0].commit(2 * COMMIT_EVERY);
    progress[0].commit(5);
    let expected = format!("commit {}", 2 * COMMIT_EVERY);
    assert_eq!(frames_with(&mut passing, &mut progress, 1), [expected]);
    progress[0].commit(2 * COMMIT_EVERY + 1);
    let none = frames_with(&mut passing, &mut progress, 1);
    assert_eq!(none, [""; 0], "it is not worth a frame");
    progress[0].attached();
    let all = format!("commit {}", 2 * COMMIT_EVERY + 1);
    assert_eq!(frames_with(&mut passing, &mut progress, 1), [all]);
}

#[test]
fn a_commit_of_more_than_there_can_be_is_sent_once() {
    let (mut passing, mut progress) = (passing(false), streams());
    progress[0].commit(u64::MAX);
    let all = format!("commit {}", u64::MAX);
    assert_eq!(frames_with(&mut passing, &mut progress, 1), [all]);
}

#[test]
fn input_to_what_takes_none_is_refused_here_and_a_refusal_of_the_runner_is_told() {
    let mut none = passing(false);
    let refused = none
        .input(&piece(0, b"a", false))
        .map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(RefusalCode::Invalid));
    let mut some = passing(true);
    let refusal = Refusal::new(RefusalCode::Invalid, "no");
    some.answer(ControlAnswer::InputRefused(refusal.clone()));
    assert!(some.takes_input());
    assert_eq!(some.input(&piece(0, b"a", false)), Err(refusal));
}
