//! Operations that outlast whoever began them.

use proto::v1::server_frame;
use shared_sandbox::{OperationEvent, Sandbox};

use super::double::*;

/// The next event, whatever it is.
async fn event(running: &mut shared_sandbox::Running) -> OperationEvent {
    within(running.events.recv()).await.expect("it goes on")
}

#[tokio::test(start_paused = true)]
async fn that_a_runner_has_an_operation_is_told_once_to_whoever_attaches() {
    let (world, runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    assert_eq!(event(&mut running).await, OperationEvent::Accepted);
    world.lose(&runner, link).await;
    assert!(matches!(
        event(&mut running).await,
        OperationEvent::Unreachable { .. }
    ));
    let mut link = world.link(&runner.remembering(&exec(10), false)).await;
    assert_eq!(event(&mut running).await, OperationEvent::Reachable);
    link.operation().await;
    link.accept(&id).await;
    link.output(&id, 0, "abc").await;
    assert_eq!(event(&mut running).await, stdout(0, "abc"));
    let mut second = world.sandbox.start(exec(10)).await.expect("it attaches");
    link.operation().await;
    link.accept(&id).await;
    assert_eq!(next(&mut second).await, stdout(0, "abc"));
    assert_eq!(event(&mut second).await, OperationEvent::Accepted);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_while_it_runs_is_read_to_its_end_and_may_then_be_forgotten() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "abc").await;
    assert_eq!(next(&mut running).await, stdout(0, "abc"));
    world.store.rows().abandoned.push(exec(10).id);
    // The stream is let go of and nothing more is told, so its follower still reads.
    drop(running);
    world.sandbox.leave(exec(10).id).await;
    let frame = link.operation().await;
    assert_eq!((frame.request, frame.stdout_from), (None, 3));
    link.accept(&id).await;
    // Whoever attaches takes it back, with all that is kept.
    let mut again = world.sandbox.start(exec(10)).await.expect("it attaches");
    link.operation().await;
    link.accept(&id).await;
    assert_eq!(next(&mut again).await, stdout(0, "abc"));
    drop(again);
    world.sandbox.leave(exec(10).id).await;
    link.operation().await;
    link.accept(&id).await;
    link.output(&id, 3, "def").await;
    link.exit(&id, 6).await;
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(6))).await;
    loop {
        match link.next().await {
            server_frame::Kind::Forget(forget) => break assert_eq!(forget.operation, id),
            server_frame::Kind::Commit(_) => {}
            other => panic!("expected that it may be forgotten, got {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_when_it_is_left_may_be_forgotten_at_once() {
    let (world, _runner, mut link) = World::chosen().await;
    let (running, id) = world.begin(&mut link, exec(10)).await;
    link.exit(&id, 0).await;
    drop(running);
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(0))).await;
    world.sandbox.leave(exec(10).id).await;
    let next = link.next().await;
    assert!(matches!(next, server_frame::Kind::Forget(_)), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn what_ends_in_the_instant_in_which_it_is_left_may_be_forgotten_as_well() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    world.store.rows().abandoned.push(exec(10).id);
    // Its end is stored while it is being left.
    drop(running);
    world.sandbox.leave(exec(10).id).await;
    loop {
        match link.next().await {
            server_frame::Kind::Forget(_) => break,
            server_frame::Kind::Operation(_) => {
                link.accept(&id).await;
                link.exit(&id, 0).await;
            }
            other => panic!("expected that it may be forgotten, got {other:?}"),
        }
    }
}
