use bytes::Bytes;
use shared_types::Digest;

use super::*;

fn profile() -> Profile {
    Profile {
        model: "m".to_owned(),
        ..Profile::default()
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages,
        tools: Vec::new(),
        images: Images::new(),
        trace: None,
    }
}

fn sent(profile: &Profile, request: &ModelRequest, shape: ResponsesShape) -> Value {
    serde_json::to_value(body(profile, request, shape)).expect("it is JSON")
}

fn input(messages: Vec<Message>, shape: ResponsesShape) -> Value {
    sent(&profile(), &request(messages), shape)["input"].take()
}

fn user(text: &str) -> Message {
    Message::User {
        parts: Parts::text(text),
    }
}

fn text(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

fn opaque(fields: Value) -> Part {
    Part::Opaque {
        fields: fields.as_object().expect("fields").clone(),
    }
}

fn call(id: &str, arguments: &str, opaque: Value) -> Part {
    Part::ToolCall(ToolCall {
        vendor_id: id.to_owned(),
        name: "Shell".to_owned(),
        arguments: arguments.to_owned(),
        opaque: opaque.as_object().expect("fields").clone(),
    })
}

fn answered(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant {
        parts: Parts(parts.into_iter().collect()),
    }
}

fn result(id: &str, parts: Parts) -> Message {
    Message::ToolResult {
        vendor_id: id.to_owned(),
        parts,
        failed: false,
    }
}

fn thought(id: &str) -> Value {
    json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA" })
}

#[test]
fn a_conversation_with_tools_has_the_vendors_form() {
    let request = ModelRequest {
        system: "be brief".to_owned(),
        tools: vec![ToolSpec {
            name: "Shell".to_owned(),
            description: "runs".to_owned(),
            parameters: json!({ "type": "object" }),
            aliases: Vec::new(),
        }],
        ..request(vec![
            user("hi"),
            answered([call("c1", r#"{"command":"ls"}"#, json!({ "id": "fc_1" }))]),
            result("c1", Parts::text("a\nb")),
        ])
    };
    let profile = Profile {
        output: Some(4096),
        thinking: Thinking::Adaptive,
        ..profile()
    };
    assert_eq!(
        sent(&profile, &request, ResponsesShape::default()),
        json!({
            "model": "m",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "reasoning": { "summary": "auto" },
            "max_output_tokens": 4096,
            "instructions": "be brief",
            "tools": [{
                "type": "function", "name": "Shell", "description": "runs",
                "parameters": { "type": "object" }, "strict": false,
            }],
            "input": [
                { "type": "message", "role": "user",
                    "content": [{ "type": "input_text", "text": "hi" }] },
                { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Shell",
                    "arguments": r#"{"command":"ls"}"# },
                { "type": "function_call_output", "call_id": "c1", "output": "a\nb" },
            ],
        })
    );
}

#[test]
fn what_is_not_asked_for_is_not_sent() {
    let body = sent(&profile(), &request(Vec::new()), ResponsesShape::default());
    for absent in ["max_output_tokens", "reasoning", "instructions", "tools"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
    let shape = ResponsesShape {
        include: false,
        summary: false,
        reasoning: true,
    };
    let profile = Profile {
        thinking: Thinking::Adaptive,
        ..profile()
    };
    let body = sent(&profile, &request(Vec::new()), shape);
    for absent in ["include", "reasoning"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
}

/// An answer with thoughts, a message with a phase, an item of the vendor's own, and a call.
fn whole_answer() -> Message {
    answered([
        Part::Reasoning {
            text: "for people".to_owned(),
            signature: None,
        },
        opaque(thought("rs_1")),
        opaque(
            json!({ "type": "message", "id": "msg_1", "phase": "commentary", "status": "completed" }),
        ),
        text("I look."),
        opaque(json!({ "type": "tool_search_call", "id": "ts_1", "arguments": { "query": "x" } })),
        opaque(json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB" })),
        opaque(thought("rs_2")),
        call(
            "c1",
            "{}",
            json!({ "id": "fc_1", "namespace": "files", "type": "never" }),
        ),
    ])
}

#[test]
fn the_items_of_an_answer_go_back_whole_and_in_their_order() {
    assert_eq!(
        input(vec![whole_answer()], ResponsesShape::default()),
        json!([
            thought("rs_1"),
            { "type": "message", "id": "msg_1", "phase": "commentary", "status": "completed",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": "I look.", "annotations": [] }] },
            { "type": "tool_search_call", "id": "ts_1", "arguments": { "query": "x" } },
            { "type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB" },
            thought("rs_2"),
            { "type": "function_call", "id": "fc_1", "namespace": "files", "call_id": "c1",
                "name": "Shell", "arguments": "{}" },
        ])
    );
}

#[test]
fn without_the_thoughts_no_item_says_that_they_are_missing() {
    let shape = ResponsesShape {
        reasoning: false,
        ..ResponsesShape::default()
    };
    assert_eq!(
        input(vec![whole_answer()], shape),
        json!([
            { "type": "message", "phase": "commentary", "role": "assistant", "content": "I look." },
            { "type": "tool_search_call", "id": "ts_1", "arguments": { "query": "x" } },
            { "type": "function_call", "namespace": "files", "call_id": "c1",
                "name": "Shell", "arguments": "{}" },
        ])
    );
}

#[test]
fn thoughts_without_their_next_item_or_without_content_are_left_out() {
    let open = serde_json::json!({
        "type": "reasoning", "id": "rs_4", "summary": [],
        "content": [{ "type": "reasoning_text", "text": "hm" }],
    });
    let items = input(
        vec![
            answered([text("a"), opaque(thought("rs_1"))]),
            user("b"),
            answered([
                opaque(thought("rs_2")),
                opaque(json!({ "type": "reasoning", "id": "rs_3", "summary": [] })),
                opaque(open),
                text("c"),
            ]),
        ],
        ResponsesShape::default(),
    );
    let ids: Vec<_> = items
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["id"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(ids, ["-", "-", "rs_2", "rs_4", "-"]);
}

#[test]
fn an_image_is_sent_to_a_model_that_sees_and_described_to_another() {
    let bytes = Bytes::from_static(b"PNG");
    let digest = Digest::of(&bytes);
    let image = Part::Image {
        digest,
        media_type: "image/png".to_owned(),
        bytes: 3,
    };
    let parts = Parts(vec![text("see"), image]);
    let request = ModelRequest {
        images: Images::from([(digest, bytes)]),
        ..request(vec![
            Message::User {
                parts: parts.clone(),
            },
            answered([call("c1", "{}", json!({}))]),
            result("c1", parts),
        ])
    };
    let seeing = Profile {
        sees: true,
        ..profile()
    };
    let shown = json!([
        { "type": "input_text", "text": "see" },
        { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,UE5H" },
    ]);
    let body = sent(&seeing, &request, ResponsesShape::default());
    assert_eq!(body["input"][0]["content"], shown);
    assert_eq!(body["input"][2]["output"], shown);
    let body = sent(&profile(), &request, ResponsesShape::default());
    let words = "[an image: image/png, 3 bytes]";
    assert_eq!(body["input"][0]["content"][1]["text"], words);
    assert_eq!(body["input"][2]["output"], format!("see\n\n{words}"));
}

#[test]
fn each_call_has_an_id_of_its_own_and_arguments_that_are_an_object() {
    let items = input(
        vec![
            answered([
                call("a", "{", json!({})),
                call("a", "", json!({})),
                call("", "{}", json!({})),
            ]),
            result("a", Parts::text("first")),
            result("a", Parts::text("second")),
            result("", Parts::text("third")),
        ],
        ResponsesShape::default(),
    );
    let rows: Vec<_> = items
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| (item["call_id"].as_str(), item["arguments"].as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            (Some("a"), Some(r#"{"invalid_arguments":"{"}"#)),
            (Some("call00000"), Some("{}")),
            (Some("call00001"), Some("{}")),
            (Some("a"), None),
            (Some("call00000"), None),
            (Some("call00001"), None),
        ]
    );
}

#[test]
fn a_text_of_another_model_is_a_message_without_an_id() {
    let items = input(vec![answered([text("plain")])], ResponsesShape::default());
    let message = json!({ "type": "message", "role": "assistant", "content": "plain" });
    assert_eq!(items, json!([message]));
}

#[test]
fn a_message_without_words_has_content_all_the_same() {
    let items = input(vec![user("")], ResponsesShape::default());
    assert_eq!(
        items[0]["content"],
        json!([{ "type": "input_text", "text": "" }])
    );
}
