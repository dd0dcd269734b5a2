use bytes::Bytes;
use shared_types::Digest;

use super::*;
use crate::Images;

fn profile() -> Profile {
    Profile {
        model: "m".to_owned(),
        sees: true,
        ..Profile::default()
    }
}

/// The body of a request, as bytes and read again.
fn sent_as(profile: &Profile, request: &ModelRequest, shape: MessagesShape) -> Value {
    let bytes = serde_json::to_vec(&body(profile, request, shape)).expect("it is JSON");
    serde_json::from_slice(&bytes).expect("it is JSON")
}

/// The body without marks.
fn sent(request: &ModelRequest) -> Value {
    let plain = MessagesShape {
        cache: false,
        ..MessagesShape::default()
    };
    sent_as(&profile(), request, plain)
}

fn messages_of(messages: Vec<Message>) -> Value {
    sent(&request(messages))["messages"].take()
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

fn user(text: &str) -> Message {
    Message::User {
        parts: Parts::text(text),
    }
}

fn answered(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant {
        parts: Parts(parts.into_iter().collect()),
    }
}

fn words(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

fn thought(signature: Option<&str>) -> Part {
    Part::Reasoning {
        text: "hm".to_owned(),
        signature: signature.map(str::to_owned),
    }
}

fn opaque(fields: Value) -> Part {
    let fields = fields.as_object().cloned().expect("an object");
    Part::Opaque { fields }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        vendor_id: id.to_owned(),
        name: "Shell".to_owned(),
        arguments: arguments.to_owned(),
        opaque: Map::new(),
    })
}

fn result(id: &str, text: &str, failed: bool) -> Message {
    Message::ToolResult {
        vendor_id: id.to_owned(),
        parts: Parts::text(text),
        failed,
    }
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Runs.".to_owned(),
        parameters: json!({ "type": "object" }),
        aliases: Vec::new(),
    }
}

fn says(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn a_conversation_with_tools_has_the_vendors_form() {
    let mut request = request(vec![
        user("hi"),
        answered([words("I look."), call("toolu_1", r#"{"command":"ls"}"#)]),
        result("toolu_1", "a\nb", false),
    ]);
    request.system = "be brief".to_owned();
    request.tools = vec![spec("Shell")];
    assert_eq!(
        sent(&request),
        json!({
            "model": "m",
            "max_tokens": 32_000,
            "stream": true,
            "tools": [{ "name": "Shell", "description": "Runs.", "input_schema": { "type": "object" } }],
            "system": [says("be brief")],
            "messages": [
                { "role": "user", "content": [says("hi")] },
                { "role": "assistant", "content": [
                    says("I look."),
                    { "type": "tool_use", "id": "toolu_1", "name": "Shell", "input": { "command": "ls" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "content": [says("a\nb")] },
                ] },
            ],
        })
    );
}

#[test]
fn the_limit_of_an_answer_is_the_models_or_the_one_that_the_server_has_named() {
    let limit = |output, shape| {
        let profile = Profile {
            output,
            ..profile()
        };
        sent_as(&profile, &request(vec![user("hi")]), shape)["max_tokens"].take()
    };
    let named = MessagesShape {
        output: Some(8192),
        ..MessagesShape::default()
    };
    assert_eq!(limit(Some(128_000), MessagesShape::default()), 128_000);
    assert_eq!(limit(None, MessagesShape::default()), 32_000);
    assert_eq!(limit(None, named), 8192);
    assert_eq!(limit(Some(4096), named), 4096);
}

#[test]
fn thoughts_are_asked_for_as_the_profile_says_and_the_form_allows() {
    let asked = |thinking, shape| {
        let profile = Profile {
            thinking,
            ..profile()
        };
        sent_as(&profile, &request(vec![user("hi")]), shape)["thinking"].take()
    };
    let first = MessagesShape::default();
    let adaptive = json!({ "type": "adaptive" });
    assert_eq!(asked(Thinking::Adaptive, first), adaptive);
    assert_eq!(asked(Thinking::Unasked, first), Value::Null);
    for thinking in [ThinkingRequest::NotHere, ThinkingRequest::Never] {
        let shape = MessagesShape { thinking, ..first };
        assert_eq!(asked(Thinking::Adaptive, shape), Value::Null);
    }
}

#[test]
fn what_a_user_says_in_a_row_is_one_message_and_stands_behind_results() {
    let messages = messages_of(vec![
        user("one"),
        user("two"),
        answered([call("a", "{}"), call("b", "{}")]),
        result("a", "done", false),
        result("b", "stopped", true),
        user("three"),
    ]);
    let of = |id: &str, said: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": [says(said)] });
    let mut failed = of("b", "stopped");
    failed["is_error"] = true.into();
    assert_eq!(messages[0]["content"], json!([says("one"), says("two")]));
    let last = json!({ "role": "user", "content": [of("a", "done"), failed, says("three")] });
    assert_eq!(messages[2], last);
    assert_eq!(messages.as_array().map(Vec::len), Some(3));
}

#[test]
fn nothing_blank_is_sent_and_roles_still_alternate() {
    let messages = messages_of(vec![
        user("one"),
        answered([words(" \n"), thought(Some("S"))]),
        user("  "),
        answered([words(""), words("two"), call("a", "{}")]),
        result("a", "\n", false),
    ]);
    assert_eq!(
        messages,
        json!([
            { "role": "user", "content": [says("one")] },
            { "role": "assistant", "content": [
                says("two"),
                { "type": "tool_use", "id": "a", "name": "Shell", "input": {} },
            ] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] },
        ])
    );
    let system = ModelRequest {
        system: " \n".to_owned(),
        ..request(vec![user("hi")])
    };
    assert_eq!(sent(&system)["system"], Value::Null);
}

#[test]
fn an_answer_that_the_vendor_goes_on_with_ends_without_white_space_and_others_stay_as_they_are() {
    let messages = messages_of(vec![
        user("one"),
        answered([words("two \n")]),
        user("three\n"),
        answered([words("four"), words("five \n")]),
    ]);
    assert_eq!(messages[1]["content"], json!([says("two \n")]));
    assert_eq!(messages[2]["content"], json!([says("three\n")]));
    assert_eq!(messages[3]["content"], json!([says("four"), says("five")]));
}

#[test]
fn the_vendors_own_blocks_go_back_unchanged_at_their_places() {
    let redacted = json!({ "type": "redacted_thinking", "data": "ZGF0YQ==" });
    let search = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": { "query": "x" }, "new": [1, null] });
    let found =
        json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] });
    let unread = Part::Reasoning {
        text: String::new(),
        signature: Some("T".to_owned()),
    };
    let answer = [
        thought(Some("S")),
        opaque(redacted.clone()),
        words("I search."),
        opaque(search.clone()),
        opaque(found.clone()),
        unread,
        call("a", "{}"),
    ];
    let conversation = vec![user("hi"), answered(answer), result("a", "ok", false)];
    let messages = messages_of(conversation.clone());
    let calls = json!({ "type": "tool_use", "id": "a", "name": "Shell", "input": {} });
    let blocks = json!([
        { "type": "thinking", "thinking": "hm", "signature": "S" },
        redacted,
        says("I search."),
        search,
        found,
        { "type": "thinking", "thinking": "", "signature": "T" },
        calls,
    ]);
    assert_eq!(messages[1]["content"], blocks);
    let without = MessagesShape {
        own: false,
        ..MessagesShape::default()
    };
    let messages = sent_as(&profile(), &request(conversation), without)["messages"].take();
    assert_eq!(messages[1]["content"], json!([says("I search."), calls]));
}

#[test]
fn thoughts_that_the_vendor_cannot_check_stay_here_and_none_end_an_answer() {
    let fields = json!({ "fields": { "reasoning_content": "hm" } });
    let messages = messages_of(vec![
        user("hi"),
        answered([
            thought(None),
            opaque(fields),
            words("two"),
            thought(Some("S")),
        ]),
        user("go on"),
    ]);
    assert_eq!(messages[1]["content"], json!([says("two")]));
}

#[test]
fn what_a_model_wrote_as_arguments_goes_back_byte_for_byte() {
    let written = r#"{"z": 1.0, "a": 12345678901234567890123, "é": "\u00e9"}"#;
    let conversation = request(vec![
        user("hi"),
        answered([call("a", written), call("b", "{oops"), call("c", "")]),
        result("a", "1", false),
        result("b", "2", true),
        result("c", "3", false),
    ]);
    let bytes = serde_json::to_string(&body(
        &Profile::default(),
        &conversation,
        MessagesShape::default(),
    ));
    let bytes = bytes.expect("it is JSON");
    assert!(bytes.contains(&format!(r#""input":{written}"#)), "{bytes}");
    let sent = sent(&conversation);
    let content = &sent["messages"][1]["content"];
    assert_eq!(content[1]["input"], json!({ "invalid_arguments": "{oops" }));
    assert_eq!(content[2]["input"], json!({}));
}

#[test]
fn the_vendors_fields_of_a_call_go_back_with_it() {
    let Part::ToolCall(mut asked) = call("a", "{}") else {
        unreachable!("it is a call");
    };
    let caller = json!({ "type": "direct" });
    asked.opaque = Map::from_iter([
        ("caller".to_owned(), caller.clone()),
        ("input".to_owned(), "another".into()),
    ]);
    let conversation = request(vec![
        user("hi"),
        answered([Part::ToolCall(asked)]),
        result("a", "ok", false),
    ]);
    let bytes = serde_json::to_string(&body(&profile(), &conversation, MessagesShape::default()));
    let bytes = bytes.expect("it is JSON");
    assert_eq!(bytes.matches("\"input\":").count(), 1, "{bytes}");
    let messages = sent(&conversation)["messages"].take();
    let sent =
        json!([{ "type": "tool_use", "id": "a", "name": "Shell", "input": {}, "caller": caller }]);
    assert_eq!(messages[1]["content"], sent);
}

#[test]
fn each_id_has_the_letters_that_the_vendor_takes_and_stands_for_one_call() {
    let messages = messages_of(vec![
        user("hi"),
        answered([
            call("functions.Shell:0", "{}"),
            call("", "{}"),
            call("functions.Shell:0", "{}"),
        ]),
        result("functions.Shell:0", "1", false),
        result("", "2", false),
        result("functions.Shell:0", "3", false),
    ]);
    let ids = |message: &Value, field: &str| -> Vec<String> {
        let blocks = message["content"].as_array().expect("a list");
        let ids = blocks.iter().map(|block| block[field].as_str());
        ids.map(|id| id.expect("an id").to_owned()).collect()
    };
    let sent = ids(&messages[1], "id");
    assert_eq!(sent, ["functions_Shell_0", "call00000", "call00001"]);
    assert_eq!(ids(&messages[2], "tool_use_id"), sent);
}

#[test]
fn an_image_is_shown_to_a_model_that_sees_and_described_otherwise() {
    let bytes = Bytes::from_static(b"PNG");
    let digest = Digest::of(&bytes);
    let image = Part::Image {
        digest,
        media_type: "image/png".to_owned(),
        bytes: 3,
    };
    let result = |failed| Message::ToolResult {
        vendor_id: "a".to_owned(),
        parts: Parts(vec![image.clone()]),
        failed,
    };
    let conversation = |failed| ModelRequest {
        images: Images::from([(digest, bytes.clone())]),
        ..request(vec![
            Message::User {
                parts: Parts(vec![words("look"), image.clone()]),
            },
            answered([call("a", "{}")]),
            result(failed),
        ])
    };
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H" });
    let (shown, described) = (
        json!({ "type": "image", "source": source }),
        says("[an image: image/png, 3 bytes]"),
    );
    let looked = |sent: &Value| sent["messages"][0]["content"].clone();
    let returned = |sent: &Value| sent["messages"][2]["content"][0]["content"].clone();
    let seen = sent(&conversation(false));
    assert_eq!(looked(&seen), json!([says("look"), shown]));
    assert_eq!(returned(&seen), json!([shown]));
    // The vendor takes nothing but text of a call that failed.
    assert_eq!(returned(&sent(&conversation(true))), json!([described]));
    let blind = Profile {
        sees: false,
        ..profile()
    };
    let plain = MessagesShape {
        cache: false,
        ..MessagesShape::default()
    };
    let unseen = sent_as(&blind, &conversation(false), plain);
    assert_eq!(looked(&unseen), json!([says("look"), described]));
    assert_eq!(returned(&unseen), json!([described]));
}

/// The places that bear a mark.
fn marks(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("cache_control") {
                found.push(place.to_owned());
            }
            for (name, value) in fields {
                marks(value, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                marks(value, &format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn at_most_four_prefixes_are_marked_and_the_next_request_marks_the_end_of_this_one() {
    let mut conversation = request(vec![
        user("one"),
        answered([call("a", "{}")]),
        result("a", "1", false),
        answered([call("b", "{}"), call("c", "{}")]),
        result("b", "2", false),
        result("c", "3", false),
    ]);
    conversation.system = "be brief".to_owned();
    conversation.tools = vec![spec("Shell"), spec("Read")];
    let marked = |request: &ModelRequest, shape| {
        let mut found = Vec::new();
        marks(&sent_as(&profile(), request, shape), "", &mut found);
        found
    };
    let first = marked(&conversation, MessagesShape::default());
    assert_eq!(
        first,
        [
            "/messages/2/content/0",
            "/messages/4/content/1",
            "/system/0",
            "/tools/1"
        ]
    );
    conversation
        .messages
        .extend([answered([words("done")]), user("more")]);
    let next = marked(&conversation, MessagesShape::default());
    assert_eq!(next.len(), 4);
    assert!(
        next.contains(&"/messages/4/content/1".to_owned()),
        "{next:?}"
    );
    let refused = MessagesShape {
        cache: false,
        ..MessagesShape::default()
    };
    assert_eq!(marked(&conversation, refused), [""; 0]);
    assert_eq!(
        marked(&request(vec![user("hi")]), MessagesShape::default()),
        ["/messages/0/content/0"]
    );
}

#[test]
fn a_request_begins_as_the_one_before_it_did() {
    let mut conversation = request(vec![
        user("one"),
        answered([thought(Some("S")), call("a", "{}")]),
        result("a", "1", false),
    ]);
    conversation.system = "be brief".to_owned();
    conversation.tools = vec![spec("Shell")];
    let plain = MessagesShape {
        cache: false,
        ..MessagesShape::default()
    };
    let bytes = |request: &ModelRequest| {
        serde_json::to_string(&body(&profile(), request, plain)).expect("it is JSON")
    };
    let before = bytes(&conversation);
    conversation
        .messages
        .extend([user("more"), answered([words("done")]), user("again")]);
    let after = bytes(&conversation);
    let same = before.strip_suffix("]}]}").expect("the messages come last");
    assert!(after.starts_with(same), "{before}\n{after}");
}
