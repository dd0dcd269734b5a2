//! Anthropic's Messages, as bytes.

mod check;
mod signature;

use bytes::Bytes;
use serde_json::{Value, json};

pub(super) use self::check::check;
use super::{
    Said,
    pieces::{call_id, list, named_event, spoken},
};

/// A whole answer to request `number`: thoughts that are signed, text and calls, then the end and the usage.
pub(super) fn answer(number: usize, said: &Said, request: &Value) -> Vec<u8> {
    let usage = said.usage;
    let counted = json!({
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation_input_tokens": usage.cache_written,
        "output_tokens": 1,
    });
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "test-model",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": counted,
    });
    let mut events = vec![
        named_event(&json!({ "type": "message_start", "message": message })),
        named_event(&json!({ "type": "ping" })),
    ];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.extend(block(index, start, deltas));
        index += 1;
    };
    if !said.thoughts.is_empty() {
        let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let mut deltas = deltas("thinking", &said.thoughts);
        let signature = signature::of_next(request, &said.thoughts);
        deltas.push(json!({ "type": "signature_delta", "signature": signature }));
        block(start, deltas);
    }
    if !said.text.is_empty() {
        block(
            json!({ "type": "text", "text": "" }),
            deltas("text", &said.text),
        );
    }
    for (place, (name, arguments)) in said.calls.iter().enumerate() {
        let id = call_id(number, place);
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        let parts = spoken(arguments).into_iter();
        let deltas = parts.map(|part| json!({ "type": "input_json_delta", "partial_json": part }));
        block(start, deltas.collect());
    }
    let reason = match said.calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    };
    events.push(named_event(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": {
            "output_tokens": usage.output,
            "output_tokens_details": { "thinking_tokens": usage.thoughts },
        },
    })));
    events.push(named_event(&json!({ "type": "message_stop" })));
    events.concat()
}

/// The deltas of text or thoughts.
fn deltas(kind: &str, text: &str) -> Vec<Value> {
    let parts = spoken(text).into_iter();
    parts
        .map(|part| json!({ "type": format!("{kind}_delta"), kind: part }))
        .collect()
}

/// The events of a block.
fn block(index: usize, start: Value, deltas: Vec<Value>) -> Vec<Bytes> {
    let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
    let deltas = deltas.into_iter();
    let deltas = deltas
        .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    let stop = json!({ "type": "content_block_stop", "index": index });
    let events = [start].into_iter().chain(deltas).chain([stop]);
    events.map(|event| named_event(&event)).collect()
}

/// The blocks of a message or of the system prompt. Text alone stands for one block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn messages(request: &Value) -> &[Value] {
    list(request, "messages")
}
