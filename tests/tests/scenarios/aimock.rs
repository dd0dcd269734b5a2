//! The model is aimock, a double of OpenAI's API that others wrote (npm, `@copilotkit/aimock`):
//! what it takes for OpenAI's format is not our own reading of it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use serde_json::{Value, json};
use shared_types::event::{CallOutcome, TurnOutcome};
use tempfile::TempDir;
use tests::gantry::{Gantry, PATIENCE};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::Instant,
};

#[tokio::test(flavor = "multi_thread")]
async fn aimock_asks_for_a_command_and_answers_once_it_has_the_result() {
    let aimock = Aimock::start(&json!([
        {
            "match": { "userMessage": "write a note", "hasToolResult": false },
            "response": { "toolCalls": [shell("echo hello > note.txt; cat note.txt")] },
        },
        {
            "match": { "userMessage": "write a note", "toolResultContains": "hello" },
            "response": { "content": "the note says hello" },
        },
    ]))
    .await;
    let gantry = Gantry::with_model(aimock.base_url()).await;
    let runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("please write a note").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "the note says hello");
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("one call: {:?}", told.calls())
    };
    assert!(text.contains("hello"), "{text}");
    assert_eq!(runner.file("note.txt").as_deref(), Some("hello\n"));

    let requests = aimock.journal().await;
    assert_eq!(requests.len(), 2, "{requests:#?}");
    let messages = requests[1]["body"]["messages"].as_array().expect("a list");
    let [.., asked, answered] = &messages[..] else {
        panic!("a call and its result: {messages:?}")
    };
    assert_eq!(asked["role"], "assistant");
    assert_eq!(answered["role"], "tool");
    assert_eq!(answered["tool_call_id"], asked["tool_calls"][0]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn aimock_refuses_for_a_second_and_breaks_off_in_mid_answer_and_the_turn_completes() {
    let message = |occurrence: u32| json!({ "userMessage": "go", "sequenceIndex": occurrence });
    let aimock = Aimock::start(&json!([
        {
            "match": { "userMessage": "go", "hasToolResult": true },
            "response": { "content": "all of it" },
        },
        {
            "match": message(0),
            "chaos": { "rateLimitRate": 1 },
            "response": { "content": "never said" },
        },
        {
            "match": message(1),
            "chunkSize": 4,
            "latency": 20,
            "truncateAfterChunks": 4,
            "response": { "content": "half of an answer that nobody may believe" },
        },
        {
            "match": message(2),
            "response": { "toolCalls": [shell("echo effect >> effects")] },
        },
    ]))
    .await;
    let gantry = Gantry::with_model(aimock.base_url()).await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let began = Instant::now();
    let turn = talk.send("go").await;
    // Unasked, the wait would be drawn, and be shorter.
    talk.until_notice("limits the rate; trying again in 1.0 s (2 of 5)")
        .await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "all of it");
    assert_eq!(told.calls().len(), 1, "{:?}", told.calls());
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
    let recorded = format!("{:?}", told.events);
    assert!(!recorded.contains("half of"), "{recorded}");

    let requests = aimock.journal().await;
    assert_eq!(requests.len(), 4, "{requests:#?}");
    assert_eq!(requests[0]["response"]["status"], 429);
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(1), "it took only {waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_aimock_sends_of_a_models_thoughts_comes_back_to_it_with_the_call() {
    let thoughts = "I have to look before I speak.";
    let aimock = Aimock::start(&json!([
        {
            "match": { "userMessage": "go", "hasToolResult": false },
            "response": { "toolCalls": [shell("true")], "reasoning": thoughts },
        },
        {
            "match": { "userMessage": "go", "hasToolResult": true },
            "response": { "content": "done", "reasoning": "All is well." },
        },
    ]))
    .await;
    let gantry = Gantry::with_model(aimock.base_url()).await;
    let _runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "done");
    let recorded = format!("{:?}", told.events);
    assert!(
        recorded.contains("Reasoning { text: \"All is well.\""),
        "{recorded}"
    );
    let requests = aimock.journal().await;
    let messages = requests[1]["body"]["messages"].as_array().expect("a list");
    let [.., asked, _result] = &messages[..] else {
        panic!("a call and its result: {messages:?}")
    };
    assert_eq!(asked["reasoning_content"], thoughts);
}

/// aimock on a loopback port. Killed when it is dropped.
struct Aimock {
    url: String,
    _process: Child,
    _fixtures: TempDir,
}

impl Aimock {
    async fn start(fixtures: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("fixtures.json");
        let fixtures = json!({ "fixtures": fixtures }).to_string();
        std::fs::write(&file, fixtures).expect("it can be written");
        let mut process = Command::new(program())
            .args(["--port", "0", "--validate-on-load", "--fixtures"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("aimock starts; GANTRY_AIMOCK has to name its program");
        let stdout = process.stdout.take().expect("stdout is piped");
        let mut lines = BufReader::new(stdout).lines();
        let url = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line())
                .await
                .expect("aimock prints its address in time")
                .expect("it can be read")
                .expect("aimock prints its address before it ends");
            if let Some((_, url)) = line.split_once("listening on ") {
                break url.to_owned();
            }
        };
        // It must always find somebody who reads.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            url,
            _process: process,
            _fixtures: folder,
        }
    }

    /// What to set as `OPENAI_BASE_URL`.
    fn base_url(&self) -> String {
        format!("{}/v1", self.url)
    }

    /// Every request so far and what it was answered.
    async fn journal(&self) -> Vec<Value> {
        let url = format!("{}/__aimock/journal", self.url);
        let answer = reqwest::get(url).await.expect("an answer");
        answer.json().await.expect("a list")
    }
}

/// `llmock`, the program of the package that takes fixtures as arguments; it lies beside `aimock`.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn program() -> PathBuf {
    let Some(aimock) = std::env::var_os("GANTRY_AIMOCK") else {
        panic!(
            "GANTRY_AIMOCK does not name the aimock program: run `make test`, which installs it, \
             or leave these tests out with -E 'not test(aimock)'"
        );
    };
    PathBuf::from(aimock).with_file_name("llmock")
}

fn shell(command: &str) -> Value {
    json!({ "name": "Shell", "arguments": { "command": command } })
}
