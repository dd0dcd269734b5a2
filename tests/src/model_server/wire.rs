//! OpenAI's streaming format, as bytes.

use bytes::Bytes;
use serde_json::{Value, json};

/// The sizes of the pieces in turn: small and odd, so that characters and line ends are cut.
const PIECE_SIZES: [usize; 6] = [1, 7, 64, 3, 301, 2];

/// A whole answer to request `number`: text, calls, end, usage and end mark.
pub(super) fn answer(number: usize, said: &str, calls: &[(String, String)]) -> Vec<u8> {
    let mut events = vec![event(&delta(
        &json!({ "role": "assistant", "content": "" }),
    ))];
    events.extend(parts(said).into_iter().map(|part| event(&text(part))));
    for (place, (name, arguments)) in calls.iter().enumerate() {
        let id = format!("call_{number}_{place}");
        events.push(event(&call(json!({
            "index": place,
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": "" },
        }))));
        events.extend(parts(arguments).into_iter().map(|part| {
            event(&call(json!({
                "index": place,
                "function": { "arguments": part },
            })))
        }));
    }
    let reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    events.extend(end(reason));
    events.concat()
}

/// A piece of text.
pub(super) fn text(text: &str) -> Value {
    delta(&json!({ "content": text }))
}

/// The end of the answer, its usage and the end mark.
pub(super) fn end(reason: &str) -> Vec<Bytes> {
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    let usage = json!({ "choices": [], "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": { "cached_tokens": 4 },
    } });
    vec![event(&finish), event(&usage), "data: [DONE]\n\n".into()]
}

/// One event.
pub(super) fn event(value: &Value) -> Bytes {
    let mut value = value.clone();
    value["id"] = "chatcmpl-test".into();
    value["object"] = "chat.completion.chunk".into();
    format!("data: {value}\n\n").into()
}

/// The bytes in pieces of odd sizes.
pub(super) fn odd_pieces(bytes: &[u8]) -> Vec<Bytes> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in PIECE_SIZES.into_iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = after;
    }
    pieces
}

/// A piece of the message.
pub(super) fn delta(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn call(call: Value) -> Value {
    delta(&json!({ "tool_calls": [call] }))
}

/// The text in at most 16 pieces, as a model would speak it.
fn parts(text: &str) -> Vec<&str> {
    let size = (text.len() / 16).max(4);
    let mut rest = text;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts
}
