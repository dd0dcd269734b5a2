use shared_types::event::Part;

use super::*;

const FIRST: ChatShape = ChatShape {
    usage: true,
    own: OwnParts::AsTheyCame,
};

fn sent(request: &ModelRequest) -> Value {
    serde_json::to_value(body(&seeing(), request, FIRST)).expect("it is JSON")
}

fn seeing() -> Profile {
    Profile {
        model: "m".to_owned(),
        sees: true,
        ..Profile::default()
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages,
        tools: Vec::new(),
        images: crate::Images::new(),
        trace: None,
    }
}

fn asked(arguments: &str) -> Message {
    answered([Part::ToolCall(ToolCall {
        vendor_id: "c1".to_owned(),
        name: "Shell".to_owned(),
        arguments: arguments.to_owned(),
        opaque: Map::new(),
    })])
}

fn answered(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant {
        parts: Parts(parts.into_iter().collect()),
    }
}

#[test]
fn what_a_user_says_in_a_row_is_one_message() {
    let said = |text: &str| Message::User {
        parts: Parts::text(text),
    };
    let body = sent(&ModelRequest {
        system: String::new(),
        messages: vec![said("one"), said("two"), asked("{}"), said("three")],
        tools: Vec::new(),
        images: crate::Images::new(),
        trace: None,
    });
    let messages = body["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["content"], "one\n\ntwo");
    assert_eq!(messages[2]["content"], "three");
}

#[test]
fn a_conversation_with_tools_has_the_vendors_form() {
    let body = sent(&ModelRequest {
        system: "be brief".to_owned(),
        messages: vec![
            Message::User {
                parts: Parts::text("hi"),
            },
            asked(r#"{"command":"ls"}"#),
            Message::ToolResult {
                vendor_id: "c1".to_owned(),
                parts: Parts::text("a\nb"),
                failed: false,
            },
        ],
        tools: vec![ToolSpec {
            name: "Shell".to_owned(),
            description: "runs".to_owned(),
            parameters: json!({ "type": "object" }),
            aliases: Vec::new(),
        }],
        images: crate::Images::new(),
        trace: None,
    });
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": null, "tool_calls": [{
                    "id": "c1", "type": "function",
                    "function": { "name": "Shell", "arguments": r#"{"command":"ls"}"# },
                }] },
                { "role": "tool", "tool_call_id": "c1", "content": "a\nb" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "Shell", "description": "runs", "parameters": { "type": "object" },
            } }],
        })
    );
}

#[test]
fn between_a_result_and_what_the_user_says_next_stands_an_answer() {
    let body = sent(&request(vec![
        asked("{}"),
        result("c1", "stopped"),
        Message::User {
            parts: Parts::text("go on"),
        },
    ]));
    let messages = body["messages"].as_array().expect("a list");
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["assistant", "tool", "assistant", "user"]);
    assert_eq!(messages[2]["content"], NO_ANSWER);
    assert!(messages[2].get("tool_calls").is_none());
}

#[test]
fn a_name_that_no_tool_can_have_is_sent_as_one_that_it_could() {
    let long = "x".repeat(70);
    for (written, expected) in [
        ("Shell", "Shell"),
        ("multi_tool_use.parallel", "multi_tool_use_parallel"),
        ("Shell<|channel|>é", "Shell__channel___"),
        (long.as_str(), &long[..64]),
        ("", "unknown"),
    ] {
        assert_eq!(tool_name(written), expected);
    }
}

#[test]
fn without_tools_and_system_text_neither_is_sent() {
    let body = sent(&request(Vec::new()));
    assert_eq!(body["messages"], json!([]));
    assert!(body.get("tools").is_none());
}

#[test]
fn broken_arguments_of_an_earlier_call_are_sent_as_a_valid_object() {
    for (written, expected) in [
        ("", "{}"),
        (r#"{"a":"#, r#"{"invalid_arguments":"{\"a\":"}"#),
        ("[1]", r#"{"invalid_arguments":"[1]"}"#),
    ] {
        let body = sent(&request(vec![asked(written)]));
        assert_eq!(
            body["messages"][0]["tool_calls"][0]["function"]["arguments"],
            expected
        );
    }
}

/// An answer with one call for each id.
fn calling(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolCall {
        vendor_id: (*id).to_owned(),
        name: "List".to_owned(),
        arguments: "{}".to_owned(),
        opaque: Map::new(),
    };
    answered(ids.iter().map(call).map(Part::ToolCall))
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult {
        vendor_id: id.to_owned(),
        parts: Parts::text(text),
        failed: false,
    }
}

#[test]
fn each_call_of_the_conversation_has_an_id_of_its_own_and_each_result_the_one_of_its_call() {
    let body = sent(&request(vec![
        calling(&["a", "a", ""]),
        result("a", "first"),
        result("a", "second"),
        result("", "third"),
        calling(&["a", "a_2"]),
        result("a", "fourth"),
        result("a_2", "fifth"),
    ]));
    let messages = body["messages"].as_array().expect("a list");
    let calls = messages.iter().flat_map(|message| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.map(|call| call["id"].as_str().expect("text"))
    });
    assert_eq!(
        calls.collect::<Vec<_>>(),
        ["a", "call00000", "call00001", "call00002", "a_2"]
    );
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results = results.map(|result| (&result["tool_call_id"], &result["content"]));
    assert_eq!(
        results.collect::<Vec<_>>(),
        [
            (&json!("a"), &json!("first")),
            (&json!("call00000"), &json!("second")),
            (&json!("call00001"), &json!("third")),
            (&json!("call00002"), &json!("fourth")),
            (&json!("a_2"), &json!("fifth")),
        ]
    );
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().expect("fields").clone()
}

/// An answer with parts of the vendor's own everywhere.
fn with_parts() -> Message {
    let own = Own {
        before_text: "<think>hm</think>".to_owned(),
        fields: fields(json!({ "reasoning_content": "hm", "role": "never" })),
    };
    let [before_text, rest] = own.into_parts();
    let text = Part::Text {
        text: "hi".to_owned(),
    };
    let call = Part::ToolCall(ToolCall {
        vendor_id: "c1".to_owned(),
        name: "List".to_owned(),
        arguments: "{}".to_owned(),
        opaque: fields(json!({
            "extra_content": { "google": { "thought_signature": "S" } },
            "function": { "strict": true, "name": "never" },
        })),
    });
    answered(before_text.into_iter().chain([text, call]).chain(rest))
}

#[test]
fn the_vendors_own_parts_are_sent_back_unchanged_and_do_not_replace_ours() {
    let body = sent(&request(vec![with_parts()]));
    assert_eq!(
        body["messages"][0],
        json!({
            "role": "assistant",
            "content": "<think>hm</think>hi",
            "reasoning_content": "hm",
            "tool_calls": [{
                "id": "c1",
                "type": "function",
                "extra_content": { "google": { "thought_signature": "S" } },
                "function": { "strict": true, "name": "List", "arguments": "{}" },
            }],
        })
    );
}

#[test]
fn each_shape_of_the_request_is_as_its_server_wants_it() {
    let request = request(vec![with_parts(), calling(&["c2", "c3"])]);
    let messages = |own| {
        let body = serde_json::to_value(body(&seeing(), &request, ChatShape { usage: false, own }))
            .expect("it is JSON");
        assert!(body.get("stream_options").is_none());
        (body["messages"][0].clone(), body["messages"][1].clone())
    };
    let (bare, _) = messages(OwnParts::LeftOut);
    let call = json!({
        "id": "c1", "type": "function", "function": { "name": "List", "arguments": "{}" },
    });
    assert_eq!(
        bare,
        json!({ "role": "assistant", "content": "<think>hm</think>hi", "tool_calls": [call] })
    );
    let (with, without) = messages(OwnParts::WithReasoning);
    assert_eq!(
        (&with["reasoning_content"], &without["reasoning_content"]),
        (&json!("hm"), &json!(""))
    );
    let (signed, unsigned) = messages(OwnParts::WithSignatures);
    let signature = |message: &Value, call: usize| {
        message["tool_calls"][call]["extra_content"]["google"]["thought_signature"].clone()
    };
    assert_eq!(signature(&signed, 0), "S");
    assert_eq!(signature(&unsigned, 0), UNCHECKED_SIGNATURE);
    assert_eq!(signature(&unsigned, 1), Value::Null);
}

#[test]
fn images_stand_behind_the_words_and_those_of_results_in_a_message_behind_them() {
    let bytes = bytes::Bytes::from_static(b"PNG");
    let image = |media_type: &str| Part::Image {
        digest: shared_types::Digest::of(&bytes),
        media_type: media_type.to_owned(),
        bytes: 3,
    };
    let text = |text: &str| Part::Text {
        text: text.to_owned(),
    };
    let read = |id: &str| Message::ToolResult {
        vendor_id: id.to_owned(),
        parts: Parts(vec![text("shot"), image("image/png")]),
        failed: false,
    };
    let mut request = request(vec![
        Message::User {
            parts: Parts(vec![text("look"), image("image/png"), image("image/tiff")]),
        },
        asked("{}"),
        read("c1"),
        answered([text("seen")]),
    ]);
    request
        .images
        .insert(shared_types::Digest::of(&bytes), bytes.clone());
    let shown =
        json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,UE5H" } });
    let words = |words: &str| json!({ "type": "text", "text": words });
    let all = &sent(&request)["messages"];
    let described = "[an image: image/tiff, 3 bytes]";
    assert_eq!(
        all[0]["content"],
        json!([words("look"), shown, words(described)])
    );
    assert_eq!(all[2]["content"], "shot\n\n[an image: image/png, 3 bytes]");
    assert_eq!(
        (&all[3]["role"], &all[3]["content"]),
        (&"assistant".into(), &LOOKS.into())
    );
    assert_eq!(all[4], json!({ "role": "user", "content": [shown] }));
    assert_eq!(all[5]["content"], "seen");

    let blind = Profile::default();
    let told = serde_json::to_value(body(&blind, &request, FIRST)).expect("it is JSON");
    assert!(!told.to_string().contains("image_url"), "{told}");
    assert_eq!(
        told["messages"][3]["content"], "seen",
        "nothing stands between: {told}"
    );
}
