//! Turns that no worker can carry to their end.

use std::time::Duration;

use shared_sandbox::scripted::Script;
use shared_types::event::{CallOutcome, TurnOutcome};

use crate::{
    LogError, TurnError,
    testing::{EPOCH, Fault, Reply, TURN, World},
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

/// A turn whose worker died with its first command under way and its second one not begun.
async fn cut_off() -> World {
    let mut world = World::new(
        [Reply::calls("", [SHELL, SHELL])],
        [Script::Hang(Vec::new())],
    );
    world.limits.stop_within = Duration::from_secs(1);
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    world
}

async fn abandon(world: &World) -> Result<(), TurnError> {
    let (engine, ports) = (world.engine(), world.ports());
    let reason = Some("it failed".to_owned());
    engine
        .abandon_turn(&ports, TURN, EPOCH, TurnOutcome::Failed, reason)
        .await
}

#[tokio::test]
async fn an_abandoned_turn_stops_what_runs_and_every_call_of_it_ends() {
    let world = cut_off().await;
    assert_eq!(abandon(&world).await, Ok(()));
    let ended = world.ended_calls();
    let outcomes = ended.iter().map(|event| match event {
        shared_types::Event::CallEnded {
            ordinal, outcome, ..
        } => (*ordinal, *outcome),
        other => panic!("{other:?}"),
    });
    assert!(outcomes.eq([(0, CallOutcome::Unknown), (1, CallOutcome::Refused)]));
    assert_eq!(world.end(), (TurnOutcome::Failed, "it failed".to_owned()));
    let scripted = &world.sandbox.scripted;
    let operation = scripted.started()[0].id;
    assert_eq!(scripted.cancelled(), [operation]);
    assert_eq!(scripted.left(), [operation]);
    let events = world.log.events();
    assert_eq!(abandon(&world).await, Ok(()));
    assert_eq!(world.log.events(), events, "it ends once");
}

#[tokio::test]
async fn a_turn_is_abandoned_only_where_that_can_be_recorded() {
    let world = cut_off().await;
    let error = LogError::Unavailable("the disk is full".to_owned());
    world.log.break_at(Fault {
        at: 0,
        stored: false,
        error: error.clone(),
    });
    assert_eq!(abandon(&world).await, Err(error.into()));
    assert!(world.ended_calls().is_empty());
}
