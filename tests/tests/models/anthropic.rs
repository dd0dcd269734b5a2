//! Anthropic's format and the retry layer against the scripted model server, which holds to the vendor's rules.

use serde_json::Value;
use server_llm::Thinking;
use shared_types::event::Part;
use tests::model_server::{Format, Said};

use super::super::*;

fn claude(server: &ModelServer) -> impl Model + 'static {
    let mut options = options(server);
    options.profile.thinking = Thinking::Adaptive;
    retried(WireFormat::AnthropicMessages, options)
}

async fn answered(model: &impl Model, request: ModelRequest) -> (Answer, Vec<ModelEvent>) {
    let (sender, mut receiver) = mpsc::channel(10_000);
    let answer = model.answer(request, sender).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    (answer.expect("the script answers"), events)
}

fn thinks() -> Said {
    Said {
        thoughts: "I have to look.".to_owned(),
        text: "I look.".to_owned(),
        calls: ["a", "b"]
            .map(|path| {
                (
                    "Shell".to_owned(),
                    json!({ "z": path, "command": "ls" }).to_string(),
                )
            })
            .into(),
        usage: Usage {
            input: 100,
            cached: 60,
            cache_written: 30,
            output: 20,
            thoughts: 10,
        },
    }
}

/// The conversation with this answer, and a result for each of its calls.
fn with_results(mut request: ModelRequest, answer: &Answer) -> ModelRequest {
    request.messages.push(Message::Assistant {
        parts: answer.parts.clone(),
    });
    for (place, call) in answer.parts.calls().enumerate() {
        request.messages.push(Message::ToolResult {
            vendor_id: call.vendor_id.clone(),
            parts: Parts::text("ok"),
            failed: place == 1,
        });
    }
    request
}

#[tokio::test]
async fn thoughts_and_calls_go_back_as_the_vendor_wants_them_for_many_steps() {
    let server = ModelServer::start().await;
    let model = claude(&server);
    let mut conversation = request("hi");
    for step in 0..5 {
        server.script(vec![Reply::Said(thinks())]);
        let (answer, events) = answered(&model, conversation.clone()).await;
        assert_eq!(answer.parts.reasoning(), "I have to look.");
        assert_eq!(answer.usage, thinks().usage);
        assert_eq!(heard(&events), ("I look.".to_owned(), 1), "step {step}");
        conversation = with_results(conversation, &answer);
        conversation.messages.push(Message::User {
            parts: Parts::text("go on"),
        });
    }
    assert_eq!(server.replies_left(), 0);
    assert_eq!(server.requests().len(), 5, "none was refused");
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.format == Format::Messages));
    assert_eq!(server.headers("x-api-key")[0].as_deref(), Some(KEY));
}

/// True for each request that sends thoughts back.
fn have_thoughts(server: &ModelServer) -> Vec<bool> {
    let has = |body: Value| body["messages"].to_string().contains("\"signature\"");
    server.requests().into_iter().map(has).collect()
}

#[tokio::test]
async fn thoughts_whose_prefix_has_changed_are_left_out_once_the_vendor_refuses_them() {
    let server = ModelServer::start().await;
    let model = claude(&server);
    server.script(vec![Reply::Said(thinks()), Reply::text("done")]);
    let (answer, _) = answered(&model, request("hi")).await;
    let mut conversation = with_results(request("hi"), &answer);
    conversation.system = "be brief, it is Monday".to_owned();
    let (answer, events) = answered(&model, conversation).await;
    assert_eq!(answer.parts.words(), "done");
    assert_eq!(heard(&events).1, 1, "it is one attempt");
    assert_eq!(have_thoughts(&server), [false, true, false]);
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_starts_again() {
    let server = ModelServer::start().await;
    let cut = |bytes| Reply::Cut {
        said: thinks(),
        bytes,
    };
    server.script(vec![cut(900), cut(1), Reply::Said(thinks())]);
    let (answer, events) = answered(&claude(&server), request("hi")).await;
    assert_eq!(answer.parts.calls().count(), 2);
    assert_eq!(heard(&events), ("I look.".to_owned(), 3));
    let signed = answer.parts.0.iter().any(|part| {
        matches!(
            part,
            Part::Reasoning {
                signature: Some(_),
                ..
            }
        )
    });
    assert!(signed, "{:?}", answer.parts);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_as_such() {
    let server = ModelServer::start().await;
    server.refuse_above(100);
    let (sender, _receiver) = mpsc::channel(100);
    let result = claude(&server).answer(request("hi"), sender).await;
    assert!(matches!(result, Err(ModelError::Overflow(_))), "{result:?}");
}
