//! Turns that reach a limit: of steps, of tokens, of the model's time.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use server_llm::{Answer, Message, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};
use shared_sandbox::scripted::Script;
use shared_types::{
    Event, TurnId, UserId,
    clock::ManualClock,
    event::{CallOutcome, Parts, TurnLimit, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use super::conversation::claimed_with;
use crate::{
    Claim, LogError, ModelSource, TurnError,
    testing::{Fault, Reply, World, command},
};

const WISH: &str = "[From Gantry, not from the user: this turn has reached its limit of 2 steps. Call no tool. Say in a \
                    few sentences what was done, what is left and where you would go on.]";

/// A step with a call that no other step asks for.
fn looks(n: u32) -> Reply {
    Reply::calls("", [("Shell", &*format!("{{\"command\":\"echo {n}\"}}"))])
}

fn outputs() -> impl Iterator<Item = Script> {
    (0..60).map(|n| command(&n.to_string(), 0))
}

/// A turn of two steps, whose summary is this.
fn of_two_steps(summary: Reply) -> World {
    let world = World::new([looks(1), looks(2), summary], outputs());
    claimed_with(&world, "scripted", None, 2);
    world
}

/// The texts of the messages of the user, as the model was sent them.
fn user_texts(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.iter();
    let texts = messages.filter_map(|message| match message {
        Message::User { parts } => Some(parts.words().into_owned()),
        _ => None,
    });
    texts.collect()
}

/// The limits that answers were recorded with, by step.
fn limits(world: &World) -> Vec<Option<TurnLimit>> {
    let events = world.log.events().into_iter();
    let limits = events.filter_map(|event| match event {
        Event::AnswerRecorded { limit, .. } => Some(limit),
        _ => None,
    });
    limits.collect()
}

#[tokio::test]
async fn the_51st_step_is_a_summary_and_the_last() {
    let world = World::new((0..60).map(looks), outputs());
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert!(world.end().1.contains("limit of 50 steps"));
    assert_eq!(world.model.requests().len(), 51);
    assert_eq!(world.sandbox.scripted.asked().len(), 50);
}

#[tokio::test]
async fn a_turn_at_its_limit_ends_with_a_summary_and_the_next_message_goes_on_from_it() {
    let world = of_two_steps(Reply::says("I looked twice; the rest is left."));
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(
        world.end().1,
        "the turn reached its limit of 2 steps; a summary stands above; send another message to go on, or allow \
         more: gantry config set steps NUMBER"
    );
    let reached = Some(TurnLimit::Steps { most: 2 });
    assert_eq!(limits(&world), [None, None, reached]);
    let requests = world.model.requests();
    assert_eq!(user_texts(&requests[1]), ["do it"]);
    assert_eq!(user_texts(&requests[2]), ["do it", WISH]);
    assert_eq!(requests[2].tools, requests[1].tools, "the prefix stays");

    let next = TurnId::from_u128(8);
    world.log.append(Event::InputAccepted {
        turn: next,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text("go on"),
        compacts: None,
        terms: crate::testing::full(),
    });
    let (engine, ports) = (world.engine(), world.ports());
    let claim = Claim {
        turn: next,
        ..world.claim()
    };
    let ran = engine.run_turn(&ports, claim, world.cancel.clone()).await;
    ran.expect("it runs");
    let later = world.model.requests().pop().expect("it was asked");
    assert!(later.messages.starts_with(&requests[2].messages));
    assert_eq!(user_texts(&later), ["do it", WISH, "go on"]);
}

#[tokio::test]
async fn no_call_in_a_summary_is_run() {
    let write = ("Write", r#"{"path":"a","content":"hi"}"#);
    for (text, stands) in [("I write on.", true), ("", false)] {
        let world = of_two_steps(Reply::calls(text, [write]));
        assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
        let (_, reason) = world.end();
        assert_eq!(reason.contains("summary stands above"), stands, "{reason}");
        assert_eq!(world.sandbox.scripted.asked().len(), 2);
        let ended = world.ended_calls().pop();
        let Some(Event::CallEnded { outcome, parts, .. }) = ended else {
            panic!("the call ends: {ended:?}")
        };
        assert_eq!(outcome, CallOutcome::Refused);
        assert_eq!(
            parts.words(),
            "not run: the turn has reached its limit of 2 steps"
        );
    }
}

#[tokio::test]
async fn a_turn_without_a_summary_ends_for_the_reason_of_its_limit() {
    let fails = Reply::Fail(ModelError::Unauthenticated("no key".to_owned()));
    for summary in [fails, Reply::says(" \n")] {
        let world = of_two_steps(summary);
        assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
        assert_eq!(
            world.end().1,
            "the turn reached its limit of 2 steps; send another message to go on, or allow more: gantry config set \
             steps NUMBER"
        );
        assert_eq!(world.model.requests().len(), 3);
    }
}

#[tokio::test]
async fn a_turn_whose_worker_dies_before_the_summary_asks_for_it_with_the_same_request() {
    let world = of_two_steps(Reply::says("I looked twice."));
    world.log.break_at(Fault {
        at: 5,
        stored: false,
        error: LogError::Unavailable("the disk is full".to_owned()),
    });
    let ran = world.run().await;
    assert!(matches!(ran, Err(TurnError::LogUnavailable(_))), "{ran:?}");
    world.log.mend();
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    let requests = world.model.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[2], requests[3]);
    assert_eq!(limits(&world).len(), 3);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_at_its_summary_is_cancelled() {
    let world = of_two_steps(Reply::Hang(Vec::new()));
    let worker = world.spawn();
    while world.model.requests().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.cancel.cancel();
    let ended = worker.await.expect("the engine does not panic");
    assert_eq!(ended, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.end(), (TurnOutcome::Cancelled, String::new()));
}

#[tokio::test]
async fn the_tokens_of_all_answers_of_a_turn_are_bounded() {
    let costs = |reply| match reply {
        Reply::Answer(mut answer) => {
            answer.usage = Usage {
                input: 600,
                output: 100,
                ..Usage::default()
            };
            Reply::Answer(answer)
        }
        other => other,
    };
    let replies = [looks(1), looks(2), looks(3), Reply::says("so far")];
    let mut world = World::new(replies.map(costs), outputs());
    world.limits.turn_tokens = 2100;
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(
        world.end().1,
        "the turn reached its limit of 2100 tokens; a summary stands above; send another message to go on"
    );
    assert_eq!(world.model.requests().len(), 4);
    let reached = Some(TurnLimit::Tokens { most: 2100 });
    assert_eq!(limits(&world), [None, None, None, reached]);
}

/// A model that takes an hour for each answer.
struct Slow {
    model: Arc<dyn Model>,
    clock: Arc<ManualClock>,
}

#[async_trait]
impl Model for Slow {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        self.clock.advance(Duration::from_secs(60 * 60));
        self.model.answer(request, events).await
    }
}

struct Only(Arc<Slow>);

#[async_trait]
impl ModelSource for Only {
    async fn chain(&self, _of_turn: Option<&str>) -> Result<Vec<Arc<dyn Model>>, String> {
        Ok(vec![self.0.clone()])
    }
}

#[tokio::test]
async fn the_time_that_the_model_takes_for_all_answers_of_a_turn_is_bounded() {
    let replies = [looks(1), looks(2), Reply::says("so far")];
    let world = World::new(replies, outputs());
    let mut ports = world.ports();
    let (model, clock) = (world.model.clone(), world.clock.clone());
    ports.models = Arc::new(Only(Arc::new(Slow { model, clock })));
    let engine = world.engine();
    let ran = engine.run_turn(&ports, world.claim(), world.cancel.clone());
    ran.await.expect("it runs");
    assert_eq!(
        world.end().1,
        "the turn reached its limit of 2 h in calls of the model; a summary stands above; send another message to go on"
    );
    let most_ms = 2 * 60 * 60 * 1000;
    assert_eq!(
        limits(&world),
        [None, None, Some(TurnLimit::ModelTime { most_ms })]
    );
}
