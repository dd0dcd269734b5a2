use serde_json::json;

use super::*;
use crate::ToolSpec;

fn request(messages: Vec<Message>) -> ModelRequest {
    let tools = [
        "Shell",
        "Read",
        "Write",
        "Edit",
        "Grep",
        "Glob",
        "List",
        "task_status",
        "task_read",
        "task_kill",
    ];
    ModelRequest {
        system: String::new(),
        messages,
        tools: tools
            .into_iter()
            .map(|name| ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: json!({ "type": "object" }),
                aliases: Vec::new(),
            })
            .collect(),
        images: crate::Images::new(),
        trace: None,
    }
}

fn user(text: &str) -> Message {
    Message::User {
        parts: Parts::text(text),
    }
}

async fn answer(request: ModelRequest) -> (Answer, Vec<ModelEvent>) {
    let (sender, mut receiver) = mpsc::channel(1000);
    let answer = Practice.answer(request, sender).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    (answer.expect("the practice model never fails"), events)
}

/// What a user's message leads to where each call gets the next of `results`.
async fn turn(message: &str, results: &[(&str, bool)]) -> (Vec<ToolCall>, String) {
    let mut messages = vec![user(message)];
    let mut asked = Vec::new();
    let mut results = results.iter();
    loop {
        let (answer, _) = answer(request(messages.clone())).await;
        let calls = answer.calls();
        let Some(call) = calls.first() else {
            return (asked, answer.text());
        };
        let (text, failed) = results.next().expect("there is a result for each call");
        asked.push(call.clone());
        messages.push(Message::Assistant {
            parts: answer.parts.clone(),
        });
        messages.push(Message::ToolResult {
            vendor_id: call.vendor_id.clone(),
            parts: Parts::text(*text),
            failed: *failed,
        });
    }
}

#[tokio::test]
async fn a_command_becomes_a_call_and_its_result_is_reported() {
    let (calls, text) = turn("run echo hi", &[("hi\n", false)]).await;
    assert_eq!(
        calls,
        [ToolCall {
            vendor_id: "practice_1".to_owned(),
            name: "Shell".to_owned(),
            arguments: r#"{"command":"echo hi"}"#.to_owned(),
            opaque: Default::default(),
        }]
    );
    assert_eq!(
        text,
        "Practice model (no AI): I asked to run `echo hi`, and this came back:\nhi"
    );
}

#[tokio::test]
async fn several_commands_are_one_call_per_step() {
    let results = [("", false), ("hello", false)];
    let (calls, text) = turn("write a.txt: hello then read a.txt", &results).await;
    let ids: Vec<_> = calls.iter().map(|call| call.vendor_id.as_str()).collect();
    assert_eq!(ids, ["practice_1", "practice_2"]);
    assert!(
        text.contains("write a.txt") && text.ends_with("hello"),
        "{text}"
    );
}

#[tokio::test]
async fn a_command_that_goes_on_in_the_background_is_followed_to_its_end() {
    let results = [
        (
            "one\n[it still ran after 2 min and goes on in the background as task 1; do not run it \
             again: read on with task_read {\"task\":1,\"stdout_from\":4,\"stderr_from\":0}; \
             task_kill stops it]",
            false,
        ),
        (
            "[task 1 still runs, for 12 min; read on with task_read \
             {\"task\":1,\"stdout_from\":4,\"stderr_from\":0}]",
            false,
        ),
        ("two\n[exit code 0]", false),
        ("three\n[exit code 0]", false),
    ];
    let (calls, text) = turn("run make then run make check", &results).await;
    let asked: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(asked, ["Shell", "task_read", "task_read", "Shell"]);
    assert_eq!(
        calls[1].arguments,
        r#"{"stderr_from":0,"stdout_from":4,"task":1,"wait_ms":600000}"#
    );
    assert!(
        text.contains("this came back:\none\ntwo\n[exit code 0]"),
        "{text}"
    );
    assert!(text.ends_with("three\n[exit code 0]"), "{text}");
}

#[tokio::test]
async fn what_is_begun_in_the_background_is_not_waited_for() {
    let result = "[it still ran after 1 s and goes on in the background as task 1; do not run it \
                  again: read on with task_read {\"task\":1}; task_kill stops it]";
    let (calls, text) = turn("run in the background: make", &[(result, false)]).await;
    assert_eq!(
        calls[0].arguments,
        r#"{"background":true,"command":"make"}"#
    );
    assert!(text.contains("as task 1"), "{text}");
}

#[tokio::test]
async fn a_failed_step_ends_the_rest() {
    let results = [("no such file", true)];
    let (calls, text) = turn("read a.txt\nrun ls\nlist", &results).await;
    assert_eq!(calls.len(), 1);
    assert!(
        text.ends_with(
            "I could not read a.txt:\nno such file\n\nBecause of that I left out the last 2 steps."
        ),
        "{text}"
    );
}

#[tokio::test]
async fn long_results_are_quoted_in_part() {
    let lines = "line\n".repeat(50);
    let (_, text) = turn("run yes", &[(&lines, false)]).await;
    assert_eq!(text.matches("\nline").count(), 20);
    assert!(text.ends_with("… and 30 more lines"), "{text}");
    let cut = format!("{lines}[… 700 bytes left out …]\n{lines}");
    let (_, text) = turn("run yes", &[(&cut, false)]).await;
    let end = "… and 80 more lines\n[… 700 bytes left out …]";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn only_the_last_message_counts_and_ids_go_on_from_earlier_ones() {
    let call = ToolCall {
        vendor_id: "practice_1".to_owned(),
        name: "Shell".to_owned(),
        arguments: "{}".to_owned(),
        opaque: Default::default(),
    };
    let (answer, _) = answer(request(vec![
        user("run sleep 100"),
        Message::Assistant {
            parts: Parts(vec![Part::ToolCall(call)]),
        },
        user("list src"),
    ]))
    .await;
    assert_eq!(answer.calls()[0].vendor_id, "practice_2");
    assert_eq!(answer.calls()[0].name, "List");
}

#[tokio::test]
async fn what_it_does_not_understand_is_answered_with_help_for_a_real_model() {
    let (calls, text) = turn("write me a poem", &[]).await;
    assert!(calls.is_empty());
    for word in [
        "Practice model (no AI): I do not understand \"write me a poem\"",
        "run ls -la",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "GANTRY_MODEL",
        "gantry.toml",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

#[tokio::test]
async fn every_command_that_the_help_shows_is_understood() {
    let (_, help) = turn("?", &[]).await;
    let shown: Vec<_> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    assert!(shown.len() > 5);
    for line in shown {
        assert!(commands::parse(line).is_ok(), "{line}");
    }
}

#[tokio::test]
async fn a_session_without_the_tool_is_told_so() {
    let mut request = request(vec![user("run ls")]);
    request.tools.clear();
    let (answer, _) = answer(request).await;
    assert!(answer.calls().is_empty());
    assert!(
        answer.text().contains("the tool Shell"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn its_text_is_streamed_in_pieces_and_costs_nothing() {
    let (answer, events) = answer(request(vec![user("hello")])).await;
    assert_eq!(events[0], ModelEvent::Attempt { number: 1 });
    assert!(events.len() > 5);
    let streamed: String = events
        .into_iter()
        .filter_map(|event| match event {
            ModelEvent::Said(piece) => {
                assert_eq!((piece.part, piece.voice), (0, Voice::Text));
                Some(piece.text)
            }
            _ => None,
        })
        .collect();
    assert_eq!(streamed, answer.text());
    assert_eq!(answer.usage, Usage::default());
    assert!(Practice.info().practice);
}
