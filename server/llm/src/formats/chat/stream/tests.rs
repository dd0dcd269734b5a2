use serde_json::json;

use super::{
    super::{
        own::Own,
        request::{ChatShape, OwnParts, body},
    },
    *,
};
use crate::{Message, ModelRequest, formats::MAX_CALLS};

fn end(announced: bool) -> AnswerEnd {
    AnswerEnd {
        announced,
        torn: false,
    }
}

fn grow(pieces: &[Value]) -> Result<ChatBuilder, ModelError> {
    let mut growing = ChatBuilder::default();
    for piece in pieces {
        let piece = Chunk::of(piece.clone()).expect("it has the form of a piece");
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
        .and_then(|growing| growing.conclude(end(true)))
        .expect("the answer is whole")
        .0
}

/// (id, name, arguments) of each call.
fn asked(pieces: &[Value]) -> Vec<(String, String, String)> {
    whole(pieces)
        .calls()
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
    assert_eq!(answer.text(), "Hello");
    assert_eq!(answer.finish, Finish::Complete);
    assert_eq!(
        answer.usage,
        Usage {
            input: 12,
            cached: 8,
            output: 3,
            ..Usage::default()
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
            call("call00000", "List", "{}"),
            call("call00001", "Read", "{\"path\":\"x\"}")
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
    assert_eq!(answer.calls()[0].arguments, "{\"pa");
    assert_eq!(answer.finish, Finish::Length);
}

#[test]
fn without_an_announced_end_there_is_no_answer() {
    let cut = grow(&[delta(json!({ "content": "Hel" }))]).expect("it is well formed");
    assert!(matches!(
        cut.conclude(end(false)),
        Err(ModelError::Broken(_))
    ));
    let empty = grow(&[]).expect("nothing is well formed");
    assert!(matches!(
        empty.conclude(end(true)),
        Err(ModelError::Broken(_))
    ));
}

#[test]
fn either_kind_of_end_suffices() {
    let text = delta(json!({ "content": "x" }));
    let marked = grow(std::slice::from_ref(&text)).expect("it is well formed");
    assert_eq!(marked.conclude(end(true)).expect("it ended").0.text(), "x");
    let reasoned = grow(&[text, ended("stop")]).expect("it is well formed");
    assert_eq!(
        reasoned.conclude(end(false)).expect("it ended").0.text(),
        "x"
    );
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
    assert!(matches!(
        growing.conclude(end(true)),
        Err(ModelError::Broken(_))
    ));
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
fn a_call_that_is_sent_whole_once_more_under_its_id_is_one() {
    let piece = |id: &str, arguments: &str| {
        calls(
            json!([{ "index": 0, "id": id, "function": { "name": "Shell", "arguments": arguments } }]),
        )
    };
    let twice = |id: &str, first: &str, second: &str| {
        asked(&[piece(id, first), piece(id, second), ended("tool_calls")]).len()
    };
    assert_eq!(twice("a", "{\"command\":\"x\"}", "{\"command\":\"x\"}"), 1);
    assert_eq!(twice("a", "{\"command\":\"x\"}", "{\"command\":\"y\"}"), 2);
    assert_eq!(twice("", "{\"command\":\"x\"}", "{\"command\":\"x\"}"), 2);
}

#[test]
fn long_thoughts_in_many_small_pieces_weigh_what_they_grow_into() {
    let detail =
        json!({ "type": "reasoning.text", "index": 0, "format": "unknown", "text": "word" });
    let thought = delta(json!({ "reasoning": "word", "reasoning_details": [detail] }));
    let mut pieces = vec![thought; 100_000];
    pieces.extend([delta(json!({ "content": "done" })), ended("stop")]);
    assert_eq!(whole(&pieces).text(), "done");
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
    assert_eq!(answer.text(), "two");
    assert_eq!(answer.calls().len(), 2);
    assert_eq!(answer.usage.output, 2);
}

#[test]
fn each_new_name_or_id_begins_a_call_where_the_index_is_of_no_use() {
    let named = |index: Value, id: &str, name: &str, arguments: &str| {
        calls(json!([{ "index": index, "id": id,
            "function": { "name": name, "arguments": arguments } }]))
    };
    let more = |index: Value, arguments: &str| {
        calls(json!([{ "index": index, "function": { "arguments": arguments } }]))
    };
    for index in [json!(0), json!("0"), Value::Null] {
        for id in ["", "same"] {
            let pieces = [
                named(index.clone(), id, "Read", ""),
                more(index.clone(), "{\"path\":"),
                more(index.clone(), "\"x\"}"),
                named(index.clone(), id, "List", "{}"),
                named(index.clone(), id, "List", ""),
                more(index.clone(), "{\"path\":\"y\"}"),
                ended("tool_calls"),
            ];
            let names: Vec<_> = asked(&pieces)
                .into_iter()
                .map(|(_, name, arguments)| (name, arguments))
                .collect();
            let expected = [
                ("Read", "{\"path\":\"x\"}"),
                ("List", "{}"),
                ("List", "{\"path\":\"y\"}"),
            ];
            assert_eq!(
                names,
                expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned())),
                "index {index}, id {id:?}"
            );
        }
    }
}

#[test]
fn a_whole_call_that_is_named_once_more_is_not_asked_for_twice() {
    let named = json!([{ "index": 0, "id": "a", "function": { "name": "List", "arguments": "" } }]);
    let pieces = [
        calls(named.clone()),
        calls(json!([{ "index": 0, "function": { "arguments": "{}" } }])),
        calls(named),
        ended("tool_calls"),
    ];
    assert_eq!(asked(&pieces), [call("a", "List", "{}")]);
}

#[test]
fn the_function_call_of_old_servers_is_a_call() {
    let piece = |function: Value| delta(json!({ "function_call": function }));
    let pieces = [
        piece(json!({ "name": "List", "arguments": "" })),
        piece(json!({ "arguments": "{}" })),
        ended("function_call"),
    ];
    assert_eq!(asked(&pieces), [call("call00000", "List", "{}")]);
}

#[test]
fn an_index_as_text_is_an_index() {
    let pieces = [
        calls(
            json!([{ "index": "0", "id": "a", "function": { "name": "List", "arguments": "{" } }]),
        ),
        calls(
            json!([{ "index": "1", "id": "b", "function": { "name": "List", "arguments": "{" } }]),
        ),
        calls(json!([{ "index": "0", "function": { "arguments": "}" } }])),
        calls(json!([{ "index": "1", "function": { "arguments": "}" } }])),
        json!({ "choices": [{ "index": "0", "delta": {}, "finish_reason": "stop" }] }),
    ];
    assert_eq!(
        asked(&pieces),
        [call("a", "List", "{}"), call("b", "List", "{}")]
    );
}

#[test]
fn a_message_beside_a_delta_says_nothing_twice() {
    let both = |delta: Value, message: Value| json!({ "choices": [{ "delta": delta, "message": message }] });
    let hello = json!({ "content": "Hello" });
    let streamed = whole(&[
        both(json!({ "content": "Hel" }), json!({ "content": "Hel" })),
        both(json!({ "content": "lo" }), hello.clone()),
        both(json!({}), hello.clone()),
        ended("stop"),
    ]);
    assert_eq!(streamed.text(), "Hello");
    let document = whole(&[both(json!({}), hello), ended("stop")]);
    assert_eq!(document.text(), "Hello");
}

#[test]
fn usage_that_is_damaged_does_not_spoil_the_answer() {
    let usage = json!({ "prompt_tokens": 12.4, "completion_tokens": -3,
        "prompt_tokens_details": { "cached_tokens": "8" } });
    for (usage, expected) in [(usage, (12, 8, 0)), (json!("free"), (0, 0, 0))] {
        let answer = whole(&[
            delta(json!({ "content": "x" })),
            ended("stop"),
            json!({ "choices": [], "usage": usage }),
        ]);
        let Usage {
            input,
            cached,
            output,
            ..
        } = answer.usage;
        assert_eq!((input, cached, output), expected);
    }
}

#[test]
fn the_vendors_own_parts_are_kept_with_the_message_and_with_each_call() {
    let answer = whole(&[
        delta(json!({ "role": "assistant", "content": null, "reasoning_content": "" })),
        delta(json!({ "content": null, "reasoning_content": "I should " })),
        delta(json!({ "reasoning_content": "look." })),
        calls(json!([{ "index": 0, "id": "a", "type": "function",
            "extra_content": { "google": { "thought_signature": "S" } },
            "function": { "name": "List", "arguments": "" } }])),
        calls(json!([{ "index": 0, "function": { "arguments": "{}" } }])),
        ended("tool_calls"),
    ]);
    assert_eq!(answer.reasoning(), "I should look.");
    let fields = Value::Object(Own::of(&answer.parts).fields);
    assert_eq!(fields, json!({ "reasoning_content": "I should look." }));
    let signed = Value::Object(answer.calls()[0].opaque.clone());
    assert_eq!(
        signed,
        json!({ "extra_content": { "google": { "thought_signature": "S" } } })
    );
}

#[test]
fn thoughts_that_stand_in_two_places_are_shown_once() {
    let details = |text: &str| json!([{ "type": "reasoning.text", "index": 0, "text": text }]);
    let answer = whole(&[
        delta(json!({ "reasoning": "hm, ", "reasoning_details": details("hm, ") })),
        delta(json!({ "reasoning": "so", "reasoning_details": details("so") })),
        delta(json!({ "reasoning_details": details("") })),
        delta(json!({ "content": "hi" })),
        ended("stop"),
    ]);
    assert_eq!(answer.reasoning(), "hm, so");
    assert_eq!(
        Value::Object(Own::of(&answer.parts).fields),
        json!({ "reasoning": "hm, so", "reasoning_details": details("hm, so") })
    );
}

#[test]
fn the_parts_of_a_whole_message_are_kept_as_they_are() {
    let details = json!([
        { "type": "reasoning.text", "index": 0, "text": "a" },
        { "type": "reasoning.text", "index": 0, "text": "b" },
    ]);
    let answer = whole(
        &[json!({ "choices": [{ "finish_reason": "stop", "message": {
        "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] },
            { "type": "text", "text": "hi" },
        ],
        "refusal": null, "reasoning_details": details,
    } }] })],
    );
    assert_eq!(
        (answer.text().as_str(), answer.reasoning().as_str()),
        ("hi", "hm")
    );
    assert_eq!(
        Value::Object(Own::of(&answer.parts).fields),
        json!({
            "reasoning_details": details,
            "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }],
        })
    );
}

#[test]
fn thoughts_between_tags_are_no_text_and_are_kept_as_they_stood() {
    let answer = whole(&[
        delta(json!({ "content": "<thi" })),
        delta(json!({ "content": "nk>hm, " })),
        delta(json!({ "content": "so</th" })),
        delta(json!({ "content": "ink>\n\nhi" })),
        ended("stop"),
    ]);
    assert_eq!(
        (answer.text().as_str(), answer.reasoning().as_str()),
        ("hi", "hm, so")
    );
    assert_eq!(
        Own::of(&answer.parts).before_text,
        "<think>hm, so</think>\n\n"
    );
}

/// The kinds of the parts of an answer, in their order.
fn kinds(answer: &Answer) -> Vec<&'static str> {
    let kind = |part: &event::Part| match part {
        event::Part::Text { .. } => "text",
        event::Part::Reasoning { .. } => "reasoning",
        event::Part::Image { .. } => "image",
        event::Part::ToolCall(_) => "call",
        event::Part::Opaque { .. } => "opaque",
    };
    answer.parts.0.iter().map(kind).collect()
}

/// The places of thoughts and text, after each of these pieces.
fn places(pieces: &[Value]) -> Vec<(Option<u32>, Option<u32>)> {
    let mut growing = ChatBuilder::default();
    let place = |piece: &Value| {
        let piece = Chunk::of(piece.clone()).expect("it has the form of a piece");
        let said = growing.absorb(piece).expect("it is well formed");
        (said.places.reasoning, said.places.text)
    };
    pieces.iter().map(place).collect()
}

#[test]
fn what_is_said_is_counted_in_the_order_in_which_it_began() {
    let thought = delta(json!({ "reasoning_content": "hm" }));
    let text = delta(json!({ "content": "hi" }));
    let thoughts_first = [thought.clone(), text.clone(), ended("stop")];
    assert_eq!(
        places(&thoughts_first),
        [(Some(0), None), (Some(0), Some(1)), (Some(0), Some(1))]
    );
    assert_eq!(
        kinds(&whole(&thoughts_first)),
        ["reasoning", "text", "opaque"]
    );
    let text_first = [text.clone(), thought, ended("stop")];
    assert_eq!(
        places(&text_first),
        [(None, Some(0)), (Some(1), Some(0)), (Some(1), Some(0))]
    );
    assert_eq!(kinds(&whole(&text_first)), ["text", "reasoning", "opaque"]);
    let alone = [text, ended("stop")];
    assert_eq!(places(&alone), [(None, Some(0)), (None, Some(0))]);
    assert_eq!(kinds(&whole(&alone)), ["text"]);
    let tagged = [
        delta(json!({ "content": "<think>hm</think>hi" })),
        ended("stop"),
    ];
    assert_eq!(
        places(&tagged),
        [(Some(0), Some(1)), (Some(0), Some(1))],
        "both begin in one piece"
    );
    assert_eq!(kinds(&whole(&tagged)), ["reasoning", "opaque", "text"]);
    let without_text = [
        delta(json!({ "content": "<think>hm</think>" })),
        calls(
            json!([{ "index": 0, "id": "c", "function": { "name": "List", "arguments": "{}" } }]),
        ),
        ended("tool_calls"),
    ];
    assert_eq!(
        kinds(&whole(&without_text)),
        ["reasoning", "opaque", "call"]
    );
}

#[test]
fn a_whole_answer_comes_back_in_order_and_goes_out_unchanged() {
    let signature = json!({ "google": { "thought_signature": "S" } });
    let call = |index: u32, id: &str, more: Value| {
        let mut call = json!({
            "index": index, "id": id, "type": "function",
            "function": { "name": "List", "arguments": format!("{{\"path\": \"{id}\"}}") },
        });
        let more = more.as_object().expect("an object").clone();
        call.as_object_mut().expect("an object").extend(more);
        calls(json!([call]))
    };
    let answer = whole(&[
        delta(json!({ "reasoning_content": "I should " })),
        delta(json!({ "reasoning_content": "look." })),
        delta(json!({ "content": "I look." })),
        call(0, "c1", json!({ "extra_content": signature })),
        call(1, "c2", json!({})),
        ended("tool_calls"),
    ]);
    let asked = |id: &str, opaque: Value| {
        json!({
            "type": "tool_call", "vendor_id": id, "name": "List",
            "arguments": format!("{{\"path\": \"{id}\"}}"), "opaque": opaque,
        })
    };
    let mut second = asked("c2", json!({}));
    second.as_object_mut().expect("an object").remove("opaque");
    let recorded = serde_json::to_value(&answer.parts).expect("JSON");
    assert_eq!(
        recorded,
        json!([
            { "type": "reasoning", "text": "I should look." },
            { "type": "text", "text": "I look." },
            asked("c1", json!({ "extra_content": signature })),
            second,
            { "type": "opaque", "fields": { "fields": { "reasoning_content": "I should look." } } },
        ])
    );

    let parts: Parts = serde_json::from_value(recorded).expect("it reads");
    assert_eq!(parts, answer.parts, "the log gives back the same parts");
    let request = ModelRequest {
        system: String::new(),
        messages: vec![Message::Assistant { parts }],
        tools: Vec::new(),
        images: crate::Images::new(),
        trace: None,
    };
    let shape = ChatShape {
        usage: true,
        own: OwnParts::AsTheyCame,
    };
    let sent =
        serde_json::to_value(body(&crate::Profile::default(), &request, shape)).expect("JSON");
    let called = |id: &str| {
        let arguments = format!("{{\"path\": \"{id}\"}}");
        json!({
            "id": id, "type": "function",
            "function": { "name": "List", "arguments": arguments },
        })
    };
    let mut signed = called("c1");
    signed["extra_content"] = signature;
    assert_eq!(
        sent["messages"],
        json!([{
            "role": "assistant", "content": "I look.", "reasoning_content": "I should look.",
            "tool_calls": [signed, called("c2")],
        }])
    );
}

#[test]
fn endless_thoughts_are_refused() {
    let thought = delta(json!({ "reasoning_content": "x".repeat(1024 * 1024) }));
    assert!(matches!(
        grow(&vec![thought; 9]),
        Err(ModelError::Refused(_))
    ));
    let tagged = delta(json!({ "content": format!("<think>{}", "x".repeat(1024 * 1024)) }));
    assert!(matches!(
        grow(&vec![tagged; 9]),
        Err(ModelError::Refused(_))
    ));
}

#[test]
fn an_answer_that_broke_off_is_none() {
    let text = delta(json!({ "content": "half of it" }));
    for reason in ["error", "abort", "insufficient_system_resource"] {
        let error = grow(&[text.clone(), ended(reason)]).expect_err("it broke off");
        assert!(error.is_passing(), "{reason}: {error}");
    }
}
