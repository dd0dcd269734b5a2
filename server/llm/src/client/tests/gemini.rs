//! Answers in the form of the Gemini API, as the bytes that Google sends.

use proptest::prelude::*;
use serde_json::{Value, json};
use shared_types::event::Finish;

use super::*;
use crate::formats::Gemini;

/// Google ends its lines with CRLF.
fn event(data: &Value) -> String {
    format!("data: {data}\r\n\r\n")
}

fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "usageMetadata": { "promptTokenCount": 9 }, "modelVersion": "gemini-3" })
}

/// The chunks of a whole answer with thoughts, words and a call.
fn chunks() -> Vec<Value> {
    let mut last = chunk(json!([{ "text": "", "thoughtSignature": "S2" }]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({ "promptTokenCount": 9, "candidatesTokenCount": 3 });
    vec![
        chunk(json!([{ "text": "Hm, ä.", "thought": true }])),
        chunk(json!([{ "text": "Hello " }])),
        chunk(json!([{ "text": "😀" }])),
        chunk(json!([{ "thoughtSignature": "S1",
            "functionCall": { "name": "Shell", "args": { "command": "ls" } } }])),
        last,
    ]
}

fn whole() -> String {
    chunks().iter().map(event).collect()
}

async fn asked(body: &str) -> Result<Answer, ModelError> {
    answer_in::<Gemini>(format!("{STREAM}{body}")).await
}

#[tokio::test]
async fn a_whole_answer_is_read_and_asked_for_at_the_models_address() {
    let server = Responder::start(format!("{STREAM}{}", whole()), false).await;
    let mut options = server.options();
    options.key = ApiKey::new("AIza0123456789");
    let answer = ask_in::<Gemini>(options).await.expect("it is whole");
    assert_eq!(
        (answer.reasoning().as_str(), answer.text().as_str()),
        ("Hm, ä.", "Hello 😀")
    );
    assert_eq!(answer.calls()[0].arguments, "{\"command\":\"ls\"}");
    assert_eq!((answer.finish, answer.usage.output), (Finish::Complete, 3));
    let request = server.done.await.expect("no panic").expect("it was read");
    let address = "POST /v1/models/m:streamGenerateContent?alt=sse HTTP/1.1\r\n";
    assert!(request.starts_with(address), "{request}");
    assert!(request.contains("\r\nx-goog-api-key: AIza0123456789\r\n"));
    assert!(!request.contains("authorization"));
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_is_no_answer() {
    let whole = whole();
    // The last event counts without its empty line.
    let end = whole.trim_end().len();
    let wrong = cut_everywhere::<Gemini>(&whole, end).await;
    assert_eq!(wrong, Vec::<usize>::new());
    assert!(asked(&whole[..end]).await.is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_damaged_stream_is_a_whole_answer_or_a_named_failure(
        place in 0usize..4000,
        byte in any::<u8>(),
    ) {
        let mut bytes = whole().into_bytes();
        let place = place % bytes.len();
        bytes[place] = byte;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        // That it ends, and that its pieces are those of the answer.
        let result = runtime.block_on(answer_in::<Gemini>([STREAM.as_bytes(), &bytes].concat()));
        if let Err(error) = result {
            prop_assert!(!error.message().is_empty());
        }
    }
}

#[tokio::test]
async fn a_document_instead_of_a_stream_is_read_and_a_part_of_one_is_not() {
    let all = Value::from(chunks()).to_string();
    let answer = asked(&all).await.expect("it is whole");
    assert_eq!(
        (answer.text().as_str(), answer.calls().len()),
        ("Hello 😀", 1)
    );
    for document in [&all[..all.len() - 1], &json!(chunks()[..4]).to_string()] {
        let result = asked(document).await;
        assert!(matches!(result, Err(ModelError::Broken(_))), "{result:?}");
    }
    let mut one = chunk(json!([{ "text": "Hello" }]));
    one["candidates"][0]["finishReason"] = "MAX_TOKENS".into();
    let answer = asked(&one.to_string()).await.expect("it is whole");
    assert_eq!(
        (answer.text().as_str(), answer.finish),
        ("Hello", Finish::Length)
    );
}

#[tokio::test]
async fn an_error_in_mid_stream_ends_the_attempt_in_each_of_its_forms() {
    let begun = chunk(json!([{ "text": "Hel" }]));
    let error = json!({ "error": { "code": 503, "message": "The model is overloaded.",
        "status": "UNAVAILABLE" } });
    for body in [
        format!("{}{}", event(&begun), event(&error)),
        format!("{}data: [{error}]\r\n\r\n", event(&begun)),
        format!("[{begun},\r\n{error}]"),
    ] {
        let result = asked(&body).await;
        let Err(ModelError::Unavailable(message)) = result else {
            panic!("{body} gave {result:?}");
        };
        assert!(message.contains("overloaded"), "{message}");
    }
}

#[tokio::test]
async fn an_error_after_the_end_does_not_spoil_the_answer() {
    let error = json!({ "error": { "code": 500, "message": "x", "status": "INTERNAL" } });
    let answer = asked(&format!("{}{}", whole(), event(&error))).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello 😀");
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_spoil_the_answer() {
    let mut bytes = STREAM.as_bytes().to_vec();
    bytes.extend(
        b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"H\xff\xfei\"}]}}]}\r\n\r\n",
    );
    bytes.extend(b"data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n");
    let answer = answer_in::<Gemini>(bytes).await.expect("it is whole");
    assert_eq!(answer.text(), "H\u{fffd}\u{fffd}i");
    let torn = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\\ud83d\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    assert_eq!(asked(torn).await.expect("it is whole").text(), "Hi\u{fffd}");
}

#[tokio::test]
async fn a_model_that_misses_a_signature_is_asked_again_with_the_unchecked_one() {
    let refused = refusal(
        400,
        r#"{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}"#,
    );
    let server = Responders::start([refused, format!("{STREAM}{}", whole())]).await;
    let vendor = Client::<Gemini>::new(options(&server.base_url)).expect("usable options");
    let mut request = request();
    let call = shared_types::event::ToolCall {
        vendor_id: String::new(),
        name: "Shell".to_owned(),
        arguments: "{}".to_owned(),
        opaque: serde_json::Map::new(),
    };
    request.messages.push(Message::Assistant {
        parts: Parts(vec![Part::ToolCall(call)]),
    });
    request.messages.push(Message::ToolResult {
        vendor_id: String::new(),
        parts: Parts::text("a"),
        failed: false,
    });
    let (events, _heard) = mpsc::channel(100);
    let answer = vendor.attempt(&request, &events).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello 😀");
    let requests = server.requests().await;
    let with: Vec<_> = requests
        .iter()
        .map(|request| request.contains("skip_thought_signature_validator"))
        .collect();
    assert_eq!(with, [false, true]);
}
