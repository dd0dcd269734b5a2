use serde_json::json;

use super::{
    super::request::{ResponsesShape, body},
    *,
};
use crate::{Images, Message, ModelRequest, Profile, formats::AnswerBuilder as _};

fn end() -> AnswerEnd {
    AnswerEnd {
        announced: true,
        torn: false,
    }
}

fn grow(events: &[Value]) -> Result<(ResponsesBuilder, Vec<Piece>), ModelError> {
    let mut growing = ResponsesBuilder::new(["Shell".to_owned()]);
    let mut said = Vec::new();
    for event in events {
        said.extend(growing.absorb(event.clone())?);
    }
    Ok((growing, said))
}

fn whole(events: &[Value]) -> Answer {
    let (growing, _) = grow(events).expect("it is well formed");
    growing.conclude(end()).expect("the answer is whole").0
}

fn failed(events: &[Value]) -> ModelError {
    match grow(events) {
        Err(error) => error,
        Ok((growing, _)) => growing.conclude(end()).expect_err("it is no answer"),
    }
}

fn added(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn done(index: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn delta(of: &str, index: u64, id: &str, delta: &str) -> Value {
    json!({ "type": format!("response.{of}.delta"), "output_index": index, "item_id": id,
        "content_index": 0, "delta": delta })
}

fn message(id: &str, text: &str) -> Value {
    json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn call(id: &str, call_id: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": id, "call_id": call_id, "name": "Shell",
        "arguments": arguments, "status": "completed" })
}

fn completed(output: Value) -> Value {
    json!({ "type": "response.completed", "response": {
        "object": "response", "status": "completed", "model": "gpt-x-2026", "output": output,
        "usage": {
            "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": { "cached_tokens": 64, "cache_write_tokens": 30 },
            "output_tokens_details": { "reasoning_tokens": 12 },
        },
    } })
}

/// A whole answer: thoughts in two parts, a comment, and a call.
fn events() -> Vec<Value> {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [
            { "type": "summary_text", "text": "First." },
            { "type": "summary_text", "text": "Then." },
        ] });
    let comment = json!({ "type": "message", "id": "msg_1", "role": "assistant",
        "phase": "commentary", "status": "completed",
        "content": [{ "type": "output_text", "text": "I look.", "annotations": [] }] });
    let mut called = call("fc_1", "call_1", r#"{"command":"ls"}"#);
    called["namespace"] = "shell".into();
    let summary = |part: u64, text: &str| {
        let mut event = delta("reasoning_summary_text", 0, "rs_1", text);
        event["summary_index"] = part.into();
        event
    };
    let partial =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g" });
    vec![
        json!({ "type": "response.created", "response": { "model": "gpt-x", "error": null } }),
        json!({ "type": "keepalive" }),
        added(0, partial),
        summary(0, "Fir"),
        summary(0, "st."),
        summary(1, "Then."),
        done(0, reasoning),
        added(
            1,
            json!({ "type": "message", "id": "msg_1", "content": [] }),
        ),
        delta("output_text", 1, "msg_1", "I "),
        delta("output_text", 1, "msg_1", "look."),
        done(1, comment),
        added(2, call("fc_1", "call_1", "")),
        delta("function_call_arguments", 2, "fc_1", r#"{"command""#),
        delta("function_call_arguments", 2, "fc_1", r#":"ls"}"#),
        json!({ "type": "response.function_call_arguments.done", "output_index": 2,
            "item_id": "fc_1", "arguments": r#"{"command":"ls"}"# }),
        done(2, called),
    ]
}

#[test]
fn a_whole_answer_is_recorded_in_order_and_goes_back_unchanged() {
    let mut events = events();
    events.push(completed(json!([])));
    events.push(delta("output_text", 9, "msg_9", "after the end"));
    let (growing, said) = grow(&events).expect("it is well formed");
    assert_eq!(growing.stage(), AnswerStage::Over);
    let heard: Vec<_> = said
        .iter()
        .map(|piece| (piece.part, piece.text.as_str()))
        .collect();
    assert_eq!(
        heard,
        [
            (0, "Fir"),
            (0, "st."),
            (0, "\n\nThen."),
            (1, "I "),
            (1, "look.")
        ]
    );
    let answer = whole(&events);
    assert_eq!(
        answer.usage,
        Usage {
            input: 100,
            cached: 64,
            cache_written: 30,
            output: 20,
            thoughts: 12,
        }
    );
    assert_eq!(
        (answer.finish, answer.model.as_str()),
        (Finish::Complete, "gpt-x-2026")
    );
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
        "summary": [
            { "type": "summary_text", "text": "First." },
            { "type": "summary_text", "text": "Then." },
        ] });
    assert_eq!(
        serde_json::to_value(&answer.parts).expect("JSON"),
        json!([
            { "type": "reasoning", "text": "First.\n\nThen." },
            { "type": "opaque", "fields": reasoning },
            { "type": "opaque", "fields": { "type": "message", "id": "msg_1", "role": "assistant",
                "phase": "commentary", "status": "completed" } },
            { "type": "text", "text": "I look." },
            { "type": "tool_call", "vendor_id": "call_1", "name": "Shell",
                "arguments": r#"{"command":"ls"}"#,
                "opaque": { "id": "fc_1", "namespace": "shell", "status": "completed" } },
        ])
    );
    let request = ModelRequest {
        system: String::new(),
        messages: vec![Message::Assistant {
            parts: answer.parts,
        }],
        tools: Vec::new(),
        images: Images::new(),
        trace: None,
    };
    let profile = Profile::default();
    let sent =
        serde_json::to_value(body(&profile, &request, ResponsesShape::default())).expect("JSON");
    let items = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done");
    let items: Vec<_> = items.map(|event| event["item"].clone()).collect();
    assert_eq!(sent["input"], json!(items));
}

#[test]
fn no_part_of_an_answer_without_its_end_is_one() {
    let events = events();
    for count in 0..=events.len() {
        let error = failed(&events[..count]);
        assert!(matches!(error, ModelError::Broken(_)), "{count}: {error}");
    }
}

#[test]
fn one_document_is_an_answer_and_one_that_did_not_end_is_none() {
    let document = |status: &str| {
        json!({ "object": "response", "status": status, "model": "m", "error": null,
            "output": [message("msg_1", "Hello"), call("fc_1", "call_1", "{}")],
            "usage": { "input_tokens": 3 } })
    };
    let answer = whole(&[document("completed")]);
    assert_eq!((answer.text().as_str(), answer.calls().len()), ("Hello", 1));
    assert_eq!(answer.usage.input, 3);
    for status in ["in_progress", "queued", "cancelled", ""] {
        let error = failed(&[document(status)]);
        assert!(matches!(error, ModelError::Broken(_)), "{status}: {error}");
    }
}

#[test]
fn the_reason_of_an_end_decides() {
    let ended = |status: &str, reason: Value| {
        let response = json!({ "status": status, "incomplete_details": { "reason": reason } });
        let last = json!({ "type": format!("response.{status}"), "response": response });
        [delta("output_text", 0, "msg_1", "half"), last]
    };
    let cut = whole(&ended("incomplete", json!("max_output_tokens")));
    assert_eq!((cut.finish, cut.text().as_str()), (Finish::Length, "half"));
    let withheld = failed(&ended("incomplete", json!("content_filter")));
    assert!(!withheld.is_passing() && withheld.message().contains("withheld"));
    for reason in [json!("steered"), Value::Null] {
        let error = failed(&ended("incomplete", reason));
        assert!(matches!(error, ModelError::Broken(_)), "{error}");
    }
    let error = failed(&ended("failed", Value::Null));
    assert!(matches!(error, ModelError::Unavailable(_)), "{error}");
}

#[test]
fn an_empty_answer_is_broken_unless_its_length_ran_out() {
    let thoughts =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g" });
    for output in [json!([]), json!([thoughts]), json!([message("msg_1", "")])] {
        let error = failed(&[completed(output)]);
        assert!(matches!(error, ModelError::Broken(_)), "{error}");
    }
    let cut = json!({ "type": "response.incomplete", "response": { "output": [],
        "incomplete_details": { "reason": "max_output_tokens" } } });
    assert_eq!(whole(&[cut]).finish, Finish::Length);
}

#[test]
fn thoughts_that_are_not_whole_are_for_people_alone() {
    let partial = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "g" });
    let cut = json!({ "type": "response.incomplete", "response": {
        "incomplete_details": { "reason": "max_output_tokens" } } });
    let answer = whole(&[
        added(0, partial),
        delta("reasoning_summary_text", 0, "rs_1", "Hm"),
        cut,
    ]);
    assert_eq!(
        serde_json::to_value(&answer.parts).expect("JSON"),
        json!([{ "type": "reasoning", "text": "Hm" }])
    );
}

#[test]
fn deltas_for_unknown_items_begin_them_and_a_call_without_a_name_is_none() {
    let answer = whole(&[
        delta("output_text", 3, "msg_9", "Hel"),
        delta("output_text", 3, "other", "lo"),
        completed(json!([])),
    ]);
    assert_eq!(answer.text(), "Hello");
    let nameless = failed(&[
        delta("function_call_arguments", 0, "fc_1", "{}"),
        completed(json!([])),
    ]);
    assert!(nameless.message().contains("without a name"), "{nameless}");
    let named = whole(&[
        delta("function_call_arguments", 0, "fc_1", "{"),
        done(0, call("fc_1", "call_1", "{}")),
        completed(json!([])),
    ]);
    assert_eq!(named.calls()[0].arguments, "{}");
}

#[test]
fn events_out_of_order_keep_each_item_together_and_parts_in_the_order_of_speech() {
    let events = [
        added(0, json!({ "type": "message", "id": "a" })),
        added(1, json!({ "type": "message", "id": "b" })),
        delta("output_text", 1, "b", "sec"),
        delta("output_text", 0, "a", "fir"),
        delta("output_text", 1, "b", "ond"),
        done(1, message("b", "second")),
        delta("output_text", 1, "b", " too late"),
        done(0, message("a", "first")),
        completed(json!([message("a", "first"), message("b", "second")])),
    ];
    let (_, said) = grow(&events).expect("it is well formed");
    let parts: Vec<_> = said.iter().map(|piece| piece.part).collect();
    assert_eq!(parts, [0, 1, 0, 1]);
    assert_eq!(whole(&events).text(), "second\n\nfirst");
}

#[test]
fn an_item_that_is_told_twice_is_one_and_two_items_with_one_id_are_two() {
    let once = whole(&[
        added(0, call("fc_1", "call_1", "")),
        added(0, call("fc_1", "call_1", "")),
        done(0, call("fc_1", "call_1", "{}")),
        done(0, call("fc_1", "call_1", "{}")),
        completed(json!([call("fc_1", "call_1", "{}")])),
    ]);
    assert_eq!(once.calls().len(), 1);
    let twice = whole(&[
        added(0, call("fc_1", "call_1", "")),
        added(1, call("fc_1", "call_1", "")),
        done(0, call("fc_1", "call_1", r#"{"a":1}"#)),
        done(1, call("fc_1", "call_1", r#"{"b":2}"#)),
        completed(json!([])),
    ]);
    let arguments: Vec<_> = twice
        .calls()
        .into_iter()
        .map(|call| call.arguments)
        .collect();
    assert_eq!(arguments, [r#"{"a":1}"#, r#"{"b":2}"#]);
    let other_ids = whole(&[
        added(0, json!({ "type": "message", "id": "x1" })),
        delta("output_text", 0, "x2", "Hello"),
        done(0, message("x3", "Hello")),
        completed(json!([message("x4", "Hello")])),
    ]);
    assert_eq!(other_ids.text(), "Hello", "a proxy changes the ids");
}

#[test]
fn an_item_that_comes_whole_is_said_whole_and_one_in_pieces_not_twice() {
    let events = [
        added(0, json!({ "type": "message", "id": "a" })),
        delta("output_text", 0, "a", "Hel"),
        done(0, message("a", "Hello")),
        completed(json!([message("a", "Hello"), message("b", "more")])),
    ];
    let (_, said) = grow(&events).expect("it is well formed");
    let heard: Vec<_> = said.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(heard, ["Hel", "lo", "more"]);
    assert_eq!(whole(&events).text(), "Hello\n\nmore");
}

#[test]
fn a_refusal_is_the_models_own_words_and_thoughts_in_two_fields_are_said_once() {
    let refused = json!({ "type": "message", "id": "a",
        "content": [{ "type": "refusal", "refusal": "I cannot." }] });
    let answer = whole(&[
        delta("reasoning_text", 0, "rs_1", "raw"),
        delta("reasoning_summary_text", 0, "rs_1", "short"),
        delta("refusal", 1, "a", "I can"),
        done(1, refused),
        completed(json!([])),
    ]);
    assert_eq!(
        (answer.reasoning().as_str(), answer.text().as_str()),
        ("raw", "I cannot.")
    );
}

#[test]
fn items_of_the_vendors_own_are_kept_unchanged_and_null_fields_of_ours_are_not() {
    let search = json!({ "type": "tool_search_call", "id": "ts_1", "call_id": null,
        "arguments": { "query": "x" } });
    let mut thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "g" });
    let bare = thought.clone();
    thought["content"] = Value::Null;
    let answer = whole(&[
        done(0, search.clone()),
        done(1, thought),
        done(2, message("", "Hello")),
        completed(json!([])),
    ]);
    let opaque: Vec<_> = answer
        .parts
        .0
        .iter()
        .filter_map(|part| match part {
            Part::Opaque { fields } => Some(Value::Object(fields.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(opaque[..2], [search, bare]);
}

#[test]
fn what_has_not_the_form_of_an_event_is_broken() {
    for event in [
        json!([]),
        json!("x"),
        json!({}),
        json!({ "choices": [] }),
        json!({ "type": "response.output_item.done", "item": 7 }),
        json!({ "type": "response.output_item.added" }),
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": {} }),
        json!({ "type": "response.completed" }),
        json!({ "type": "response.completed", "response": { "output": ["x"] } }),
        done(0, json!({ "type": "message", "content": "x" })),
    ] {
        let error = failed(std::slice::from_ref(&event));
        assert!(matches!(error, ModelError::Broken(_)), "{event}: {error}");
    }
    let unknown = json!({ "type": "response.novel.delta", "delta": {} });
    let answer = whole(&[unknown, completed(json!([message("a", "x")]))]);
    assert_eq!(answer.text(), "x");
}

#[test]
fn an_answer_that_outgrows_its_bounds_is_refused_however_it_comes() {
    let mebibyte = "x".repeat(1024 * 1024);
    let ten = "x".repeat(10 * 1024 * 1024);
    let deltas = vec![delta("function_call_arguments", 0, "fc_1", &mebibyte); 10];
    let thoughts = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": ten });
    let arguments = json!({ "type": "response.function_call_arguments.done", "output_index": 0,
        "arguments": ten });
    for events in [
        deltas,
        vec![delta("output_text", 0, "a", &mebibyte); 10],
        vec![done(0, call("fc_1", "call_1", &ten))],
        vec![done(0, message("a", &ten))],
        vec![done(0, thoughts)],
        vec![arguments],
    ] {
        let error = failed(&events);
        assert!(matches!(error, ModelError::Refused(_)), "{error}");
    }
    let calls: Vec<_> = (0..200)
        .map(|index| added(index, call("", &format!("call_{index}"), "")))
        .collect();
    assert!(failed(&calls).message().contains("tools at once"));
    let items: Vec<_> = (0..2000)
        .map(|index| added(index, json!({ "type": "novel" })))
        .collect();
    assert!(failed(&items).message().contains("too many items"));
}
