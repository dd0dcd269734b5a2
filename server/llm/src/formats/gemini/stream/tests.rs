use serde_json::json;

use super::{
    super::request::{GeminiShape, body},
    *,
};
use crate::{Images, Message, ModelRequest, Profile, formats::AnswerBuilder as _};

fn end() -> AnswerEnd {
    AnswerEnd {
        announced: false,
        torn: false,
    }
}

fn grow(chunks: &[Value]) -> Result<(GeminiBuilder, Vec<Piece>), ModelError> {
    let mut growing = GeminiBuilder::new(["Shell".to_owned()]);
    let mut said = Vec::new();
    for chunk in chunks {
        said.extend(growing.absorb(chunk.clone())?);
    }
    Ok((growing, said))
}

fn whole(chunks: &[Value]) -> Answer {
    let (growing, _) = grow(chunks).expect("it is well formed");
    growing.conclude(end()).expect("the answer is whole").0
}

fn failed(chunks: &[Value]) -> ModelError {
    match grow(chunks) {
        Err(error) => error,
        Ok((growing, _)) => growing.conclude(end()).expect_err("it is no answer"),
    }
}

fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts } }] })
}

fn ended(reason: &str) -> Value {
    json!({ "candidates": [{ "index": 0, "finishReason": reason }] })
}

fn text(text: &str) -> Value {
    chunk(json!([{ "text": text }]))
}

fn call(call: Value) -> Value {
    chunk(json!([{ "functionCall": call }]))
}

/// A whole answer but for its end: thoughts, a signed text, and two calls at the same time.
fn chunks() -> Vec<Value> {
    vec![
        chunk(json!([{ "text": "Hm, ", "thought": true }])),
        chunk(json!([{ "text": "so.", "thought": true }])),
        text("Hel"),
        text("lo"),
        chunk(json!([{ "text": "", "thoughtSignature": "S1" }])),
        text("More, "),
        chunk(json!([{ "text": "signed", "thoughtSignature": "S2" }])),
        chunk(json!([
            { "functionCall": { "id": "f1", "name": "Shell", "args": { "command": "ls" } },
                "thoughtSignature": "S3" },
            { "functionCall": { "name": "Shell", "args": { "command": "pwd" } } },
        ])),
    ]
}

#[test]
fn a_whole_answer_is_recorded_in_order_and_goes_back_unchanged() {
    let mut chunks = chunks();
    chunks.push(json!({
        "candidates": [{ "content": { "parts": [{ "text": "" }], "role": "model" },
            "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 100, "cachedContentTokenCount": 64,
            "candidatesTokenCount": 20, "thoughtsTokenCount": 12, "totalTokenCount": 132 },
        "modelVersion": "gemini-3-pro-001",
    }));
    let (growing, said) = grow(&chunks).expect("it is well formed");
    assert_eq!(growing.stage(), AnswerStage::Ended);
    let heard: Vec<_> = said
        .iter()
        .map(|piece| (piece.part, piece.text.as_str()))
        .collect();
    assert_eq!(
        heard,
        [
            (0, "Hm, "),
            (0, "so."),
            (1, "Hel"),
            (1, "lo"),
            (2, "More, "),
            (2, "signed")
        ]
    );
    let answer = whole(&chunks);
    assert_eq!(
        answer.usage,
        Usage {
            input: 100,
            cached: 64,
            cache_written: 0,
            output: 32,
            thoughts: 12,
        }
    );
    assert_eq!(answer.model, "gemini-3-pro-001");
    assert_eq!(
        serde_json::to_value(&answer.parts).expect("JSON"),
        json!([
            { "type": "reasoning", "text": "Hm, so." },
            { "type": "text", "text": "Hello" },
            { "type": "opaque", "fields": { "text": "", "thoughtSignature": "S1" } },
            { "type": "text", "text": "More, signed" },
            { "type": "opaque", "fields": { "text": "signed", "thoughtSignature": "S2" } },
            { "type": "tool_call", "vendor_id": "f1", "name": "Shell",
                "arguments": r#"{"command":"ls"}"#,
                "opaque": { "thoughtSignature": "S3", "functionCall": { "id": "f1" } } },
            { "type": "tool_call", "vendor_id": "call00001", "name": "Shell",
                "arguments": r#"{"command":"pwd"}"# },
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
        serde_json::to_value(body(&profile, &request, GeminiShape::default())).expect("JSON");
    assert_eq!(
        sent["contents"][0]["parts"],
        json!([
            { "text": "Hello" },
            { "text": "", "thoughtSignature": "S1" },
            { "text": "More, " },
            { "text": "signed", "thoughtSignature": "S2" },
            { "functionCall": { "id": "f1", "name": "Shell", "args": { "command": "ls" } },
                "thoughtSignature": "S3" },
            { "functionCall": { "name": "Shell", "args": { "command": "pwd" } } },
        ])
    );
}

#[test]
fn no_part_of_an_answer_without_its_end_is_one() {
    let chunks = chunks();
    for count in 0..=chunks.len() {
        let error = failed(&chunks[..count]);
        assert!(matches!(error, ModelError::Broken(_)), "{count}: {error}");
    }
    let unspecified = failed(&[text("x"), ended("FINISH_REASON_UNSPECIFIED")]);
    assert!(
        matches!(unspecified, ModelError::Broken(_)),
        "{unspecified}"
    );
}

#[test]
fn a_list_of_all_chunks_is_an_answer() {
    let mut chunks = chunks();
    chunks.push(ended("STOP"));
    let in_one = whole(&[json!(chunks)]);
    assert_eq!(in_one, whole(&chunks));
    assert_eq!(in_one.calls().len(), 2);
}

#[test]
fn an_empty_answer_is_broken_unless_its_length_ran_out() {
    let thought = chunk(json!([{ "text": "hm", "thought": true }]));
    for chunks in [
        vec![ended("STOP")],
        vec![text(""), ended("STOP")],
        vec![chunk(json!([])), chunk(json!([{}])), ended("STOP")],
        vec![thought.clone(), ended("STOP")],
    ] {
        let error = failed(&chunks);
        assert!(matches!(error, ModelError::Broken(_)), "{error}");
    }
    let cut = whole(&[thought, ended("MAX_TOKENS")]);
    assert_eq!(
        (cut.finish, cut.reasoning().as_str()),
        (Finish::Length, "hm")
    );
}

#[test]
fn a_message_that_is_blocked_and_an_answer_that_is_withheld_are_refused() {
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
        "usageMetadata": { "promptTokenCount": 7 } });
    for chunks in [vec![blocked], vec![text("half"), ended("SAFETY")]] {
        let error = failed(&chunks);
        assert!(error.message().contains("withheld"), "{error}");
        assert!(!error.is_passing(), "{error}");
    }
    let harmless = json!({ "promptFeedback": { "safetyRatings": [] } });
    assert_eq!(whole(&[harmless, text("x"), ended("STOP")]).text(), "x");
}

#[test]
fn a_call_in_several_chunks_is_one() {
    let answer = whole(&[
        chunk(json!([{ "thoughtSignature": "S",
            "functionCall": { "id": "f1", "name": "Shell", "willContinue": true } }])),
        call(json!({ "willContinue": true, "partialArgs": [
            { "jsonPath": "$.command", "stringValue": "ls", "willContinue": true },
        ] })),
        call(json!({ "willContinue": true, "partialArgs": [
            { "jsonPath": "$.command", "stringValue": " -l" },
        ] })),
        call(json!({})),
        call(json!({ "id": "f2", "name": "Shell", "args": {} })),
        ended("STOP"),
    ]);
    let calls: Vec<_> = answer
        .calls()
        .into_iter()
        .map(|call| (call.vendor_id, call.arguments, call.opaque.len()))
        .collect();
    assert_eq!(
        calls,
        [
            ("f1".to_owned(), r#"{"command":"ls -l"}"#.to_owned(), 2),
            ("f2".to_owned(), "{}".to_owned(), 1),
        ]
    );
    let open = call(json!({ "name": "Shell", "willContinue": true }));
    let error = failed(&[open, ended("STOP")]);
    assert!(error.message().contains("middle of a call"), "{error}");
}

#[test]
fn a_call_that_is_told_twice_is_one_and_calls_that_differ_are_two() {
    let asked = |id: &str, command: &str| {
        call(json!({ "id": id, "name": "shell", "args": { "command": command } }))
    };
    let count = |chunks: [Value; 2]| {
        let mut chunks = chunks.to_vec();
        chunks.push(ended("STOP"));
        whole(&chunks).calls().len()
    };
    assert_eq!(count([asked("f1", "ls"), asked("f1", "ls")]), 1);
    assert_eq!(count([asked("f1", "ls"), asked("f1", "pwd")]), 2);
    assert_eq!(count([asked("", "ls"), asked("", "ls")]), 2);
    let named = whole(&[asked("f1", "ls"), ended("STOP")]);
    assert_eq!(named.calls()[0].name, "Shell", "the tool that is meant");
}

#[test]
fn a_call_without_a_name_is_none() {
    for nameless in [
        json!({ "args": {} }),
        json!({ "name": "", "id": "f1" }),
        json!({ "name": null }),
    ] {
        let error = failed(&[call(nameless), ended("STOP")]);
        assert!(error.message().contains("without a name"), "{error}");
    }
}

#[test]
fn parts_of_the_vendors_own_are_kept_unchanged() {
    let code = json!({ "executableCode": { "language": "PYTHON", "code": "1" } });
    let thought = json!({ "thought": true, "text": "hm", "thoughtSignature": "S" });
    let answer = whole(&[chunk(json!([thought, code])), text("x"), ended("STOP")]);
    assert_eq!(
        serde_json::to_value(&answer.parts).expect("JSON"),
        json!([
            { "type": "reasoning", "text": "hm" },
            { "type": "opaque", "fields": thought },
            { "type": "opaque", "fields": code },
            { "type": "text", "text": "x" },
        ])
    );
}

#[test]
fn usage_grows_and_a_chunk_that_leaves_a_number_out_takes_nothing_back() {
    let usage = |usage: Value| json!({ "usageMetadata": usage });
    let answer = whole(&[
        usage(json!({ "promptTokenCount": 10, "thoughtsTokenCount": 5 })),
        text("x"),
        usage(
            json!({ "promptTokenCount": 10, "thoughtsTokenCount": 5, "candidatesTokenCount": 3 }),
        ),
        ended("STOP"),
        usage(json!({ "promptTokenCount": "10", "candidatesTokenCount": -1 })),
        usage(json!("free")),
    ]);
    let Usage {
        input,
        output,
        thoughts,
        ..
    } = answer.usage;
    assert_eq!((input, output, thoughts), (10, 8, 5));
}

#[test]
fn other_candidates_are_not_heard() {
    let other = json!({ "candidates": [
        { "index": 1, "content": { "parts": [{ "text": "other" }] }, "finishReason": "SAFETY" },
        { "content": { "parts": [{ "text": "x" }] }, "finishReason": "STOP" },
    ] });
    assert_eq!(whole(&[other]).text(), "x");
}

#[test]
fn what_has_not_the_form_of_a_chunk_is_broken() {
    for chunk in [
        json!("x"),
        json!(["x"]),
        json!({ "candidates": {} }),
        json!({ "candidates": [7] }),
        chunk(json!("x")),
        chunk(json!(["x"])),
        text("x")["candidates"][0]["content"].take(),
        chunk(json!([{ "text": 7 }])),
        chunk(json!([{ "functionCall": "x" }])),
        call(json!({ "name": "Shell", "args": [] })),
        call(json!({ "name": "Shell", "partialArgs": {} })),
        call(json!({ "name": "Shell", "partialArgs": [{ "stringValue": "x" }] })),
    ] {
        let error = failed(&[chunk.clone(), ended("STOP")]);
        assert!(matches!(error, ModelError::Broken(_)), "{chunk}: {error}");
    }
}

#[test]
fn an_answer_that_outgrows_its_bounds_is_refused_however_it_comes() {
    let mebibyte = "x".repeat(1024 * 1024);
    let ten = "x".repeat(10 * 1024 * 1024);
    let piece = json!({ "jsonPath": "$.a", "stringValue": mebibyte });
    let mut pieces = vec![call(json!({ "name": "Shell", "willContinue": true }))];
    pieces.extend(vec![
        call(
            json!({ "willContinue": true, "partialArgs": [piece] })
        );
        10
    ]);
    for chunks in [
        vec![text(&mebibyte); 10],
        vec![text(&ten)],
        vec![call(json!({ "name": "Shell", "args": { "a": ten } }))],
        vec![chunk(json!([{ "inlineData": { "data": ten } }]))],
        vec![chunk(json!([{ "text": "", "thoughtSignature": ten }]))],
        pieces,
    ] {
        let error = failed(&chunks);
        assert!(matches!(error, ModelError::Refused(_)), "{error}");
    }
    let one = json!({ "functionCall": { "name": "Shell", "args": {} } });
    let calls = chunk(json!(vec![one; 200]));
    assert!(failed(&[calls]).message().contains("tools at once"));
    let signed = json!({ "text": "", "thoughtSignature": "S" });
    let endless = chunk(json!(vec![signed; 100_000]));
    assert!(matches!(failed(&[endless]), ModelError::Refused(_)));
}
