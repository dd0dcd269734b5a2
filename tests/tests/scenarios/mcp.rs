//! `/mcp`: other agents use the fleet by the Model Context Protocol.

mod client;
mod conformance;
mod oauth;
mod postgres;
mod sdks;

use serde_json::{Value, json};
use shared_api::{RoleName, ScopeName};
use tests::{
    gantry::{Answer, Gantry, eventually, processes_marked},
    model_server::{ModelServer, Reply},
};

use self::client::{McpClient, text};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_runs_commands_and_works_on_files_in_both_eras_of_mcp() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let clients = [
        McpClient::begun(&gantry, gantry.token()).await,
        McpClient::modern(&gantry, gantry.token()),
    ];
    for client in clients {
        let list = client.ask("tools/list", json!({})).await["result"].clone();
        let tools = list["tools"].as_array().expect("tools").clone();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(tools.len(), 13, "{names:?}");
        for tool in &tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            let hints = &tool["annotations"];
            assert_ne!(hints["readOnlyHint"], hints["destructiveHint"], "{tool}");
        }
        let (written, failed) = client
            .call(
                "write",
                json!({ "path": "a/b.txt", "content": "one\ntwo\n" }),
            )
            .await;
        assert!(!failed && written.contains("a/b.txt"), "{written}");
        let edit = json!({ "path": "a/b.txt", "old": "two", "new": "three", "runner": "laptop" });
        let (edited, failed) = client.call("edit", edit).await;
        assert!(!failed, "{edited}");
        assert_eq!(runner.file("a/b.txt").as_deref(), Some("one\nthree\n"));
        for (tool, arguments, words) in [
            ("read", json!({ "path": "a/b.txt" }), "2\tthree"),
            ("grep", json!({ "pattern": "thr.e" }), "a/b.txt:2:three"),
            ("glob", json!({ "pattern": "**/*.txt" }), "a/b.txt"),
            ("list", json!({ "path": "a" }), "b.txt  10 bytes"),
            (
                "exec",
                json!({ "command": "cat b.txt; echo bad >&2; exit 3", "directory": "a" }),
                "three\n[stderr]\nbad\n[exit code 3]",
            ),
            ("list_runners", json!({}), "\"name\":\"laptop\""),
        ] {
            let (said, failed) = client.call(tool, arguments).await;
            assert!(!failed && said.contains(words), "{tool}: {said}");
        }
        for (tool, arguments, words) in [
            ("read", json!({ "path": "none" }), "does not exist"),
            (
                "read",
                json!({ "path": "../x" }),
                "leads out of the workspace",
            ),
            ("read", json!({}), "\"path\" is missing"),
            (
                "exec",
                json!({ "command": "true", "runner": "nowhere" }),
                "not found",
            ),
            (
                "edit",
                json!({ "path": "a/b.txt", "old": "x", "new": "y" }),
                "a/b.txt",
            ),
            ("read_task", json!({ "id": "x" }), "ses_"),
            ("list_runners", json!({ "x": 1 }), "x"),
        ] {
            let (said, failed) = client.call(tool, arguments).await;
            assert!(failed && said.contains(words), "{tool}: {said}");
        }
        let unknown = client.ask("tools/call", json!({ "name": "nothing" })).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let unknown = client.ask("nothing/at/all", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlasts_its_call_goes_on_and_is_read_and_stopped() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let client = McpClient::begun(&gantry, gantry.token()).await;
    let go = runner.workspace().join("go");
    let command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo last";
    let (said, failed) = client
        .call("exec", json!({ "command": command, "timeout_ms": 500 }))
        .await;
    assert!(
        !failed && said.starts_with("first\n[it still runs"),
        "{said}"
    );
    let id = task_in(&said);
    let (still, _) = client
        .call("read_task", json!({ "id": id, "wait_ms": 0 }))
        .await;
    assert!(still.contains("still runs"), "{still}");
    std::fs::write(go, "").expect("it is written");
    let read_on = json!({ "id": id, "stdout_from": 6 });
    let (ended, failed) = client.call("read_task", read_on).await;
    assert_eq!(
        (ended.lines().next(), failed),
        (Some("last"), false),
        "{ended}"
    );
    assert!(ended.contains("[exit code 0"), "{ended}");

    let endless = json!({ "command": "sleep 1000", "background": true });
    let (said, _) = client.call("exec", endless).await;
    let id = task_in(&said);
    let (stopped, failed) = client.call("stop_task", json!({ "id": id })).await;
    assert!(!failed && stopped.contains("stopped"), "{stopped}");
    let (ended, failed) = client.call("read_task", json!({ "id": id })).await;
    assert!(failed && ended.contains("stopped on request"), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_stops_its_command_in_both_eras_and_a_lost_client_of_the_older_does_not() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let older = McpClient::begun(&gantry, gantry.token()).await;
    let newer = McpClient::modern(&gantry, gantry.token());
    let marker = |name: &str| format!("MCP_MARK={name}-{}", runner.pid());
    for (client, name) in [(&older, "older"), (&newer, "newer"), (&older, "lost")] {
        let marker = marker(name);
        let command = format!("{marker} sleep 1000");
        let call = client.begin("exec", json!({ "command": command })).await;
        until(&marker, true).await;
        match name {
            "older" => {
                client.cancel(&call).await;
                let answer = call.answer().await;
                let said = text(&answer);
                assert!(said.contains("stopped on request"), "{said}");
                until(&marker, false).await;
            }
            "newer" => {
                drop(call);
                until(&marker, false).await;
            }
            _ => {
                drop(call);
                // Another call shows that the server has had time to see that.
                client.call("exec", json!({ "command": "true" })).await;
                assert!(!processes_marked(&marker).is_empty());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_repeated_with_its_key_does_nothing_twice() {
    let model = ModelServer::start().await;
    model.script(vec![Reply::text("done")]);
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let client = McpClient::begun(&gantry, gantry.token()).await;
    let append = json!({ "command": "echo x >>log; cat log", "key": "one" });
    for _ in 0..2 {
        let (said, failed) = client.call("exec", append.clone()).await;
        assert!(!failed && said.starts_with("x\n[exit"), "{said}");
    }
    assert_eq!(runner.file("log").as_deref(), Some("x\n"));
    let other = json!({ "command": "echo y >>log", "key": "one" });
    let (said, failed) = client.call("exec", other).await;
    assert!(failed && said.contains("key"), "{said}");

    let start = json!({ "message": "say done", "key": "two" });
    let (first, failed) = client.call("start_task", start.clone()).await;
    assert!(!failed, "{first}");
    assert_eq!(client.call("start_task", start).await.0, first);
    let (said, failed) = client
        .call("start_task", json!({ "message": "else", "key": "two" }))
        .await;
    assert!(failed && said.contains("other arguments"), "{said}");
    let sessions = gantry.ask("get", "/api/v1/sessions", None).await.body;
    assert_eq!(sessions["sessions"].as_array().expect("a list").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_gantry_works_for_a_client_and_its_answer_is_waited_for() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let client = McpClient::modern(&gantry, gantry.token());
    let work = json!({ "message": "run echo hi there", "title": "Greeting" });
    let (started, failed) = client.call("start_task", work).await;
    assert!(!failed, "{started}");
    let session = started
        .split_whitespace()
        .find(|word| word.starts_with("ses_"));
    let session = session.expect("a session").trim_end_matches(';').to_owned();
    let (answer, failed) = client.call("read_task", json!({ "id": session })).await;
    assert!(!failed && answer.contains("hi there"), "{answer}");
    assert!(
        answer.ends_with(&format!("[the work in {session} is completed]")),
        "{answer}"
    );
    let (listed, _) = client
        .call("list_sessions", json!({ "search": "greet" }))
        .await;
    assert!(
        listed.contains(&session) && listed.contains("idle"),
        "{listed}"
    );
    let (read, _) = client.call("read_session", json!({ "id": session })).await;
    assert!(read.starts_with("person: run echo hi there\n"), "{read}");
    assert!(read.contains("agent calls Shell"), "{read}");

    let more = json!({ "message": "run sleep 1000", "session": session });
    client.call("start_task", more).await;
    let (works, _) = client
        .call("read_task", json!({ "id": session, "wait_ms": 1 }))
        .await;
    assert!(works.contains("still works"), "{works}");
    client.call("stop_task", json!({ "id": session })).await;
    let (ended, _) = client.call("read_task", json!({ "id": session })).await;
    assert!(ended.contains("did not complete"), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_good_for_the_tools_that_its_scopes_and_its_role_permit() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let names = async |token: &str| {
        let client = McpClient::begun(&gantry, token).await;
        let list = client.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().expect("tools").clone();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    let reading = gantry.key("reads", &[ScopeName::Read]).await.key;
    let expected = ["list_runners", "read_task", "list_sessions", "read_session"];
    assert_eq!(names(&reading).await, expected);
    let viewer = gantry.person("vera", RoleName::Viewer).await;
    assert!(!names(&viewer).await.contains(&"exec".to_owned()));
    let client = McpClient::begun(&gantry, &reading).await;
    let (said, failed) = client.call("exec", json!({ "command": "true" })).await;
    assert!(failed && said.contains("scope exec"), "{said}");
    // Another person's things are no different from none.
    let (own, _) = McpClient::begun(&gantry, gantry.token())
        .await
        .call(
            "exec",
            json!({ "command": "sleep 1000", "background": true }),
        )
        .await;
    let other = gantry.person("mia", RoleName::Member).await;
    let other = McpClient::begun(&gantry, &other).await;
    for tool in ["read_task", "stop_task"] {
        let (said, failed) = other.call(tool, json!({ "id": task_in(&own) })).await;
        assert!(failed && said.contains("not found"), "{tool}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_of_mcp_lets_no_stranger_in_and_takes_one_bounded_message_of_json() {
    let gantry = Gantry::practice().await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let ask = |token: Option<&str>, lines: &[(&str, &str)], body: String| {
        let mut request = gantry.request("post", "/mcp").body(body);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        Answer::to(match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    };
    let json_in = ("content-type", "application/json");
    let both_out = ("accept", "application/json, text/event-stream");
    let good = [json_in, both_out];
    let json_out = [json_in, ("accept", "application/json")];
    let token = Some(gantry.token());
    let body = initialize.to_string();
    let large = format!("{{\"jsonrpc\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let foreign = [json_in, both_out, ("origin", "https://evil.example")];
    for (token, lines, body, status) in [
        (token, &good[..], body.clone(), 200),
        (None, &good, body.clone(), 401),
        (Some("gty_wrong"), &good, body.clone(), 401),
        (token, &json_out, body.clone(), 406),
        (token, &good[1..], body.clone(), 422),
        (token, &foreign, body.clone(), 403),
        (token, &good, large, 413),
        (token, &good, "{".to_owned(), 400),
        (token, &good, "[]".to_owned(), 400),
    ] {
        let shown = body.chars().take(40).collect::<String>();
        let answer = ask(token, lines, body).await;
        assert_eq!(
            answer.status, status,
            "{lines:?} {shown}: {:?}",
            answer.body
        );
    }
    assert_eq!(gantry.ask("get", "/mcp", None).await.status, 405);
    assert_eq!(gantry.ask("delete", "/mcp", None).await.status, 405);
}

/// Waits until a process with this marker runs, or none does any more.
async fn until(marker: &str, runs: bool) {
    eventually("it is so", async || {
        (processes_marked(marker).is_empty() != runs).then_some(())
    })
    .await;
}

/// The id of the command that goes on.
fn task_in(said: &str) -> Value {
    let at = said
        .find("op_")
        .unwrap_or_else(|| panic!("no task: {said}"));
    let id = said[at..].split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    id.into_iter().next().expect("an id").into()
}
