//! The model's side of a turn.

use std::time::Duration;

use server_llm::{ModelError, ModelEvent, Piece, Voice};
use shared_types::{
    Event, ReplicaId,
    event::{CallOutcome, Finish, Part, TurnOutcome, TurnSettings},
};

use crate::{
    Claim, Live, TurnError,
    session::LogError,
    testing::{EPOCH, Fault, Reply, TURN, World, command, model, piece, text},
};

#[tokio::test]
async fn a_message_without_a_need_for_tools_is_answered_in_one_step() {
    let world = World::new([Reply::says("hello")], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let kinds: Vec<_> = world.log.events().iter().map(|e| e.kind()).collect();
    assert_eq!(kinds, ["input.accepted", "answer.recorded", "turn.ended"]);
    assert_eq!(
        world.live.all(),
        [Live::Said {
            turn: TURN,
            step: 1,
            attempt: 1,
            offset: 0,
            piece: Piece {
                part: 0,
                voice: Voice::Text,
                text: "hello".to_owned()
            }
        }]
    );
}

#[tokio::test]
async fn a_turn_that_has_ended_is_left_as_it_is() {
    let world = World::new([Reply::says("hello")], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let log = world.log.events();
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.log.events(), log);
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn a_repeated_attempt_starts_the_live_text_anew_and_counts_its_offsets_in_bytes() {
    let Reply::Answer(answer) = Reply::says("ökay") else {
        unreachable!("it is an answer")
    };
    let said = vec![
        ModelEvent::Attempt { number: 1 },
        text(0, "half an ans"),
        ModelEvent::Retrying {
            after: Duration::from_secs(2),
            reason: "acme is overloaded".to_owned(),
            next: 2,
            of: 5,
        },
        ModelEvent::Attempt { number: 2 },
        text(0, "ö"),
        text(0, "kay"),
    ];
    let world = World::new([Reply::Events(said, answer)], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let texts: Vec<_> = world
        .live
        .all()
        .into_iter()
        .filter_map(|live| match live {
            Live::Said {
                attempt,
                offset,
                piece,
                ..
            } => Some((attempt, offset, piece.text)),
            _ => None,
        })
        .collect();
    let expected = [(1, 0, "half an ans"), (2, 0, "ö"), (2, 2, "kay")];
    assert_eq!(texts, expected.map(|(a, o, t)| (a, o, t.to_owned())));
    let notice = "acme is overloaded; trying again in 2 s (2 of 5)";
    assert_eq!(world.live.notices(), [notice]);
    let void = Live::TakenBack {
        turn: TURN,
        step: 1,
        attempt: 1,
    };
    assert_eq!(world.live.all()[1], void, "right behind what is void");
}

#[tokio::test]
async fn parts_are_heard_by_their_numbers_and_recorded_in_their_order() {
    let Reply::Answer(mut answer) = Reply::says("okay") else {
        unreachable!("it is an answer")
    };
    let thoughts = Part::Reasoning {
        text: "hm, so".to_owned(),
        signature: Some("S".to_owned()),
    };
    answer.parts.0.insert(0, thoughts);
    let said = vec![
        ModelEvent::Attempt { number: 1 },
        piece(0, Voice::Reasoning, "hm, "),
        piece(0, Voice::Reasoning, "so"),
        text(1, "okay"),
    ];
    let world = World::new([Reply::Events(said, answer.clone())], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let heard: Vec<_> = world
        .live
        .all()
        .into_iter()
        .filter_map(|live| match live {
            Live::Said { offset, piece, .. } => Some((piece.part, piece.voice, offset, piece.text)),
            _ => None,
        })
        .collect();
    let expected = [
        (0, Voice::Reasoning, 0, "hm, "),
        (0, Voice::Reasoning, 4, "so"),
        (1, Voice::Text, 0, "okay"),
    ];
    assert_eq!(
        heard,
        expected.map(|(part, voice, at, text)| (part, voice, at, text.to_owned()))
    );
    let recorded = world.log.events();
    let Event::AnswerRecorded { origin, parts, .. } = &recorded[1] else {
        panic!("{recorded:?}")
    };
    assert_eq!(*parts, answer.parts);
    assert_eq!(*origin, Some(model("scripted").origin));
}

#[tokio::test]
async fn a_model_that_fails_fails_the_turn_with_its_reason() {
    let error = ModelError::Unauthenticated("the key is not accepted; set another".to_owned());
    let world = World::new([Reply::Fail(error)], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(world.end().1, "the key is not accepted; set another");
}

#[tokio::test]
async fn a_model_that_never_answers_fails_the_turn_after_its_time() {
    let mut world = World::new([Reply::Hang(Vec::new())], []);
    world.limits.model_time = Duration::from_millis(1);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert!(
        world
            .end()
            .1
            .contains("did not finish its answer within 1 ms")
    );
}

#[tokio::test]
async fn a_model_that_stops_without_a_word_is_asked_once_more_and_no_more() {
    let world = World::new([Reply::says(" \n")], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(world.end().1, "the model gave an empty answer");
    assert_eq!(world.model.requests().len(), 2);
}

/// A turn that was claimed with these settings.
pub(super) fn claimed_with(world: &World, model: &str, language: Option<&str>, steps: u32) {
    world.log.append(Event::TurnClaimed {
        turn: TURN,
        epoch: EPOCH,
        replica: ReplicaId::from_u128(1),
        choice: None,
        settings: Some(TurnSettings {
            model: model.to_owned(),
            language: language.map(str::to_owned),
            steps,
            machine: None,
            own_runner: false,
            mode: None,
            ceiling: None,
            machine_ceiling: None,
        }),
    });
}

#[tokio::test]
async fn a_turn_takes_as_many_steps_as_it_was_claimed_with_whatever_a_later_claim_says() {
    let calls = |n: u32| Reply::calls("", [("Shell", &*format!("{{\"command\":\"echo {n}\"}}"))]);
    let world = World::new(
        (0..9).map(calls),
        (0..9).map(|n| command(&n.to_string(), 0)),
    );
    claimed_with(&world, "scripted", None, 2);
    claimed_with(&world, "scripted", None, 7);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert!(world.end().1.contains("limit of 2 steps"));
    assert_eq!(world.model.requests().len(), 3, "two steps and the summary");
}

#[tokio::test]
async fn the_model_is_told_the_language_that_is_set_and_none_where_none_is() {
    for (language, told) in [(None, false), (Some("German"), true)] {
        let world = World::new([Reply::says("hello")], []);
        claimed_with(&world, "scripted", language, 9);
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let system = &world.model.requests()[0].system;
        assert_eq!(system.contains("answers in German"), told, "{system}");
        assert_eq!(system.contains("Write your answers in"), told, "{system}");
    }
}

#[tokio::test]
async fn a_model_that_is_not_offered_any_more_fails_the_turn_and_no_other_one_answers() {
    let world = World::new([Reply::says("hello")], []);
    claimed_with(&world, "gone", None, 9);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let (_, reason) = world.end();
    assert!(
        reason.contains("\"gone\" is not offered any more"),
        "{reason}"
    );
    assert_eq!(world.model.requests(), []);
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_stopped_at_the_fourth_time() {
    let call = ("Shell", r#"{"command":"make"}"#);
    let world = World::new(
        [Reply::calls("", [call])],
        (0..9).map(|_| command("no rule", 2)),
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert!(world.end().1.contains("4 times in a row"));
    assert_eq!(world.ended_calls().len(), 4);
}

#[tokio::test]
async fn the_model_is_sent_its_calls_with_their_results() {
    let call = ("Shell", r#"{"command":"ls"}"#);
    let world = World::new(
        [
            Reply::calls("I look.", [call]),
            Reply::says("There is a.txt."),
        ],
        [command("a.txt\n", 0)],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        world.only_call(),
        (CallOutcome::Completed, "a.txt\n[exit code 0]".to_owned())
    );
    let requests = world.model.requests();
    assert!(requests[1].messages.starts_with(&requests[0].messages));
    assert_eq!(requests[1].messages.len(), 3);
    assert_eq!(requests[0].system, requests[1].system);
}

#[tokio::test]
async fn an_answer_cut_at_the_length_limit_is_kept_and_ends_the_turn() {
    let Reply::Answer(mut answer) = Reply::says("and then") else {
        unreachable!("it is an answer")
    };
    answer.finish = Finish::Length;
    let world = World::new([Reply::Answer(answer)], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
}

#[tokio::test]
async fn of_an_answer_cut_at_the_length_limit_the_last_call_is_told_to_be_smaller() {
    let whole = ("Bash", r#"{"command":"ls"}"#);
    let cut = ("Shell", r#"{"command":"cat >a <<E"#);
    let Reply::Answer(mut answer) = Reply::calls("", [whole, cut]) else {
        unreachable!("it is an answer")
    };
    answer.finish = Finish::Length;
    let world = World::new([Reply::Answer(answer), Reply::says("done")], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let [whole, cut] = &world.ended_calls()[..] else {
        panic!("there are two calls")
    };
    for (call, words) in [(whole, "no tool"), (cut, "length limit")] {
        let said = matches!(call, Event::CallEnded { parts, .. } if parts.words().contains(words));
        assert!(said, "{call:?}");
    }
}

#[tokio::test]
async fn a_log_without_the_message_starts_nothing() {
    let world = World::new([Reply::says("hello")], []);
    let (engine, ports) = (world.engine(), world.ports());
    let other = Claim {
        turn: shared_types::TurnId::from_u128(8),
        ..world.claim()
    };
    let ran = engine.run_turn(&ports, other, world.cancel.clone());
    assert_eq!(ran.await, Err(TurnError::NotInLog));
}

#[tokio::test]
async fn a_turn_goes_no_further_on_an_event_that_cannot_be_read_and_passes_unknown_kinds_over() {
    let world = World::new([Reply::says("hello")], []);
    let newer = |kind: &str| {
        let event = serde_json::json!({ "type": kind, "v": 2, "turn": "x" });
        serde_json::from_value(event).expect("an event is kept whole")
    };
    world.log.append_body(newer("turn.teleported"));
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));

    let world = World::new([Reply::says("hello")], []);
    world.log.append_body(newer("call.ended"));
    let refused = world.run().await;
    assert!(
        matches!(&refused, Err(TurnError::Unreadable { kind, .. }) if kind == "call.ended"),
        "{refused:?}"
    );
    assert_eq!(world.model.requests().len(), 0);
}

#[tokio::test]
async fn a_worker_that_was_replaced_stops_at_its_next_record() {
    let world = World::new([Reply::says("hello")], []);
    world.log.break_at(Fault {
        at: 1,
        stored: false,
        error: LogError::StaleEpoch,
    });
    assert_eq!(world.run().await, Err(TurnError::StaleEpoch));
}
