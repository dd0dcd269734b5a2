//! Tool servers on a runner: their questions, prompts, resources and hooks, and a look at one.

use std::path::PathBuf;

use serde_json::json;
use shared_api::Approval;
use shared_types::event::{Answer, CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Told, eventually},
    model_server::{ModelServer, Reply},
};

const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/scenarios/tool_servers/server.py"
);

/// A server whose model is scripted, and a runner.
async fn world() -> (Gantry, Runner, ModelServer) {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    (gantry, runner, model)
}

/// Registers the server of this era under this name.
async fn register(gantry: &Gantry, name: &str, era: &str) {
    let added = gantry
        .cli(&["mcp", "add", name, "--", "python3", SERVER, era])
        .await;
    assert!(added.status.success(), "{added:?}");
}

async fn cli(gantry: &Gantry, arguments: &[&str]) -> (bool, String) {
    let output = gantry.cli(arguments).await;
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// The open question, once it has these words.
async fn question(gantry: &Gantry, words: &str) -> Approval {
    let client = gantry.client();
    eventually("the person is asked", async || {
        let open = client.approvals(false, 10).await.expect("a list").pop()?;
        open.question
            .title()
            .contains("The tool server")
            .then_some(())?;
        let shown = serde_json::to_string(&open.question).expect("JSON");
        shown.contains(words).then_some(open)
    })
    .await
}

async fn says(gantry: &Gantry, words: &str, text: &str) {
    let asked = question(gantry, words).await;
    let answer = Answer::Said {
        text: text.to_owned(),
    };
    let answered = gantry.client().answer(asked.id, asked.digest, answer).await;
    answered.expect("it is taken");
}

fn results(told: &Told) -> Vec<String> {
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let texts = told.calls().into_iter().map(|(outcome, text)| {
        assert_eq!(outcome, CallOutcome::Completed, "{text}");
        text.lines().last().unwrap_or_default().to_owned()
    });
    texts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_tool_server_is_answered_by_the_person_in_both_eras() {
    let (gantry, _runner, model) = world().await;
    for era in ["legacy", "modern"] {
        register(&gantry, era, era).await;
        let call = |tool: &str| Reply::call(format!("mcp__{era}__{tool}"), "{}");
        model.script(vec![call("book"), call("sign"), Reply::text("done")]);
        let mut talk = gantry.talk().await;
        let turn = talk.send("book it").await;
        says(
            &gantry,
            &format!("{era} asks: Where to?\\n\\ncity (1 of 2)"),
            "Paris",
        )
        .await;
        says(&gantry, "nights (2 of 2)", "many").await;
        says(&gantry, "\\\"many\\\" is no whole number", "3").await;
        let sign = question(&gantry, "https://sign.example.org/c/1").await;
        let deny = Answer::Denied { words: None };
        let denied = gantry.client().answer(sign.id, sign.digest, deny).await;
        denied.expect("it is taken");
        let results = results(&talk.ended(turn).await);
        let booked = json!({ "action": "accept", "content": { "city": "Paris", "nights": 3 } });
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&results[0]), booked);
        assert_eq!(read(&results[1]), json!({ "action": "decline" }));
        // The tools of both together would have to be found by a search.
        assert!(cli(&gantry, &["mcp", "remove", era]).await.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_cancelled_where_nobody_is_there_and_closed_where_the_server_is_killed() {
    let (mut gantry, runner, model) = world().await;
    register(&gantry, "s", "legacy").await;
    let book = || Reply::call("mcp__s__book", "{}");
    model.script(vec![book(), Reply::text("done")]);
    let output = gantry
        .cli(&["chat", "--json", "--mode", "full", "book it"])
        .await;
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        events.contains("nobody_there") && events.contains(r#"\"action\": \"cancel\""#),
        "{events}"
    );

    model.script(vec![book(), Reply::text("done")]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("book it").await;
    let asked = question(&gantry, "city (1 of 2)").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    let [(CallOutcome::Unknown, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls());
    };
    assert!(text.contains("outcome unknown"), "{text}");
    let late = Answer::Said {
        text: "Paris".to_owned(),
    };
    let late = gantry.client().answer(asked.id, asked.digest, late).await;
    let late = late.expect_err("it is closed").to_string();
    assert!(late.contains("closed without an answer"), "{late}");
    let calls = runner.file("calls").unwrap_or_default();
    assert_eq!(calls.lines().count(), 2, "each call was sent once: {calls}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_are_commands_and_resources_are_attached_and_read() {
    let (gantry, _runner, model) = world().await;
    register(&gantry, "s", "modern").await;
    model.script(vec![
        Reply::call("mcp__s__resources", "{}"),
        Reply::call("mcp__s__resources", r#"{"uri":"note://one"}"#),
        Reply::text("read"),
        Reply::text("greeted"),
        Reply::text("seen"),
    ]);
    let mut talk = gantry.talk().await;
    let client = gantry.client();
    let told = talk.say("read the notes").await;
    let texts: Vec<_> = told
        .calls()
        .into_iter()
        .map(|(_, text)| text.to_owned())
        .collect();
    assert!(texts[0].contains("note://one  The first note"), "{texts:?}");
    assert!(texts[1].contains("the moon is far"), "{texts:?}");

    let session = talk.session();
    let servers = client.session_tool_servers(session).await.expect("a list");
    assert_eq!(servers[0].prompts[0].command, "s:greet");
    assert_eq!(servers[0].prompts[0].arguments, "WHO [HOW]");
    assert_eq!(servers[0].resources[0].mention, "@s:note://one");

    let run = async |line: &str| {
        let command = shared_api::RunCommand {
            line: line.to_owned(),
            terms: Default::default(),
            client_id: None,
        };
        client
            .run_command(session, &command, &line.len().to_string())
            .await
    };
    let lacks = run("/s:greet")
        .await
        .expect_err("it wants a value")
        .to_string();
    assert!(lacks.contains("write /s:greet WHO [HOW]"), "{lacks}");
    let unknown = run("/s:grit x")
        .await
        .expect_err("there is none")
        .to_string();
    assert!(
        unknown.contains("has no prompt grit; there is: greet"),
        "{unknown}"
    );
    let sent = run("/mcp__s__greet Ann very warmly")
        .await
        .expect("it is sent");
    talk.ended(sent.message.expect("a message").turn).await;
    talk.say("look at @s:note://one and @s:dot://, please")
        .await;
    let absent = client
        .send_message(
            session,
            &serde_json::from_value(json!({ "text": "see @s:gone://" })).expect("a message"),
        )
        .await;
    let absent = absent.expect_err("there is none").to_string();
    assert!(absent.contains("does not give gone://"), "{absent}");

    let requests = model.requests();
    let last = requests.last().expect("a request").to_string();
    assert!(
        last.contains("[prompt greet of the tool server s]\\nGreet Ann, very warmly."),
        "{last}"
    );
    assert!(
        last.contains("[resource note://one]\\nthe moon is far"),
        "{last}"
    );
    assert!(last.contains("[an image: image/png, 70 bytes"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_a_tool_server_says_what_it_has_or_what_to_do() {
    let (gantry, runner, model) = world().await;
    let file = json!({ "mcpServers": { "project": { "command": "sh", "args": ["-c", "touch started; exit 1"] } } });
    std::fs::write(runner.workspace().join(".mcp.json"), file.to_string()).expect("it is written");
    model.script(vec![Reply::text("hello")]);
    let mut talk = gantry.talk().await;
    talk.say("hello").await;
    register(&gantry, "slow", "slow").await;
    let (works, said) = cli(&gantry, &["mcp", "test", "slow"]).await;
    assert!(works, "{said}");
    for words in [
        "stand-in 1",
        "MCP 2026-07-28",
        "tools: 6",
        "mcp__slow__echo",
        "/slow:greet WHO [HOW]  Greets",
        "@slow:note://one",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let bad = [
        "mcp",
        "add",
        "bad",
        "--",
        "sh",
        "-c",
        "echo out of cheese >&2; exit 7",
    ];
    assert!(cli(&gantry, &bad).await.0);
    let (works, said) = cli(&gantry, &["mcp", "test", "bad"]).await;
    assert!(
        !works && said.contains("it exited with code 7: out of cheese"),
        "{said}"
    );
    let (works, said) = cli(&gantry, &["mcp", "test", "project"]).await;
    assert!(
        !works && said.contains("gantry extensions trust .mcp.json"),
        "{said}"
    );
    assert!(
        !runner.workspace().join("started").exists(),
        "nobody trusts it"
    );
    let (works, said) = cli(&gantry, &["mcp", "test", "none"]).await;
    assert!(!works && said.contains("gantry mcp add"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_asks_a_tool_server_about_a_part_of_its_event() {
    let (gantry, runner, model) = world().await;
    register(&gantry, "s", "legacy").await;
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [
        { "type": "mcp_tool", "server": "s", "tool": "judge", "input": { "text": "run ${tool_input.command}" }, "timeout": 30 },
    ] }] } });
    let path = runner.home().join("hooks.json");
    std::fs::write(&path, hooks.to_string()).expect("it is written");
    let added = cli(&gantry, &["hooks", "add", &path.display().to_string()]).await;
    assert!(added.0, "{added:?}");
    let shell = |command: &str| Reply::call("Shell", json!({ "command": command }));
    model.script(vec![
        shell("echo secret > a"),
        shell("echo plain > b"),
        Reply::text("done"),
    ]);
    let told = gantry.talk().await.say("run them").await;
    let calls = told.calls();
    assert!(calls[0].1.contains("the judge says no"), "{calls:?}");
    assert_eq!(calls[1].0, CallOutcome::Completed, "{calls:?}");
    assert!(runner.file("a").is_none() && runner.file("b").is_some());
    let judged = runner.file("calls").unwrap_or_default();
    assert!(
        judged.contains(r#"judge {"text": "run echo plain > b"}"#),
        "{judged}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_made_with_the_python_sdk_of_mcp_is_used_with_all_that_it_has() {
    let python = peer("GANTRY_MCP_PYTHON");
    let file = SERVER.replace("server.py", "sdk.py");
    uses_all(&[&python.display().to_string(), &file]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_made_with_the_typescript_sdk_of_mcp_is_used_with_all_that_it_has() {
    let installed = peer("GANTRY_MCP_NPM").display().to_string();
    let file = SERVER.replace("server.py", "sdk.mjs");
    uses_all(&["node", &file, &installed]).await;
}

/// A call with a question, a prompt and a resource of the server that this command starts.
async fn uses_all(command: &[&str]) {
    let (gantry, _runner, model) = world().await;
    let added = cli(&gantry, &[&["mcp", "add", "s", "--"], command].concat()).await;
    assert!(added.0, "{added:?}");
    model.script(vec![
        Reply::call("mcp__s__book", "{}"),
        Reply::text("booked"),
        Reply::text("greeted"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("book it").await;
    says(&gantry, "city (1 of 2)", "Paris").await;
    says(&gantry, "nights (2 of 2)", "2").await;
    assert_eq!(results(&talk.ended(turn).await), ["Paris, 2 nights"]);
    let greet = shared_api::RunCommand {
        line: "/s:greet Ann".to_owned(),
        terms: Default::default(),
        client_id: None,
    };
    let client = gantry.client();
    let sent = client.run_command(talk.session(), &greet, "greet").await;
    let sent = sent.expect("it is sent").message.expect("a message");
    talk.ended(sent.turn).await;
    let asked = model.requests().pop().expect("a request").to_string();
    assert!(asked.contains("Greet Ann."), "{asked}");
    let tested = client.test_tool_server(talk.session(), "s").await;
    let tested = tested.expect("it is looked at");
    let has = (
        tested.failed,
        tested.tools.len(),
        tested.prompts.len(),
        tested.resources.len(),
    );
    assert_eq!(has, (None, 2, 1, 1));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn peer(name: &str) -> PathBuf {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: run this with make test, which installs it"))
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_asks_for_a_server_and_completes_its_prompts_and_resources() {
    let (gantry, _runner, model) = world().await;
    register(&gantry, "s", "modern").await;
    model.script(vec![
        Reply::call("mcp__s__book", "{}"),
        Reply::text("it is booked"),
    ]);
    let screen = gantry.screen(&["chat"]);
    screen.until_shown("Say what you want done").await;
    screen.type_in("book it\r");
    screen
        .until_shown("The tool server s asks: Where to?")
        .await;
    screen.until_shown("Enter answers").await;
    screen.type_in("Paris\r");
    screen.until_shown("To take that, answer -").await;
    screen.until_shown("Enter answers").await;
    screen.type_in("-\r");
    screen.until_shown("it is booked").await;
    screen.type_in("/s:");
    screen.until_shown("/s:greet").await;
    screen.type_in("\x15@s:note");
    screen.until_shown("s:note://one").await;
}
