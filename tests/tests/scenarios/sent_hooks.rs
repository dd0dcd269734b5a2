//! Hooks that are sent to addresses and tool servers: each at most once, with a killed server as without.

mod receiver;

use serde_json::json;
use shared_types::{
    Event,
    event::{CallOutcome, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Setup, eventually},
    model_server::{ModelServer, Reply},
};

use self::receiver::Receiver;
use super::tool_sign_ins::{done, double::ToolServer};

/// A server that may ask loopback.
async fn gantry(model: &ModelServer) -> Gantry {
    let setup = Setup {
        model: Some(model.base_url()),
        settings: "[web]\nallow = [\"127.0.0.0/8\"]\n".to_owned(),
        ..Setup::default()
    };
    Gantry::with(setup).await
}

/// Registers these hooks.
async fn add(gantry: &Gantry, hooks: &serde_json::Value) {
    let file = gantry.home().join("hooks.json");
    std::fs::write(&file, json!({ "hooks": hooks }).to_string()).expect("it is written");
    done(gantry, &["hooks", "add", &file.to_string_lossy()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_not_sent_again_after_a_kill_between_its_request_and_the_answer() {
    let model = ModelServer::start().await;
    let mut gantry = gantry(&model).await;
    let runner = gantry.runner("laptop").await;
    let (receiver, server) = (Receiver::start().await, ToolServer::start().await);
    (server.told().is_open, receiver.told().holds) = (true, true);
    done(&gantry, &["mcp", "add", "tracker", "--url", &server.mcp()]).await;
    let http = |path: &str| json!({ "type": "http", "url": receiver.at(path), "timeout": 600 });
    let asks = json!({ "type": "mcp_tool", "server": "tracker", "tool": "whoami", "timeout": 600,
        "onFailure": "block" });
    let hooks = json!({
        "UserPromptSubmit": [{ "hooks": [http("prompt")] }],
        "PreToolUse": [{ "hooks": [asks] }],
        "Stop": [{ "hooks": [http("stop")] }],
    });
    add(&gantry, &hooks).await;
    model.script(vec![
        Reply::call("Shell", json!({ "command": "touch ran" })),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("do it").await;

    // One that fails open: the turn goes on.
    eventually("the address has it", || async {
        (!receiver.told().requests.is_empty()).then_some(())
    })
    .await;
    gantry.kill_server().await;
    (receiver.told().holds, server.told().holds_calls) = (false, true);
    gantry.start_server().await;
    // One that fails closed: its call is refused.
    eventually("the tool server has it", || async {
        (server.told().calls > 0).then_some(())
    })
    .await;
    gantry.kill_server().await;
    server.told().holds_calls = false;
    gantry.start_server().await;
    let told = talk.ended(turn).await;

    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let (outcome, text) = told.calls()[0];
    assert_eq!(outcome, CallOutcome::Refused, "{text}");
    assert!(text.contains("it was not sent again"), "{text}");
    assert_eq!(runner.file("ran"), None);
    let failed = told.events.iter().filter_map(|event| match event.known() {
        Some(Event::HookEnded { end, .. }) => end.failed.clone(),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|why| why.contains("not sent again")));
    let paths: Vec<_> = receiver
        .told()
        .requests
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    assert_eq!(paths, ["/prompt", "/stop"]);
    assert_eq!(server.told().calls, 1);
    // By the id of its run an address can tell a request that it has had.
    let mut ids = receiver.told().values("idempotency-key");
    assert!(ids.iter().all(|id| id.starts_with("op_")), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 2);
}
