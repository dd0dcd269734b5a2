use proptest::prelude::*;
use ratatui_core::text::Line;
use serde_json::json;
use shared_api::Live;
use shared_types::{
    OperationId, clean,
    event::{CallOutcome, Question, TodoItem, TodoState, TurnOutcome},
};

use super::{Flow, session::planned, session::session};
use crate::{
    paint::{Fold, changes::changes, item, question::asked, shown::plain},
    transcript::{
        Transcript,
        item::Note,
        tests::script::{Fed, Script, feed, said, transcript, turn},
    },
};

/// Text that tries to drive the terminal, to turn other text around, and to hide.
const EVIL: &str =
    "a\u{1b}[2J\u{1b}]0;title\u{7}b\u{202e}c\u{200b}d\u{9b}31me\r\u{8}f\u{e0041}g\u{2066}h";

fn is_raw(letter: char) -> bool {
    !clean::is_harmless(letter)
        || matches!(letter, '\u{200b}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

fn assert_harmless(lines: &[Line<'static>]) {
    let text = plain(lines);
    let raw: Vec<_> = text
        .chars()
        .filter(|letter| *letter != '\n' && is_raw(*letter))
        .collect();
    assert_eq!(raw, [], "{text}");
}

fn evil_session() -> Script {
    let mut script = Script::default();
    script.user(EVIL);
    let evil = json!({
        "command": EVIL, "path": EVIL, "pattern": EVIL, "content": EVIL, "old": EVIL, "new": "x",
        "query": EVIL, "url": EVIL, "question": EVIL, "plan": EVIL, "directory": EVIL, "files": EVIL,
    });
    const TOOLS: [&str; 12] = [
        "Shell",
        "Read",
        "Write",
        "Edit",
        "List",
        "Glob",
        "Grep",
        "web_fetch",
        "web_search",
        "ask_user",
        "present_plan",
        EVIL,
    ];
    for tool in TOOLS {
        script.answer(
            EVIL,
            &format!("{EVIL}\n\n&#x200b;&#27;[0m `{EVIL}`"),
            &[(tool, evil.clone())],
        );
        script.placed_on(0, EVIL);
        let outcome = match tool {
            "Read" | "Write" => CallOutcome::Failed,
            _ => CallOutcome::Completed,
        };
        script.ended(0, outcome, &format!("{EVIL}\n{EVIL}\n[exit code 0 {EVIL}]"));
    }
    script.todo(vec![TodoItem {
        text: EVIL.into(),
        state: TodoState::Doing,
    }]);
    script.turn_ended(TurnOutcome::Failed, Some(EVIL));
    script
}

#[test]
fn no_text_of_a_stranger_reaches_a_line_raw() {
    let script = evil_session();
    for fed in [
        script.fed(),
        script.fed_live(&[1, 2]),
        script.fed_live(&[500]),
    ] {
        let mut transcript = transcript(&fed);
        transcript.lost(EVIL);
        transcript.note(Note::quiet(EVIL));
        transcript.live(&said(turn(9), 1, 1, 0, 0, EVIL, false));
        let step = Flow::new().advance(&transcript, 70);
        assert_harmless(&step.printed);
        assert_harmless(&step.live);
        for fold in [Fold::Folded, Fold::Whole, Fold::Live] {
            transcript
                .items()
                .for_each(|of| assert_harmless(&item(of, 70, fold)));
        }
        assert_harmless(&changes(transcript.changes(), 70));
        let waits = transcript
            .facts()
            .tasks
            .iter()
            .map(|task| Line::from(task.command.clone()));
        assert_harmless(&waits.collect::<Vec<_>>());
    }
}

#[test]
fn a_question_shows_each_letter_of_what_will_run() {
    let mut call = planned(EVIL);
    call.paths.clear();
    call.rule = Some(EVIL.into());
    let shown = asked(&Question::Call(Box::new(call)), None, 70);
    assert_harmless(&shown);
    for part in ["␛[2J", "<U+202E>", "<U+200B>", "<U+E0041>", "␈"] {
        assert!(plain(&shown).contains(part), "{part}");
    }
    let free = Question::Free {
        text: EVIL.into(),
        choices: vec![EVIL.into()],
    };
    assert_harmless(&asked(&free, None, 70));
    assert_harmless(&asked(&Question::Plan { text: EVIL.into() }, None, 70));
}

/// Any piece of any part of a session, of which much makes no sense.
fn any_live() -> impl Strategy<Value = Live> {
    let place = (0_u128..4, 0_u32..4, 0_u32..4, 0_u64..30);
    let text = prop_oneof![".{0,30}", "[a-z\n`#*-]{0,30}", Just(EVIL.to_owned())];
    (0..6, place, text).prop_map(|(kind, (of, step, part, offset), text)| match kind {
        0 => said(turn(of), step, part, part, offset, &text, true),
        1 => said(turn(of), step, part, part, offset, &text, false),
        2 => Live::Output {
            turn: turn(of),
            step,
            ordinal: part,
            operation: OperationId::from_u128(of),
            stream: ["stdout", "stderr"][step as usize % 2].into(),
            offset,
            bytes: text.len() as u64,
            text,
        },
        3 => Live::Gap {
            turn: turn(of),
            step,
            ordinal: part,
            operation: OperationId::from_u128(of),
            stream: "stdout".into(),
            from: 0,
            to: offset,
        },
        4 => Live::TakenBack {
            turn: turn(of),
            step,
            attempt: part,
        },
        _ => Live::Notice {
            turn: turn(of),
            text,
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn events_and_pieces_in_any_order_never_panic(
        live in proptest::collection::vec(any_live(), 0..80),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 120),
        widths in proptest::collection::vec(0_usize..100, 1..10),
    ) {
        let events = session(30).events.into_iter().chain(evil_session().events).map(Fed::Event);
        let all: Vec<_> = events.chain(live.into_iter().map(Fed::Live)).collect();
        let (mut transcript, mut flow) = (Transcript::new(), Flow::new());
        for (seq, index) in (1..).zip(&order) {
            let mut fed = index.get(&all).clone();
            if let Fed::Event(event) = &mut fed {
                event.seq = seq;
            }
            feed(&mut transcript, &fed);
            let columns = widths[seq as usize % widths.len()];
            let step = flow.advance(&transcript, columns);
            assert_harmless(&step.printed);
            assert_harmless(&step.live);
            transcript.printed(flow.next());
        }
    }
}
