use bytes::Bytes;
use shared_types::Digest;

use super::*;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        system: String::new(),
        messages,
        tools: Vec::new(),
        images: Images::new(),
        trace: None,
    }
}

fn sent(profile: &Profile, request: &ModelRequest, shape: GeminiShape) -> Value {
    serde_json::to_value(body(profile, request, shape)).expect("it is JSON")
}

fn contents(messages: Vec<Message>, shape: GeminiShape) -> Value {
    sent(&Profile::default(), &request(messages), shape)["contents"].take()
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

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult {
        vendor_id: id.to_owned(),
        parts: Parts::text(text),
        failed: false,
    }
}

#[test]
fn a_conversation_with_tools_has_the_vendors_form() {
    let request = ModelRequest {
        system: "be brief".to_owned(),
        tools: vec![ToolSpec {
            name: "Shell".to_owned(),
            description: "runs".to_owned(),
            parameters: json!({ "type": "object", "additionalProperties": false }),
            aliases: Vec::new(),
        }],
        ..request(vec![
            user("hi"),
            answered([call(
                "f1",
                r#"{"command":"ls"}"#,
                json!({ "functionCall": { "id": "f1" } }),
            )]),
            result("f1", "a\nb"),
        ])
    };
    let profile = Profile {
        output: Some(4096),
        thinking: Thinking::Adaptive,
        ..Profile::default()
    };
    let function = json!({ "id": "f1", "name": "Shell", "args": { "command": "ls" } });
    let response = json!({ "id": "f1", "name": "Shell", "response": { "output": "a\nb" } });
    assert_eq!(
        sent(&profile, &request, GeminiShape::default()),
        json!({
            "systemInstruction": { "parts": [{ "text": "be brief" }] },
            "tools": [{ "functionDeclarations": [{
                "name": "Shell", "description": "runs",
                "parametersJsonSchema": { "type": "object", "additionalProperties": false },
            }] }],
            "generationConfig": {
                "maxOutputTokens": 4096,
                "thinkingConfig": { "includeThoughts": true },
            },
            "contents": [
                { "role": "user", "parts": [{ "text": "hi" }] },
                { "role": "model", "parts": [{ "functionCall": function }] },
                { "role": "user", "parts": [{ "functionResponse": response }] },
            ],
        })
    );
    let shape = GeminiShape {
        schema: GeminiSchema::OpenApi,
        thoughts: false,
        ..GeminiShape::default()
    };
    let body = sent(&profile, &request, shape);
    let declared = &body["tools"][0]["functionDeclarations"][0];
    assert!(declared.get("parameters").is_some());
    assert!(body["generationConfig"].get("thinkingConfig").is_none());
}

#[test]
fn what_is_not_asked_for_is_not_sent() {
    let body = sent(
        &Profile::default(),
        &request(Vec::new()),
        GeminiShape::default(),
    );
    assert_eq!(body, json!({ "contents": [] }));
}

#[test]
fn one_side_says_all_that_it_says_in_a_row_in_one_content() {
    let said = contents(
        vec![
            user("one"),
            user("two"),
            answered([text("a")]),
            answered([call("", "{}", json!({})), call("", "{}", json!({}))]),
            result("", "first"),
            Message::ToolResult {
                vendor_id: String::new(),
                parts: Parts::text("it failed"),
                failed: true,
            },
            user("three"),
        ],
        GeminiShape::default(),
    );
    let function = json!({ "functionCall": { "name": "Shell", "args": {} } });
    let response =
        |response: Value| json!({ "functionResponse": { "name": "Shell", "response": response } });
    assert_eq!(
        said,
        json!([
            { "role": "user", "parts": [{ "text": "one" }, { "text": "two" }] },
            { "role": "model", "parts": [{ "text": "a" }, function, function] },
            { "role": "user", "parts": [
                response(json!({ "output": "first" })),
                response(json!({ "error": "it failed" })),
                { "text": "three" },
            ] },
        ])
    );
}

#[test]
fn ids_are_echoed_where_the_vendor_gave_them_and_each_stands_for_one_call() {
    let with_id = |id: &str| call(id, "{}", json!({ "functionCall": { "id": id } }));
    let said = contents(
        vec![
            answered([with_id("a"), call("call00007", "{}", json!({}))]),
            result("a", "first"),
            result("call00007", "second"),
            answered([with_id("a")]),
            result("a", "third"),
        ],
        GeminiShape::default(),
    );
    let ids = |content: usize, field: &str| -> Vec<Option<String>> {
        let parts = said[content]["parts"].as_array().expect("a list");
        let id = |part: &Value| part[field]["id"].as_str().map(str::to_owned);
        parts.iter().map(id).collect()
    };
    let a = Some("a".to_owned());
    assert_eq!(ids(0, "functionCall"), [a.clone(), None]);
    assert_eq!(ids(1, "functionResponse"), [a, None]);
    let other = Some("call00000".to_owned());
    for (content, field) in [(2, "functionCall"), (3, "functionResponse")] {
        assert_eq!(ids(content, field), std::slice::from_ref(&other));
    }
}

#[test]
fn images_are_shown_to_a_model_that_sees_and_stand_behind_all_results() {
    let bytes = Bytes::from_static(b"PNG");
    let digest = Digest::of(&bytes);
    let image = Part::Image {
        digest,
        media_type: "image/png".to_owned(),
        bytes: 3,
    };
    let seen = Message::ToolResult {
        vendor_id: "a".to_owned(),
        parts: Parts(vec![text("see"), image.clone()]),
        failed: false,
    };
    let request = ModelRequest {
        images: Images::from([(digest, bytes)]),
        ..request(vec![
            Message::User {
                parts: Parts(vec![image]),
            },
            answered([call("a", "{}", json!({})), call("b", "{}", json!({}))]),
            seen,
            result("b", "second"),
        ])
    };
    let seeing = Profile {
        sees: true,
        ..Profile::default()
    };
    let inline = json!({ "inlineData": { "mimeType": "image/png", "data": "UE5H" } });
    let words = "[an image: image/png, 3 bytes]";
    let response = |text: &str| json!({ "functionResponse": { "name": "Shell", "response": { "output": text } } });
    let described = response(&format!("see\n\n{words}"));
    let body = sent(&seeing, &request, GeminiShape::default());
    assert_eq!(body["contents"][0]["parts"], json!([inline]));
    assert_eq!(
        body["contents"][2]["parts"],
        json!([described, response("second"), inline])
    );
    let body = sent(&Profile::default(), &request, GeminiShape::default());
    assert_eq!(body["contents"][0]["parts"], json!([{ "text": words }]));
    assert_eq!(
        body["contents"][2]["parts"],
        json!([described, response("second")])
    );
}

/// An answer with a signature everywhere.
fn signed() -> Message {
    answered([
        Part::Reasoning {
            text: "for people".to_owned(),
            signature: None,
        },
        opaque(json!({ "thought": true, "text": "hm", "thoughtSignature": "S1" })),
        text("Hello world"),
        opaque(json!({ "text": "world", "thoughtSignature": "S2" })),
        text("bye"),
        opaque(json!({ "text": "", "thoughtSignature": "S3" })),
        opaque(json!({ "executableCode": { "code": "1" }, "thoughtSignature": "S4" })),
        call(
            "f1",
            "{}",
            json!({ "thoughtSignature": "S5", "functionCall": { "id": "f1" } }),
        ),
        call("f2", "{}", json!({ "functionCall": { "id": "f2" } })),
    ])
}

fn function(id: &str) -> Value {
    json!({ "id": id, "name": "Shell", "args": {} })
}

#[test]
fn each_signature_goes_back_to_the_place_it_came_from() {
    assert_eq!(
        contents(vec![signed()], GeminiShape::default())[0]["parts"],
        json!([
            { "thought": true, "text": "hm", "thoughtSignature": "S1" },
            { "text": "Hello " },
            { "text": "world", "thoughtSignature": "S2" },
            { "text": "bye" },
            { "text": "", "thoughtSignature": "S3" },
            { "executableCode": { "code": "1" }, "thoughtSignature": "S4" },
            { "functionCall": function("f1"), "thoughtSignature": "S5" },
            { "functionCall": function("f2") },
        ])
    );
}

#[test]
fn without_signatures_the_answer_is_whole_all_the_same() {
    let without = GeminiShape {
        signatures: false,
        ..GeminiShape::default()
    };
    assert_eq!(
        contents(vec![signed()], without)[0]["parts"],
        json!([
            { "text": "Hello world" },
            { "text": "bye" },
            { "executableCode": { "code": "1" } },
            { "functionCall": function("f1") },
            { "functionCall": function("f2") },
        ])
    );
}

#[test]
fn a_call_without_a_signature_gets_the_unchecked_one_only_where_it_is_asked_for() {
    let messages = || {
        vec![
            signed(),
            result("f1", "a"),
            result("f2", "b"),
            answered([call("", "{}", json!({})), call("", "{}", json!({}))]),
        ]
    };
    let signatures = |shape: GeminiShape| -> Vec<Value> {
        let contents = contents(messages(), shape);
        let contents = contents.as_array().expect("a list").iter();
        let parts = contents.flat_map(|content| content["parts"].as_array().expect("a list"));
        parts
            .filter(|part| part.get(CALL).is_some())
            .map(|part| part[SIGNATURE].clone())
            .collect()
    };
    let [none, unchecked] = [Value::Null, json!(UNCHECKED_SIGNATURE)];
    let first = GeminiShape::default();
    assert_eq!(
        signatures(first),
        [json!("S5"), none.clone(), none.clone(), none.clone()]
    );
    let with = GeminiShape {
        unchecked: true,
        ..first
    };
    assert_eq!(
        signatures(with),
        [json!("S5"), none.clone(), unchecked.clone(), none.clone()]
    );
    let replaced = GeminiShape {
        signatures: false,
        ..with
    };
    assert_eq!(
        signatures(replaced),
        [unchecked.clone(), none.clone(), unchecked, none]
    );
}

#[test]
fn an_answer_without_parts_is_not_sent() {
    let thought = opaque(json!({ "thought": true, "text": "hm", "thoughtSignature": "S" }));
    let without = GeminiShape {
        signatures: false,
        ..GeminiShape::default()
    };
    let said = contents(vec![user("a"), answered([thought]), user("b")], without);
    assert_eq!(
        said,
        json!([{ "role": "user", "parts": [{ "text": "a" }, { "text": "b" }] }])
    );
}

#[test]
fn the_signature_of_a_text_that_is_shortened_or_gone_is_not_sent() {
    let end = || opaque(json!({ "text": "world", "thoughtSignature": "S" }));
    let short = contents(
        vec![answered([text("Hello [...]"), end(), text("x")])],
        GeminiShape::default(),
    );
    assert_eq!(
        short[0]["parts"],
        json!([{ "text": "Hello [...]" }, { "text": "x" }])
    );
    let gone = contents(
        vec![answered([end(), call("", "{}", json!({}))])],
        GeminiShape::default(),
    );
    assert_eq!(
        gone[0]["parts"],
        json!([{ "functionCall": { "name": "Shell", "args": {} } }])
    );
    let whole = contents(
        vec![answered([text("world"), end()])],
        GeminiShape::default(),
    );
    assert_eq!(
        whole[0]["parts"],
        json!([{ "text": "world", "thoughtSignature": "S" }])
    );
}
