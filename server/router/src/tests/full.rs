//! Runners without room: the same operation is sent again.

use std::time::Duration;

use proto::v1::{self, cancel_answer::Answer, refusal::Code};
use shared_sandbox::{CancelAnswer, OperationEvent, Sandbox as _};
use shared_types::{Epoch, RefusalCode};
use tokio::time::Instant;

use super::{double::*, reconnect::assert_ends_with};
use shared_link::server::never_started;

const SOON: Duration = Duration::from_secs(2);

/// An operation for which its runner has no room yet.
async fn refused() -> (World, Runner, Link, v1::Operation, shared_sandbox::Running) {
    let (world, runner, mut link) = World::chosen().await;
    let running = world.sandbox.start(exec(10)).await.expect("it is placed");
    let frame = link.operation().await;
    link.refuse_for(&frame.operation, Code::ResourceExhausted, SOON)
        .await;
    (world, runner, link, frame, running)
}

#[tokio::test(start_paused = true)]
async fn a_runner_without_room_is_sent_the_same_operation_again_after_the_time_that_it_asks_for() {
    let (world, _runner, mut link, first, mut running) = refused().await;
    let began = Instant::now();
    let again = link.operation().await;
    assert!(began.elapsed() >= SOON - Duration::from_millis(1));
    assert_eq!(
        (&again.operation, &again.digest),
        (&first.operation, &first.digest)
    );
    assert!(again.request.is_some());
    link.accept(&again.operation).await;
    link.exit(&again.operation, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    assert_eq!(world.store.rows().told, ["no; trying again in 2.0 s"]);
    assert_eq!(world.store.rows().intents.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_never_finds_room_ends_with_the_refusal_once_its_time_to_start_has_passed() {
    let (world, _runner, mut link, _, mut running) = refused().await;
    let frame = link.operation().await;
    link.refuse_for(&frame.operation, Code::ResourceExhausted, SOON)
        .await;
    world.clock.advance(Duration::from_secs(61));
    let frame = link.operation().await;
    assert_eq!(frame.request, None, "it may only be attached to");
    link.refuse(&frame.operation, Code::NotFound).await;
    assert_ends_with(&mut running, RefusalCode::ResourceExhausted).await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_asks_for_a_long_time_is_not_waited_for() {
    let (world, _runner, mut link) = World::chosen().await;
    let mut running = world.sandbox.start(exec(10)).await.expect("it is placed");
    let id = link.operation().await.operation;
    link.refuse_for(&id, Code::ResourceExhausted, Duration::from_secs(60))
        .await;
    assert_ends_with(&mut running, RefusalCode::ResourceExhausted).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_stopped_while_it_waits_for_room_is_never_sent_again() {
    let (world, _runner, mut link, first, mut running) = refused().await;
    let sandbox = world.sandbox.clone();
    let cancel = tokio::spawn(async move { sandbox.cancel(exec(10).id, Epoch(1)).await });
    assert_eq!(link.cancel().await.operation, first.operation);
    link.answer_cancel(&first.operation, Answer::NeverStarted)
        .await;
    let answer = within(cancel).await.expect("it does not panic");
    assert_eq!(answer, Ok(CancelAnswer::NeverStarted));
    assert_ends_with(&mut running, never_started().code).await;
    world.collects_nothing().await;
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_room_when_its_runner_comes_back_is_sent_at_once() {
    let (world, runner, link, _, _running) = refused().await;
    world.lose(&runner, link).await;
    let mut link = world.link(&runner).await;
    let began = Instant::now();
    assert!(link.operation().await.request.is_some());
    assert!(began.elapsed() < SOON);
}
