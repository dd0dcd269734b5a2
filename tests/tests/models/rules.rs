//! The rules of the vendors to which the scripted model server holds a request.

use serde_json::{Value, json};
use tests::model_server::{ModelServer, Reply, Said};

/// Sends a body; gives the status, and the stream or the words of the refusal.
async fn send(server: &ModelServer, path: &str, body: &Value) -> (u16, String) {
    let url = format!("{}{path}", server.root_url());
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    let answer = client.post(url).json(body).send().await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.text().await.expect("text"))
}

/// The words with which a body is refused; nothing where it is accepted.
async fn refused(path: &str, body: &Value) -> String {
    let server = ModelServer::start().await;
    server.script(vec![Reply::text("ok")]);
    match send(&server, path, body).await {
        (200, _) => String::new(),
        (400, said) => {
            assert_eq!(server.replies_left(), 1, "a refusal takes no reply");
            let said: Value = serde_json::from_str(&said).expect("it is JSON");
            said["error"]["message"].as_str().expect("words").to_owned()
        }
        other => panic!("{other:?}"),
    }
}

fn said() -> Reply {
    Reply::Said(Said {
        thoughts: "hm".to_owned(),
        calls: vec![("Shell".to_owned(), "{}".to_owned())],
        ..Said::default()
    })
}

/// The data of the events of a stream.
async fn events(path: &str, body: &Value) -> Vec<Value> {
    let server = ModelServer::start().await;
    server.script(vec![said()]);
    let (status, stream) = send(&server, path, body).await;
    assert_eq!(status, 200, "{stream}");
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("it is JSON"))
        .collect()
}

const MESSAGES: &str = "/v1/messages";

fn of_messages(messages: Value) -> Value {
    json!({ "model": "m", "max_tokens": 9, "system": "s", "tools": [{ "name": "Shell" }], "messages": messages })
}

#[tokio::test]
async fn a_conversation_that_breaks_a_rule_of_messages_is_refused() {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let assistant = |content: Value| json!({ "role": "assistant", "content": content });
    let call = json!({ "type": "tool_use", "id": "a", "name": "Shell", "input": {} });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": "ok" });
    let mut marked = text("hi");
    marked["cache_control"] = json!({ "type": "ephemeral" });
    let (hi, asked) = (user(json!("hi")), assistant(json!([call])));
    let odd = json!({ "type": "tool_use", "id": "a:0", "name": "Shell", "input": {} });
    let odd_result = json!({ "type": "tool_result", "tool_use_id": "a:0", "content": "ok" });
    for (messages, words) in [
        (json!([hi, asked, user(json!([result, text("more")]))]), ""),
        (json!([user(json!([marked, marked, marked, marked]))]), ""),
        (json!([hi, assistant(json!("so"))]), ""),
        (
            json!([user(json!([marked, marked, marked, marked, marked]))]),
            "A maximum of 4",
        ),
        (json!([]), "at least one message"),
        (json!([hi, hi]), "roles must alternate"),
        (json!([assistant(json!("hi"))]), "roles must alternate"),
        (json!([user(json!([]))]), "non-empty"),
        (json!([user(json!([text(" ")]))]), "non-whitespace"),
        (json!([hi, asked]), "without `tool_result`"),
        (json!([hi, asked, hi]), "without `tool_result`"),
        (
            json!([hi, asked, user(json!([text("more"), result]))]),
            "without `tool_result`",
        ),
        (json!([user(json!([result]))]), "unexpected `tool_use_id`"),
        (
            json!([hi, assistant(json!([odd])), user(json!([odd_result]))]),
            "should match pattern",
        ),
        (json!([hi, assistant(json!("so "))]), "trailing whitespace"),
    ] {
        let refused = refused(MESSAGES, &of_messages(messages.clone())).await;
        match words {
            "" => assert_eq!(refused, "", "{messages}"),
            words => assert!(refused.contains(words), "{messages}: {refused}"),
        }
    }
    let mut without_limit = of_messages(json!([hi]));
    without_limit["max_tokens"] = Value::Null;
    assert!(
        refused(MESSAGES, &without_limit)
            .await
            .contains("max_tokens")
    );
}

#[tokio::test]
async fn a_signed_thought_is_accepted_only_unchanged_and_behind_the_same_prefix() {
    let first = of_messages(json!([{ "role": "user", "content": "hi" }]));
    let events = events(MESSAGES, &first).await;
    let deltas = events.iter().map(|event| &event["delta"]);
    let signature = deltas
        .filter_map(|delta| delta["signature"].as_str())
        .next()
        .expect("a signature");
    let mut next = first.clone();
    next["messages"] = json!([
        // The same text as a block, and with a cache mark.
        { "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } }] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "hm", "signature": signature },
            { "type": "tool_use", "id": "call_0_0", "name": "Shell", "input": {} },
        ] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "call_0_0", "content": "ok" }] },
    ]);
    assert_eq!(refused(MESSAGES, &next).await, "");
    let prefix = "bound to a different conversation";
    for (pointer, value, words) in [
        ("/system", json!("t"), prefix),
        ("/tools/0/name", json!("Read"), prefix),
        ("/messages/0/content/0/text", json!("ho"), prefix),
        (
            "/messages/1/content/0/thinking",
            json!("hmm"),
            "Invalid `signature`",
        ),
        (
            "/messages/1/content/0/signature",
            json!("x"),
            "Invalid `signature`",
        ),
        ("/messages/1/content/1/name", json!("Read"), ""),
        ("/messages/2/content/0/content", json!("masked"), ""),
    ] {
        let mut changed = next.clone();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        let refused = refused(MESSAGES, &changed).await;
        match words {
            "" => assert_eq!(refused, "", "{pointer}"),
            words => assert!(refused.contains(words), "{pointer}: {refused}"),
        }
    }
    let mut ends_in_it = next.clone();
    ends_in_it["messages"]
        .as_array_mut()
        .expect("a list")
        .truncate(2);
    ends_in_it["messages"][1]["content"]
        .as_array_mut()
        .expect("a list")
        .truncate(1);
    assert!(
        refused(MESSAGES, &ends_in_it)
            .await
            .contains("cannot be `thinking`")
    );
}

#[tokio::test]
async fn thoughts_of_responses_are_accepted_only_unchanged_and_with_the_item_that_they_led_to() {
    let path = "/v1/responses";
    let hi = json!({ "role": "user", "content": "hi" });
    let events = events(path, &json!({ "input": [hi] })).await;
    let mut done = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done");
    let mut next_item = || {
        done.next()
            .map(|event| event["item"].clone())
            .expect("an item")
    };
    let (thought, call) = (next_item(), next_item());
    let output = json!({ "type": "function_call_output", "call_id": "call_0_0", "output": "ok" });
    let input = |items: Vec<&Value>| json!({ "input": items });
    let whole = input(vec![&hi, &thought, &call, &output]);
    assert_eq!(refused(path, &whole).await, "");
    assert_eq!(
        refused(path, &input(vec![&hi, &call, &output])).await,
        "",
        "thoughts may be left out"
    );
    let mut changed = whole.clone();
    changed["input"][1]["summary"] = json!([]);
    assert!(
        refused(path, &changed)
            .await
            .contains("could not be verified")
    );
    for (items, words) in [
        (vec![&hi, &thought], "required following item"),
        (vec![&hi, &thought, &hi], "required following item"),
        (vec![&hi, &thought, &call], "No tool output found"),
        (vec![&hi, &output], "No tool call found"),
    ] {
        let refused = refused(path, &input(items)).await;
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[tokio::test]
async fn calls_of_gemini_are_accepted_only_with_their_signature_and_their_responses() {
    let path = "/v1beta/models/m:streamGenerateContent";
    let hi = json!({ "role": "user", "parts": [{ "text": "hi" }] });
    let events = events(path, &json!({ "contents": [hi] })).await;
    let parts = events
        .iter()
        .map(|event| &event["candidates"][0]["content"]["parts"][0]);
    let call = parts
        .clone()
        .find(|part| part["functionCall"].is_object())
        .expect("a call");
    let response = json!({ "role": "user", "parts": [{ "functionResponse": { "name": "Shell", "response": {} } }] });
    let body = |call: &Value, last: &Value| json!({ "contents": [hi, { "role": "model", "parts": [call] }, last] });
    assert_eq!(refused(path, &body(call, &response)).await, "");
    let with = |signature: Value| {
        let mut call = call.clone();
        call["thoughtSignature"] = signature;
        call
    };
    for (call, last, words) in [
        (with(Value::Null), &response, "missing a thought_signature"),
        (
            with(json!("AAAA")),
            &response,
            "Corrupted thought signature",
        ),
        (call.clone(), &hi, "number of function response parts"),
        (
            with(json!("skip_thought_signature_validator")),
            &response,
            "",
        ),
    ] {
        let refused = refused(path, &body(&call, last)).await;
        assert!(
            refused.contains(words) && refused.is_empty() == words.is_empty(),
            "{words}: {refused}"
        );
    }
}
