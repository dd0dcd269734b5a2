//! Turns that someone stops.

use std::time::Duration;

use server_llm::ModelEvent;
use shared_sandbox::{
    CancelAnswer, ExitCause, ExitStatus,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Event, UserId,
    event::{CallOutcome, Finish, Parts, TurnOutcome},
};

use crate::{
    Live,
    testing::{Reply, TURN, World, command, exit, output, text},
};

const SHELL: (&str, &str) = ("Shell", r#"{"command":"sleep 99"}"#);

fn is_output(live: &Live) -> bool {
    matches!(live, Live::Output { .. })
}

fn outcomes(world: &World) -> Vec<(u32, CallOutcome, String)> {
    let ended = world.ended_calls().into_iter();
    ended
        .filter_map(|event| match event {
            Event::CallEnded {
                ordinal,
                outcome,
                parts,
                ..
            } => Some((ordinal, outcome, parts.words().into_owned())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn what_the_model_had_said_is_kept_when_the_turn_is_cancelled() {
    let said = vec![ModelEvent::Attempt { number: 1 }, text(0, "once upon")];
    let world = World::new([Reply::Hang(said)], []);
    let running = world.spawn();
    world
        .live
        .saw(|live| matches!(live, Live::Said { .. }))
        .await;
    world.cancel.cancel();
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Cancelled));
    let events = world.log.events();
    assert!(matches!(
        &events[1],
        Event::AnswerRecorded { parts, finish: Finish::Cancelled, .. }
            if *parts == Parts::text("once upon")
    ));
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_a_word_was_said_records_no_answer() {
    let world = World::new([Reply::Hang(Vec::new())], []);
    world.cancel.cancel();
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    assert_eq!(world.log.events().len(), 2);
}

#[tokio::test]
async fn cancelling_stops_what_runs_keeps_its_output_and_runs_nothing_more() {
    let stopped = exit(4, ExitStatus::Signal(15), ExitCause::Cancelled);
    let script = Script::UntilCancelled(vec![output("half")], stopped);
    let world = World::new([Reply::calls("", [SHELL, SHELL, SHELL])], [script]);
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.cancel.cancel();
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Cancelled));
    let outcomes = outcomes(&world);
    assert!(
        outcomes
            .iter()
            .all(|(_, outcome, _)| *outcome == CallOutcome::Cancelled)
    );
    assert!(outcomes[0].2.starts_with("half\n[stopped on request"));
    assert_eq!(outcomes[1].2, "cancelled before it ran");
    assert_eq!(outcomes.len(), 3);
    assert_eq!(world.sandbox.scripted.started().len(), 1);
    assert_eq!(world.model.requests().len(), 1);
}

#[tokio::test]
async fn a_wish_to_cancel_in_the_log_is_found_after_a_restart() {
    let stopped = exit(4, ExitStatus::Signal(15), ExitCause::Cancelled);
    let script = Script::UntilCancelled(vec![output("half")], stopped);
    let world = World::new([Reply::calls("", [SHELL, SHELL])], [script]);
    let first = world.spawn();
    world.live.saw(is_output).await;
    first.abort();
    let _ = first.await;
    world.log.append(Event::CancelRequested {
        turn: TURN,
        by: UserId::from_u128(9),
        why: None,
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    let outcomes = outcomes(&world);
    assert!(outcomes[0].2.starts_with("half\n[stopped"), "{outcomes:?}");
    assert_eq!(outcomes[1].2, "cancelled before it ran");
}

#[tokio::test]
async fn a_runner_that_cannot_be_reached_does_not_hold_up_a_cancelled_turn() {
    let sandbox = ScriptedSandbox::new([Script::Hang(vec![output("half")])])
        .answering_cancel(CancelAnswer::Recorded);
    let world = World::with_sandbox([Reply::calls("", [SHELL])], sandbox);
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.cancel.cancel();
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Cancelled));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Cancelled);
    assert!(
        text.starts_with("stop requested; the runner could not be reached"),
        "{text}"
    );
    assert!(text.ends_with("half") && world.sandbox.scripted.stored().is_empty());
}

#[tokio::test]
async fn a_stop_that_nobody_confirms_is_not_waited_for_for_ever() {
    let sandbox = ScriptedSandbox::new([Script::Hang(vec![output("half")])])
        .answering_cancel(CancelAnswer::Cancelled);
    let mut world = World::with_sandbox([Reply::calls("", [SHELL])], sandbox);
    world.limits.stop_within = Duration::from_millis(1);
    let running = world.spawn();
    world.live.saw(is_output).await;
    world.cancel.cancel();
    assert_eq!(running.await.expect("it runs"), Ok(TurnOutcome::Cancelled));
    assert_eq!(world.only_call().0, CallOutcome::Unknown);
}

#[tokio::test]
async fn a_command_that_ended_by_itself_just_then_keeps_its_real_result() {
    let world = World::new([Reply::calls("", [SHELL])], [command("done", 0)]);
    let first = world.spawn();
    // The worker dies with the result unrecorded.
    world.log.break_at(crate::testing::Fault {
        at: 2,
        stored: false,
        error: crate::LogError::Unavailable("the disk is full".to_owned()),
    });
    assert!(first.await.expect("it runs").is_err());
    world.log.mend();
    world.cancel.cancel();
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    assert_eq!(
        world.only_call(),
        (CallOutcome::Completed, "done\n[exit code 0]".to_owned())
    );
}
