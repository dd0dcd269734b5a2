//! Against bytes on a socket, so that each test says exactly what the server sends and when.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use shared_types::event::{Part, Parts};

use super::*;
use crate::{ApiKey, Message, Profile, ToolSpec, Voice, formats::Chat};

mod gemini;
mod messages;
mod quirks;
mod responses;

fn options(base_url: &str) -> ServerOptions {
    let profile = Profile {
        model: "m".to_owned(),
        ..Profile::default()
    };
    ServerOptions::new(base_url, profile)
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const SOON: Duration = Duration::from_millis(50);

/// A server for one connection: reads the request, sends `response`, and then closes, or, with
/// `stay`, waits for the client to close.
struct Responder {
    base_url: String,
    /// Ends when the connection does; gives the request.
    done: JoinHandle<io::Result<String>>,
}

/// A server that answers one connection after the other with these.
struct Responders {
    base_url: String,
    /// Gives the requests.
    done: JoinHandle<io::Result<Vec<String>>>,
}

impl Responders {
    async fn start<const COUNT: usize>(responses: [String; COUNT]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let done = tokio::spawn(async move {
            let mut requests = Vec::new();
            for response in responses {
                let (mut stream, _) = listener.accept().await?;
                requests.push(read_request(&mut stream).await?);
                stream.write_all(response.as_bytes()).await?;
            }
            Ok(requests)
        });
        Self {
            base_url: format!("http://127.0.0.1:{port}/v1"),
            done,
        }
    }

    async fn requests(self) -> Vec<String> {
        self.done.await.expect("no panic").expect("they were read")
    }
}

fn refusal(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} No\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl Responder {
    async fn start(response: impl Into<Vec<u8>>, stay: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let response = response.into();
        let done = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let request = read_request(&mut stream).await?;
            // A client that has had enough may be gone already.
            let _ = stream.write_all(&response).await;
            if stay {
                // A reset is an end too.
                while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
            }
            Ok(request)
        });
        Self {
            base_url: format!("http://127.0.0.1:{port}/v1"),
            done,
        }
    }

    fn options(&self) -> ServerOptions {
        options(&self.base_url)
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await?;
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length || count == 0 {
                return Ok(text);
            }
        } else if count == 0 {
            return Ok(text);
        }
    }
}

fn request() -> ModelRequest {
    let tools = ["Shell", "Read", "List"].map(|name| ToolSpec {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        parameters: serde_json::json!({ "type": "object" }),
        aliases: Vec::new(),
    });
    ModelRequest {
        system: String::new(),
        messages: vec![Message::User {
            parts: Parts::text("hi"),
        }],
        tools: tools.into(),
        images: crate::Images::new(),
        trace: None,
    }
}

async fn ask(options: ServerOptions) -> Result<Answer, ModelError> {
    ask_in::<Chat>(options).await
}

/// Asks in this format, and checks that the pieces on the way are those of the answer.
async fn ask_in<F: Format>(options: ServerOptions) -> Result<Answer, ModelError> {
    let vendor = Client::<F>::new(options).expect("the options are usable");
    let (events, mut heard) = mpsc::channel(1000);
    let result = vendor.attempt(&request(), &events).await;
    drop(events);
    let mut heard_parts: Vec<(Voice, String)> = Vec::new();
    while let Some(event) = heard.recv().await {
        let ModelEvent::Said(Piece { part, voice, text }) = event else {
            panic!("a wire format sends only what is said, not {event:?}");
        };
        let part = part as usize;
        if part == heard_parts.len() {
            heard_parts.push((voice, String::new()));
        }
        assert_eq!(heard_parts[part].0, voice, "a part has one voice");
        heard_parts[part].1.push_str(&text);
    }
    if let Ok(answer) = &result {
        let shown = answer.parts.0.iter().filter_map(|part| match part {
            Part::Reasoning { text, .. } => Some((Voice::Reasoning, text.clone())),
            Part::Text { text } => Some((Voice::Text, text.clone())),
            _ => None,
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(heard_parts, shown, "the answer is what its pieces said");
    }
    result.map_err(|failure| failure.error)
}

async fn answer(response: impl Into<Vec<u8>>) -> Result<Answer, ModelError> {
    answer_in::<Chat>(response).await
}

async fn answer_in<F: Format>(response: impl Into<Vec<u8>>) -> Result<Answer, ModelError> {
    let server = Responder::start(response, false).await;
    ask_in::<F>(server.options()).await
}

/// Sends this stream, cut at each byte before `end`. Returns the cuts that did not give the error of a cut stream.
async fn cut_everywhere<F: Format>(whole: &str, end: usize) -> Vec<usize> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let bytes = whole.as_bytes().to_vec();
    let serving = tokio::spawn(async move {
        for cut in 0..end {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            read_request(&mut stream).await.expect("a request");
            let cut = [STREAM.as_bytes(), &bytes[..cut]].concat();
            let _ = stream.write_all(&cut).await;
        }
    });
    let options = options(&format!("http://127.0.0.1:{port}/v1"));
    let vendor = Client::<F>::new(options).expect("the options are usable");
    let (events, heard) = mpsc::channel(1);
    drop(heard);
    let mut wrong = Vec::new();
    for cut in 0..end {
        let result = vendor.attempt(&request(), &events).await;
        let error = result.map_err(|failure| failure.error);
        if !matches!(error, Err(ModelError::Broken(_))) {
            wrong.push(cut);
        }
    }
    serving.await.expect("no panic");
    wrong
}

#[tokio::test]
async fn the_key_goes_out_in_its_header_to_the_path_below_the_base_url() {
    let server = Responder::start(format!("{STREAM}{HELLO}{STOP}"), false).await;
    let mut options = server.options();
    options.base_url.push('/');
    options.key = ApiKey::new("sk-0123456789");
    ask(options).await.expect("the answer is whole");
    let request = server.done.await.expect("no panic").expect("it was read");
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nauthorization: Bearer sk-0123456789\r\n"));
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = Responder::start(format!("{STREAM}{HELLO}{STOP}"), false).await;
    ask(server.options()).await.expect("the answer is whole");
    let request = server.done.await.expect("no panic").expect("it was read");
    assert!(!request.contains("authorization"));
}

#[tokio::test]
async fn one_document_from_a_server_that_does_not_stream_is_an_answer() {
    let body = r#" {"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let length = body.len();
    let answer = answer(format!("{head}content-length: {length}\r\n\r\n{body}")).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello");
}

#[tokio::test]
async fn a_stream_that_ends_early_is_broken_and_not_an_empty_success() {
    for body in ["", "\n\n", HELLO, "data: [DONE]\n\n", ": nothing but this"] {
        let result = answer(format!("{STREAM}{body}")).await;
        assert!(
            matches!(result, Err(ModelError::Broken(_))),
            "{body:?} gave {result:?}"
        );
    }
}

#[tokio::test]
async fn the_end_mark_counts_even_as_the_last_line_without_an_end() {
    let answer = answer(format!("{STREAM}{HELLO}data: [DONE]")).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello");
}

#[tokio::test]
async fn broken_json_in_a_stream_is_broken() {
    let result = answer(format!("{STREAM}{HELLO}data: {{oops\n\n{STOP}")).await;
    assert!(matches!(result, Err(ModelError::Broken(_))), "{result:?}");
}

#[tokio::test]
async fn what_is_wrong_after_the_end_does_not_spoil_the_answer() {
    let answer = answer(format!("{STREAM}{HELLO}{STOP}data: {{oops\n\ndata: {{\"us")).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello");
}

#[tokio::test]
async fn an_error_inside_of_a_stream_ends_the_attempt() {
    for error in [
        "data: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}}",
        "data: {\"error\":{\"code\":429,\"message\":\"slow down\"}}\n\n",
        "event: error\ndata: {\"code\":429,\"message\":\"slow down\"}\n\n",
    ] {
        let result = answer(format!("{STREAM}{HELLO}{error}")).await;
        let Err(ModelError::RateLimited(message)) = result else {
            panic!("{error} gave {result:?}");
        };
        assert!(message.contains("slow down"), "{message}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_cut_off_at_its_limit() {
    let endless = "x".repeat(sse::MAX_EVENT_BYTES + 1);
    let result = answer(format!("{STREAM}data: {endless}")).await;
    assert!(matches!(result, Err(ModelError::Broken(_))), "{result:?}");
}

#[tokio::test]
async fn a_huge_refusal_is_read_in_part_and_summarised() {
    let body = "x".repeat(4 * MAX_REFUSAL_BYTES);
    let server = Responder::start(format!("HTTP/1.1 400 Bad Request\r\n\r\n{body}"), true).await;
    let result = ask(server.options()).await;
    let Err(ModelError::Refused(message)) = result else {
        panic!("{result:?}");
    };
    assert!(message.len() < 1000, "{} bytes", message.len());
}

#[tokio::test]
async fn a_web_page_points_at_the_address() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html></html>";
    let result = answer(page).await;
    let Err(ModelError::Refused(message)) = result else {
        panic!("{result:?}");
    };
    assert!(message.contains("OPENAI_BASE_URL"), "{message}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let redirect = "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\n\r\n";
    let result = answer(redirect).await;
    assert!(matches!(result, Err(ModelError::Refused(_))), "{result:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let result = ask(options("http://127.0.0.1:1/v1?secret=s3cr3t")).await;
    let Err(ModelError::Unavailable(message)) = result else {
        panic!("{result:?}");
    };
    assert!(
        message.contains("http://127.0.0.1:1/v1/chat/completions")
            && message.contains("Connection refused")
            && !message.contains("s3cr3t"),
        "{message}"
    );
}

#[tokio::test]
async fn silence_before_and_within_the_answer_ends_the_attempt() {
    for response in ["", STREAM, &format!("{STREAM}{HELLO}")] {
        let server = Responder::start(response, true).await;
        let result = ask(ServerOptions {
            first_byte_within: SOON,
            idle_at_most: SOON,
            ..server.options()
        })
        .await;
        assert!(
            matches!(result, Err(ModelError::TimedOut(_))),
            "{response:?} gave {result:?}"
        );
        let closed = server.done.await.expect("no panic");
        closed.expect("the client closed the connection");
    }
}

#[tokio::test]
async fn an_answer_that_never_ends_is_given_up() {
    let server = Responder::start(format!("{STREAM}{HELLO}"), true).await;
    let result = ask(ServerOptions {
        answer_within: SOON,
        ..server.options()
    })
    .await;
    assert!(matches!(result, Err(ModelError::TimedOut(_))), "{result:?}");
}

#[tokio::test]
async fn dropping_the_future_closes_the_connection() {
    let server = Responder::start(format!("{STREAM}{HELLO}"), true).await;
    let vendor = Client::<Chat>::new(server.options()).expect("the options are usable");
    let (events, mut heard) = mpsc::channel(8);
    let asking = tokio::spawn(async move { vendor.attempt(&request(), &events).await });
    let text = heard.recv().await;
    let hello = Piece {
        part: 0,
        voice: Voice::Text,
        text: "Hello".to_owned(),
    };
    assert_eq!(text, Some(ModelEvent::Said(hello)));
    asking.abort();
    let closed = server.done.await.expect("no panic");
    closed.expect("the client closed the connection");
}

#[test]
fn unusable_options_are_refused_with_what_to_do() {
    let secret = "http://user:hunter22@localhost/v1";
    let with_key = ServerOptions {
        key: ApiKey::new("a\nb"),
        ..options("http://unused/v1")
    };
    for (options, words) in [
        (options("localhost"), "OPENAI_BASE_URL"),
        (options("localhost:8080/v1"), "OPENAI_BASE_URL"),
        (options("file:///tmp"), "OPENAI_BASE_URL"),
        (options(secret), "OPENAI_API_KEY"),
        (with_key, "OPENAI_API_KEY"),
        (
            ServerOptions::new("http://unused/v1", Profile::default()),
            "GANTRY_MODEL",
        ),
    ] {
        let error = Client::<Chat>::new(options)
            .expect_err("it is unusable")
            .to_string();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("hunter22"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_stream_options_is_asked_without_them_from_then_on() {
    let whole = format!("{STREAM}{HELLO}{STOP}");
    let refused = refusal(400, r#"{"detail":"extra fields: stream_options"}"#);
    let server = Responders::start([refused, whole.clone(), whole]).await;
    let vendor = Client::<Chat>::new(options(&server.base_url)).expect("the options are usable");
    let (events, _heard) = mpsc::channel(100);
    for _ in 0..2 {
        let answer = vendor.attempt(&request(), &events).await;
        assert_eq!(answer.expect("the answer is whole").text(), "Hello");
    }
    let requests = server.requests().await;
    let asked: Vec<_> = requests
        .iter()
        .map(|request| request.contains("stream_options"))
        .collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn a_server_that_refuses_the_parts_of_an_answer_is_asked_without_them() {
    let refused = refusal(
        400,
        r#"{"error":{"message":"property 'reasoning_content' is unsupported"}}"#,
    );
    let server = Responders::start([refused, format!("{STREAM}{HELLO}{STOP}")]).await;
    let vendor = Client::<Chat>::new(options(&server.base_url)).expect("the options are usable");
    let fields = serde_json::json!({ "fields": { "reasoning_content": "I thought so" } });
    let fields = fields.as_object().expect("an object").clone();
    let mut parts = Parts::text("hi");
    parts.0.push(Part::Opaque { fields });
    let mut request = request();
    request.messages.push(Message::Assistant { parts });
    let (events, _heard) = mpsc::channel(100);
    let answer = vendor.attempt(&request, &events).await;
    assert_eq!(answer.expect("the answer is whole").text(), "Hello");
    let requests = server.requests().await;
    assert!(requests[0].contains("I thought so") && !requests[1].contains("I thought so"));
}

fn packed(text: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(text.as_bytes()).expect("it is in memory");
    packer.finish().expect("it is in memory")
}

#[tokio::test]
async fn an_answer_that_is_compressed_with_gzip_is_read() {
    let long = "x".repeat(1_000_000);
    let long = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{long}\"}}}}]}}\n\n");
    let mut response = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".to_vec();
    response.extend(packed(&format!("{HELLO}{long}{STOP}")));
    let answer = answer(response).await.expect("it is whole");
    assert_eq!(answer.text().len(), "Hello".len() + 1_000_000);
}

#[tokio::test]
async fn a_refusal_that_is_compressed_with_gzip_is_read_and_another_compression_is_named() {
    let mut response = b"HTTP/1.1 400 No\r\ncontent-encoding: gzip\r\n\r\n".to_vec();
    response.extend(packed("no such voice"));
    let error = answer(response).await.expect_err("it is refused");
    assert!(error.message().contains("no such voice"), "{error}");
    let other = "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\nxxxx";
    let error = answer(other).await.expect_err("it cannot be read");
    assert!(error.message().contains("not with gzip"), "{error}");
    let torn = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nxxxxxxxxxxxxxxxxxxxx";
    let error = answer(torn).await.expect_err("it cannot be read");
    assert!(matches!(error, ModelError::Broken(_)), "{error}");
}

#[tokio::test]
async fn damage_beside_the_answer_does_not_spoil_it() {
    let document =
        r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],"error":{}}"#;
    let beside = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"message\":{},\"index\":\"0\"}],\"error\":{\"code\":0,\"message\":\"\"},\"usage\":{\"prompt_tokens\":-1.5}}\n\n";
    for body in [
        format!("\u{feff}{document}"),
        format!("\u{feff} \n{document}"),
        format!("\u{feff}{HELLO}{STOP}"),
        format!("data: \u{feff}{}{STOP}", &HELLO["data: ".len()..]),
        format!("{beside}{STOP}"),
    ] {
        let answer = answer(format!("{STREAM}{body}")).await;
        assert_eq!(answer.expect("it is whole").text(), "Hello", "{body}");
    }
    let half = HELLO.replace("Hello", "Hello\\ud83d");
    let answer = answer(format!("{STREAM}{half}{STOP}")).await;
    assert_eq!(answer.expect("it is whole").text(), "Hello\u{fffd}");
}

#[tokio::test]
async fn an_event_of_several_mebibytes_is_read() {
    let long = HELLO.replace("Hello", &"x".repeat(5 * 1024 * 1024));
    let answer = answer(format!("{STREAM}{long}{STOP}")).await;
    assert_eq!(answer.expect("it is whole").text().len(), 5 * 1024 * 1024);
}

#[tokio::test]
async fn a_list_of_googles_with_an_error_is_read_as_an_error() {
    let list = r#"[{"error":{"code":400,"message":"Unknown name","status":"INVALID_ARGUMENT"}}]"#;
    for response in [
        refusal(400, list),
        format!("{STREAM}{list}"),
        format!("{STREAM}{HELLO}data: {list}\n\n"),
    ] {
        let error = answer(response.clone()).await.expect_err("it is refused");
        assert!(
            matches!(&error, ModelError::Refused(message) if message.contains("Unknown name")),
            "{response} gave {error}"
        );
    }
}

#[tokio::test]
async fn an_error_in_the_choice_that_it_broke_off_is_told() {
    let error = r#"{"choices":[{"error":{"code":502,"message":"upstream is gone"},"delta":{},"finish_reason":"error"}]}"#;
    let error = answer(format!("{STREAM}{HELLO}data: {error}\n\n"))
        .await
        .expect_err("it broke off");
    assert!(
        matches!(&error, ModelError::Unavailable(message) if message.contains("upstream is gone")),
        "{error}"
    );
}

#[tokio::test]
async fn headers_alone_are_not_the_first_byte() {
    let server = Responder::start(STREAM, true).await;
    let result = ask(ServerOptions {
        first_byte_within: SOON,
        ..server.options()
    })
    .await;
    let Err(ModelError::TimedOut(message)) = result else {
        panic!("{result:?}");
    };
    assert!(message.contains("first_byte_within_s"), "{message}");
}
