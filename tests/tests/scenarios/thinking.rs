//! Models that think, as vendors serve them: what they add to an answer of their own has to come
//! back with the next request, or the vendor refuses it.

use serde_json::{Value, json};
use shared_types::{
    Event,
    event::{CallOutcome, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Told},
    model_server::{ModelServer, Reply, Step},
};

/// Lets the model think and ask for a command; returns the assistant's message of the second
/// request, and what was told of the turn.
async fn asked_again(deltas: &[Value], reason: &str) -> (Value, Told) {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    let mut steps: Vec<_> = deltas.iter().map(Step::delta).collect();
    steps.push(Step::end_with(reason));
    model.script(vec![Reply::Raw(steps), Reply::text("done")]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert!(matches!(told.calls()[..], [(CallOutcome::Completed, _)]));
    let mut requests = model.requests();
    let messages = requests[1]["messages"].as_array_mut().expect("a list");
    let answer = messages
        .iter_mut()
        .find(|message| message["role"] == "assistant");
    (answer.expect("it answered").take(), told)
}

fn call(more: Value) -> Value {
    let mut call = json!({ "index": 0, "id": "c1", "type": "function",
        "function": { "name": "Shell", "arguments": "{\"command\":\"true\"}" } });
    let fields = call.as_object_mut().expect("it is an object");
    fields.extend(more.as_object().expect("it is an object").clone());
    json!({ "tool_calls": [call] })
}

fn thoughts(told: &Told) -> Vec<std::borrow::Cow<'_, str>> {
    let events = told.events.iter().filter_map(|event| event.known());
    let thoughts = events.filter_map(|event| match event {
        Event::AnswerRecorded { parts, .. } => Some(parts.reasoning()),
        _ => None,
    });
    thoughts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_thoughts_of_deepseek_go_back_to_it_with_its_tool_call() {
    let deltas = [
        json!({ "role": "assistant", "content": null, "reasoning_content": "" }),
        json!({ "content": null, "reasoning_content": "I have " }),
        json!({ "content": null, "reasoning_content": "to look." }),
        call(json!({})),
    ];
    let (message, told) = asked_again(&deltas, "tool_calls").await;
    assert_eq!(message["reasoning_content"], "I have to look.");
    assert_eq!(thoughts(&told), ["I have to look.", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_signature_of_gemini_goes_back_to_it_with_the_call_that_it_signs() {
    let signature = json!({ "google": { "thought_signature": "c2ln+/==" } });
    let deltas = [call(json!({ "extra_content": signature }))];
    let (message, _) = asked_again(&deltas, "stop").await;
    assert_eq!(message["tool_calls"][0]["extra_content"], signature);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reasoning_details_of_openrouter_go_back_to_it_as_one_would_have_sent_them_whole() {
    let piece = |fields: Value| {
        let mut piece =
            json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0 });
        let known = piece.as_object_mut().expect("it is an object");
        known.extend(fields.as_object().expect("it is an object").clone());
        json!({ "content": "", "reasoning_details": [piece] })
    };
    let deltas = [
        piece(json!({ "text": "I have ", "signature": null })),
        piece(json!({ "text": "to look." })),
        piece(json!({ "signature": "c2ln" })),
        call(json!({})),
    ];
    let (message, told) = asked_again(&deltas, "tool_calls").await;
    assert_eq!(
        message["reasoning_details"],
        json!([{ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0,
            "text": "I have to look.", "signature": "c2ln" }])
    );
    assert_eq!(thoughts(&told), ["I have to look.", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_broke_off_is_asked_for_again_and_one_at_its_length_is_told_as_such() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let half = |reason| {
        let said = Step::delta(&json!({ "content": "half" }));
        Reply::Raw(vec![said, Step::end_with(reason)])
    };
    model.script(vec![half("error"), half("max_tokens")]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_notice("scripted broke its answer off; trying again in ")
        .await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let recorded = format!("{:?}", told.events);
    assert!(recorded.contains("finish: Length"), "{recorded}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_said_before_it_broke_off_is_taken_back() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let broken = || Reply::Raw(vec![Step::text("half of it"), Step::Reset]);
    model.script(vec![broken(), broken(), Reply::text("whole")]);
    let written = gantry.cli(&["chat", "go"]).await;
    let written = String::from_utf8_lossy(&written.stdout).into_owned();
    assert!(
        written.contains("whole") && !written.contains("half of it"),
        "a pipe is written what is whole: {written}"
    );
    assert_eq!(written.matches("trying again in").count(), 2, "{written}");

    let breaks = std::sync::Arc::new(tokio::sync::Notify::new());
    let broken = vec![
        Step::text("half of it"),
        Step::Hold(breaks.clone()),
        Step::Reset,
    ];
    model.script(vec![Reply::Raw(broken), Reply::text("whole")]);
    let mut screen = gantry.screen(&["chat", "--json", "go"]);
    screen.until_shown("half of it").await;
    breaks.notify_one();
    assert_eq!(screen.ended().await, Some(0));
    let lines = screen.written();
    let kinds: Vec<_> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| Some((line["live"]["kind"].as_str()?.to_owned(), line)))
        .filter(|(kind, _)| kind == "text" || kind == "taken_back")
        .collect();
    let first = kinds.iter().position(|(kind, _)| kind == "taken_back");
    let first = first.unwrap_or_else(|| panic!("{lines}"));
    let attempt = |line: &Value| line["live"]["attempt"].as_u64();
    assert!(
        kinds[..=first]
            .iter()
            .all(|(_, line)| attempt(line) == Some(1))
    );
    assert!(
        kinds[first + 1..]
            .iter()
            .all(|(_, line)| attempt(line) == Some(2))
    );
}
