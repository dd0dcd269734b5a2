//! The wire formats and the retry layer against the scripted model server, and that server against its vendors'
//! own libraries.

mod models {
    mod anthropic;
    mod rules;
    mod vendor_sdks;
}

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::json;
use server_llm::{
    Answer, ApiKey, Images, Message, Model, ModelError, ModelEvent, ModelRequest, Piece, Profile,
    Retry, RetryOptions, ServerOptions, ToolSpec, Voice, WireFormat,
};
use shared_types::{
    entropy::SeededEntropy,
    event::{Finish, Parts, ToolCall, Usage},
};
use tests::model_server::{ModelServer, Reply, Step};
use tokio::sync::{Notify, mpsc};

const KEY: &str = "sk-0123456789abcdef";

fn options(server: &ModelServer) -> ServerOptions {
    let profile = Profile {
        model: "test-model".to_owned(),
        ..Profile::default()
    };
    ServerOptions {
        key: ApiKey::new(KEY),
        ..ServerOptions::new(server.base_url(), profile)
    }
}

fn model(server: &ModelServer) -> impl Model + 'static {
    retried(WireFormat::OpenAiChat, options(server))
}

/// A model that is asked at most three times.
fn retried(format: WireFormat, options: ServerOptions) -> impl Model + 'static {
    let retries = RetryOptions {
        attempts: 3,
        first_delay: Duration::ZERO,
        longest_delay: Duration::from_millis(20),
        ..RetryOptions::default()
    };
    let vendor = server_llm::vendor(format, options).expect("the options are usable");
    Retry::new(vendor, retries, Arc::new(SeededEntropy::new(1)))
}

fn request(text: &str) -> ModelRequest {
    ModelRequest {
        system: "be brief".to_owned(),
        messages: vec![Message::User {
            parts: Parts::text(text),
        }],
        tools: vec![ToolSpec {
            name: "Shell".to_owned(),
            description: "Runs a command.".to_owned(),
            parameters: json!({ "type": "object" }),
            aliases: Vec::new(),
        }],
        images: Images::new(),
        trace: None,
    }
}

async fn ask(server: &ModelServer) -> (Result<Answer, ModelError>, Vec<ModelEvent>) {
    let (sender, mut receiver) = mpsc::channel(10_000);
    let result = model(server).answer(request("hi"), sender).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    (result, events)
}

/// The text of the last attempt, and how many attempts there were.
fn heard(events: &[ModelEvent]) -> (String, u32) {
    let mut heard = (String::new(), 0);
    for event in events {
        match event {
            ModelEvent::Attempt { number } => heard = (String::new(), *number),
            ModelEvent::Said(piece) if piece.voice == Voice::Text => heard.0.push_str(&piece.text),
            _ => {}
        }
    }
    heard
}

#[tokio::test]
async fn text_that_is_cut_at_odd_bytes_arrives_whole_with_its_usage() {
    let server = ModelServer::start().await;
    let text = "Grüße, 世界 🦀! ".repeat(40);
    server.script(vec![Reply::text(&text)]);
    let (answer, events) = ask(&server).await;
    let answer = answer.expect("the script answers");
    assert_eq!(answer.parts.words(), text);
    assert_eq!(heard(&events), (text, 1));
    assert!(events.len() > 10, "the text is streamed: {events:?}");
    assert_eq!(answer.finish, Finish::Complete);
    assert_eq!(
        answer.usage,
        Usage {
            input: 10,
            cached: 4,
            output: 5,
            ..Usage::default()
        }
    );
    let sent = &server.requests()[0];
    assert_eq!(sent["model"], "test-model");
    assert_eq!(sent["stream_options"]["include_usage"], true);
    assert_eq!(sent["messages"][1]["content"], "hi");
    assert_eq!(sent["tools"][0]["function"]["name"], "Shell");
    assert_eq!(server.authorizations(), [Some(format!("Bearer {KEY}"))]);
}

#[tokio::test]
async fn parallel_calls_arrive_with_their_arguments_as_the_model_wrote_them() {
    let server = ModelServer::start().await;
    let valid = json!({ "command": "echo 'ü'\n".repeat(50) }).to_string();
    server.script(vec![Reply::calls(
        "Two things.",
        vec![
            ("Shell".to_owned(), valid.clone()),
            ("Read".to_owned(), "{\"path\": oops".to_owned()),
        ],
    )]);
    let (answer, _) = ask(&server).await;
    let answer = answer.expect("broken arguments are the caller's affair");
    assert_eq!(answer.parts.words(), "Two things.");
    let call = |vendor_id: &str, name: &str, arguments: &str| ToolCall {
        vendor_id: vendor_id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        opaque: Default::default(),
    };
    assert_eq!(
        answer.parts.calls().cloned().collect::<Vec<_>>(),
        [
            call("call_0_0", "Shell", &valid),
            call("call_0_1", "Read", "{\"path\": oops"),
        ]
    );
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_as_long_as_the_server_asks() {
    let server = ModelServer::start().await;
    server.script(vec![
        Reply::Status {
            code: 429,
            headers: vec![("Retry-After".to_owned(), "0.015".to_owned())],
            body: r#"{"error":{"message":"slow down"}}"#.to_owned(),
        },
        Reply::text("now"),
    ]);
    let (answer, events) = ask(&server).await;
    assert_eq!(
        answer.expect("the second attempt succeeds").parts.words(),
        "now"
    );
    let Some(ModelEvent::Retrying { after, reason, .. }) = events.get(2) else {
        panic!("{events:?}");
    };
    assert_eq!(*after, Duration::from_millis(15));
    assert_eq!(reason, "test-model limits the rate");
}

#[tokio::test]
async fn an_answer_that_is_cut_in_the_middle_starts_again() {
    let server = ModelServer::start().await;
    server.script(vec![
        Reply::Raw(vec![Step::text("Hel"), Step::Reset]),
        Reply::Raw(vec![Step::text("Hell")]),
        Reply::text("Hello"),
    ]);
    let (answer, events) = ask(&server).await;
    assert_eq!(
        answer.expect("the third attempt succeeds").parts.words(),
        "Hello"
    );
    assert_eq!(heard(&events), ("Hello".to_owned(), 3));
}

#[tokio::test]
async fn a_refused_key_is_final_and_does_not_show() {
    let server = ModelServer::start().await;
    let echo = format!("Incorrect API key provided: {KEY}");
    server.script(vec![Reply::refusal(401, &echo), Reply::text("too late")]);
    let (answer, events) = ask(&server).await;
    let Err(ModelError::Unauthenticated(message)) = answer else {
        panic!("{answer:?}");
    };
    assert!(message.contains("OPENAI_API_KEY"), "{message}");
    assert!(!message.contains(KEY), "{message}");
    assert!(!format!("{events:?} {:?}", options(&server)).contains(KEY));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn broken_events_are_tried_again_and_then_named() {
    let server = ModelServer::start().await;
    let oops = Reply::Raw(vec![
        Step::text("Hel"),
        Step::Send(Bytes::from_static(b"data: {oops\n\n")),
        Step::end(),
    ]);
    server.script(vec![oops; 3]);
    let (answer, _) = ask(&server).await;
    let Err(ModelError::Broken(message)) = answer else {
        panic!("{answer:?}");
    };
    assert!(
        message.contains("broken JSON") && message.ends_with("(tried 3 times)"),
        "{message}"
    );
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn an_exhausted_script_is_an_error_of_the_server() {
    let server = ModelServer::start().await;
    let (answer, _) = ask(&server).await;
    let Err(ModelError::Unavailable(message)) = answer else {
        panic!("{answer:?}");
    };
    assert!(message.contains("script exhausted"), "{message}");
}

#[tokio::test]
async fn text_is_heard_while_the_answer_is_still_held_back() {
    let server = ModelServer::start().await;
    let release = Arc::new(Notify::new());
    server.script(vec![Reply::Raw(vec![
        Step::text("first"),
        Step::Hold(release.clone()),
        Step::text(" second"),
        Step::end(),
    ])]);
    let (sender, mut receiver) = mpsc::channel(8);
    let model = model(&server);
    let asking = tokio::spawn(async move { model.answer(request("hi"), sender).await });
    server.wait_for_requests(1).await;
    assert_eq!(
        receiver.recv().await,
        Some(ModelEvent::Attempt { number: 1 })
    );
    assert_eq!(
        receiver.recv().await,
        Some(ModelEvent::Said(Piece {
            part: 0,
            voice: Voice::Text,
            text: "first".to_owned()
        }))
    );
    assert!(!asking.is_finished());
    release.notify_one();
    let answer = asking.await.expect("no panic").expect("the script answers");
    assert_eq!(answer.parts.words(), "first second");
}
