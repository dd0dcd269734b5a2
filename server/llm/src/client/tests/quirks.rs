//! What models and the servers before them were seen to do, each as the bytes that they send.

use serde_json::{Value, json};
use shared_types::event::Finish;

use super::*;

/// A stream of these pieces, each an event.
fn stream(pieces: &[Value]) -> String {
    let events = pieces.iter().map(|piece| format!("data: {piece}\n\n"));
    events.collect::<String>() + "data: [DONE]\n\n"
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

/// A piece of the first call.
fn call(id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({ "index": 0, "function": { "arguments": arguments } });
    if !id.is_empty() {
        call["id"] = id.into();
    }
    if !name.is_empty() {
        call["function"]["name"] = name.into();
    }
    delta(json!({ "tool_calls": [call] }))
}

fn ended(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// One call, whose name and arguments come as these.
fn asks(name: &str, arguments: &str) -> String {
    stream(&[call("c", name, arguments), ended("tool_calls")])
}

#[tokio::test]
async fn a_call_is_heard_however_it_is_written() {
    let ls = r#"{"command":"ls"}"#;
    let pieces = [r#"{"comm"#, r#"and":"ls"}"#];
    let rows = [
        (
            "a name in pieces",
            stream(&[
                call("c", "Sh", ""),
                call("", "ell", ""),
                call("", "", ls),
                ended("tool_calls"),
            ]),
        ),
        (
            "name and id in every piece",
            stream(&[
                call("c", "Shell", ""),
                call("c", "Shell", pieces[0]),
                call("c", "Shell", pieces[1]),
                ended("tool_calls"),
            ]),
        ),
        (
            "a fenced block",
            asks("Shell", &format!("```json\n{ls}\n```")),
        ),
        ("encoded twice", asks("Shell", &json!(ls).to_string())),
        ("a brace too many", asks("Shell", &format!("{ls}}}"))),
        ("repeated whole", asks("Shell", &format!("{ls}{ls}"))),
        (
            "repeated whole, as a piece of its own with the name",
            stream(&[
                call("c", "Shell", ls),
                call("c", "Shell", ls),
                ended("tool_calls"),
            ]),
        ),
        (
            "an empty object first",
            stream(&[
                call("c", "Shell", "{}"),
                call("", "", pieces[0]),
                call("", "", pieces[1]),
                ended("tool_calls"),
            ]),
        ),
        (
            "an empty object first, and name and id in every piece",
            stream(&[
                call("c", "Shell", "{}"),
                call("c", "Shell", pieces[0]),
                call("c", "Shell", pieces[1]),
                ended("tool_calls"),
            ]),
        ),
        ("a namespace before the name", asks("functions.Shell", ls)),
        ("a number behind the name", asks("functions.Shell:0", ls)),
        ("a name in small letters", asks("shell", ls)),
        (
            "an end that nobody knows",
            stream(&[call("c", "Shell", ls), ended("tools")]),
        ),
        (
            "an end with a hyphen",
            stream(&[call("c", "Shell", ls), ended("tool-calls")]),
        ),
    ];
    for (quirk, body) in rows {
        let answer = answer(format!("{STREAM}{body}")).await;
        let calls = answer
            .unwrap_or_else(|error| panic!("{quirk}: {error}"))
            .calls();
        let [call] = &calls[..] else {
            panic!("{quirk}: {calls:?}");
        };
        assert_eq!(
            (call.name.as_str(), call.arguments.as_str()),
            ("Shell", ls),
            "{quirk}"
        );
    }
}

#[tokio::test]
async fn a_raw_line_break_in_a_string_is_one() {
    let answer = answer(format!(
        "{STREAM}{}",
        asks("Shell", "{\"command\":\"a\nb\"}")
    ))
    .await;
    let calls = answer.expect("it is whole").calls();
    assert_eq!(calls[0].arguments, r#"{"command":"a\nb"}"#);
}

#[tokio::test]
async fn two_calls_stay_two() {
    let two = |second: Value| stream(&[call("a", "List", "{}"), second, ended("tool_calls")]);
    for body in [
        two(call("b", "List", r#"{"path":"x"}"#)),
        two(call("b", "Read", r#"{"path":"x"}"#)),
        two(call("", "Read", r#"{"path":"x"}"#)),
    ] {
        let answer = answer(format!("{STREAM}{body}"))
            .await
            .expect("it is whole");
        assert_eq!(answer.calls().len(), 2, "{body}: {:?}", answer.calls());
    }
}

#[tokio::test]
async fn a_text_is_whole_with_any_end_that_the_streams_own_mark_follows() {
    for reason in [
        "end",
        "eos_token",
        "stop_sequence",
        "tool-calls",
        "COMPLETE",
        "nobody-knows",
    ] {
        let body = format!("{HELLO}data: {}\n\n", ended(reason));
        let whole = answer(format!("{STREAM}{body}data: [DONE]\n\n")).await;
        let whole = whole.unwrap_or_else(|error| panic!("{reason}: {error}"));
        assert_eq!(
            (whole.text().as_str(), whole.finish),
            ("Hello", Finish::Complete),
            "{reason}"
        );
    }
    for cut in [
        format!("{HELLO}data: {}\n\n", ended("nobody-knows")),
        stream(&[call("c", "Shell", r#"{"comm"#), ended("nobody-knows")]),
        stream(&[ended("nobody-knows")]),
        format!("{HELLO}data: {}\n\ndata: [DONE]\n\n", ended("error")),
    ] {
        let error = answer(format!("{STREAM}{cut}"))
            .await
            .expect_err("it broke off");
        assert!(error.is_passing(), "{error}");
    }
}

#[tokio::test]
async fn events_with_a_single_line_end_between_them_are_told_apart() {
    let events = [
        delta(json!({ "content": "Hel" })),
        delta(json!({ "content": "lo" })),
        ended("stop"),
    ];
    let lines = events.map(|event| format!("data: {event}\n")).concat();
    for body in [format!("{lines}data: [DONE]\n"), lines] {
        let answer = answer(format!("{STREAM}{body}"))
            .await
            .expect("it is whole");
        assert_eq!(answer.text(), "Hello");
    }
}

#[tokio::test]
async fn a_character_that_is_divided_between_two_events_is_whole() {
    let piece = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let body = [
        piece("a\\ud83d"),
        piece("\\ude00b"),
        piece("\\ude00\\\"\\ude00"),
        STOP.to_owned(),
    ];
    let answer = answer(format!("{STREAM}{}", body.concat())).await;
    let text = answer.expect("it is whole").text();
    assert_eq!(text, "a😀b\u{fffd}\"\u{fffd}");
}

#[tokio::test]
async fn tokens_that_were_cached_count_under_every_name() {
    for usage in [
        json!({ "prompt_tokens_details": { "cached_tokens": 8 } }),
        json!({ "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 1 }),
        json!({ "cached_tokens": 8 }),
    ] {
        let usage = json!({ "choices": [], "usage": usage });
        let answer = answer(format!("{STREAM}{HELLO}{STOP}{}", stream(&[usage]))).await;
        assert_eq!(answer.expect("it is whole").usage.cached, 8);
    }
}

#[tokio::test]
async fn thoughts_that_stand_beside_the_text_go_back_as_they_came() {
    let thought = |text: &str| {
        let text = json!([{ "type": "text", "text": text }]);
        delta(json!({ "content": [{ "type": "thinking", "thinking": text }] }))
    };
    let body = stream(&[
        thought("I th"),
        thought("ink"),
        delta(json!({ "content": "Hello" })),
        ended("stop"),
    ]);
    let answer = answer(format!("{STREAM}{body}"))
        .await
        .expect("it is whole");
    assert_eq!(
        (answer.text().as_str(), answer.reasoning().as_str()),
        ("Hello", "I think")
    );
    let sent = sent_again(answer).await;
    let content = json!([
        { "type": "thinking", "thinking": [{ "type": "text", "text": "I think" }] },
        { "type": "text", "text": "Hello" },
    ]);
    assert_eq!(sent["messages"][1]["content"], content);
}

/// The body of the request that follows this answer.
async fn sent_again(answer: Answer) -> Value {
    let mut next = request();
    next.messages.push(Message::Assistant {
        parts: answer.parts,
    });
    let bytes = bytes_sent(&next).await;
    serde_json::from_str(&bytes).expect("it is JSON")
}

async fn bytes_sent(request: &ModelRequest) -> String {
    let server = Responder::start(format!("{STREAM}{HELLO}{STOP}"), false).await;
    let vendor = Client::<Chat>::new(server.options()).expect("the options are usable");
    let (events, _heard) = mpsc::channel(100);
    vendor.attempt(request, &events).await.expect("it is whole");
    let sent = server.done.await.expect("no panic").expect("it was read");
    let (_, body) = sent.split_once("\r\n\r\n").expect("a body");
    body.to_owned()
}

#[tokio::test]
async fn a_request_begins_as_the_one_before_it_did() {
    let mut next = request();
    let before = bytes_sent(&next).await;
    next.messages.push(Message::Assistant {
        parts: Parts::text("Hello"),
    });
    let after = bytes_sent(&next).await;
    let same = before.strip_suffix("]}").expect("the messages come last");
    assert!(after.starts_with(same), "{before}\n{after}");
}

#[tokio::test]
async fn a_key_that_is_refused_with_status_400_is_named() {
    let list = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
    let error = answer(refusal(400, list)).await.expect_err("it is refused");
    assert!(
        matches!(&error, ModelError::Unauthenticated(said) if said.contains("OPENAI_API_KEY")),
        "{error}"
    );
}
