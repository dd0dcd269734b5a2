use serde_json::json;
use shared_api::Live;
use shared_types::event::{CallOutcome, TurnOutcome};

use super::script::{Fed, Script, said, shell, transcript, turn};
use crate::transcript::{
    MOST_KEPT, Transcript,
    item::{Kind, Note, Sent, State},
};

fn texts(transcript: &Transcript) -> Vec<String> {
    let said = transcript.items().filter_map(|item| match &item.kind {
        Kind::Thought(speech) if !speech.is_void => Some(format!("thought {}", speech.text)),
        Kind::Answer(speech) if !speech.is_void => Some(speech.text.clone()),
        _ => None,
    });
    said.collect()
}

#[test]
fn a_higher_attempt_replaces_the_text_and_a_lower_one_is_dropped() {
    let mut transcript = transcript(&Script::default().user("go").fed());
    transcript.live(&said(turn(1), 1, 1, 0, 0, "first", false));
    transcript.live(&said(turn(1), 1, 2, 0, 0, "second", false));
    transcript.live(&said(turn(1), 1, 1, 0, 5, " again", false));
    assert_eq!(texts(&transcript), ["second"]);
    transcript.live(&Live::TakenBack {
        turn: turn(1),
        step: 1,
        attempt: 2,
    });
    assert_eq!(texts(&transcript), [""; 0]);
}

#[test]
fn pieces_that_repeat_or_leave_a_gap_are_dropped_by_their_offset() {
    let mut transcript = transcript(&Script::default().user("go").fed());
    for (offset, text) in [(0, "grü"), (0, "grü"), (2, "üß"), (6, "e"), (9, "lost")] {
        transcript.live(&said(turn(1), 1, 1, 0, offset, text, false));
    }
    assert_eq!(texts(&transcript), ["grüße"]);
}

#[test]
fn the_record_completes_what_was_heard_and_late_pieces_change_nothing() {
    let mut script = Script::default();
    script.user("go");
    let mut fed = script.fed();
    fed.push(Fed::Live(said(turn(1), 1, 1, 1, 0, "the ans", false)));
    script.answer("hm", "the answer", &[]);
    fed.push(script.fed().pop().expect("the answer"));
    fed.push(Fed::Live(said(turn(1), 1, 1, 1, 7, "wer", false)));
    assert_eq!(texts(&transcript(&fed)), ["the answer", "thought hm"]);
}

#[test]
fn a_message_says_whether_it_waits_or_steers_and_who_sent_it() {
    let mut script = Script::default();
    script.user("one").user("two").done();
    let mut transcript = Transcript::new();
    transcript.me(super::script::user(9));
    transcript.person(super::script::user(1), "kim");
    script
        .events
        .iter()
        .for_each(|event| transcript.event(event));
    let sent = transcript.items().filter_map(|item| match &item.kind {
        Kind::User(message) => Some((message.sent, message.by.as_deref())),
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    assert_eq!(
        sent,
        [(Sent::Now, Some("kim")), (Sent::Queued, Some("kim"))]
    );
}

#[test]
fn calls_that_have_not_ended_are_left_when_their_turn_ends() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("sleep 9"))])
        .placed(0)
        .turn_ended(TurnOutcome::Failed, Some("the server stopped"));
    let transcript = transcript(&script.fed());
    assert!(transcript.items().all(|item| !item.is_open));
    let is_left = |kind: &Kind| matches!(kind, Kind::Call(call) if call.state == State::Left);
    assert!(transcript.items().any(|item| is_left(&item.kind)));
}

#[test]
fn edits_and_writes_that_ended_well_are_the_changes_by_file() {
    let edit = json!({"path": "a.rs", "old": "x", "new": "y"});
    let write = json!({"path": "b.rs", "content": "z"});
    let mut script = Script::default();
    script
        .user("go")
        .call("Edit", edit.clone(), "edited a.rs at line 1")
        .call("Write", write, "made b.rs with 1 bytes")
        .call("Edit", edit.clone(), "edited a.rs at line 1")
        .answer("", "", &[("Edit", edit)])
        .ended(0, CallOutcome::Failed, "failed: not found");
    let transcript = transcript(&script.fed());
    let files = transcript.changes().by_file();
    let files: Vec<_> = files
        .iter()
        .map(|file| (file.path, file.changes.len()))
        .collect();
    assert_eq!(files, [("a.rs", 2), ("b.rs", 1)]);
}

#[test]
fn only_printed_items_are_forgotten_and_the_last_ones_are_kept() {
    let mut transcript = Transcript::new();
    for number in 0..MOST_KEPT + 100 {
        transcript.note(Note::quiet(number.to_string()));
    }
    assert_eq!(transcript.first(), 0);
    transcript.printed(50);
    assert_eq!(transcript.first(), 50);
    transcript.printed(u64::MAX);
    assert_eq!(
        (transcript.first(), transcript.items().count()),
        (100, MOST_KEPT)
    );
}

#[test]
fn large_items_are_forgotten_before_they_are_many() {
    let mut transcript = Transcript::new();
    for _ in 0..40 {
        transcript.note(Note::quiet("x".repeat(1 << 20)));
        transcript.printed(transcript.next());
    }
    assert_eq!(transcript.items().count(), 31);
}

#[test]
fn output_whose_end_was_not_seen_is_taken_from_the_log() {
    let mut script = Script::default();
    script
        .user("go")
        .answer("", "", &[("Shell", shell("make"))])
        .placed(0)
        .ended(0, CallOutcome::Completed, "one\ntwo\nthree\n[exit code 0]");
    let whole = script.fed_live(&[4]);
    let lines = |fed: &[Fed]| {
        let transcript = transcript(fed);
        let calls = transcript.items().find_map(|item| match &item.kind {
            Kind::Call(call) => Some(call.output.lines()),
            _ => None,
        });
        calls.expect("a call")
    };
    let mut lost = whole.clone();
    lost.remove(lost.len() - 2);
    assert!(lost.len() + 1 == whole.len() && lines(&lost) == lines(&script.fed()));
    assert_eq!(lines(&whole), lines(&script.fed()));
}
