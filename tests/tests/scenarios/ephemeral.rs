//! Ephemeral runners: they leave nothing behind when they go, and an update is no going.

use shared_api::CreateJoinToken;
use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, TO_BE_ENROLLED, eventually},
    work::{Job, Work},
};

async fn setting() -> (Gantry, Runner) {
    setting_with(&[]).await
}

async fn setting_with(options: &[&str]) -> (Gantry, Runner) {
    let gantry = Gantry::practice().await;
    let wish = CreateJoinToken {
        ephemeral: true,
        ..CreateJoinToken::one("laptop")
    };
    let token = gantry.client().create_join_token(&wish).await;
    let token = token.expect("a join token").token;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    runner.options(options);
    runner.start();
    gantry.until_online("laptop", true).await;
    (gantry, runner)
}

async fn until_gone(gantry: &Gantry) {
    eventually("the runner is gone", || async {
        let runners = gantry.client().runners().await.ok()?;
        runners.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_of_an_ephemeral_runner_does_not_touch_running_commands() {
    let (gantry, mut runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(71)).await;
    assert_eq!(runner.stop().await, Some(0));
    gantry.until_online("laptop", false).await;
    runner.start();
    gantry.until_online("laptop", true).await;
    job.finish(&runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_runner_without_a_command_is_gone_after_a_sigterm() {
    let (gantry, mut runner) = setting().await;
    assert_eq!(runner.stop().await, Some(0));
    until_gone(&gantry).await;
    runner.start();
    assert_eq!(runner.ended().await, Some(TO_BE_ENROLLED));
    assert!(runner.log().contains("--replace"), "{}", runner.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_runner_that_is_interrupted_is_gone_and_its_command_has_an_end() {
    let (gantry, mut runner) = setting_with(&["--drain-for", "0"]).await;
    let mut talk = gantry.talk().await;
    let turn = talk.send("run echo up; sleep 600").await;
    talk.until_output("up").await;
    runner.signal("INT");
    assert_eq!(runner.ended().await, Some(0));
    let told = talk.ended(turn).await;
    let (outcome, text) = told.calls()[0];
    assert_ne!(outcome, CallOutcome::Unknown, "{text}");
    until_gone(&gantry).await;
}
