//! Operations that were placed and never came to their runner, which lives on: they end.

use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    proxy::{Proxy, Way},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_cancelled_before_its_runner_had_it_never_starts_and_has_an_end() {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let proxy = Proxy::before(gantry.url()).await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(proxy.url(), &token, "laptop").await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let mut talk = gantry.talk().await;

    proxy.stall(Way::ToRunner);
    let turn = talk.send("run echo begun > begun").await;
    talk.until_placed().await;
    talk.until_notice("offline since").await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    let operation = *told.operations().first().expect("it was placed");
    let path = format!("/api/v1/operations/{operation}/output");
    let ended = async || {
        let answer = gantry.ask("get", &path, None).await;
        answer.body["ended"] == true
    };
    assert!(!ended().await, "the runner may have it");

    proxy.clear();
    gantry.until_online("laptop", true).await;
    eventually("the operation has an end", || async {
        ended().await.then_some(())
    })
    .await;
    // What comes later over the same link finds no trace of it.
    let told = talk.say("run ls").await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    assert_eq!(runner.file("begun"), None);
}
