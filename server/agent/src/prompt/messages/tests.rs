use std::time::Duration;

use proptest::prelude::*;
use serde_json::Map;
use shared_types::{
    Epoch, Event, Isolation, OperationId, ReplicaId, RunnerId, SandboxId, SessionEvent, Timestamp,
    UserId,
    event::{EventBody, Finish, Origin, Place, ToolCall, TurnOutcome, Usage},
};

use super::*;
use crate::testing::{model, said};

fn turn(n: u128) -> TurnId {
    TurnId::from_u128(n)
}

fn input(n: u128, text: &str) -> Event {
    Event::InputAccepted {
        turn: turn(n),
        by: UserId::from_u128(1),
        client_id: None,
        parts: Parts::text(text.to_owned()),
        compacts: None,
        terms: crate::testing::full(),
    }
}

fn answer(n: u128, step: u32, text: &str, calls: u32) -> Event {
    let call = |ordinal| ToolCall {
        vendor_id: format!("v{n}.{step}.{ordinal}"),
        name: "Shell".to_owned(),
        arguments: "{}".to_owned(),
        opaque: Default::default(),
    };
    Event::AnswerRecorded {
        turn: turn(n),
        step,
        model: "m".to_owned(),
        origin: None,
        parts: said(text, (0..calls).map(call)),
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    }
}

fn ended(n: u128, step: u32, ordinal: u32, outcome: CallOutcome) -> Event {
    Event::CallEnded {
        turn: turn(n),
        step,
        ordinal,
        outcome,
        parts: Parts::text(format!("result {n}.{step}.{ordinal}")),
        unplaced: false,
        task: None,
        awaits: None,
        budget_ms: 0,
        duration_ms: 0,
        overran: false,
        file: None,
        whole: None,
        findings: Vec::new(),
        tools: Vec::new(),
    }
}

fn claimed(n: u128, choice: Option<Choice>) -> Event {
    Event::TurnClaimed {
        turn: turn(n),
        epoch: Epoch(1),
        replica: ReplicaId::from_u128(1),
        choice,
        settings: None,
    }
}

fn works_on(runner: u128, name: &str) -> Option<Choice> {
    Some(Choice::User {
        runner: RunnerId::from_u128(runner),
        name: name.to_owned(),
        workspace: None,
    })
}

/// What the model is told before the second input about where it works.
fn told_of_the_move(before: Option<Choice>, now: Option<Choice>) -> Option<String> {
    let log = [
        input(1, "first"),
        claimed(1, before),
        answer(1, 1, "done", 0),
        input(2, "second"),
        claimed(2, now),
    ];
    match &sent(&log, 2)[2..] {
        [Message::User { parts }, _] => Some(parts.words().into_owned()),
        [_] => None,
        other => panic!("one note at most: {other:?}"),
    }
}

#[test]
fn the_model_hears_before_an_input_that_its_tools_work_elsewhere() {
    let (laptop, alpha) = (works_on(1, "laptop"), works_on(2, "alpha"));
    let none = Some(Choice::None);
    let table = [
        (
            &laptop,
            &alpha,
            "now work on runner alpha; before this message they worked on runner laptop",
        ),
        (
            &laptop,
            &works_on(3, "laptop"),
            "they worked on another runner of the same name",
        ),
        (
            &none,
            &alpha,
            "now work on runner alpha; before this message no runner was active",
        ),
        (
            &laptop,
            &none,
            "no runner is active now, so your tools cannot run",
        ),
        (&None, &alpha, "[your tools now work on runner alpha]"),
    ];
    for (before, now, words) in table {
        let told = told_of_the_move(before.clone(), now.clone()).unwrap_or_default();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn the_model_hears_nothing_where_its_tools_work_as_before() {
    let laptop = works_on(1, "laptop");
    let pinned = Some(Choice::Session {
        runner: RunnerId::from_u128(1),
        name: "laptop".to_owned(),
        workspace: None,
    });
    let none = Some(Choice::None);
    for (before, now) in [
        (&laptop, &laptop),
        (&laptop, &pinned),
        (&none, &none),
        (&None, &None),
    ] {
        assert_eq!(told_of_the_move(before.clone(), now.clone()), None);
    }
}

#[test]
fn a_turn_that_is_claimed_again_is_told_the_place_of_its_first_claim() {
    let log = |claims: &[Option<Choice>]| {
        let claims = claims.iter().map(|choice| claimed(2, choice.clone()));
        let before = [
            input(1, "first"),
            claimed(1, works_on(1, "laptop")),
            input(2, "second"),
        ];
        before.into_iter().chain(claims).collect::<Vec<_>>()
    };
    let first = log(&[works_on(2, "alpha")]);
    let again = log(&[works_on(2, "alpha"), works_on(1, "laptop")]);
    assert_eq!(sent(&first, 2), sent(&again, 2));
}

fn sent(events: &[Event], n: u128) -> Vec<Message> {
    sent_over(Duration::ZERO, events, n)
}

/// The same, where so much time lies between one event and the next.
fn sent_over(apart: Duration, events: &[Event], n: u128) -> Vec<Message> {
    let log: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| SessionEvent {
            seq,
            at: Timestamp::from_micros(0).after(apart * seq as u32),
            body: EventBody::Known(event.clone()),
        })
        .collect();
    let transcript = Transcript::of(&log);
    messages(&transcript, turn(n), &model("m"), View::of(&transcript))
}

#[test]
fn the_model_hears_which_day_it_is_where_it_is_another_one() {
    let log = [input(1, "first"), input(2, "second"), input(3, "third")];
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let today = user("[it is 1970-01-02 now (UTC)]\n");
    assert_eq!(
        sent_over(hours(10), &log, 3),
        [user("first"), user("second"), today, user("third")]
    );
    assert_eq!(sent_over(hours(1), &log, 3).len(), 3);
}

fn user(text: &str) -> Message {
    Message::User {
        parts: Parts::text(text),
    }
}

#[test]
fn results_stand_in_the_order_of_the_calls_and_a_missing_one_is_stated() {
    let log = [
        input(1, "go"),
        answer(1, 1, "", 3),
        ended(1, 1, 2, CallOutcome::Failed),
        ended(1, 1, 0, CallOutcome::Completed),
    ];
    let results: Vec<_> = sent(&log, 1)
        .into_iter()
        .filter_map(|message| match message {
            Message::ToolResult {
                vendor_id,
                parts,
                failed,
            } => Some((vendor_id, parts.words().into_owned(), failed)),
            _ => None,
        })
        .collect();
    let expected = [
        ("v1.1.0", "result 1.1.0", false),
        ("v1.1.1", "cancelled before it ran", true),
        ("v1.1.2", "result 1.1.2", true),
    ];
    assert_eq!(
        results,
        expected.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed))
    );
}

#[test]
fn a_message_that_waits_for_its_turn_is_not_sent_before_it() {
    let log = [
        input(1, "first"),
        input(2, "second"),
        answer(1, 1, "done", 0),
    ];
    assert_eq!(sent(&log, 1).len(), 2);
    let second = sent(&log, 2);
    assert_eq!((&second[0], &second[2]), (&user("first"), &user("second")));
}

#[test]
fn a_vendors_own_state_goes_to_the_origin_and_model_that_wrote_it_and_to_no_other() {
    let fields = || Map::from_iter([("signature".to_owned(), "S".into())]);
    let from = |account: &str| {
        Some(Origin {
            format: "scripted".to_owned(),
            account: account.to_owned(),
        })
    };
    for (name, from, is_its_own) in [
        ("m", from(""), true),
        // Of an earlier release.
        ("m", None, true),
        ("m", from("another account"), false),
        ("another model", from(""), false),
    ] {
        let mut answered = answer(1, 1, "hi", 1);
        if let Event::AnswerRecorded {
            model,
            origin,
            parts,
            ..
        } = &mut answered
        {
            (*model, *origin) = (name.to_owned(), from);
            if let Some(Part::ToolCall(call)) = parts.0.last_mut() {
                call.opaque = fields();
            }
            let thoughts = Part::Reasoning {
                text: "hm".to_owned(),
                signature: Some("S".to_owned()),
            };
            parts.0.insert(0, thoughts);
            parts.0.push(Part::Opaque { fields: fields() });
        }
        let Message::Assistant { parts } = &sent(&[input(1, "go"), answered], 1)[1] else {
            panic!("it is an answer")
        };
        let call = parts.calls().next().expect("a call");
        assert_eq!(!call.opaque.is_empty(), is_its_own, "{name}");
        assert_eq!(!call.vendor_id.is_empty(), is_its_own, "{name}");
        let kinds = parts.0.iter().map(|part| match part {
            Part::Reasoning { .. } => "thoughts",
            Part::Text { .. } => "text",
            Part::ToolCall(_) => "call",
            Part::Opaque { .. } => "opaque",
            Part::Image { .. } => "image",
        });
        let expected: &[_] = match is_its_own {
            true => &["thoughts", "text", "call", "opaque"],
            false => &["text", "call"],
        };
        assert_eq!(kinds.collect::<Vec<_>>(), expected, "{name}");
    }
}

/// The messages that a model with this profile is sent.
fn sent_to(profile: server_llm::Profile, events: &[Event], n: u128) -> Vec<Message> {
    let log: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(event.clone()),
        })
        .collect();
    let transcript = Transcript::of(&log);
    let model = ModelInfo {
        profile,
        ..model("m")
    };
    messages(&transcript, turn(n), &model, View::of(&transcript))
}

#[test]
fn a_model_that_sees_is_sent_the_image_and_another_one_is_told_of_it() {
    let image = Part::Image {
        digest: shared_types::Digest::of(b"pixels"),
        media_type: "image/png".to_owned(),
        bytes: 6,
    };
    let mut parts = Parts::text("what is this?");
    parts.0.push(image.clone());
    let asked = Event::InputAccepted {
        turn: turn(1),
        by: UserId::from_u128(1),
        client_id: None,
        parts: parts.clone(),
        compacts: None,
        terms: crate::testing::full(),
    };
    let profile = |sees: bool| server_llm::Profile {
        sees,
        ..server_llm::Profile::default()
    };
    let seen = sent_to(profile(true), std::slice::from_ref(&asked), 1);
    assert_eq!(seen, [Message::User { parts }]);
    let told = sent_to(profile(false), &[asked], 1);
    let words = told[0].parts().words();
    assert!(!told[0].parts().0.contains(&image));
    assert!(
        words.contains("image/png, 6 bytes") && words.contains("does not read images"),
        "{words}"
    );
}

#[test]
fn bound_thoughts_go_back_until_something_before_them_has_changed() {
    let thoughts = || Part::Reasoning {
        text: "hm".to_owned(),
        signature: Some("S".to_owned()),
    };
    let thought = |step: u32| {
        let mut parts = said("hi", []);
        parts.0.insert(0, thoughts());
        Event::AnswerRecorded {
            turn: turn(1),
            step,
            model: "m".to_owned(),
            origin: None,
            parts,
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None,
        }
    };
    let left_out = Event::ResultsLeftOut {
        turn: turn(1),
        step: 2,
        through: 0,
        results: 0,
        bytes: 0,
        gone: 0,
        longest: Some(100),
        shortened: 1,
        because: shared_types::event::LeftOutBecause::NearWindow,
    };
    let log = [input(1, "hello"), thought(1), left_out, thought(2)];
    let thoughts_in = |binds_thoughts: bool| -> Vec<bool> {
        let profile = server_llm::Profile {
            binds_thoughts,
            ..server_llm::Profile::default()
        };
        let sent = sent_to(profile, &log, 1);
        let answers = sent[1..].iter();
        answers
            .map(|answer| answer.parts().0.contains(&thoughts()))
            .collect()
    };
    assert_eq!(thoughts_in(true), [false, true]);
    assert_eq!(thoughts_in(false), [true, true]);
}

#[test]
fn thoughts_without_a_signature_are_for_people_alone() {
    let mut answered = answer(1, 1, "hi", 0);
    if let Event::AnswerRecorded { parts, .. } = &mut answered {
        let thoughts = Part::Reasoning {
            text: "hm".to_owned(),
            signature: None,
        };
        parts.0.insert(0, thoughts);
    }
    let parts = Parts::text("hi");
    assert_eq!(
        sent(&[input(1, "go"), answered], 1)[1],
        Message::Assistant { parts }
    );
}

/// The call at this place of the first turn's first answer goes on as the task with the next number.
fn goes_on(ordinal: u32) -> [Event; 2] {
    let placed = Event::CallPlaced {
        turn: turn(1),
        step: 1,
        ordinal,
        operation: OperationId::from_u128(ordinal.into()),
        place: Place {
            runner: RunnerId::from_u128(6),
            runner_name: "laptop".to_owned(),
            sandbox: SandboxId::from_u128(7),
            isolation: Isolation::none(),
        },
    };
    let mut background = ended(1, 1, ordinal, CallOutcome::Background);
    if let Event::CallEnded { task, .. } = &mut background {
        *task = Some(ordinal + 1);
    }
    [placed, background]
}

fn settled(ordinal: u32) -> Event {
    Event::OperationSettled {
        operation: OperationId::from_u128(ordinal.into()),
        summary: "exit code 0".to_owned(),
    }
}

#[test]
fn the_model_hears_before_the_next_input_which_tasks_have_ended() {
    let [placed, background] = goes_on(0);
    let log = [
        input(1, "build"),
        answer(1, 1, "", 1),
        placed,
        background,
        answer(1, 2, "it runs", 0),
        settled(0),
        input(2, "and now?"),
        // Told once only.
        settled(0),
        answer(2, 1, "it is done", 0),
        input(3, "thanks"),
    ];
    let told = "[task 1 has ended meanwhile: exit code 0; task_read shows what it wrote]\n";
    let messages = sent(&log, 3);
    assert_eq!(&messages[4..6], [user(told), user("and now?")]);
    assert_eq!(messages[7], user("thanks"));
    assert_eq!(messages[..4], sent(&log, 1)[..4], "the beginning stays");
}

#[test]
fn the_model_hears_how_a_call_ended_of_which_it_was_told_no_end() {
    for (outcome, is_told) in [
        (CallOutcome::Unknown, true),
        (CallOutcome::Cancelled, true),
        (CallOutcome::Failed, false),
    ] {
        let [placed, _] = goes_on(0);
        let log = [
            input(1, "deploy"),
            answer(1, 1, "", 1),
            placed,
            ended(1, 1, 0, outcome),
            settled(0),
            settled(0),
            input(2, "go on"),
            settled(0),
            input(3, "thanks"),
        ];
        let told = sent(&log, 3).into_iter().filter(|message| {
            matches!(message, Message::User { parts } if parts.words().contains("end was not known") && parts.words().contains("exit code 0"))
        });
        assert_eq!(told.count(), usize::from(is_told), "{outcome:?}");
    }
}

#[test]
fn that_a_command_goes_on_in_the_background_is_no_failure() {
    let begun = goes_on(0);
    let log = [vec![input(1, "build"), answer(1, 1, "", 1)], begun.to_vec()].concat();
    let messages = sent(&log, 1);
    let failed = matches!(messages[2], Message::ToolResult { failed, .. } if failed);
    assert!(!failed, "{:?}", messages[2]);
}

#[test]
fn of_many_tasks_that_have_ended_the_model_hears_of_the_last_ones() {
    let many = ENDED_AT_MOST as u32 + 2;
    let mut log = vec![input(1, "build"), answer(1, 1, "", many)];
    log.extend((0..many).flat_map(goes_on));
    log.extend((0..many).map(settled));
    log.push(input(2, "and now?"));
    let messages = sent(&log, 2);
    let Some([Message::User { parts }, _]) = messages.last_chunk() else {
        panic!("{messages:?}");
    };
    let text = parts.words();
    let told: Vec<_> = text.lines().collect();
    assert_eq!(told.len(), ENDED_AT_MOST);
    let last = format!("[task {many} has ended");
    assert!(told[0].starts_with("[task 3 ") && told[ENDED_AT_MOST - 1].starts_with(&last));
}

#[test]
fn an_empty_answer_is_not_sent_back() {
    let log = [input(1, "first"), answer(1, 1, "", 0), input(2, "second")];
    assert_eq!(sent(&log, 2), [user("first"), user("second")]);
}

#[test]
fn events_that_are_not_conversation_change_no_byte() {
    let bare = [
        input(1, "go"),
        answer(1, 1, "hm", 1),
        ended(1, 1, 0, CallOutcome::Completed),
    ];
    let mut full = bare.to_vec();
    full.push(Event::CancelRequested {
        turn: turn(1),
        by: UserId::from_u128(1),
        why: None,
    });
    full.push(Event::TurnEnded {
        turn: turn(1),
        outcome: TurnOutcome::Cancelled,
        reason: None,
    });
    assert_eq!(sent(&bare, 1), sent(&full, 1));
}

fn logs() -> impl Strategy<Value = Vec<Event>> {
    let event = (1..4u128, 1..4u32, 0..4u32, 0..3u8, "[a-z]{0,3}");
    let event = event.prop_map(|(n, step, ordinal, kind, text)| match kind {
        0 => input(n, &text),
        1 => answer(n, step, &text, ordinal),
        _ => ended(n, step, ordinal, CallOutcome::Completed),
    });
    proptest::collection::vec(event, 0..40)
}

proptest! {
    #[test]
    fn every_call_is_followed_by_exactly_its_results_whatever_the_log_holds(log in logs()) {
        for n in 1..4 {
            let mut messages = sent(&log, n).into_iter().peekable();
            while let Some(message) = messages.next() {
                match message {
                    Message::Assistant { parts } => {
                        prop_assert!(!parts.words().is_empty() || parts.calls().next().is_some());
                        for call in parts.calls() {
                            let result = messages.next();
                            let fits = matches!(&result, Some(Message::ToolResult { vendor_id, .. })
                                if *vendor_id == call.vendor_id);
                            prop_assert!(fits, "{:?}", result);
                        }
                    }
                    Message::ToolResult { .. } => prop_assert!(false, "a result without a call"),
                    Message::User { .. } => {}
                }
            }
        }
    }

    #[test]
    fn what_was_sent_stays_the_beginning_of_what_is_sent_later(steps in 1..6u32, calls in 1..4u32) {
        let mut log = vec![input(1, "go")];
        let mut before = sent(&log, 1);
        for step in 1..=steps {
            log.push(answer(1, step, "t", calls));
            // The results arrive in the reverse order, and an input for later in between.
            log.extend((0..calls).rev().map(|ordinal| ended(1, step, ordinal, CallOutcome::Completed)));
            log.push(input(2, "later"));
            let now = sent(&log, 1);
            prop_assert!(now.starts_with(&before));
            before = now;
        }
    }
}
