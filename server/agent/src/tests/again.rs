//! Calls that a sandbox refuses. It has tried again by itself where that could help.

use std::time::Duration;

use shared_sandbox::{Outcome, scripted::Script};
use shared_types::{
    Refusal, RefusalCode,
    event::{CallOutcome, TurnOutcome},
};

use crate::testing::{Reply, World, ends};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

fn full(retry_after: Duration) -> Refusal {
    Refusal::new(RefusalCode::ResourceExhausted, "the runner is full").retry_after(retry_after)
}

fn one_call(scripts: impl IntoIterator<Item = Script>) -> World {
    World::new([Reply::calls("", [SHELL]), Reply::says("done")], scripts)
}

async fn told(world: &World) -> (CallOutcome, String) {
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    world.only_call()
}

#[tokio::test]
async fn what_found_no_room_is_told_and_gets_no_second_operation() {
    let minute = Duration::from_secs(60);
    for script in [
        ends(Outcome::Refused(full(minute))),
        Script::Refuse(full(minute)),
    ] {
        let world = one_call([script]);
        let (outcome, text) = told(&world).await;
        assert_eq!(outcome, CallOutcome::Refused);
        assert_eq!(text, "not run: the runner is full; try again in 1 min");
        assert_eq!(world.sandbox.scripted.started().len(), 1);
    }
}

#[tokio::test]
async fn each_remedy_has_its_words() {
    use RefusalCode::*;
    let refusal = |code| Refusal::new(code, "no");
    for (refusal, told_) in [
        (refusal(SpoolFull), "no; try again later"),
        (
            refusal(Unavailable),
            "no; somebody has to see to that first",
        ),
        (
            refusal(Unsupported),
            "no; trying again as it is will not change that",
        ),
        (refusal(Expired), "no"),
    ] {
        let world = one_call([ends(Outcome::Refused(refusal))]);
        assert_eq!(told(&world).await.1, format!("not run: {told_}"));
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_its_call_waits_for_room_ends_at_once_and_runs_nothing() {
    // The sandbox tries again, which is all that is heard of it.
    let world = one_call([Script::Hang(Vec::new())]);
    let running = world.spawn();
    world.started(1).await;
    world.sandbox.scripted.never_starts();
    world.cancel.cancel();
    let ended = running.await.expect("the engine does not panic");
    assert_eq!(ended, Ok(TurnOutcome::Cancelled));
    assert_eq!(
        world.only_call(),
        (CallOutcome::Cancelled, "cancelled before it ran".to_owned())
    );
}
