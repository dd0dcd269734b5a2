use serde_json::json;
use shared_api::Live;
use shared_types::{
    Timestamp,
    event::{Answer, CallOutcome, Question, TodoItem, TodoState, TurnOutcome},
};

use super::script::{Fed, Script, said, shell, transcript, turn};
use crate::transcript::{Transcript, facts::Waits};

fn waits(transcript: &Transcript) -> String {
    let turn = transcript.facts().turn.as_ref();
    turn.map_or("nothing".to_owned(), |turn| turn.activity.what.words())
}

#[test]
fn the_status_says_what_a_turn_waits_for_at_each_step() {
    let mut script = Script::default();
    script
        .user("go")
        .answer(
            "",
            "",
            &[("Shell", shell("make")), ("Read", json!({"path": "a"}))],
        )
        .placed(0)
        .asked(1, Question::Plan { text: "x".into() })
        .approved(
            1,
            Answer::Allowed {
                command: None,
                rule: None,
                mode: None,
            },
        )
        .ended(0, CallOutcome::Completed, "")
        .ended(1, CallOutcome::Completed, "")
        .done();
    let mut transcript = Transcript::new();
    let mut seen = Vec::new();
    for event in &script.events {
        transcript.event(event);
        seen.push(waits(&transcript));
    }
    assert_eq!(
        seen,
        [
            "waiting for the server",
            "waiting for the model",
            "running Shell and 1 more",
            "running Shell and 1 more",
            "waiting for you",
            "running Shell and 1 more",
            "running Read",
            "waiting for the model",
            "nothing",
        ]
    );
}

#[test]
fn live_pieces_and_notices_are_signs_of_life_and_a_stop_outlasts_them() {
    let mut script = Script::default();
    script.user("go");
    let mut transcript = transcript(&script.fed());
    transcript.caught_up();
    transcript.time(Timestamp::from_micros(70_000_000));
    transcript.live(&said(turn(1), 1, 1, 0, 0, "hm", true));
    assert_eq!(waits(&transcript), "thinking");
    let since = transcript
        .facts()
        .turn
        .as_ref()
        .map(|turn| turn.activity.since);
    assert_eq!(since, Some(Timestamp::from_micros(70_000_000)));
    transcript.live(&said(turn(1), 1, 1, 1, 0, "ok", false));
    assert_eq!(waits(&transcript), "answering");
    transcript.live(&Live::Notice {
        turn: turn(1),
        text: "Retrying in 4 s (2 of 5)".into(),
    });
    assert_eq!(waits(&transcript), "Retrying in 4 s (2 of 5)");
    transcript.stopping();
    transcript.live(&said(turn(1), 1, 1, 1, 2, "!", false));
    let working = transcript.facts().turn.as_ref();
    assert_eq!(
        working.map(|of| of.activity.what.clone()),
        Some(Waits::Stop)
    );
}

#[test]
fn a_task_has_its_command_its_last_line_and_its_end() {
    let mut script = Script::default();
    script
        .user("serve")
        .answer("", "", &[("Shell", shell("make serve"))])
        .placed(0)
        .background(0, 1);
    let mut fed = script.fed();
    let operation = shared_types::OperationId::from_u128(1);
    fed.push(Fed::Live(Live::Output {
        turn: turn(1),
        step: 1,
        ordinal: 0,
        operation,
        stream: "stdout".into(),
        offset: 0,
        text: "one\nlistening\u{1b}[0m on 80\n\n".into(),
        bytes: 30,
    }));
    let mut transcript = transcript(&fed);
    let task = transcript.facts().running_tasks().next().cloned();
    let task = task.expect("it runs");
    let said = (task.number, task.command.as_str(), task.last_line.as_str());
    assert_eq!(said, (1, "make serve", "listening on 80"));
    let settled = script.settled(1, "exit code 0").events.last();
    transcript.event(settled.expect("the event"));
    assert_eq!(transcript.facts().running_tasks().count(), 0);
}

#[test]
fn tokens_the_window_and_the_list_are_those_of_the_last_events() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "one", &[])
        .answer("", "two", &[]);
    script.todo(vec![TodoItem {
        text: "test".into(),
        state: TodoState::Doing,
    }]);
    let mut transcript = transcript(&script.fed());
    transcript.window(Some(21_000));
    let facts = transcript.facts();
    assert_eq!((facts.last.input, facts.output), (2000, 200));
    assert_eq!((facts.window_filled(), facts.todo.len()), (Some(10), 1));
    assert_eq!(facts.model, "gpt-5");
}

#[test]
fn questions_wait_until_they_are_answered_or_their_turn_ends() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("ask_user", json!({"question": "which?"}))])
        .asked(
            0,
            Question::Free {
                text: "which?".into(),
                choices: Vec::new(),
            },
        );
    assert_eq!(transcript(&script.fed()).facts().asked.len(), 1);
    script.turn_ended(TurnOutcome::Cancelled, None);
    assert!(transcript(&script.fed()).facts().asked.is_empty());
}
