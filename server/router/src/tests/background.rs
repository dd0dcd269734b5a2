//! Operations that outlast whoever began them.

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
    assert_eq!(event(&mut second).await, OperationEvent::Accepted);
    assert_eq!(event(&mut second).await, stdout(0, "abc"));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_while_it_runs_is_read_to_its_end_and_may_then_be_forgotten() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "abc").await;
    assert_eq!(next(&mut running).await, stdout(0, "abc"));
    world.store.rows().abandoned.push(exec(10).id);
    drop(running);
    world.sandbox.leave(exec(10).id).await;
    // Whoever reads it meanwhile has all that is kept, and asks nothing of the runner.
    let mut again = world
        .sandbox
        .read(exec(10).id, [1, 0])
        .await
        .expect("it runs");
    assert_eq!(next(&mut again).await, stdout(1, "bc"));
    drop(again);
    link.output(&id, 3, "def").await;
    link.exit(&id, 6).await;
    assert_eq!(link.forgets().await, id);
    assert_eq!(world.store.outcome(&exec(10)), Some(exited(6)));
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_call_is_recorded_is_stored_once_its_events_are_let_go_of() {
    let (world, _runner, mut link) = World::chosen().await;
    let (running, id) = world.begin(&mut link, exec(10)).await;
    link.exit(&id, 0).await;
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    assert_eq!(world.store.outcome(&exec(10)), None);
    world.store.rows().abandoned.push(exec(10).id);
    drop(running);
    world.sandbox.leave(exec(10).id).await;
    assert_eq!(link.forgets().await, id);
    assert_eq!(world.store.outcome(&exec(10)), Some(exited(0)));
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_and_is_left_by_a_server_that_was_started_again_may_be_forgotten() {
    let (world, runner, mut link) = World::chosen().await;
    let (running, _) = world.begin(&mut link, exec(10)).await;
    world.lose(&runner, link).await;
    drop(running);
    world.store.keep_end(&exec(10), exited(0));
    let world = world.restarted();
    let mut link = world.link(&runner).await;
    world.sandbox.leave(exec(10).id).await;
    assert_eq!(link.forgets().await, exec(10).id.to_string());
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_read_of_what_was_never_asked_for() {
    let (world, _runner, mut link) = World::chosen().await;
    let refused = world.sandbox.read(exec(10).id, [0, 0]).await;
    let refused = refused.expect_err("there is none");
    assert_eq!(refused.code, shared_types::RefusalCode::NotFound);
    assert!(!link.has_been_sent_something());
}
