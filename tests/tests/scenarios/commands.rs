//! Commands behind a slash: one list on the server, the same on every surface.

use std::{
    process::{Output, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use shared_api::{CommandDone, RoleName};
use tests::{
    gantry::{Gantry, Screen},
    model_server::{ModelServer, Reply, Step},
};
use tokio::{io::AsyncWriteExt as _, sync::Notify};

/// Runs a command in a session, as a program would.
async fn run(gantry: &Gantry, session: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/v1/sessions/{session}/commands");
    let answer = gantry.ask("post", &path, Some(body.to_string())).await;
    (answer.status, answer.body)
}

/// A conversation whose lines come from a pipe.
async fn piped(gantry: &Gantry, lines: &str) -> Output {
    let mut chat = gantry.terminal(&["chat"]);
    chat.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut chat = chat.spawn().expect("it starts");
    let mut input = chat.stdin.take().expect("it is piped");
    input.write_all(lines.as_bytes()).await.expect("it is read");
    drop(input);
    chat.wait_with_output().await.expect("it ends")
}

async fn type_and_see(screen: &Screen, line: &str, shown: &str) {
    screen.type_in(&format!("{line}\r"));
    screen.until_shown(shown).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_walks_between_sessions_with_commands() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    type_and_see(&screen, "run echo first-$((40+2))", "first-42").await;
    type_and_see(&screen, "/new", "a new session begins").await;
    type_and_see(&screen, "run echo second-$((40+3))", "second-43").await;
    type_and_see(&screen, "/resume first", "going on in “run echo first").await;
    type_and_see(&screen, "run echo third-$((40+4))", "third-44").await;
    type_and_see(&screen, "/back", "going on in “run echo second").await;
    type_and_see(&screen, "/delete", "to do it: /delete yes").await;
    type_and_see(&screen, "/delete yes", "deleted “run echo second").await;
    type_and_see(&screen, "run echo fourth-$((40+5))", "fourth-45").await;
    let sessions = gantry.client().sessions(10).await.expect("a list");
    let [left] = sessions.as_slice() else {
        panic!("one session is left: {sessions:?}");
    };
    assert!(left.title.starts_with("run echo first"), "{left:?}");
    let shown = gantry.cli(&["show", &left.id.to_string()]).await;
    let shown = String::from_utf8_lossy(&shown.stdout);
    for said in ["first-42", "third-44", "fourth-45"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(!shown.contains("second-43"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_answer_in_the_middle_of_a_turn_and_those_that_leave_it_wait() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let build = r#"{"command":"echo half; until [ -e go ]; do sleep 0.1; done; echo whole"}"#;
    let left = Arc::new(Notify::new());
    let tested = vec![
        Step::Hold(left.clone()),
        Step::text("and tested"),
        Step::end(),
    ];
    model.script(vec![
        Reply::call("Shell", build),
        Reply::text("it is built"),
        Reply::Raw(tested),
    ]);
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("/help").await;
    type_and_see(&screen, "build", "half").await;
    type_and_see(&screen, "/status", "a turn is under way").await;
    type_and_see(&screen, "/mode plan", "from the next message on: mode plan").await;
    type_and_see(&screen, "/nothing", "there is no /nothing").await;
    type_and_see(&screen, "/new", "/new · waits for the end of the turn").await;
    type_and_see(&screen, "/queue test", "waits for its turn").await;
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    screen.until_shown("it is built").await;
    screen.until_shown("a new session begins").await;
    // What was queued belongs to the session before.
    screen.until_shown("works on; /back returns to it").await;
    left.notify_one();
    type_and_see(&screen, "/back", "and tested").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_has_the_same_commands_and_a_program_frees_no_agent_with_them() {
    let gantry = Gantry::practice().await;
    let listed = gantry.ask("get", "/api/v1/commands", None).await;
    let listed = listed.body["commands"].as_array().expect("a list").clone();
    let session = gantry.client().create_session("").await.expect("a session");
    let id = session.id.to_string();
    let (status, help) = run(&gantry, &id, json!({ "line": "/help" })).await;
    assert_eq!(status, 200, "{help}");
    let rows = help["shown"][0]["table"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), listed.len(), "{rows:?}");

    let unattended = |line: &str| json!({ "line": line, "terms": { "unattended": true } });
    for line in ["/mode full", "/config mode full", "/delete yes"] {
        let (status, refused) = run(&gantry, &id, unattended(line)).await;
        assert_eq!(status, 422, "{line}: {refused}");
        let words = refused["detail"].as_str().unwrap_or_default();
        assert!(words.starts_with("only a person"), "{line}: {words}");
    }
    let piped = piped(&gantry, "/mode full\n").await;
    assert_eq!(piped.status.code(), Some(1), "{piped:?}");
    let (_, mode) = run(&gantry, &id, json!({ "line": "/mode" })).await;
    assert!(!mode.to_string().contains("set for this session"), "{mode}");

    let (_, set) = run(&gantry, &id, json!({ "line": "/mode plan" })).await;
    let set: CommandDone = serde_json::from_value(set).expect("an answer");
    assert!(set.sets_mode, "{set:?}");
    let (status, wrong) = run(&gantry, &id, json!({ "line": "/mode wild" })).await;
    assert_eq!(status, 422, "{wrong}");

    // Others have no such session.
    let bob = gantry.person("bob", RoleName::Member).await;
    let path = format!("/api/v1/sessions/{id}/commands");
    let asked = gantry.ask_as(
        &bob,
        "post",
        &path,
        Some(json!({ "line": "/status" }).to_string()),
    );
    assert_eq!(asked.await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_sent_again_under_its_key_happens_once() {
    let gantry = Gantry::practice().await;
    let session = gantry.client().create_session("").await.expect("a session");
    let path = format!("/api/v1/sessions/{}/commands", session.id);
    let mut begun = Vec::new();
    for _ in 0..2 {
        let request = gantry
            .request("post", &path)
            .bearer_auth(gantry.token())
            .header("Idempotency-Key", "new")
            .json(&json!({ "line": "/new" }));
        let answer = request.send().await.expect("an answer");
        let done: CommandDone = answer.json().await.expect("JSON");
        begun.push(done.session.expect("a new one").id);
    }
    assert_eq!(begun[0], begun[1]);
    let sessions = gantry.client().sessions(10).await.expect("a list");
    assert_eq!(sessions.len(), 2, "{sessions:?}");
}
