//! Commands that outlast their calls.

use std::time::Duration;

use shared_sandbox::{ExitCause, ExitStatus, OperationEvent, scripted::Script};
use shared_types::{
    Event, OperationId, Timestamp,
    event::{Awaited, CallOutcome, TurnOutcome},
    limits::{AWAY_AT_MOST, LINK_LEASE},
};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    Live, TurnError,
    testing::{Reply, START, World, exit, output},
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"make","timeout_ms":5000}"#);
const READ_ON: (&str, &str) = (
    "task_read",
    r#"{"task":1,"stdout_from":4,"stderr_from":0,"wait_ms":1000}"#,
);
const KILL: (&str, &str) = ("task_kill", r#"{"task":1}"#);

fn runs_on() -> Script {
    Script::Hang(vec![OperationEvent::Accepted, output("half")])
}

fn until_it_is_stopped() -> Script {
    let stopped = exit(4, ExitStatus::Signal(15), ExitCause::Cancelled);
    Script::UntilCancelled(vec![OperationEvent::Accepted, output("half")], stopped)
}

/// Answers with these calls, one after the other.
fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>, script: Script) -> World {
    let calls = calls.into_iter().map(|call| Reply::calls("", [call]));
    World::new(calls.chain([Reply::says("done")]), [script])
}

/// Waits until the first answer's call with this number, from 0, is started, and notes where, as the
/// store does.
async fn place(world: &World, ordinal: u32) -> OperationId {
    let operation = world.started(ordinal as usize + 1).await[ordinal as usize];
    world.was_placed_at(1, ordinal, operation);
    operation
}

/// The operation has ended, and nobody listened.
fn settle(world: &World, operation: OperationId) {
    world.log.append(Event::OperationSettled {
        operation,
        summary: "exit code 0".to_owned(),
    });
}

/// Runs the turn, whose first answer asks for so many operations.
async fn run_all(world: &World, calls: u32) {
    let running = world.spawn();
    for ordinal in 0..calls {
        place(world, ordinal).await;
    }
    assert_ends(running, TurnOutcome::Completed).await;
}

/// Runs the turn, whose first answer asks for one operation.
async fn run(world: &World) -> OperationId {
    run_all(world, 1).await;
    world.started(1).await[0]
}

async fn assert_ends(running: JoinHandle<Result<TurnOutcome, TurnError>>, outcome: TurnOutcome) {
    let ended = running.await.expect("the engine does not panic");
    assert_eq!(ended, Ok(outcome));
}

fn told(world: &World) -> Vec<(CallOutcome, String, Option<u32>)> {
    let calls = world.ended_calls().into_iter();
    let told = calls.filter_map(|event| match event {
        Event::CallEnded {
            outcome,
            parts,
            task,
            ..
        } => Some((outcome, parts.words().into_owned(), task)),
        _ => None,
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn a_command_that_outlasts_its_call_goes_on_as_a_task_and_is_left_to_its_place() {
    let world = calls([SHELL], runs_on());
    let operation = run(&world).await;
    let text = "half\n[it still ran after 5 s and goes on in the background as task 1; do not run it \
                again: read on with task_read {\"task\":1,\"stdout_from\":4,\"stderr_from\":0}; \
                task_kill stops it]";
    assert_eq!(
        told(&world),
        [(CallOutcome::Background, text.to_owned(), Some(1))]
    );
    let sandbox = &world.sandbox.scripted;
    assert_eq!(
        (sandbox.started().len(), sandbox.left()),
        (1, vec![operation])
    );
    assert_eq!((sandbox.cancelled(), sandbox.stored()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_is_begun_in_the_background_has_the_next_number_each() {
    let begin = ("Shell", r#"{"command":"serve","background":true}"#);
    let world = World::new(
        [Reply::calls("", [begin, begin]), Reply::says("done")],
        [runs_on(), runs_on()],
    );
    run_all(&world, 2).await;
    let tasks: Vec<_> = told(&world).iter().map(|(_, _, task)| *task).collect();
    assert_eq!(tasks, [Some(1), Some(2)]);
}

#[tokio::test(start_paused = true)]
async fn only_what_runs_for_sure_goes_to_the_background() {
    let gone = OperationEvent::Unreachable { since: START };
    for (events, said, outcome) in [
        (
            vec![],
            "did not report its end in time",
            TurnOutcome::Completed,
        ),
        (
            vec![OperationEvent::Accepted, gone],
            "has been offline since",
            TurnOutcome::Failed,
        ),
    ] {
        let mut world = calls([SHELL], Script::Hang(events));
        world.limits.start_within = Duration::ZERO;
        world.limits.parked_at_most = Duration::from_secs(10);
        let running = world.spawn();
        place(&world, 0).await;
        assert_ends(running, outcome).await;
        let [(CallOutcome::Unknown, text, None)] = &told(&world)[..] else {
            panic!("{:?}", told(&world));
        };
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_came_back_is_heard_out_before_its_command_goes_to_the_background() {
    let events = vec![
        OperationEvent::Accepted,
        OperationEvent::Unreachable { since: START },
        OperationEvent::Reachable,
    ];
    let call = ("Shell", r#"{"command":"make","timeout_ms":100}"#);
    let world = calls([call], Script::Hang(events));
    let began = tokio::time::Instant::now();
    run(&world).await;
    assert_eq!(told(&world)[0].2, Some(1));
    assert!(began.elapsed() >= Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_read_on_from_where_it_was_read_to_and_goes_on() {
    let world = calls([SHELL, READ_ON], runs_on());
    let operation = run(&world).await;
    let text = "[task 1 still runs, for 0 ms; read on with task_read \
                {\"task\":1,\"stdout_from\":4,\"stderr_from\":0}]";
    assert_eq!(
        told(&world)[1],
        (CallOutcome::Completed, text.to_owned(), None)
    );
    let sandbox = &world.sandbox.scripted;
    assert_eq!(sandbox.asked(), [operation, operation]);
    assert_eq!(sandbox.started().len(), 1, "then it is only read");
    assert_eq!(sandbox.left(), [operation]);
    let shown = world.live.all().into_iter();
    let shown = shown.filter(|live| matches!(live, Live::Output { .. }));
    assert_eq!(shown.count(), 1, "what was shown is not shown again");
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_more_than_there_is_hears_how_much_there_is() {
    let beyond = ("task_read", r#"{"task":1,"stdout_from":99}"#);
    let world = calls([SHELL, beyond, KILL, beyond], until_it_is_stopped());
    run(&world).await;
    let told = told(&world);
    assert!(told[1].1.contains("\"stdout_from\":4,"), "{}", told[1].1);
    assert!(
        told[3].1.starts_with("[stdout has only 4 bytes]\n[stopped"),
        "{}",
        told[3].1
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_at_a_task_whose_runner_is_gone_hears_since_when() {
    let world = calls([SHELL, READ_ON], runs_on());
    let running = world.spawn();
    let task = place(&world, 0).await;
    let gone = OperationEvent::Unreachable { since: START };
    let script = Script::Hang(vec![OperationEvent::Accepted, gone]);
    world.sandbox.scripted.goes_on_as(task, script);
    assert_ends(running, TurnOutcome::Completed).await;
    let (outcome, text, _) = &told(&world)[1];
    let since = format!("task 1 ran when runner scripted went offline at {START:.0}");
    assert!(text.contains(&since), "{text}");
    assert_eq!(*outcome, CallOutcome::Completed);
}

/// How many seconds one look of a second takes at a task whose runner went away so long ago.
async fn look_at_a_task_whose_runner_is_gone_for(ago: Duration) -> f64 {
    let world = calls([SHELL, READ_ON], runs_on());
    let running = world.spawn();
    let task = place(&world, 0).await;
    let since = Timestamp::from_micros(START.as_micros() - ago.as_micros() as i64);
    let gone = OperationEvent::Unreachable { since };
    let script = Script::Hang(vec![OperationEvent::Accepted, gone]);
    world.sandbox.scripted.goes_on_as(task, script);
    world.started(2).await;
    let began = Instant::now();
    assert_ends(running, TurnOutcome::Completed).await;
    let notices = world.live.notices();
    assert!(notices.iter().any(|text| text.contains("offline since")));
    began.elapsed().as_secs_f64().round()
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_task_waits_for_a_runner_that_is_only_away() {
    let away = look_at_a_task_whose_runner_is_gone_for(Duration::from_secs(3)).await;
    assert_eq!(away, AWAY_AT_MOST.as_secs_f64());
    let offline = look_at_a_task_whose_runner_is_gone_for(LINK_LEASE).await;
    assert_eq!(offline, 1.0);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_task_is_not_going_in_circles_also_where_each_answer_is_the_same() {
    let gone = OperationEvent::Unreachable { since: START };
    for (script, awaited) in [
        (runs_on(), Awaited::Command),
        (
            Script::Hang(vec![OperationEvent::Accepted, gone]),
            Awaited::Runner,
        ),
    ] {
        let mut world = calls([SHELL, READ_ON, READ_ON, READ_ON, READ_ON], runs_on());
        world.limits.same_steps = 2;
        let running = world.spawn();
        let task = place(&world, 0).await;
        world.sandbox.scripted.goes_on_as(task, script);
        assert_ends(running, TurnOutcome::Completed).await;
        let looks = world.ended_calls().split_off(1);
        let awaits = looks.iter().map(|event| match event {
            Event::CallEnded { awaits, .. } => *awaits,
            _ => None,
        });
        assert!(awaits.eq([Some(awaited); 4]), "{looks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_said_to_have_ended_even_where_not_all_can_be_read() {
    let world = calls([SHELL, READ_ON, READ_ON], runs_on());
    let running = world.spawn();
    let task = place(&world, 0).await;
    world.started(2).await;
    settle(&world, task);
    assert_ends(running, TurnOutcome::Completed).await;
    let text = &told(&world)[2].1;
    assert!(
        text.starts_with("[task 1 has ended: exit code 0; not all"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn looking_again_and_again_is_not_going_in_circles() {
    let short = ("task_read", r#"{"task":1,"wait_ms":1000}"#);
    let mut world = calls([SHELL, short, short, short, short, short], runs_on());
    world.limits.same_steps = 2;
    let clock = world.clock.clone();
    let ticks = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            clock.advance(Duration::from_secs(2));
        }
    });
    run(&world).await;
    assert_eq!(told(&world).len(), 6);
    ticks.abort();
    // Nor is it overrunning what it was given: to wait so long is what it was to do.
    let overran = |event: &Event| matches!(event, Event::CallEnded { overran: true, .. });
    let looks = world.ended_calls().split_off(1);
    assert!(!looks.iter().any(overran), "{looks:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_commands_are_begun_while_others_run() {
    let begin = ("Shell", r#"{"command":"serve","background":true}"#);
    let mut world = World::new(
        [Reply::calls("", [begin, begin, begin]), Reply::says("done")],
        [runs_on(), runs_on(), runs_on()],
    );
    world.limits.tasks_at_most = 2;
    run_all(&world, 2).await;
    let (outcome, text, _) = &told(&world)[2];
    assert_eq!(*outcome, CallOutcome::Refused, "{text}");
    assert!(
        text.contains("2 commands of this conversation run"),
        "{text}"
    );
    assert_eq!(world.sandbox.scripted.started().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_has_ended_makes_room_for_another() {
    let begin = ("Shell", r#"{"command":"serve","background":true}"#);
    let calls = [begin, READ_ON, begin].map(|call| Reply::calls("", [call]));
    let mut world = World::new(
        calls.into_iter().chain([Reply::says("done")]),
        [runs_on(), runs_on()],
    );
    world.limits.tasks_at_most = 1;
    let running = world.spawn();
    let first = place(&world, 0).await;
    world.started(2).await;
    settle(&world, first);
    let second = world.started(3).await[2];
    world.was_placed_at(3, 0, second);
    assert_ends(running, TurnOutcome::Completed).await;
    assert_eq!(told(&world)[2].2, Some(2));
}

#[tokio::test(start_paused = true)]
async fn what_was_placed_before_a_crash_is_gone_on_with_however_many_others_run() {
    let begin = ("Shell", r#"{"command":"serve","background":true}"#);
    let mut world = World::new(
        [Reply::calls("", [begin, begin]), Reply::says("done")],
        [runs_on(), runs_on()],
    );
    let worker = world.spawn();
    place(&world, 0).await;
    place(&world, 1).await;
    worker.abort();
    assert!(worker.await.is_err_and(|error| error.is_cancelled()));
    world.limits.tasks_at_most = 1;
    assert_ends(world.spawn(), TurnOutcome::Completed).await;
    let tasks: Vec<_> = told(&world).iter().map(|(_, _, task)| *task).collect();
    assert_eq!(tasks, [Some(1), Some(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_stops_no_task_that_it_was_about_to_stop() {
    let long = ("Shell", r#"{"command":"sleep 9"}"#);
    let world = World::new(
        [Reply::calls("", [SHELL]), Reply::calls("", [long, KILL])],
        [runs_on(), until_it_is_stopped()],
    );
    let running = world.spawn();
    let task = place(&world, 0).await;
    world.started(2).await;
    world.cancel.cancel();
    assert_ends(running, TurnOutcome::Cancelled).await;
    assert!(!world.sandbox.scripted.cancelled().contains(&task));
    assert_eq!(told(&world)[2].1, "cancelled before it ran");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_stopped_on_request_and_its_end_can_be_read_again() {
    let world = calls([SHELL, KILL, READ_ON, KILL], until_it_is_stopped());
    let operation = run(&world).await;
    let ending = "[stopped on request; ended by signal 15]";
    let texts: Vec<_> = told(&world).into_iter().skip(1).collect();
    let done = |text: String| (CallOutcome::Completed, text, None);
    assert_eq!(
        texts,
        [
            done(format!("half\n{ending}")),
            done(format!("[no output]\n{ending}")),
            done(format!("half\n{ending}")),
        ]
    );
    let cancelled = world.sandbox.scripted.cancelled();
    assert_eq!(cancelled, [operation, operation]);
}

#[tokio::test(start_paused = true)]
async fn whoever_cancels_a_turn_that_reads_a_task_stops_the_reading_and_not_the_task() {
    let read = ("task_read", r#"{"task":1,"wait_ms":600000}"#);
    let world = calls([SHELL, read], runs_on());
    let running = world.spawn();
    let operation = place(&world, 0).await;
    world.started(2).await;
    world.cancel.cancel();
    assert_ends(running, TurnOutcome::Cancelled).await;
    let text = "cancelled while it waited for task 1, which was not stopped by that";
    assert_eq!(
        told(&world)[1],
        (CallOutcome::Cancelled, text.to_owned(), None)
    );
    assert!(world.sandbox.scripted.cancelled().is_empty());
    assert_eq!(world.sandbox.scripted.left(), [operation]);
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_session_are_listed_and_one_that_does_not_exist_is_said_not_to() {
    let status = ("task_status", "{}");
    let other = ("task_read", r#"{"task":2}"#);
    let world = calls([SHELL, status, other], runs_on());
    run(&world).await;
    let texts: Vec<_> = told(&world).into_iter().skip(1).collect();
    let listed = "task 1, on scripted: runs as far as is known, for 0 ms: make\n";
    let unknown = "not run: there is no task 2; the last one is 1";
    assert_eq!(
        texts,
        [
            (CallOutcome::Completed, listed.to_owned(), None),
            (CallOutcome::Refused, unknown.to_owned(), None),
        ]
    );
}
