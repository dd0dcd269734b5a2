//! Operations that were placed and never came to their runner, which lives on: they end.

use std::sync::Arc;

use serde_json::json;
use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup, eventually},
    model_server::{ModelServer, Reply, Step},
    proxy::{Proxy, Way},
};
use tokio::sync::Notify;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_cancelled_before_its_runner_had_it_never_starts_and_has_an_end() {
    let model = ModelServer::start().await;
    let gantry = Gantry::with(Setup {
        model: Some(model.base_url()),
        ..Setup::with_short_links()
    })
    .await;
    let proxy = Proxy::before(gantry.url()).await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(proxy.url(), &token, "laptop").await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let mut talk = gantry.talk().await;

    let asked = Arc::new(Notify::new());
    let command = json!({ "command": "echo begun > begun" }).to_string();
    let call = json!({ "index": 0, "id": "call_0", "type": "function",
        "function": { "name": "Shell", "arguments": command } });
    model.script(vec![Reply::Raw(vec![
        Step::Hold(asked.clone()),
        Step::delta(&json!({ "tool_calls": [call] })),
        Step::end_with("tool_calls"),
    ])]);
    let turn = talk.send("go").await;
    // The place is surveyed before that.
    model.wait_for_requests(1).await;
    proxy.stall(Way::ToRunner);
    asked.notify_one();
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
    let list = Reply::call("Shell", json!({ "command": "ls" }));
    model.script(vec![list, Reply::text("done")]);
    let told = talk.say("go on").await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    assert_eq!(runner.file("begun"), None);
}
