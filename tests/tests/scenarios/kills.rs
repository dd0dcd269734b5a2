//! Programs that are killed and frozen in the middle of a command. The oracles: each effect is there
//! once, every byte of output has the right SHA-256, and nothing is lost.

use tests::{
    gantry::{Gantry, Runner, Setup},
    work::{Job, Work},
};
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_goes_on_when_the_server_is_killed_again_and_again() {
    let (mut gantry, runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(61)).await;
    for _ in 0..3 {
        gantry.kill_server().await;
        gantry.start_server().await;
        gantry.until_online("laptop", true).await;
    }
    job.finish(&runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_runner_is_told_offline_and_its_command_goes_on_meanwhile() {
    let (gantry, runner) = setting().await;
    let mut job = Job::begin(&gantry, &runner, Work(66)).await;
    runner.signal("STOP");
    job.talk.until_notice("offline since").await;
    job.work.is_enough(&runner.workspace());
    job.work.lines(&runner).await;
    runner.signal("CONT");
    job.finish(&runner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_given_up_by_the_runner_and_found_again() {
    let (gantry, runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(67)).await;
    gantry.signal_server("STOP");
    sleep(2 * Setup::SHORT_SILENCE).await;
    gantry.signal_server("CONT");
    gantry.until_online("laptop", true).await;
    job.finish(&runner).await;
}

async fn setting() -> (Gantry, Runner) {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let runner = gantry.runner("laptop").await;
    (gantry, runner)
}
