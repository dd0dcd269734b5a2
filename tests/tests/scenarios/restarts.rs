use std::sync::Arc;

use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply, Step},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_goes_on_after_a_restart_waits_for_its_runner_to_come_back() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let never = Arc::new(tokio::sync::Notify::new());
    model.script(vec![
        Reply::Raw(vec![Step::Hold(never)]),
        Reply::call("Shell", r#"{"command":"echo here"}"#),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    model.wait_for_requests(1).await;
    // It does not notice the restart before it may go on.
    runner.signal("STOP");
    gantry.kill_server().await;
    gantry.start_server().await;
    talk.until_notice("waiting for runner laptop").await;
    runner.signal("CONT");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("here"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_runner_after_a_restart_can_be_cancelled() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    runner.signal("STOP");
    gantry.kill_server().await;
    gantry.start_server().await;
    model.script(vec![Reply::call("Shell", r#"{"command":"touch ran"}"#)]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_notice("waiting for runner laptop").await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    runner.signal("CONT");
    gantry.until_online("laptop", true).await;
    assert_eq!(runner.file("ran"), None);
}
