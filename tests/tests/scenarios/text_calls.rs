//! Models that write their calls of tools as text.

use serde_json::{Value, json};
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Setup},
    model_server::{ModelServer, Reply, Step},
};

/// A command that leaves a line for each run of it.
const CALL: &str = r#"{"name": "bash", "arguments": {"command": "echo ran >> runs; cat runs"}}"#;

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().expect("a list")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_text_runs_once_its_text_is_taken_back_and_its_result_goes_back() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let pieces = ["I look.\n<tool", "_call>\n", CALL, "\n</tool_call>"];
    let mut steps = pieces.map(Step::text).to_vec();
    steps.push(Step::end());
    model.script(vec![Reply::Raw(steps), Reply::text("It ran.")]);
    let mut screen = gantry.screen(&["chat", "--json", "go"]);
    assert_eq!(screen.ended().await, Some(0));
    let shown = screen.written();
    assert!(shown.contains(r#""kind":"taken_back""#), "{shown}");
    let requests = model.requests();
    assert!(requests[0]["tools"].is_array(), "tools are sent natively");
    let [.., answer, result] = messages(&requests[1]) else {
        panic!("an answer and a result: {requests:?}");
    };
    assert_eq!(answer["content"], "I look.");
    assert_eq!(answer["tool_calls"][0]["function"]["name"], "Shell");
    assert_eq!(result["tool_call_id"], answer["tool_calls"][0]["id"]);
    let result = result["content"].as_str().expect("text");
    assert_eq!(result.matches("ran").count(), 1, "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_only_shown_runs_nothing() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let said = format!("You call it like this:\n```json\n{CALL}\n```\n");
    model.script(vec![Reply::text(said.clone())]);
    let told = gantry.talk().await.say("How do I call it?").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert!(told.calls().is_empty());
    assert_eq!(told.answer(), said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_tools_is_told_of_them_in_text() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::refusal(400, "gemma3:latest does not support tools"),
        Reply::text(CALL),
        Reply::text("It ran."),
    ]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert!(matches!(told.calls()[..], [(CallOutcome::Completed, _)]));
    let requests = model.requests();
    assert!(requests[0]["tools"].is_array());
    is_told_in_text(&requests[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_in_text_by_its_provider_is_sent_no_tools() {
    let model = ModelServer::start().await;
    let settings = format!(
        "[model]\nname = \"small\"\nprovider = \"mine\"\n[providers.mine]\nbase_url = {:?}\ntools = \"text\"\n",
        model.base_url()
    );
    let gantry = Gantry::with(Setup {
        settings,
        ..Setup::default()
    })
    .await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![Reply::text(CALL), Reply::text("It ran.")]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert!(matches!(told.calls()[..], [(CallOutcome::Completed, _)]));
    is_told_in_text(&model.requests());
}

/// Two requests: the tools stand in the system prompt, and then the call and its result in messages.
fn is_told_in_text(requests: &[Value]) {
    let [first, second] = requests else {
        panic!("two requests: {requests:?}");
    };
    for request in requests {
        assert!(request["tools"].is_null(), "{request}");
        let system = messages(request)[0]["content"].as_str().expect("text");
        assert!(system.contains("\nShell: "), "{system}");
    }
    let [.., answer, result] = messages(second) else {
        panic!("an answer and a result: {second}");
    };
    assert_eq!(messages(first).len() + 2, messages(second).len());
    assert_eq!(answer["role"], "assistant");
    assert!(answer["tool_calls"].is_null(), "{answer}");
    assert_eq!(result["role"], json!("user"));
    let result = result["content"].as_str().expect("text");
    assert!(
        result.starts_with("<tool_response>\nShell: ran\n"),
        "{result}"
    );
}
