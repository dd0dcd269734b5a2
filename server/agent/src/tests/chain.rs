//! Models that answer in place of one another, and the ledger of what they cost.

use server_llm::{Answer, ModelError, ModelEvent, ModelInfo, Price};
use shared_types::event::{Event, Origin, TurnOutcome, Usage};

use crate::{
    Live,
    testing::{Reply, ScriptedModel, World, model, text},
};

/// A model of this provider, whose million tokens cost a dollar each way.
fn of(provider: &str, name: &str) -> ModelInfo {
    let mut info = model(name);
    info.origin = Origin {
        format: provider.to_owned(),
        account: provider.to_owned(),
    };
    info.profile.provider = provider.to_owned();
    info.profile.price = Some(Price {
        date: "2026-11-20".to_owned(),
        input: 1_000_000,
        cached: 1_000_000,
        cache_written: 1_000_000,
        output: 1_000_000,
    });
    info
}

fn costs(text: &str, input: u64) -> Reply {
    let Reply::Answer(answer) = Reply::says(text) else {
        unreachable!("it is an answer")
    };
    Reply::Answer(Answer {
        usage: Usage {
            input,
            ..Usage::default()
        },
        ..answer
    })
}

#[tokio::test]
async fn a_model_that_fails_gives_way_to_the_next_one_and_people_are_told_once() {
    let refused = ModelError::Unauthenticated("no such key".to_owned());
    let down = ModelError::Unavailable("status 529".to_owned());
    let mut world = World::new([], []);
    world.model = ScriptedModel::new(of("acme", "large"), [Reply::Fail(refused)]);
    world.others = vec![
        ScriptedModel::new(of("bolt", "quick"), [Reply::Fail(down)]),
        ScriptedModel::new(of("core", "calm"), [costs("done", 3)]),
        ScriptedModel::new(of("dent", "unasked"), [costs("never", 1)]),
    ];
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        world.live.notices(),
        [
            "acme refuses the key; asking quick instead (bolt)",
            "bolt is overloaded; asking calm instead (core)",
        ]
    );
    let answered = world
        .log
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::AnswerRecorded { model, origin, .. } => Some((model, origin)),
            _ => None,
        });
    let (name, origin) = answered.expect("it answered");
    assert_eq!(name, "calm");
    assert_eq!(origin.map(|origin| origin.account), Some("core".to_owned()));
    assert!(world.others[2].requests().is_empty());

    let paid = world.log.paid();
    let entries: Vec<_> = paid
        .iter()
        .map(|call| (call.attempt, call.provider.as_str(), call.outcome))
        .collect();
    assert_eq!(
        entries,
        [
            (1, "acme", "unauthenticated"),
            (2, "bolt", "unavailable"),
            (3, "core", "ok")
        ]
    );
    assert_eq!(paid[2].cost.as_ref().map(|cost| cost.micros), Some(3));
}

#[tokio::test]
async fn a_model_that_cools_down_is_passed_over_and_the_one_that_is_asked_is_named() {
    let refused = ModelError::Unauthenticated("no such key".to_owned());
    let mut world = World::new([], []);
    world.model = ScriptedModel::new(of("acme", "large"), [Reply::Fail(refused)]);
    world.others = vec![
        ScriptedModel::left_alone(of("bolt", "quick")),
        ScriptedModel::new(of("core", "calm"), [costs("done", 3)]),
    ];
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(
        world.live.notices(),
        ["acme refuses the key; asking calm instead (core)"]
    );
    assert!(world.others[0].requests().is_empty());
}

#[tokio::test]
async fn a_conversation_that_is_too_long_or_refused_is_not_sent_elsewhere() {
    for error in [
        ModelError::Overflow("too long".to_owned()),
        ModelError::Refused("content".to_owned()),
    ] {
        let mut world = World::new([Reply::Fail(error)], []);
        world.others = vec![ScriptedModel::new(of("bolt", "quick"), [costs("no", 1)])];
        assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
        assert!(world.others[0].requests().is_empty());
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_in_the_middle_has_no_known_cost() {
    let mut world = World::new([], []);
    let said = vec![ModelEvent::Attempt { number: 1 }, text(0, "half")];
    world.model = ScriptedModel::new(of("acme", "large"), [Reply::Hang(said)]);
    let turn = world.spawn();
    world
        .live
        .saw(|live| matches!(live, Live::Said { .. }))
        .await;
    world.cancel.cancel();
    assert_eq!(turn.await.expect("no panic"), Ok(TurnOutcome::Cancelled));
    let paid = world.log.paid();
    assert_eq!(paid.len(), 1);
    assert_eq!((paid[0].outcome, &paid[0].cost), ("cancelled", &None));
}

#[tokio::test]
async fn what_was_asked_in_vain_is_in_the_ledger_with_the_end_of_the_turn() {
    let down = ModelError::Unavailable("down".to_owned());
    let world = World::new([Reply::Fail(down)], []);
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let paid = world.log.paid();
    assert_eq!(paid.len(), 1);
    assert_eq!((paid[0].outcome, &paid[0].cost), ("unavailable", &None));
}
