//! Turns whose worker dies: the log that they leave is the one that nothing would have left.

use std::collections::{HashMap, HashSet};

use shared_sandbox::{Outcome, scripted::Script};
use shared_types::{
    Event, OperationId, OperationKey, Refusal, RefusalCode,
    event::{CallOutcome, TurnOutcome},
};

use crate::{
    Carried, LogError, TurnError, TurnWork,
    testing::{Fault, Happened, Reply, World, content, ends, written},
};

const READ: (&str, &str) = ("Read", r#"{"path":"a"}"#);
const SHELL: (&str, &str) = ("Shell", r#"{"command":"make"}"#);

/// Four steps with everything that a call can be: reads side by side, writes, a refusal, a call
/// that is not run, a command for which there is no room, a lost command and a lost read.
fn world() -> World {
    let write = ("Write", r#"{"path":"a","content":"hi"}"#);
    let refused = || {
        let draining = Refusal::new(RefusalCode::Draining, "the runner is stopping");
        Script::Refuse(draining)
    };
    let no_room = || {
        let full = Refusal::new(RefusalCode::ResourceExhausted, "the runner is full");
        ends(Outcome::Refused(full))
    };
    let lost = || Outcome::Refused(Refusal::new(RefusalCode::Lost, "the runner was reset"));
    World::new(
        [
            Reply::calls("I look.", [READ, READ, SHELL, write, ("Nope", "{}"), READ]),
            Reply::calls("", [SHELL]),
            Reply::calls("", [READ, SHELL]),
            Reply::says("done"),
        ],
        [
            ends(content("x")),
            ends(content("y")),
            no_room(),
            ends(written()),
            ends(content("z")),
            ends(lost()),
            ends(lost()),
            ends(content("again")),
            refused(),
            // A refused start is not remembered, so a second worker may be refused again.
            refused(),
        ],
    )
}

#[tokio::test]
async fn a_turn_killed_at_any_record_ends_with_the_same_log_and_one_id_per_call() {
    let whole = world();
    assert_eq!(whole.run().await, Ok(TurnOutcome::Completed));
    let log = whole.log.events();
    let writes = log.len() - 2;
    assert_eq!(
        writes, 13,
        "three answers, nine calls, the last answer with the end"
    );
    for at in 1..=writes {
        for stored in [false, true] {
            let world = world();
            let error = LogError::Unavailable("the disk is full".to_owned());
            world.log.break_at(Fault { at, stored, error });
            let first = world.run().await;
            assert!(
                matches!(first, Err(TurnError::LogUnavailable(_))),
                "{first:?}"
            );
            world.log.mend();
            assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
            assert_eq!(world.log.events(), log, "write {at}, stored: {stored}");
            check(&world.trace.all());
        }
    }
}

/// An answer is durable before its tools start, and a call has one operation, or two where the first was
/// lost and it only reads.
fn check(trace: &[Happened]) {
    let mut answers = HashSet::new();
    let mut ended = HashSet::new();
    let mut calls: HashMap<OperationId, (u32, u32)> = HashMap::new();
    for happened in trace {
        match happened {
            Happened::Recorded(Event::AnswerRecorded { step, .. }) => {
                assert!(answers.insert(*step), "an answer is recorded once");
            }
            Happened::Recorded(Event::CallEnded { step, ordinal, .. }) => {
                assert!(ended.insert((*step, *ordinal)), "a result is recorded once");
            }
            Happened::Started(operation) => {
                let OperationKey::Call { step, ordinal, .. } = operation.key else {
                    panic!("the engine's keys are calls")
                };
                assert!(
                    answers.contains(&step),
                    "started before its answer was durable"
                );
                assert!(!ended.contains(&(step, ordinal)), "started after its end");
                calls.insert(operation.id, (step, ordinal));
            }
            _ => {}
        }
    }
    let mut per_call: HashMap<(u32, u32), usize> = HashMap::new();
    for call in calls.values() {
        *per_call.entry(*call).or_default() += 1;
    }
    for (call, operations) in per_call {
        let expected = if call == (3, 0) { 2 } else { 1 };
        assert_eq!(operations, expected, "operations of call {call:?}");
    }
}

#[tokio::test]
async fn a_start_that_is_refused_after_a_restart_is_not_told_as_not_run() {
    let offline = Refusal::new(RefusalCode::Unavailable, "runner lap is offline");
    let world = World::new(
        [Reply::calls("", [SHELL]), Reply::says("done")],
        [Script::Hang(Vec::new()), Script::Refuse(offline)],
    );
    // The first worker dies while its command runs; the sandbox has recorded the placement.
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    world.sandbox.scripted.forget(operation);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown);
    assert!(
        text.contains("runner lap is offline; it was not run again"),
        "{text}"
    );
}

#[tokio::test]
async fn what_nobody_could_be_asked_to_stop_is_not_told_as_not_run() {
    let world = World::new(
        [Reply::calls("", [SHELL]), Reply::says("done")],
        [Script::Hang(Vec::new())],
    );
    let operation = world.dies_after_starting(1).await;
    world.was_placed(operation);
    let unread = Refusal::new(RefusalCode::Unavailable, "the server failed to read");
    world.sandbox.scripted.refuse_cancels(unread);
    world.cancel.cancel();
    assert_eq!(world.run().await, Ok(TurnOutcome::Cancelled));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Unknown, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_let_go_of_before_the_model_is_asked_and_its_next_worker_carries_it_on() {
    let world = World::new(
        [Reply::calls("I look.", [READ]), Reply::says("done")],
        [ends(content("x"))],
    );
    let engine = world.engine();
    let carry = async || {
        let (ports, claim) = (world.ports(), world.claim());
        engine.run_turn(&ports, claim, world.cancel.clone()).await
    };
    engine.work.send_replace(TurnWork::LetsGo);
    assert_eq!(carry().await, Ok(Carried::LetGo));
    assert_eq!(world.model.requests(), []);
    engine.work.send_replace(TurnWork::All);
    assert_eq!(carry().await, Ok(Carried::Ended(TurnOutcome::Completed)));
    assert_eq!(world.model.requests().len(), 2);
    world.cancel.cancel();
    engine.work.send_replace(TurnWork::LetsGo);
    assert_eq!(carry().await, Ok(Carried::Ended(TurnOutcome::Completed)));
}
