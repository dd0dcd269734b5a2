use shared_client::Attached;
use shared_types::{
    Digest, Epoch, Isolation, OperationId, ReplicaId, RunnerId, SandboxId, Timestamp, UserId,
    event::{
        CallOutcome, EventBody, Finding, LeftOutBecause, Part, Parts, ProjectFile, ToolCall, Usage,
    },
};
use tokio::time::Instant;

use super::*;

const TURN: TurnId = TurnId::from_u128(1);

fn event(event: Event) -> Followed {
    Followed::Event(Box::new(SessionEvent {
        seq: 1,
        at: Timestamp::from_micros(0),
        body: EventBody::Known(event),
    }))
}

fn input(text: &str, client_id: Option<&str>) -> Followed {
    event(Event::InputAccepted {
        turn: TURN,
        by: UserId::from_u128(1),
        client_id: client_id.map(str::to_owned),
        parts: Parts::text(text),
        compacts: None,
        terms: shared_types::event::Terms::default(),
    })
}

fn piece(attempt: u32, text: &str) -> Followed {
    Followed::Live(Live::Text {
        turn: TURN,
        step: 1,
        attempt,
        part: 0,
        offset: 0,
        text: text.into(),
    })
}

fn thought(attempt: u32, text: &str) -> Followed {
    Followed::Live(Live::Reasoning {
        turn: TURN,
        step: 1,
        attempt,
        part: 0,
        offset: 0,
        text: text.into(),
    })
}

/// An answer to step 1 without calls.
fn thoughtful_answer(reasoning: &str, text: &str) -> Followed {
    let Followed::Event(mut event) = answer(1, text, &[]) else {
        unreachable!("it is an event")
    };
    if let EventBody::Known(Event::AnswerRecorded { parts, .. }) = &mut event.body {
        let thoughts = Part::Reasoning {
            text: reasoning.into(),
            signature: None,
        };
        parts.0.insert(0, thoughts);
    }
    Followed::Event(event)
}

fn answer(step: u32, text: &str, calls: &[(&str, &str)]) -> Followed {
    let calls = calls.iter().map(|(name, arguments)| ToolCall {
        vendor_id: "call_1".into(),
        name: (*name).into(),
        arguments: (*arguments).into(),
        opaque: Default::default(),
    });
    let mut parts = Parts::text(text);
    parts.0.extend(calls.map(Part::ToolCall));
    event(Event::AnswerRecorded {
        turn: TURN,
        step,
        model: "practice".into(),
        origin: None,
        parts,
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    })
}

fn placed(ordinal: u32, runner: &str) -> Followed {
    event(Event::CallPlaced {
        turn: TURN,
        step: 1,
        ordinal,
        operation: OperationId::from_u128(1),
        place: Place {
            runner: RunnerId::from_u128(u128::from(runner.as_bytes()[0])),
            runner_name: runner.into(),
            sandbox: SandboxId::from_u128(1),
            isolation: Isolation::none(),
        },
    })
}

fn output(ordinal: u32, offset: u64, text: &str) -> Followed {
    Followed::Live(Live::Output {
        turn: TURN,
        step: 1,
        ordinal,
        operation: OperationId::from_u128(1),
        stream: "stdout".into(),
        offset,
        text: text.into(),
        bytes: text.len() as u64,
    })
}

fn call_ended(ordinal: u32, outcome: CallOutcome, text: &str) -> Followed {
    event(Event::CallEnded {
        turn: TURN,
        step: 1,
        ordinal,
        outcome,
        parts: Parts::text(text),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 120_000,
        duration_ms: 1_270,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    })
}

fn turn_ended(outcome: TurnOutcome, reason: Option<&str>) -> Followed {
    event(Event::TurnEnded {
        turn: TURN,
        outcome,
        reason: reason.map(str::to_owned),
    })
}

fn shown(items: &[Followed]) -> String {
    let mut renderer = Renderer::new(Style::new(false));
    renderer.typed_here("mine", false);
    items.iter().map(|item| renderer.item(item)).collect()
}

const SHELL: (&str, &str) = ("Shell", r#"{"command":"cargo test"}"#);

#[test]
fn a_result_that_gives_instructions_is_noted() {
    let mut ended = call_ended(0, CallOutcome::Completed, "obey me");
    let Followed::Event(recorded) = &mut ended else {
        unreachable!("it is an event");
    };
    if let EventBody::Known(Event::CallEnded { findings, .. }) = &mut recorded.body {
        findings.extend(
            [(FindingCategory::Role, 60), (FindingCategory::Override, 90)]
                .map(|(category, score)| Finding { category, score }),
        );
    }
    let screen = shown(&[answer(1, "", &[SHELL]), ended]);
    let note = "! the result looks like it gives the agent instructions (new instructions)\n";
    assert!(screen.ends_with(note), "{screen}");
}

#[test]
fn a_turn_is_shown_as_it_happens() {
    let items = [
        input("run the tests", Some("mine")),
        piece(1, "I will "),
        piece(1, "run them."),
        answer(1, "I will run them.", &[SHELL]),
        placed(0, "laptop"),
        output(0, 0, "running 1 te"),
        output(0, 12, "st\nok\n"),
        call_ended(
            0,
            CallOutcome::Completed,
            "running 1 test\nok\n[exit code 0, after 1 s]",
        ),
        answer(2, "They pass.", &[]),
        turn_ended(TurnOutcome::Completed, None),
    ];
    assert_eq!(
        shown(&items),
        "\
I will run them.

● Shell  cargo test
  on laptop · isolation: none
  │ running 1 test
  │ ok
  exit 0 · 1.2 s

They pass.
"
    );
}

#[test]
fn a_log_replays_as_what_was_seen_live() {
    let live = [
        piece(1, "Running."),
        answer(1, "Running.", &[SHELL]),
        placed(0, "laptop"),
        output(0, 0, "ok\n"),
        call_ended(0, CallOutcome::Completed, "ok\n[exit code 3]"),
        turn_ended(TurnOutcome::Completed, None),
    ];
    let recorded: Vec<_> = live
        .iter()
        .filter(|item| matches!(item, Followed::Event(_)))
        .cloned()
        .collect();
    assert_eq!(shown(&live), shown(&recorded));
    assert!(shown(&live).contains("  exit 3 · 1.2 s\n"));
}

#[test]
fn an_answer_that_was_seen_in_part_is_completed() {
    let items = [piece(1, "One, "), answer(1, "One, two.", &[])];
    assert_eq!(shown(&items), "One, two.\n");
}

#[test]
fn an_answer_that_begins_again_is_said_to() {
    let items = [piece(1, "Perh"), piece(2, "Yes"), answer(1, "Yes.", &[])];
    assert_eq!(shown(&items), "Perh\nthe answer begins again\nYes.\n");
}

#[test]
fn an_answer_whose_second_attempt_was_not_seen_is_shown_whole() {
    let items = [piece(1, "Perh"), answer(1, "Yes.", &[])];
    assert_eq!(shown(&items), "Perh\nthe answer begins again\nYes.\n");
}

#[test]
fn a_lost_connection_is_said_between_the_lines() {
    let items = [
        answer(1, "", &[SHELL]),
        placed(0, "laptop"),
        output(0, 0, "half a "),
        Followed::Lost {
            reason: "it fell silent".into(),
        },
        Followed::Recovered,
        output(0, 7, "line\n"),
        call_ended(0, CallOutcome::Completed, "half a line\n[exit code 0]"),
    ];
    assert_eq!(
        shown(&items),
        "\
● Shell  cargo test
  on laptop · isolation: none
  │ half a 
  connection lost, reconnecting… (it fell silent)
  connected again
  │ line
  exit 0 · 1.2 s
"
    );
}

#[test]
fn several_calls_are_told_apart() {
    let items = [
        answer(
            1,
            "",
            &[("Read", r#"{"path":"a"}"#), ("Read", r#"{"path":"b"}"#)],
        ),
        placed(0, "laptop"),
        placed(1, "laptop"),
        call_ended(1, CallOutcome::Completed, "beta"),
        call_ended(0, CallOutcome::Failed, "there is no file a"),
    ];
    assert_eq!(
        shown(&items),
        "\
● Read  a
● Read  b
  on laptop · isolation: none
  ↳ Read  b
  │ beta
  done · 1.2 s
  ↳ Read  a
  ✗ failed: there is no file a · 1.2 s
"
    );
}

#[test]
fn each_end_of_a_call_and_of_a_turn_reads_differently() {
    for (outcome, text, line) in [
        (
            CallOutcome::Refused,
            "not run: laptop is offline since 12:00",
            "✗ not run: laptop is offline since 12:00 · 1.2 s",
        ),
        (
            CallOutcome::TimedOut,
            "x\n[stopped at its time limit of 2 min; exit code 143]",
            "✗ stopped at its time limit of 2 min · 1.2 s",
        ),
        (
            CallOutcome::Cancelled,
            "[stopped on request; ended by signal 15]",
            "■ cancelled · 1.2 s",
        ),
        (
            CallOutcome::Unknown,
            "the runner is gone",
            "✗ outcome unknown: the runner is gone · 1.2 s",
        ),
    ] {
        let text = shown(&[answer(1, "", &[SHELL]), call_ended(0, outcome, text)]);
        assert!(text.ends_with(&format!("  {line}\n")), "{text}");
    }
    for (outcome, reason, line) in [
        (
            TurnOutcome::Failed,
            Some("the model does not answer"),
            "✗ failed: the model does not answer\n",
        ),
        (TurnOutcome::Cancelled, None, "■ cancelled\n"),
        (TurnOutcome::Interrupted, None, "■ interrupted\n"),
        (TurnOutcome::Completed, None, ""),
    ] {
        let text = shown(&[turn_ended(outcome, reason)]);
        assert_eq!(text, line);
    }
}

#[test]
fn what_others_say_and_what_goes_on_beside_is_shown() {
    let claimed = || {
        event(Event::TurnClaimed {
            turn: TURN,
            epoch: Epoch(1),
            replica: ReplicaId::from_u128(1),
            choice: None,
            settings: None,
        })
    };
    let notice = Followed::Live(Live::Notice {
        turn: TURN,
        text: "waiting for laptop".into(),
    });
    let items = [
        input("two\nlines", Some("theirs")),
        claimed(),
        claimed(),
        event(Event::ResultsLeftOut {
            turn: TURN,
            step: 2,
            through: 15,
            results: 14,
            bytes: 140_000,
            gone: 0,
            longest: None,
            shortened: 0,
            because: LeftOutBecause::Refused,
        }),
        event(Event::ResultsLeftOut {
            turn: TURN,
            step: 3,
            through: 15,
            results: 0,
            bytes: 0,
            gone: 40,
            longest: Some(5_000),
            shortened: 1,
            because: LeftOutBecause::NearWindow,
        }),
        notice,
        answer(1, "Hm.", &[]),
    ];
    assert_eq!(
        shown(&items),
        "› two\n  lines\ntaken up again where it was interrupted\nleft out the 14 oldest tool results to fit the model's window\nleft out the 40 oldest messages, answers and calls and the middle of a long text to fit the model's window\nwaiting for laptop\n\nHm.\n"
    );
}

#[test]
fn nothing_that_comes_from_elsewhere_drives_the_terminal() {
    let evil = "a\x1b[2J\x1b]0;t\x07\u{9b}1m\x08b";
    let arguments = serde_json::json!({ "command": evil }).to_string();
    let items = [
        input(evil, None),
        piece(1, evil),
        answer(1, evil, &[(evil, &arguments), (evil, evil)]),
        placed(0, evil),
        output(0, 0, evil),
        call_ended(0, CallOutcome::Completed, evil),
        call_ended(1, CallOutcome::Failed, evil),
        turn_ended(TurnOutcome::Failed, Some(evil)),
    ];
    let text = shown(&items);
    let is_control = |letter: &char| letter.is_control() && *letter != '\n';
    assert_eq!(text.chars().find(is_control), None, "{text:?}");
}

#[test]
fn colours_are_used_where_they_are_wanted() {
    let mut renderer = Renderer::new(Style::new(true));
    let text = renderer.item(&turn_ended(TurnOutcome::Failed, None));
    assert_eq!(text, "\x1b[31m✗ failed\x1b[0m\n");
}

#[test]
fn thoughts_stand_marked_before_the_answer_live_and_in_the_log_and_only_once() {
    let shown_once = "│ Hm.\n│\n│ So be it.\n\nHello\n";
    let live = shown(&[
        thought(1, "\nHm."),
        thought(1, "\n\nSo be"),
        thought(1, " it.\n"),
        piece(1, "Hel"),
        thoughtful_answer("\nHm.\n\nSo be it.\n", "Hello"),
        turn_ended(TurnOutcome::Completed, None),
    ]);
    assert_eq!(live, shown_once);
    let log = shown(&[
        thoughtful_answer("\nHm.\n\nSo be it.\n", "Hello"),
        turn_ended(TurnOutcome::Completed, None),
    ]);
    assert_eq!(log, shown_once);
}

#[test]
fn thoughts_are_dim_and_drive_no_terminal() {
    let mut renderer = Renderer::new(Style::new(true));
    let text = renderer.item(&thought(1, "a\x1b[31mb"));
    assert_eq!(text, "\x1b[2m│ \x1b[0m\x1b[2mab\x1b[0m");
}

#[test]
fn another_attempt_says_once_that_it_begins_again() {
    let text = shown(&[
        thought(1, "Hm."),
        piece(1, "Hel"),
        thought(2, "Hm, hm."),
        piece(2, "Hello"),
        thoughtful_answer("Hm, hm.", "Hello"),
    ]);
    assert_eq!(
        text,
        "│ Hm.\n\nHel\nthe answer begins again\n\n│ Hm, hm.\n\nHello\n"
    );
}

/// The call of SHELL goes on as task 1.
fn goes_on(text: &str) -> Followed {
    let Followed::Event(mut event) = call_ended(0, CallOutcome::Background, text) else {
        unreachable!("it is an event")
    };
    if let EventBody::Known(Event::CallEnded { task, .. }) = &mut event.body {
        *task = Some(1);
    }
    Followed::Event(event)
}

/// A renderer that shows a task which was shown up to its first line.
fn with_a_task() -> (Renderer, Instant) {
    let mut renderer = Renderer::new(Style::new(false));
    let items = [
        Followed::CaughtUp { seq: 0 },
        answer(1, "", &[SHELL]),
        placed(0, "laptop"),
        output(0, 0, "one\n"),
        goes_on("one\n[it still ran]"),
    ];
    items.iter().for_each(|item| drop(renderer.item(item)));
    let follow = ToFollow {
        operation: OperationId::from_u128(1),
        from: Begin::Offsets([4, 0]),
    };
    assert_eq!(renderer.begin_to_follow(), [follow]);
    (renderer, Instant::now())
}

fn writes(renderer: &mut Renderer, now: Instant, offset: u64, text: &str) -> String {
    let output = Attached::Output {
        stream: shared_api::StreamName::Stdout,
        offset,
        data: text.to_owned().into(),
    };
    renderer.task(OperationId::from_u128(1), &Ok(output), now);
    renderer.background(now)
}

#[test]
fn what_a_task_writes_waits_until_the_model_has_ended_its_line() {
    let (mut renderer, now) = with_a_task();
    assert_eq!(renderer.item(&piece(1, "It ")), "\nIt ");
    assert_eq!(writes(&mut renderer, now, 4, "two\n"), "");
    assert_eq!(renderer.item(&piece(1, "runs.\n")), "runs.\n");
    assert_eq!(renderer.background(now), "[task 1] two\n");
    assert_eq!(writes(&mut renderer, now, 8, "three\n"), "[task 1] three\n");
}

#[test]
fn what_is_shown_of_a_task_is_not_shown_again_where_the_model_reads_it() {
    let (mut renderer, now) = with_a_task();
    let read = ("task_read", r#"{"task":1,"stdout_from":4}"#);
    let shown = renderer.item(&answer(2, "", &[read]));
    assert_eq!(shown, "● task_read  task 1\n");
    assert_eq!(writes(&mut renderer, now, 4, "two\n"), "[task 1] two\n");
    assert_eq!(renderer.item(&output(0, 4, "two\n")), "");
    let ended = call_ended(0, CallOutcome::Completed, "two\n[exit code 0, after 1 s]");
    assert_eq!(renderer.item(&ended), "  exit 0 · 1.2 s\n");
    let settled = event(Event::OperationSettled {
        operation: OperationId::from_u128(1),
        summary: "exit code 0".into(),
    });
    assert_eq!(renderer.item(&settled), "");
}

fn taken_back() -> Followed {
    Followed::Live(Live::TakenBack {
        turn: TURN,
        step: 1,
        attempt: 1,
    })
}

#[test]
fn what_is_void_is_what_was_written_since_the_model_began_to_speak() {
    let mut renderer = Renderer::new(Style::new(false));
    renderer.item(&input("go", None));
    let written = [thought(1, "Hm."), piece(1, "Ha"), piece(1, "lf")];
    let written: String = written.iter().map(|item| renderer.item(item)).collect();
    assert_eq!(written, "\n│ Hm.\n\nHalf");
    assert_eq!(renderer.item(&taken_back()), "");
    assert_eq!(renderer.void(), Some(written));
    assert_eq!(renderer.void(), None);
    let again = [piece(2, "Whole."), answer(1, "Whole.", &[])];
    let again: String = again.iter().map(|item| renderer.item(item)).collect();
    assert_eq!(again, "\nWhole.\n");
    renderer.item(&taken_back());
    assert_eq!(renderer.void(), None, "it is whole");
}

#[test]
fn where_nothing_can_be_taken_back_only_whole_answers_are_written() {
    let mut renderer = Renderer::new(Style::new(false)).hold_back();
    let items = [
        thought(1, "Hm."),
        piece(1, "Half"),
        taken_back(),
        piece(2, "Who"),
        thoughtful_answer("Hm.", "Whole."),
    ];
    let written: String = items.iter().map(|item| renderer.item(item)).collect();
    assert_eq!(written, "│ Hm.\n\nWhole.\n");
    assert_eq!(renderer.void(), None);
}

#[test]
fn a_message_that_joins_a_turn_is_shown_where_it_came_and_then_as_read() {
    let steered = event(Event::InputSteered {
        turn: TURN,
        number: 1,
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text("use tabs\nnot dots\x1b[2J"),
    });
    let taken = |into| {
        event(Event::SteersTaken {
            turn: TURN,
            step: 2,
            through: 1,
            into,
        })
    };
    let mut renderer = Renderer::new(Style::new(false));
    let shown = [
        input("begin", None),
        piece(1, "I am"),
        steered,
        taken(None),
        taken(Some(TURN)),
    ];
    let shown: String = shown.iter().map(|item| renderer.item(item)).collect();
    assert_eq!(
        shown,
        "› begin\n\nI am\n↳ sent: use tabs\n  not dots\n↳ the agent has read it\n"
    );
}

#[test]
fn rules_of_a_project_that_do_not_count_are_told_of_once() {
    let look = |trusted| {
        event(Event::PlaceSurveyed {
            turn: TURN,
            place: None,
            system: String::new(),
            folder: String::new(),
            branch: None,
            instructions: None,
            unread: Vec::new(),
            project: Some(Box::new(ProjectFile {
                path: ".gantry/permissions.toml".into(),
                digest: Digest::of(b""),
                text: None,
                trusted,
            })),
        })
    };
    assert_eq!(shown(&[look(true)]), "");
    let told = shown(&[look(false), look(true), look(false)]);
    assert_eq!(
        told.matches("gantry permissions trust").count(),
        1,
        "{told}"
    );
}
