//! Anthropic's format over HTTP, as the bytes that its servers send.

use serde_json::{Value, json};
use shared_types::event::{Finish, Usage};

use super::*;
use crate::{Thinking, formats::Messages};

/// An answer with thoughts, words and a call, as the vendor streamed it.
const RECORDED: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Größer 🦀"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Shell","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"ls\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":11}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// A short answer that ends for this reason.
fn says(text: &str, reason: &str) -> String {
    format!(
        "{STREAM}data: {{\"type\":\"message_start\",\"message\":{{\"model\":\"m\",\"usage\":{{\"input_tokens\":10}}}}}}\n\n\
         data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n\
         data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}},\"usage\":{{\"output_tokens\":2}}}}\n\n\
         data: {{\"type\":\"message_stop\"}}\n\n"
    )
}

fn client(base_url: &str) -> Client<Messages> {
    let mut options = options(base_url);
    options.key = ApiKey::new("sk-ant-0123456789");
    options.profile.thinking = Thinking::Adaptive;
    Client::new(options).expect("the options are usable")
}

/// The result of one attempt, and the pieces that were said.
async fn attempt(
    client: &Client<Messages>,
    request: &ModelRequest,
) -> (Result<Answer, Failure>, Vec<Piece>) {
    let (events, mut heard) = mpsc::channel(1000);
    let result = client.attempt(request, &events).await;
    drop(events);
    let mut said = Vec::new();
    while let Some(event) = heard.recv().await {
        match event {
            ModelEvent::Said(piece) => said.push(piece),
            other => panic!("a wire format sends only what is said, not {other:?}"),
        }
    }
    (result, said)
}

async fn answer(response: impl Into<Vec<u8>>) -> Result<Answer, ModelError> {
    let server = Responder::start(response, false).await;
    let (result, _) = attempt(&client(&server.base_url), &request()).await;
    result.map_err(|failure| failure.error)
}

/// The body of a request that arrived.
fn body_of(request: &str) -> Value {
    let (_, body) = request.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("it is JSON")
}

#[tokio::test]
async fn a_recorded_stream_is_read_whole_and_its_request_has_the_vendors_headers() {
    let server = Responder::start(format!("{STREAM}{RECORDED}"), true).await;
    let (result, said) = attempt(&client(&server.base_url), &request()).await;
    let answer = result.expect("it is whole");
    assert_eq!(
        (answer.text(), answer.reasoning()),
        ("I look.".to_owned(), "Größer 🦀".to_owned())
    );
    assert_eq!(answer.calls()[0].arguments, r#"{"command": "ls"}"#);
    let usage = Usage {
        input: 15,
        cached: 7,
        cache_written: 5,
        output: 11,
        thoughts: 0,
    };
    assert_eq!(answer.usage, usage);
    assert_eq!(
        said.iter().map(|piece| piece.part).collect::<Vec<_>>(),
        [0, 1]
    );
    // The server keeps the connection open, and the client does not wait for it.
    let request = server.done.await.expect("no panic").expect("it was read");
    assert!(
        request.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nx-api-key: sk-ant-0123456789\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nanthropic-version: 2023-06-01\r\n"),
        "{request}"
    );
    assert_eq!(body_of(&request)["stream"], true);
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_before_its_reason_is_no_answer() {
    let reason = RECORDED
        .find("event: message_delta")
        .expect("it has an end");
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = tokio::spawn(async move {
        // The line with the reason is an event even without the empty line behind it.
        let until = reason
            + RECORDED[reason..]
                .find("\"stop_sequence\"")
                .expect("a reason");
        for cut in 0..until {
            let (mut stream, _) = listener.accept().await?;
            read_request(&mut stream).await?;
            stream.write_all(STREAM.as_bytes()).await?;
            stream.write_all(&RECORDED.as_bytes()[..cut]).await?;
        }
        Ok::<_, io::Error>(until)
    });
    let client = client(&format!("http://127.0.0.1:{port}/v1"));
    let mut cuts = 0;
    while !serving.is_finished() {
        let (result, _) = attempt(&client, &request()).await;
        match result {
            Err(failure) => assert!(failure.error.is_passing(), "{cuts}: {failure:?}"),
            Ok(answer) => panic!("{cuts} bytes gave {answer:?}"),
        }
        cuts += 1;
    }
    let until = serving.await.expect("no panic").expect("each was served");
    assert!(cuts >= until, "{cuts} of {until}");
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_replaced_and_the_answer_is_whole() {
    let mut response = says("a@b", "end_turn").into_bytes();
    let place = response
        .iter()
        .position(|byte| *byte == b'@')
        .expect("the mark");
    response[place] = 0xff;
    assert_eq!(
        answer(response).await.expect("it is whole").text(),
        "a\u{fffd}b"
    );
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_told_in_the_vendors_words() {
    let (begun, _) = RECORDED
        .split_once("event: content_block_stop")
        .expect("it has blocks");
    for (kind, class) in [
        ("overloaded_error", "unavailable"),
        ("api_error", "unavailable"),
        ("rate_limit_error", "rate limited"),
        ("timeout_error", "timed out"),
        ("authentication_error", "unauthenticated"),
        ("billing_error", "quota"),
        ("invalid_request_error", "refused"),
        ("not_found_error", "refused"),
    ] {
        let error = json!({ "type": "error", "error": { "type": kind, "message": "So it is" }, "request_id": "req_1" });
        for named in ["event: error\n", ""] {
            let error = answer(format!("{STREAM}{begun}{named}data: {error}\n\n")).await;
            let error = error.expect_err("it broke off");
            assert!(error.message().contains("So it is"), "{error}");
            let is_class = match class {
                "unavailable" => matches!(error, ModelError::Unavailable(_)),
                "rate limited" => matches!(error, ModelError::RateLimited(_)),
                "timed out" => matches!(error, ModelError::TimedOut(_)),
                "unauthenticated" => matches!(error, ModelError::Unauthenticated(_)),
                "quota" => matches!(error, ModelError::QuotaExhausted(_)),
                _ => matches!(error, ModelError::Refused(_)),
            };
            assert!(is_class, "{kind} gave {error:?}");
        }
    }
}

#[tokio::test]
async fn one_document_is_an_answer_and_a_web_page_is_none() {
    let document = json!({ "type": "message", "content": [{ "type": "text", "text": "Hello" }], "stop_reason": "end_turn" });
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    assert_eq!(
        answer(format!("{head}{document}"))
            .await
            .expect("it is whole")
            .text(),
        "Hello"
    );
    let page = answer("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html></html>").await;
    assert!(matches!(page, Err(ModelError::Refused(_))), "{page:?}");
    let hidden = answer(format!("{STREAM}<html></html>")).await;
    assert!(matches!(hidden, Err(ModelError::Broken(_))), "{hidden:?}");
}

#[tokio::test]
async fn a_vendor_that_paused_is_sent_back_its_answer_and_all_of_it_is_one() {
    let paused = RECORDED.replace(
        "\"tool_use\",\"stop_sequence\"",
        "\"pause_turn\",\"stop_sequence\"",
    );
    // A vendor's own tool stands where the call of ours stood.
    let paused = paused.replace(
        "\"tool_use\",\"id\":\"toolu_1\"",
        "\"server_tool_use\",\"id\":\"s\"",
    );
    let server = Responders::start([format!("{STREAM}{paused}"), says("Found.", "end_turn")]).await;
    let (result, said) = attempt(&client(&server.base_url), &request()).await;
    let answer = result.expect("it is whole");
    assert_eq!(answer.text(), "I look.\n\nFound.");
    assert_eq!(answer.finish, Finish::Complete);
    assert_eq!((answer.usage.input, answer.usage.output), (25, 13));
    assert_eq!(answer.model, "claude-opus-5-5");
    let shown: Vec<_> = said
        .iter()
        .map(|piece| (piece.part, piece.text.as_str()))
        .collect();
    assert_eq!(shown, [(0, "Größer 🦀"), (1, "I look."), (2, "Found.")]);
    let requests = server.requests().await;
    let messages = body_of(&requests[1])["messages"].take();
    let sent_back = json!([
        { "type": "thinking", "thinking": "Größer 🦀", "signature": "S==" },
        { "type": "text", "text": "I look." },
        { "type": "server_tool_use", "id": "s", "name": "Shell", "input": { "command": "ls" } },
    ]);
    assert_eq!(messages[1]["content"], sent_back);
    assert_eq!(messages.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_vendor_that_pauses_for_ever_is_asked_nine_times() {
    let pauses: [String; 9] = std::array::from_fn(|_| says("x", "pause_turn"));
    let server = Responders::start(pauses).await;
    let (result, _) = attempt(&client(&server.base_url), &request()).await;
    let answer = result.expect("it is an answer as far as it goes");
    assert_eq!(answer.parts.0.len(), 9);
    assert_eq!(answer.finish, Finish::Length, "it is not whole");
    assert_eq!(server.requests().await.len(), 9);
}

/// A conversation with thoughts, as this vendor signed them.
fn with_thoughts() -> ModelRequest {
    let mut request = request();
    let thought = Part::Reasoning {
        text: "hm".to_owned(),
        signature: Some("S".to_owned()),
    };
    let mut parts = Parts::text("hi");
    parts.0.insert(0, thought);
    request.messages.push(Message::Assistant { parts });
    request.messages.push(Message::User {
        parts: Parts::text("go on"),
    });
    request
}

/// Asks twice a server that refuses the first request with these words; tells which requests have `field`.
async fn has_field(words: &str, field: &str) -> [bool; 3] {
    let error =
        json!({ "type": "error", "error": { "type": "invalid_request_error", "message": words } });
    let whole = says("Hello", "end_turn");
    let server = Responders::start([refusal(400, &error.to_string()), whole.clone(), whole]).await;
    let client = client(&server.base_url);
    for _ in 0..2 {
        let (result, _) = attempt(&client, &with_thoughts()).await;
        assert_eq!(result.expect("it is whole").text(), "Hello");
    }
    let requests = server.requests().await;
    let has = |place: usize| requests[place].contains(field);
    [has(0), has(1), has(2)]
}

#[tokio::test]
async fn a_part_that_the_server_refuses_is_left_out_for_as_long_as_it_has_to_be() {
    let for_ever = [true, false, false];
    let cache = "tools.2.cache_control: Extra inputs are not permitted";
    assert_eq!(has_field(cache, "cache_control").await, for_ever);
    let thinking = "thinking: Extra inputs are not permitted";
    assert_eq!(has_field(thinking, "\"thinking\":{").await, for_ever);
    let in_this_conversation = [true, false, true];
    let missed =
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.";
    assert_eq!(
        has_field(missed, "\"thinking\":{").await,
        in_this_conversation
    );
    let bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    assert_eq!(
        has_field(bound, "\"signature\":\"S\"").await,
        in_this_conversation
    );
    assert_eq!(has_field(bound, "\"thinking\":{").await, [true; 3]);
}
