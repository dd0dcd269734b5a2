//! Turns that only wait: no worker has them (docs/internals/contracts.md#c5). In most of these tests a
//! server carries one turn at a time, so that another turn runs only once the one before is let go of.

use std::time::Duration;

use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Setup, Talk, Told},
    report::report,
};
use tokio::time::Instant;

/// A turn that waits without a worker is stopped within this time, where nothing is in the way.
const STOPPED_WITHIN: Duration = Duration::from_secs(1);

/// A server that carries so many turns at once, and lets go soon of those that wait.
async fn carrying(at_once: usize, more: &str) -> Gantry {
    Gantry::with(Setup {
        settings: format!("[turns]\nat_once = {at_once}\nparks_after_ms = 100\n{more}"),
        ..Setup::default()
    })
    .await
}

/// A conversation that works on this runner, whatever others do.
async fn talk_on(gantry: &Gantry, runner: &str) -> Talk {
    let client = gantry.client();
    client.use_runner(runner).await.expect("it can be chosen");
    let talk = gantry.talk().await;
    let pinned = client.pin_session(talk.session(), runner).await;
    pinned.expect("it can be pinned");
    talk
}

/// Says this, and waits until its command runs.
async fn begin(talk: &mut Talk, number: usize) -> shared_types::TurnId {
    let message = format!(
        "run echo x >> began-{number}; echo runs; until [ -e go ]; do sleep 0.02; done; echo done"
    );
    let turn = talk.send(&message).await;
    talk.until_output("runs").await;
    turn
}

fn go(runner: &Runner) {
    std::fs::write(runner.workspace().join("go"), "").expect("it can be written");
}

fn assert_completed(told: &Told) {
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.starts_with("runs\ndone\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_turns_than_are_carried_at_once_wait_for_their_commands_and_others_run() {
    let gantry = carrying(2, "").await;
    let runner = gantry.runner("laptop").await;
    let mut waiting = Vec::new();
    for number in 0..6 {
        let mut talk = gantry.talk().await;
        let turn = begin(&mut talk, number).await;
        waiting.push((talk, turn));
    }
    let told = gantry.talk().await.say("run echo here").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    go(&runner);
    for (number, (talk, turn)) in waiting.iter_mut().enumerate() {
        assert_completed(&talk.ended(*turn).await);
        let began = runner.file(&format!("began-{number}"));
        assert_eq!(began.as_deref(), Some("x\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_writes_is_seen_while_no_worker_has_its_turn() {
    let gantry = carrying(1, "").await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let command = "run echo first; until [ -e next ]; do sleep 0.02; done; echo second; until [ -e go ]; do sleep 0.02; done";
    let turn = talk.send(command).await;
    talk.until_output("first").await;
    gantry.talk().await.say("run echo here").await;
    std::fs::write(runner.workspace().join("next"), "").expect("it can be written");
    talk.until_output("second").await;
    go(&runner);
    let told = talk.ended(turn).await;
    assert!(told.calls()[0].1.starts_with("first\nsecond\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_wait_for_a_runner_outlive_a_killed_server_and_go_on_with_the_runner() {
    let mut gantry = carrying(1, "").await;
    let (mut away, _here) = (gantry.runner("away").await, gantry.runner("here").await);
    let mut waiting = Vec::new();
    for number in 0..3 {
        let mut talk = talk_on(&gantry, "away").await;
        let turn = begin(&mut talk, number).await;
        waiting.push((talk, turn));
    }
    away.kill().await;
    for (talk, _) in &mut waiting {
        talk.until_notice("runner away offline since").await;
    }
    let mut other = talk_on(&gantry, "here").await;
    let told = other.say("run echo here").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);

    gantry.kill_server().await;
    gantry.start_server().await;
    let told = other.say("run echo here").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    // People are told again: nobody else remembers what the killed server had said.
    for (talk, _) in &mut waiting {
        talk.until_notice("runner away offline since").await;
    }
    go(&away);
    away.start();
    for (number, (talk, turn)) in waiting.iter_mut().enumerate() {
        assert_completed(&talk.ended(*turn).await);
        let began = away.file(&format!("began-{number}"));
        assert_eq!(began.as_deref(), Some("x\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_runner_without_a_worker_is_stopped_at_once() {
    let gantry = carrying(1, "").await;
    let (mut away, _here) = (gantry.runner("away").await, gantry.runner("here").await);
    let mut talk = talk_on(&gantry, "away").await;
    let turn = begin(&mut talk, 0).await;
    away.kill().await;
    talk.until_notice("runner away offline since").await;
    talk_on(&gantry, "here").await.say("run echo here").await;
    let asked = Instant::now();
    talk.cancel().await;
    let told = talk.ended(turn).await;
    let took = asked.elapsed();
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    assert_eq!(told.calls()[0].0, CallOutcome::Cancelled);
    report(&format!(
        "a turn that waited without a worker was stopped after {} ms; promised: {}",
        took.as_millis(),
        STOPPED_WITHIN.as_millis()
    ));
    assert!(took < STOPPED_WITHIN, "it was stopped after {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_without_a_worker_fails_when_its_time_is_over() {
    let gantry = carrying(1, "[runners]\nwaited_for_s = 1\n").await;
    let mut away = gantry.runner("away").await;
    let mut talk = gantry.talk().await;
    let turn = begin(&mut talk, 0).await;
    away.kill().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    assert_eq!(told.calls()[0].0, CallOutcome::Unknown);
    let reason = told.reason.unwrap_or_default();
    assert!(reason.contains("was not back within 1 s"), "{reason}");
    go(&away);
    away.start();
    let summary = talk.until_settled().await;
    assert!(summary.contains("exit code 0"), "{summary}");
}
