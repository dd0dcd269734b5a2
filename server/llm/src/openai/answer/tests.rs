use serde_json::json;

use super::*;

fn grow(pieces: &[Value]) -> Result<Growing, ModelError> {
    let mut growing = Growing::default();
    for piece in pieces {
        let piece = serde_json::from_value(piece.clone()).expect("it has the form of a piece");
        growing.absorb(piece)?;
    }
    Ok(growing)
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn calls(deltas: Value) -> Value {
    delta(json!({ "content": null, "tool_calls": deltas }))
}

fn ended(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn whole(pieces: &[Value]) -> Answer {
    grow(pieces)
        .and_then(|growing| growing.conclude(true))
        .expect("the answer is whole")
}

/// (id, name, arguments) of each call.
fn asked(pieces: &[Value]) -> Vec<(String, String, String)> {
    whole(pieces)
        .calls
        .into_iter()
        .map(|call| (call.vendor_id, call.name, call.arguments))
        .collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn text_and_usage_come_together_from_their_pieces() {
    let answer = whole(&[
        delta(json!({ "role": "assistant", "content": "" })),
        delta(json!({ "content": "Hel" })),
        delta(json!({ "content": [{ "type": "text", "text": "lo" }, { "type": "thinking" }] })),
        ended("stop"),
        json!({ "choices": [], "usage": {
            "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15,
            "prompt_tokens_details": { "cached_tokens": 8 },
        } }),
    ]);
    assert_eq!(answer.text, "Hello");
    assert_eq!(answer.finish, Finish::Complete);
    assert_eq!(
        answer.usage,
        Usage {
            input: 12,
            cached: 8,
            output: 3
        }
    );
}

#[test]
fn parallel_calls_grow_by_their_index() {
    let pieces = [
        calls(json!([{ "index": 0, "id": "a", "function": { "name": "Read", "arguments": "" } }])),
        calls(json!([
            { "index": 1, "id": "b", "function": { "name": "Li", "arguments": "{" } },
            { "index": 0, "function": { "arguments": "{\"path\":" } },
        ])),
        calls(json!([
            { "index": 0, "function": { "arguments": "\"x\"}" } },
            { "index": 1, "function": { "name": "st", "arguments": "}" } },
        ])),
        ended("tool_calls"),
    ];
    assert_eq!(
        asked(&pieces),
        [
            call("a", "Read", "{\"path\":\"x\"}"),
            call("b", "List", "{}")
        ]
    );
}

#[test]
fn calls_are_told_apart_where_the_server_gives_all_of_them_the_same_index_or_none() {
    for index in [json!(0), Value::Null] {
        let pieces = [
            calls(
                json!([{ "index": index, "id": "a", "function": { "name": "List", "arguments": "{}" } }]),
            ),
            calls(
                json!([{ "index": index, "id": "b", "function": { "name": "List", "arguments": "{}" } }]),
            ),
            ended("stop"),
        ];
        assert_eq!(
            asked(&pieces),
            [call("a", "List", "{}"), call("b", "List", "{}")]
        );
    }
}

#[test]
fn a_new_id_or_the_same_name_with_each_piece_does_not_begin_another_call() {
    let pieces = [
        calls(json!([{ "index": 0, "id": "a", "function": { "name": "List", "arguments": "" } }])),
        calls(json!([{ "index": 0, "id": "b", "function": { "arguments": "{" } }])),
        calls(json!([{ "index": 0, "function": { "name": "List", "arguments": "}" } }])),
        ended("stop"),
    ];
    assert_eq!(asked(&pieces), [call("a", "List", "{}")]);
}

#[test]
fn a_call_without_an_id_gets_one() {
    let pieces = [
        calls(json!([
            { "index": 0, "function": { "name": "List", "arguments": "{}" } },
            { "index": 1, "id": "", "function": { "name": "Read", "arguments": { "path": "x" } } },
        ])),
        ended("stop"),
    ];
    assert_eq!(
        asked(&pieces),
        [
            call("call_0", "List", "{}"),
            call("call_1", "Read", "{\"path\":\"x\"}")
        ]
    );
}

#[test]
fn broken_arguments_are_kept_as_the_model_wrote_them() {
    let pieces = [
        calls(
            json!([{ "index": 0, "id": "a", "function": { "name": "List", "arguments": "{\"pa" } }]),
        ),
        ended("length"),
    ];
    let answer = whole(&pieces);
    assert_eq!(answer.calls[0].arguments, "{\"pa");
    assert_eq!(answer.finish, Finish::Length);
}

#[test]
fn without_an_announced_end_there_is_no_answer() {
    let cut = grow(&[delta(json!({ "content": "Hel" }))]).expect("it is well formed");
    assert!(matches!(cut.conclude(false), Err(ModelError::Broken(_))));
    let empty = grow(&[]).expect("nothing is well formed");
    assert!(matches!(empty.conclude(true), Err(ModelError::Broken(_))));
}

#[test]
fn either_kind_of_end_suffices() {
    let text = delta(json!({ "content": "x" }));
    let marked = grow(std::slice::from_ref(&text)).expect("it is well formed");
    assert_eq!(marked.conclude(true).expect("it ended").text, "x");
    let reasoned = grow(&[text, ended("stop")]).expect("it is well formed");
    assert_eq!(reasoned.conclude(false).expect("it ended").text, "x");
}

#[test]
fn an_empty_finish_reason_is_none() {
    let growing = grow(&[ended("")]).expect("it is well formed");
    assert!(!growing.has_ended());
}

#[test]
fn a_withheld_answer_is_refused() {
    assert!(matches!(
        grow(&[ended("content_filter")]),
        Err(ModelError::Refused(_))
    ));
}

#[test]
fn a_call_that_is_never_named_breaks_the_answer() {
    let pieces = [
        calls(json!([{ "index": 0, "id": "a", "function": { "arguments": "{}" } }])),
        ended("stop"),
    ];
    let growing = grow(&pieces).expect("it is well formed");
    assert!(matches!(growing.conclude(true), Err(ModelError::Broken(_))));
}

#[test]
fn an_answer_of_endless_text_or_calls_is_refused() {
    let text = delta(json!({ "content": "x".repeat(1024 * 1024) }));
    assert!(matches!(grow(&vec![text; 9]), Err(ModelError::Refused(_))));
    let many: Vec<_> = (0..=MAX_CALLS)
        .map(|index| calls(json!([{ "index": index, "function": { "name": "List" } }])))
        .collect();
    assert!(matches!(grow(&many), Err(ModelError::Broken(_))));
}

#[test]
fn a_whole_message_is_an_answer_too() {
    let answer = whole(&[json!({
        "object": "chat.completion",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "two", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "List", "arguments": "{}" } },
                { "id": "b", "type": "function", "function": { "name": "List", "arguments": "{}" } },
            ],
        } }],
        "usage": { "prompt_tokens": 1, "completion_tokens": 2 },
    })]);
    assert_eq!(answer.text, "two");
    assert_eq!(answer.calls.len(), 2);
    assert_eq!(answer.usage.output, 2);
}
