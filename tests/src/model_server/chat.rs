//! OpenAI's Chat Completions, as bytes.

use bytes::Bytes;
use serde_json::{Value, json};
use shared_types::event::Usage;

use super::{
    Said,
    pieces::{call_id, spoken},
};

/// A whole answer to request `number`: thoughts as DeepSeek sends them, text, calls, end, usage and end mark.
pub(super) fn answer(number: usize, said: &Said) -> Vec<u8> {
    let mut events = vec![event(&delta(
        &json!({ "role": "assistant", "content": "" }),
    ))];
    let thought = |part: &str| event(&delta(&json!({ "reasoning_content": part })));
    events.extend(spoken(&said.thoughts).into_iter().map(thought));
    events.extend(
        spoken(&said.text)
            .into_iter()
            .map(|part| event(&text(part))),
    );
    for (place, (name, arguments)) in said.calls.iter().enumerate() {
        let id = call_id(number, place);
        events.push(event(&call(json!({
            "index": place,
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": "" },
        }))));
        events.extend(spoken(arguments).into_iter().map(|part| {
            event(&call(json!({
                "index": place,
                "function": { "arguments": part },
            })))
        }));
    }
    let reason = if said.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    events.extend(end(reason, said.usage));
    events.concat()
}

/// A piece of text.
pub(super) fn text(text: &str) -> Value {
    delta(&json!({ "content": text }))
}

/// The end of the answer, its usage and the end mark.
pub(super) fn end(reason: &str, usage: Usage) -> Vec<Bytes> {
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    let usage = json!({ "choices": [], "usage": {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "completion_tokens_details": { "reasoning_tokens": usage.thoughts },
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

/// A piece of the message.
pub(super) fn delta(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn call(call: Value) -> Value {
    delta(&json!({ "tool_calls": [call] }))
}
