//! The time in which an operation must start, over lost links and whatever clocks do.

use std::time::Duration;

use proto::v1;
use shared_sandbox::{OperationEvent, Running, Sandbox as _};
use shared_types::{RefusalCode, clock::BootMoment};
use tokio::time::timeout;

use super::{double::*, reconnect::assert_ends_with};

/// An operation whose frame was sent, and whose runner is away before it answers.
async fn sent_and_cut_off() -> (World, Runner, Running) {
    let (world, runner, mut link) = World::chosen().await;
    let mut running = world.sandbox.start(exec(10)).await.expect("it starts");
    link.operation().await;
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    (world, runner, running)
}

/// Once its runner is back and knows nothing of it, it is over. `fenced`: once the runner has promised not to start it.
async fn never_starts(world: &World, runner: &Runner, running: &mut Running, fenced: bool) {
    let mut link = world.link(runner).await;
    let frame = link.operation().await;
    assert_eq!(frame.request, None, "it may only be attached to");
    link.refuse(&frame.operation, v1::refusal::Code::NotFound)
        .await;
    if fenced {
        let answer = v1::cancel_answer::Answer::NeverStarted;
        assert_eq!(link.cancel().await.operation, frame.operation);
        assert_eq!(world.store.outcome(&exec(10)), None, "it may still start");
        link.answer_cancel(&frame.operation, answer).await;
    }
    assert_eq!(next(running).await, OperationEvent::Reachable);
    assert_ends_with(running, RefusalCode::Expired).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_time_to_start_has_passed_is_never_started() {
    let (world, runner, mut running) = sent_and_cut_off().await;
    world.clock.advance(Duration::from_secs(61));
    never_starts(&world, &runner, &mut running, false).await;
    assert!(world.store.outcome(&exec(10)).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_remains_of_the_time_to_start_shrinks() {
    let (world, runner, mut link) = World::chosen().await;
    let _running = world.sandbox.start(exec(10)).await.expect("it starts");
    assert_eq!(link.operation().await.start_within_ms, 60_000);
    world.lose(&runner, link).await;
    world.clock.advance(Duration::from_secs(20));
    let mut link = world.link(&runner).await;
    assert_eq!(link.operation().await.start_within_ms, 40_000);
}

#[tokio::test(start_paused = true)]
async fn no_wall_clock_moves_the_time_to_start() {
    const HOURS: i64 = 2 * 60 * 60 * 1_000_000;
    for (forward, passes, left) in [(HOURS, 20, 40_000), (-HOURS, 20, 40_000), (-HOURS, 61, 0)] {
        let world = World::new();
        let runner = Runner::new(1, "one");
        let mut link = world.link(&runner).await;
        world.store.choose(&runner);
        let _running = world.sandbox.start(exec(10)).await.expect("it starts");
        assert_eq!(link.operation().await.start_within_ms, 60_000);
        world.lose(&runner, link).await;
        world.clock.set_wall(forward);
        world.clock.advance(Duration::from_secs(passes));
        let mut link = world.link(&runner).await;
        let frame = link.operation().await;
        assert_eq!(frame.start_within_ms, left, "{forward}");
        assert_eq!(frame.request.is_some(), left > 0, "{forward}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_server_has_placed_or_an_earlier_release_is_not_started() {
    let another = Some(BootMoment {
        boot: "another".to_owned(),
        at: Duration::MAX,
    });
    // Another server may be about to send it, and an earlier release is no more.
    for (start_by, fenced) in [(another, true), (None, false)] {
        let (world, runner, mut running) = sent_and_cut_off().await;
        world.store.starts_by(&exec(10), start_by);
        never_starts(&world, &runner, &mut running, fenced).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_room_on_its_link_until_its_time_to_start_has_passed_is_not_started() {
    let (world, _runner, mut link) = World::chosen().await;
    let mut running = Vec::new();
    // More than the link has room for.
    for number in 100..200 {
        let started = world.sandbox.start(exec(number)).await;
        running.push(started.expect("it is placed"));
    }
    let last = running.last_mut().expect("one of them");
    let told = timeout(Duration::from_millis(5), next(last)).await;
    assert!(told.is_err(), "it waits: {told:?}");
    world.clock.advance(Duration::from_secs(61));
    for number in 100..200 {
        let frame = link.operation().await;
        assert_eq!(frame.request.is_some(), number < 100 + FRAMES as u128);
    }
}
