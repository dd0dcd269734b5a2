//! Calls for which a runner has no room yet.

use std::time::Duration;

use shared_sandbox::{
    CancelAnswer, ExitCause, ExitStatus, Outcome,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Refusal, RefusalCode,
    event::{CallOutcome, TurnOutcome},
};

use crate::testing::{Happened, Reply, World, command, ends, exit};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

fn full(retry_after: Duration) -> Refusal {
    Refusal::new(RefusalCode::ResourceExhausted, "the runner is full").retry_after(retry_after)
}

/// The runner refused what the sandbox had taken.
fn no_room(retry_after: Duration) -> Script {
    ends(Outcome::Refused(full(retry_after)))
}

const SOON: Duration = Duration::from_millis(1);

fn one_call(scripts: impl IntoIterator<Item = Script>) -> World {
    World::new([Reply::calls("", [SHELL]), Reply::says("done")], scripts)
}

async fn told(world: &World) -> (CallOutcome, String) {
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    world.only_call()
}

#[tokio::test]
async fn what_found_no_room_runs_as_another_operation_once_the_first_is_over_for_good() {
    let world = one_call([no_room(SOON), command("built", 0)]);
    assert_eq!(told(&world).await.0, CallOutcome::Completed);
    let started = world.sandbox.scripted.started();
    let [first, second] = &started[..] else {
        panic!("{started:?}")
    };
    assert_ne!(first.id, second.id);
    assert_eq!(first.request, second.request);
    let trace = world.trace.all();
    let place = |what: Happened| trace.iter().position(|happened| *happened == what);
    let over = place(Happened::CancelAsked(first.id));
    assert!(over.is_some() && over < place(Happened::Started(second.clone())));
    assert_eq!(
        world.live.notices(),
        ["the runner is full; trying again in 1 ms"]
    );
    let forgotten = world.sandbox.scripted.forgotten();
    assert_eq!(forgotten, [first.id, second.id]);
}

#[tokio::test]
async fn what_never_finds_room_is_told_after_a_bounded_number_of_times() {
    let world = one_call((0..6).map(|_| no_room(SOON)));
    let (outcome, text) = told(&world).await;
    assert_eq!(outcome, CallOutcome::Refused);
    assert_eq!(text, "not run: the runner is full; try again in 1 ms");
    assert_eq!(world.sandbox.scripted.started().len(), 6);
}

#[tokio::test]
async fn what_was_not_even_taken_is_asked_for_again_as_it_is() {
    let world = one_call([Script::Refuse(full(SOON)), command("built", 0)]);
    assert_eq!(told(&world).await.0, CallOutcome::Completed);
    let started = world.sandbox.scripted.started();
    assert_eq!(started[0].id, started[1].id);
}

#[tokio::test]
async fn what_may_still_start_gets_no_second_operation() {
    let sandbox = ScriptedSandbox::new([no_room(SOON)]).answering_cancel(CancelAnswer::Recorded);
    let world = World::with_sandbox([Reply::calls("", [SHELL]), Reply::says("done")], sandbox);
    assert_eq!(told(&world).await.0, CallOutcome::Refused);
    assert_eq!(world.sandbox.scripted.started().len(), 1);
}

#[tokio::test]
async fn who_asks_for_a_long_wait_is_not_waited_for_and_each_remedy_has_its_words() {
    use RefusalCode::*;
    let refusal = |code| Refusal::new(code, "no");
    for (refusal, told_) in [
        (
            full(Duration::from_secs(60)),
            "the runner is full; try again in 1 min",
        ),
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
        assert_eq!(world.sandbox.scripted.started().len(), 1);
    }
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_it_waits_for_room_runs_nothing() {
    let world = one_call([no_room(Duration::from_secs(10))]);
    let running = world.spawn();
    while world.live.notices().is_empty() {
        tokio::task::yield_now().await;
    }
    world.cancel.cancel();
    let ended = running.await.expect("the engine does not panic");
    assert_eq!(ended, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.only_call().0, CallOutcome::Cancelled);
    assert_eq!(world.sandbox.scripted.started().len(), 1);
}

#[tokio::test]
async fn a_second_operation_is_stopped_where_the_turn_is_cancelled_after_its_worker_died() {
    let stopped = exit(1, ExitStatus::Signal(15), ExitCause::Cancelled);
    let world = one_call([no_room(SOON), Script::UntilCancelled(Vec::new(), stopped)]);
    let second = world.dies_after_starting(2).await;
    world.cancel.cancel();
    let _ = world.run().await;
    let asked = world.trace.all();
    assert!(asked.contains(&Happened::CancelAsked(second)), "{asked:?}");
    assert_eq!(world.only_call().0, CallOutcome::Cancelled);
}

#[tokio::test]
async fn nobody_says_not_run_where_a_second_operation_may_run_since_before_a_crash() {
    let world = one_call([no_room(SOON), Script::Hang(Vec::new())]);
    let second = world.dies_after_starting(2).await;
    world.was_placed(second);
    let silent = Refusal::new(RefusalCode::Unavailable, "the server failed to read");
    world.sandbox.scripted.refuse_cancels(silent);
    assert_eq!(told(&world).await.0, CallOutcome::Unknown);
}

#[tokio::test]
async fn what_may_run_since_before_a_crash_is_stopped_where_the_turn_is_cancelled_meanwhile() {
    let unread = Refusal::new(RefusalCode::Unavailable, "no").retry_after(Duration::from_secs(10));
    let world = one_call([Script::Hang(Vec::new()), Script::Refuse(unread)]);
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    shared_sandbox::Sandbox::forget(&world.sandbox.scripted, operation).await;
    let second = world.spawn();
    while world.live.notices().is_empty() {
        tokio::task::yield_now().await;
    }
    world.cancel.cancel();
    let _ = second.await;
    let asked = world.trace.all();
    assert!(
        asked.contains(&Happened::CancelAsked(operation)),
        "{asked:?}"
    );
}
