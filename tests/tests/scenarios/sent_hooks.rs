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
use super::tool_sign_ins::{done, double::ToolServer, found, stored};

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

#[tokio::test(flavor = "multi_thread")]
async fn the_headers_of_a_hook_reach_its_address_and_are_seen_nowhere() {
    const KEY: &str = "s3cret-canary-7b2e";
    let model = ModelServer::start().await;
    let gantry = gantry(&model).await;
    let runner = gantry.runner("laptop").await;
    let receiver = Receiver::start().await;
    let http = |path: &str, headers: serde_json::Value| json!([{ "hooks": [{ "type": "http", "url": receiver.at(path), "headers": headers }] }]);
    let hooks = |authorization: &str| {
        let headers = json!({ "Authorization": authorization, "X-Mine": "${MINE}" });
        let end = json!({ "X-Key": authorization });
        json!({ "UserPromptSubmit": http("registered", headers), "SessionEnd": http("end", end) })
    };
    add(&gantry, &hooks(&format!("Bearer {KEY}"))).await;
    // In a file of the project, as Claude Code has it: the value is read again when the hook is sent.
    let headers = json!({ "X-Key": KEY, "X-Mine": "$MINE" });
    let mut of_project = http("project", headers);
    of_project[0]["hooks"][0]["allowedEnvVars"] = json!(["MINE"]);
    let folder = runner.workspace().join(".claude");
    std::fs::create_dir_all(&folder).expect("it is made");
    let file = json!({ "hooks": { "UserPromptSubmit": of_project } }).to_string();
    std::fs::write(folder.join("settings.json"), file).expect("it is written");
    let mut talk = gantry.talk().await;
    let session = talk.session().to_string();
    model.script(vec![Reply::text("done"); 3]);

    // Without the person's own value nothing is sent, and the conversation says what to do.
    let told = talk.say("hello").await;
    let why = told.events.iter().find_map(|event| match event.known() {
        Some(Event::HookEnded { end, .. }) => end.failed.clone(),
        _ => None,
    });
    let why = why.expect("it has failed");
    assert!(why.contains("gantry mcp values set MINE"), "{why}");
    assert!(receiver.told().requests.is_empty());
    let trusted = done(
        &gantry,
        &["extensions", "trust", "--yes", "--session", &session],
    )
    .await;
    assert!(trusted.contains("X-Key: (hidden)"), "{trusted}");
    let value = json!({ "name": "MINE", "host": receiver.at(""), "value": KEY }).to_string();
    let put = gantry.ask("put", "/api/v1/tool-values", Some(value)).await;
    assert_eq!(put.status, 200, "{}", put.body);
    talk.say("hello again").await;
    assert_eq!(receiver.told().values("x-mine"), [KEY, KEY]);
    assert_eq!(
        receiver.told().values("authorization"),
        [format!("Bearer {KEY}")]
    );
    assert_eq!(receiver.told().values("x-key"), [KEY]);

    // What is shown can be registered again, for the same address.
    add(&gantry, &hooks("(hidden)")).await;
    receiver.told().requests.clear();
    talk.say("once more").await;
    assert_eq!(
        receiver.told().values("authorization"),
        [format!("Bearer {KEY}")]
    );
    let mut elsewhere = hooks("(hidden)");
    elsewhere["SessionEnd"][0]["hooks"][0]["url"] = "https://evil.example/".into();
    let file = gantry.home().join("hooks.json");
    std::fs::write(&file, json!({ "hooks": elsewhere }).to_string()).expect("it is written");
    let refused = gantry.cli(&["hooks", "add", &file.to_string_lossy()]).await;
    assert!(!refused.status.success());

    let run = json!({ "line": "/hooks" }).to_string();
    let at = format!("/api/v1/sessions/{session}/commands");
    let shown = gantry.ask("post", &at, Some(run)).await.body.to_string();
    assert!(shown.contains("Authorization: (hidden)"), "{shown}");
    let mut seen = shown + &done(&gantry, &["show", &session]).await;
    for path in [
        &format!("/api/v1/sessions/{session}/extensions"),
        &format!("/api/v1/sessions/{session}/events"),
        "/api/v1/extensions",
        "/api/v1/audit",
    ] {
        seen += &gantry.ask("get", path, None).await.body.to_string();
    }
    assert!(!seen.contains(KEY), "{seen}");
    let clear = found(&stored(&gantry), KEY);
    assert_eq!(clear, None, "it is stored in the clear");
    gantry
        .client()
        .delete_session(talk.session())
        .await
        .expect("it is there");
    eventually("the end is sent", || async {
        let keys = receiver.told().values("x-key");
        keys.contains(&format!("Bearer {KEY}")).then_some(())
    })
    .await;
    assert!(!gantry.log().contains(KEY));
}
