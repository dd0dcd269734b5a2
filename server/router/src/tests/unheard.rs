//! Operations that never came to their runner, and which nobody will send any more.

use futures_util::poll;
use proto::v1::{self, cancel_answer::Answer};
use shared_sandbox::{CancelAnswer, Outcome, Sandbox};
use shared_types::Epoch;

use super::double::*;
use shared_link::server::never_started;

/// A server that was started again after it had placed [`exec`] 10, and knows no more of it.
async fn restarted() -> World {
    let (before, runner) = (World::new(), Runner::new(1, "one"));
    let mut link = before.link(&runner).await;
    before.store.choose(&runner);
    drop(before.sandbox.start(exec(10)).await.expect("it starts"));
    link.operation().await;
    let world = World::new();
    let intent = before.store.rows().intents[&exec(10).id].clone();
    world.store.rows().intents.insert(exec(10).id, intent);
    world
}

fn is_over(world: &World) -> bool {
    world.store.outcome(&exec(10)) == Some(Outcome::Refused(never_started()))
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_never_had_and_nobody_waits_for_is_over_when_it_links() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    world.store.rows().abandoned.push(exec(10).id);
    let mut link = world.link(&runner).await;
    assert!(is_over(&world));
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_never_had_may_still_be_sent_by_a_turn_that_goes_on() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    assert_eq!(world.store.outcome(&exec(10)), None);
    let mut running = world.sandbox.start(exec(10)).await.expect("it is stored");
    let frame = link.operation().await;
    assert!(frame.request.is_some());
    link.accept(&frame.operation).await;
    link.exit(&frame.operation, 0).await;
    let ended = shared_sandbox::OperationEvent::Ended(exited(0));
    assert_eq!(next(&mut running).await, ended);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_once_its_runner_has_linked_is_fenced_there() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    world.store.rows().abandoned.push(exec(10).id);
    world.sandbox.leave(exec(10).id).await;
    let frame = link.operation().await;
    assert_eq!(frame.request, None);
    link.refuse(&frame.operation, v1::refusal::Code::NotFound)
        .await;
    assert_eq!(link.cancel().await.operation, frame.operation);
    assert_eq!(world.store.outcome(&exec(10)), None);
    link.answer_cancel(&frame.operation, Answer::NeverStarted)
        .await;
    eventually(|| is_over(&world)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_while_somebody_reads_it_is_fenced_as_well() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    let reading = world.sandbox.read(exec(10).id, [0, 0]).await;
    let _reading = reading.expect("it is placed");
    let frame = link.operation().await;
    world.store.rows().abandoned.push(exec(10).id);
    world.sandbox.leave(exec(10).id).await;
    // The reader's collector has read that the call goes on, and leaves the operation to it.
    link.refuse(&frame.operation, v1::refusal::Code::NotFound)
        .await;
    assert_eq!(link.operation().await.operation, frame.operation);
    link.refuse(&frame.operation, v1::refusal::Code::NotFound)
        .await;
    assert_eq!(link.cancel().await.operation, frame.operation);
    link.answer_cancel(&frame.operation, Answer::NeverStarted)
        .await;
    eventually(|| is_over(&world)).await;
}

#[tokio::test(start_paused = true)]
async fn what_runs_when_its_call_ends_is_let_run_and_its_outcome_is_stored() {
    let runner = Runner::new(1, "one").remembering(&exec(10), false);
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    world.store.rows().abandoned.push(exec(10).id);
    world.sandbox.leave(exec(10).id).await;
    let frame = link.operation().await;
    assert_eq!(frame.request, None);
    link.accept(&frame.operation).await;
    link.output(&frame.operation, 0, "abc").await;
    link.exit(&frame.operation, 3).await;
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(3))).await;
}

#[tokio::test(start_paused = true)]
async fn that_an_operation_never_started_is_stored_before_it_is_answered() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    let sandbox = world.sandbox.clone();
    let cancel = tokio::spawn(async move { sandbox.cancel(exec(10).id, Epoch(1)).await });
    let frame = link.cancel().await;
    link.answer_cancel(&frame.operation, Answer::NeverStarted)
        .await;
    let answer = within(cancel).await.expect("it does not panic");
    assert_eq!(answer, Ok(CancelAnswer::NeverStarted));
    assert!(is_over(&world));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_carried_out_although_its_caller_has_gone() {
    let runner = Runner::new(1, "one");
    let world = restarted().await;
    let mut link = world.link(&runner).await;
    let mut cancel = world.sandbox.cancel(exec(10).id, Epoch(1));
    assert!(poll!(&mut cancel).is_pending());
    drop(cancel);
    let frame = link.cancel().await;
    assert!(world.store.rows().intents[&exec(10).id].cancel_requested);
    link.answer_cancel(&frame.operation, Answer::NeverStarted)
        .await;
    eventually(|| is_over(&world)).await;
}
