//! Turns that have nothing to do but to wait, and need no worker for that.

use std::time::Duration;

use shared_sandbox::{ExitCause, ExitStatus, OperationEvent, scripted::Script};
use shared_types::{
    CallWait, OperationId, Timestamp, WaitsFor,
    event::{CallOutcome, TurnOutcome},
};
use tokio::time::Instant;

use crate::{
    Carried, Live, WaitingCall,
    testing::{Happened, Reply, START, TURN, World, content, ends, exit, output},
    wait::show_waiting,
};

const PARKS_AFTER: Duration = Duration::from_secs(10);
const SHELL: (&str, &str) = ("Shell", r#"{"command":"make","timeout_ms":120000}"#);
const READ: (&str, &str) = ("Read", r#"{"path":"a"}"#);

fn world<'a>(
    calls: impl IntoIterator<Item = (&'a str, &'a str)>,
    scripts: impl IntoIterator<Item = Script>,
) -> World {
    let mut world = World::new([Reply::calls("", calls), Reply::says("done")], scripts);
    world.limits.parks_after = PARKS_AFTER;
    world
}

fn runs() -> Script {
    Script::Hang(vec![OperationEvent::Accepted, output("half")])
}

/// The clock of these tests stands still while a worker listens, so that this is well before.
fn away_since() -> Timestamp {
    Timestamp::from_micros(START.as_micros() - 2 * PARKS_AFTER.as_micros() as i64)
}

fn is_away() -> Script {
    let gone = OperationEvent::Unreachable {
        since: away_since(),
    };
    Script::Hang(vec![OperationEvent::Accepted, output("half"), gone])
}

fn has_ended() -> Script {
    Script::Events(vec![
        OperationEvent::Accepted,
        output("half"),
        OperationEvent::Ended(exit(4, ExitStatus::Code(0), ExitCause::Exited)),
    ])
}

/// Runs the turn to where it only waits; the next worker is told so.
async fn until_it_waits(world: &mut World) -> Vec<WaitingCall> {
    let carried = world.spawn_carrying().await;
    match carried.expect("the engine does not panic") {
        Ok(Carried::Waits(calls)) => {
            world.waited = calls.iter().map(|call| call.wait.clone()).collect();
            let placed = world.started(1).await[0];
            world.was_placed(placed);
            calls
        }
        other => panic!("the turn does not wait: {other:?}"),
    }
}

fn only(world: &World) -> &CallWait {
    match &world.waited[..] {
        [wait] => wait,
        other => panic!("expected one call, got {other:?}"),
    }
}

fn operation(world: &World) -> OperationId {
    let operation = only(world).waits_for.operation();
    operation.expect("it waits for an operation")
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_command_runs_for_long_waits_without_a_worker_and_goes_on_with_its_end() {
    let mut world = world([SHELL], [runs()]);
    let began = Instant::now();
    until_it_waits(&mut world).await;
    assert_eq!(began.elapsed(), PARKS_AFTER);
    let wait = only(&world);
    let operation = operation(&world);
    let left = Duration::from_secs(110);
    assert_eq!(
        (wait.waits_for, wait.until.since(START)),
        (WaitsFor::Operation(operation), left)
    );
    assert_eq!(world.ended_calls(), [], "nothing is concluded yet");
    world.sandbox.scripted.goes_on_as(operation, has_ended());
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Completed);
    assert_eq!(world.sandbox.scripted.asked(), [operation; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_command_goes_on_in_the_background_when_its_time_is_over_without_a_worker() {
    let mut world = world([SHELL], [runs()]);
    until_it_waits(&mut world).await;
    world.clock.advance(Duration::from_secs(110));
    let began = Instant::now();
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Background);
    assert_eq!(began.elapsed().as_secs(), 1, "it is not waited for anew");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_wait_goes_on_where_a_worker_is_woken_for_nothing() {
    let mut world = world([SHELL], [runs()]);
    until_it_waits(&mut world).await;
    world.clock.advance(Duration::from_secs(60));
    let until = only(&world).until;
    until_it_waits(&mut world).await;
    // The clock of the test stands still while the worker listens.
    let listened = PARKS_AFTER;
    assert_eq!(only(&world).until.after(listened), until);
}

#[tokio::test(start_paused = true)]
async fn a_runner_is_waited_for_without_a_worker_as_long_as_it_would_be_with_one() {
    let mut world = world([SHELL], [is_away()]);
    until_it_waits(&mut world).await;
    let wait = only(&world);
    let most = world.limits.parked_at_most;
    assert_eq!(wait.waits_for, WaitsFor::Runner(operation(&world)));
    assert_eq!(wait.until.since(START), most - PARKS_AFTER);
    world.clock.advance(most);
    let began = Instant::now();
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(world.only_call().0, CallOutcome::Unknown);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_goes_away_once_more_is_waited_for_anew() {
    let mut world = world([SHELL], [is_away()]);
    until_it_waits(&mut world).await;
    let operation = operation(&world);
    let most = world.limits.parked_at_most;
    world.clock.advance(most);
    let gone_again = OperationEvent::Unreachable {
        since: START.after(most),
    };
    let again = Script::Hang(vec![OperationEvent::Accepted, gone_again]);
    world.sandbox.scripted.goes_on_as(operation, again);
    until_it_waits(&mut world).await;
    assert_eq!(
        only(&world).until.since(START.after(most)),
        most - PARKS_AFTER
    );
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_keeps_its_worker() {
    let short = ("Shell", r#"{"command":"make","timeout_ms":20000}"#);
    let world = world([short], [runs()]);
    let running = world.spawn();
    let operation = world.started(1).await[0];
    world.was_placed(operation);
    let ended = running.await.expect("the engine does not panic");
    assert_eq!(ended, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Background);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waited_is_cancelled_as_any_other() {
    let stopped = exit(4, ExitStatus::Signal(15), ExitCause::Cancelled);
    let script = Script::UntilCancelled(vec![OperationEvent::Accepted, output("half")], stopped);
    let mut world = world([SHELL], [script]);
    until_it_waits(&mut world).await;
    world.cancel.cancel();
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.only_call().0, CallOutcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn what_ends_beside_a_call_that_waits_is_recorded_and_what_is_behind_it_is_not_begun() {
    let mut world = world(
        [READ, READ, SHELL],
        [is_away(), ends(content("x")), has_ended()],
    );
    until_it_waits(&mut world).await;
    assert_eq!(world.ended_calls().len(), 1);
    let begun = world.trace.all().into_iter();
    let begun = begun.filter(|happened| matches!(happened, Happened::Started(_)));
    assert_eq!(begun.count(), 2);
    let operation = operation(&world);
    let back = Script::Events(vec![OperationEvent::Ended(content("y"))]);
    world.sandbox.scripted.goes_on_as(operation, back);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.ended_calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_task_waits_for_its_command_without_a_worker() {
    let shell = ("Shell", r#"{"command":"make","background":true}"#);
    let look = ("task_read", r#"{"task":1,"wait_ms":60000}"#);
    let mut world = World::new(
        [
            Reply::calls("", [shell]),
            Reply::calls("", [look]),
            Reply::says("done"),
        ],
        [runs()],
    );
    world.limits.parks_after = PARKS_AFTER;
    let running = world.spawn_carrying();
    let task = world.started(1).await[0];
    world.was_placed(task);
    let carried = running.await.expect("the engine does not panic");
    let Ok(Carried::Waits(calls)) = carried else {
        panic!("the turn does not wait: {carried:?}")
    };
    world.waited = calls.into_iter().map(|call| call.wait).collect();
    let wait = only(&world);
    assert_eq!((wait.step, wait.waits_for), (2, WaitsFor::Operation(task)));
    assert_eq!(wait.until.since(START), Duration::from_secs(50));
    world.sandbox.scripted.goes_on_as(task, has_ended());
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
}

#[tokio::test(start_paused = true)]
async fn those_who_watch_see_what_a_command_writes_and_where_its_runner_is_while_no_worker_has_it()
{
    let mut world = world([SHELL], [runs()]);
    let calls = until_it_waits(&mut world).await;
    let more = OperationEvent::Output {
        stream: shared_sandbox::OutputStream::Stdout,
        offset: 4,
        data: "more".into(),
    };
    let gone = OperationEvent::Unreachable { since: START };
    let script = Script::Events(vec![output("half"), more, gone, OperationEvent::Reachable]);
    let operation = operation(&world);
    world.sandbox.scripted.goes_on_as(operation, script);
    show_waiting(&world.ports(), TURN, calls).await;
    let outputs = world.live.all().into_iter().filter_map(|live| match live {
        Live::Output { offset, data, .. } => Some((offset, data)),
        _ => None,
    });
    let outputs: Vec<_> = outputs.collect();
    assert_eq!(outputs, [(0, "half".into()), (4, "more".into())]);
    let away = format!("runner scripted offline since {START:.0}; waiting");
    assert_eq!(
        world.live.notices(),
        [away.as_str(), "runner scripted is back"]
    );
}
