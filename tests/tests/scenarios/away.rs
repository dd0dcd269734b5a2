//! Calls for a runner whose link was just cut.

use serde_json::json;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply},
    proxy::Proxy,
};

/// Calls of the turn that follows the cut.
const CALLS: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_cut_of_the_link_every_call_runs() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let proxy = Proxy::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    let call = |number| {
        Reply::call(
            "Shell",
            json!({ "command": format!("echo x >> ran{number}") }),
        )
    };
    let calls = (0..CALLS).map(call);
    model.script(calls.chain([Reply::text("done")]).collect());
    let mut talk = gantry.talk().await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    gantry.until_online("laptop", false).await;
    let turn = talk.send("go").await;
    talk.until_notice("runner laptop offline since").await;
    proxy.clear();
    let told = talk.ended(turn).await;
    let outcomes: Vec<_> = told.calls().iter().map(|(outcome, _)| *outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Completed; CALLS]);
    for number in 0..CALLS {
        assert_eq!(runner.file(&format!("ran{number}")).as_deref(), Some("x\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_runner_that_is_away_is_cancelled_at_once() {
    let gantry = Gantry::practice().await;
    let proxy = Proxy::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    let mut talk = gantry.talk().await;
    proxy.set(|weather| weather.refuses = true);
    proxy.cut();
    gantry.until_online("laptop", false).await;
    let turn = talk.send("run touch ran").await;
    talk.until_notice("runner laptop offline since").await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    assert_eq!(told.calls()[0].0, CallOutcome::Cancelled);
    proxy.clear();
    gantry.until_online("laptop", true).await;
    assert_eq!(runner.file("ran"), None);
}
