//! Answers in the form of the Responses API, as the bytes that OpenAI sends.

use proptest::prelude::*;
use serde_json::{Value, json};
use shared_types::event::Finish;

use super::*;
use crate::formats::Responses;

/// An event under its own name, as OpenAI sends it.
fn event(data: Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

/// The events of a whole answer with thoughts, words and a call.
fn whole() -> String {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [{ "type": "summary_text", "text": "Hm, ä." }] });
    let message = json!({ "type": "message", "id": "msg_1", "role": "assistant",
        "content": [{ "type": "output_text", "text": "Hello 😀", "annotations": [] }] });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1",
        "name": "Shell", "arguments": "{\"command\":\"ls\"}" });
    let delta = |of: &str, index: u32, text: &str| json!({ "type": format!("response.{of}.delta"), "output_index": index, "delta": text });
    let added = |index: u32, item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
    let done = |index: u32, item: &Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let events = [
        json!({ "type": "response.created", "response": { "status": "in_progress", "error": null } }),
        added(
            0,
            json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
        ),
        delta("reasoning_summary_text", 0, "Hm, ä."),
        done(0, &reasoning),
        delta("output_text", 1, "Hello "),
        delta("output_text", 1, "😀"),
        done(1, &message),
        added(
            2,
            json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1",
            "name": "Shell", "arguments": "" }),
        ),
        delta("function_call_arguments", 2, "{\"command\":\"ls\"}"),
        done(2, &call),
        json!({ "type": "response.completed", "response": { "status": "completed", "error": null,
            "output": [reasoning, message, call], "usage": { "output_tokens": 9 } } }),
    ];
    events.map(event).concat()
}

async fn asked(events: &str) -> Result<Answer, ModelError> {
    answer_in::<Responses>(format!("{STREAM}{events}")).await
}

#[tokio::test]
async fn a_whole_answer_is_read_and_asked_for_below_the_base_url() {
    let server = Responder::start(format!("{STREAM}{}", whole()), true).await;
    let mut options = server.options();
    options.key = ApiKey::new("sk-0123456789");
    let answer = ask_in::<Responses>(options).await.expect("it is whole");
    assert_eq!(
        (answer.reasoning().as_str(), answer.text().as_str()),
        ("Hm, ä.", "Hello 😀")
    );
    assert_eq!(answer.calls()[0].arguments, "{\"command\":\"ls\"}");
    assert_eq!((answer.finish, answer.usage.output), (Finish::Complete, 9));
    let request = server.done.await.expect("no panic").expect("it was read");
    assert!(request.starts_with("POST /v1/responses HTTP/1.1\r\n"));
    assert!(request.contains("\r\nauthorization: Bearer sk-0123456789\r\n"));
    assert!(request.contains("\"store\":false"), "{request}");
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_is_no_answer() {
    let whole = whole();
    // The last event counts without its empty line.
    let end = whole.trim_end().len();
    let wrong = cut_everywhere::<Responses>(&whole, end).await;
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
        let result = runtime.block_on(answer_in::<Responses>([STREAM.as_bytes(), &bytes].concat()));
        if let Err(error) = result {
            prop_assert!(!error.message().is_empty());
        }
    }
}

#[tokio::test]
async fn a_document_instead_of_a_stream_is_read() {
    let item =
        json!({ "type": "message", "content": [{ "type": "output_text", "text": "Hello" }] });
    let document = |status: &str, error: Value| json!({ "object": "response", "status": status, "error": error, "output": [item] });
    let whole = asked(&document("completed", Value::Null).to_string()).await;
    assert_eq!(whole.expect("it is whole").text(), "Hello");
    let error = json!({ "code": "rate_limit_exceeded", "message": "slow down" });
    let failed = asked(&document("failed", error).to_string()).await;
    assert!(
        matches!(failed, Err(ModelError::RateLimited(_))),
        "{failed:?}"
    );
}

#[tokio::test]
async fn an_error_in_mid_stream_ends_the_attempt_in_each_of_its_forms() {
    let begun =
        event(json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Hel" }));
    let limited = json!({ "code": "rate_limit_exceeded", "message": "slow down" });
    let named = json!({ "type": "error", "code": "rate_limit_exceeded", "message": "slow down",
        "param": null, "sequence_number": 3 });
    for last in [
        event(
            json!({ "type": "response.failed", "response": { "status": "failed", "error": limited } }),
        ),
        event(named.clone()),
        format!("data: {named}\n\n"),
        event(json!({ "type": "error", "error": limited })),
    ] {
        let result = asked(&format!("{begun}{last}")).await;
        let Err(ModelError::RateLimited(message)) = result else {
            panic!("{last} gave {result:?}");
        };
        assert!(message.contains("slow down"), "{message}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_spoil_the_answer() {
    let mut bytes = STREAM.as_bytes().to_vec();
    bytes.extend(b"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"H\xff\xfei\"}\n\n");
    bytes.extend(b"data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n");
    let answer = answer_in::<Responses>(bytes).await.expect("it is whole");
    assert_eq!(answer.text(), "H\u{fffd}\u{fffd}i");
    let torn = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\\ud83d\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    assert_eq!(asked(torn).await.expect("it is whole").text(), "Hi\u{fffd}");
}

#[tokio::test]
async fn a_server_that_does_not_take_the_thoughts_is_asked_again_without_them() {
    let refused = refusal(
        400,
        r#"{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}"#,
    );
    let whole = format!("{STREAM}{}", whole());
    let server = Responders::start([refused, whole.clone(), whole]).await;
    let vendor = Client::<Responses>::new(options(&server.base_url)).expect("usable options");
    let fields = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA" });
    let fields = fields.as_object().expect("an object").clone();
    let mut parts = Parts(vec![Part::Opaque { fields }]);
    parts.0.extend(Parts::text("hi").0);
    let mut request = request();
    request.messages.push(Message::Assistant { parts });
    let (events, _heard) = mpsc::channel(100);
    for _ in 0..2 {
        let answer = vendor.attempt(&request, &events).await;
        assert_eq!(answer.expect("it is whole").text(), "Hello 😀");
    }
    let requests = server.requests().await;
    let with: Vec<_> = requests
        .iter()
        .map(|request| request.contains("gAAA"))
        .collect();
    assert_eq!(
        with,
        [true, false, true],
        "the next conversation may be another"
    );
}
