//! OpenAI's Responses, as bytes, and the rules of its requests.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    Said,
    pieces::{call_id, list, named_event, seal, spoken},
};

/// A whole answer to request `number`: thoughts, text and calls as items, each told as it grows, then all of it.
pub(super) fn answer(number: usize, said: &Said) -> Vec<u8> {
    let mut stream = Stream::default();
    let mut response = response(number, "in_progress");
    stream.tell(json!({ "type": "response.created", "response": response }));
    if !said.thoughts.is_empty() {
        stream.think(&format!("rs_{number}"), &said.thoughts);
    }
    if !said.text.is_empty() {
        stream.say(&format!("msg_{number}"), &said.text);
    }
    for (place, (name, arguments)) in said.calls.iter().enumerate() {
        let id = format!("fc_{number}_{place}");
        stream.call(&id, &call_id(number, place), name, arguments);
    }
    let usage = said.usage;
    response["status"] = "completed".into();
    response["output"] = stream.items.clone().into();
    response["usage"] = json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.thoughts },
        "total_tokens": usage.input + usage.output,
    });
    stream.tell(json!({ "type": "response.completed", "response": response }));
    stream.events.concat()
}

fn response(number: usize, status: &str) -> Value {
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 0, "status": status,
        "model": "test-model", "output": [], "error": null, "incomplete_details": null,
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": null,
    })
}

/// The events of an answer that grows.
#[derive(Debug, Default)]
struct Stream {
    events: Vec<Bytes>,
    /// The items that are whole.
    items: Vec<Value>,
}

impl Stream {
    fn tell(&mut self, mut event: Value) {
        event["sequence_number"] = self.events.len().into();
        self.events.push(named_event(&event));
    }

    /// Tells an event of the item that grows.
    fn tell_of(&mut self, id: &str, mut event: Value) {
        event["item_id"] = id.into();
        event["output_index"] = self.items.len().into();
        self.tell(event);
    }

    fn add(&mut self, item: Value) {
        let index = self.items.len();
        self.tell(
            json!({ "type": "response.output_item.added", "output_index": index, "item": item }),
        );
    }

    fn done(&mut self, item: Value) {
        let index = self.items.len();
        self.tell(
            json!({ "type": "response.output_item.done", "output_index": index, "item": item }),
        );
        self.items.push(item);
    }

    fn think(&mut self, id: &str, thoughts: &str) {
        self.add(json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": "not whole" }));
        let kind = |of: &str| format!("response.reasoning_summary_{of}");
        let part = |text: &str| json!({ "type": "summary_text", "text": text });
        self.tell_of(
            id,
            json!({ "type": kind("part.added"), "summary_index": 0, "part": part("") }),
        );
        for more in spoken(thoughts) {
            self.tell_of(
                id,
                json!({ "type": kind("text.delta"), "summary_index": 0, "delta": more }),
            );
        }
        self.tell_of(
            id,
            json!({ "type": kind("text.done"), "summary_index": 0, "text": thoughts }),
        );
        self.tell_of(
            id,
            json!({ "type": kind("part.done"), "summary_index": 0, "part": part(thoughts) }),
        );
        let mut item = json!({ "type": "reasoning", "id": id, "summary": [part(thoughts)] });
        item["encrypted_content"] = sealed(&item).into();
        self.done(item);
    }

    fn say(&mut self, id: &str, text: &str) {
        let item = |status: &str, content: Value| json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": content });
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
        self.add(item("in_progress", json!([])));
        self.tell_of(
            id,
            json!({ "type": "response.content_part.added", "content_index": 0, "part": part("") }),
        );
        for more in spoken(text) {
            self.tell_of(id, json!({ "type": "response.output_text.delta", "content_index": 0, "delta": more, "logprobs": [] }));
        }
        self.tell_of(id, json!({ "type": "response.output_text.done", "content_index": 0, "text": text, "logprobs": [] }));
        self.tell_of(
            id,
            json!({ "type": "response.content_part.done", "content_index": 0, "part": part(text) }),
        );
        self.done(item("completed", json!([part(text)])));
    }

    fn call(&mut self, id: &str, call_id: &str, name: &str, arguments: &str) {
        let item = |status: &str, arguments: &str| json!({ "type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments, "status": status });
        let kind = |of: &str| format!("response.function_call_arguments.{of}");
        self.add(item("in_progress", ""));
        for more in spoken(arguments) {
            self.tell_of(id, json!({ "type": kind("delta"), "delta": more }));
        }
        self.tell_of(
            id,
            json!({ "type": kind("done"), "name": name, "arguments": arguments }),
        );
        self.done(item("completed", arguments));
    }
}

/// Encrypted thoughts, as far as a test can tell: they depend on the id and the summary.
fn sealed(item: &Value) -> String {
    seal(&json!([item["id"], item["summary"]]))
}

/// Holds a request to the rules: thoughts come back unchanged and with the item that they led to, and each call has
/// an output.
///
/// # Errors
/// Fails with the vendor's words about the first rule that is broken.
pub(super) fn check(request: &Value) -> Result<(), String> {
    let items = list(request, "input");
    let ids = |kind: &str| -> BTreeSet<&str> {
        let items = items.iter().filter(|item| item["type"] == kind);
        items.filter_map(|item| item["call_id"].as_str()).collect()
    };
    let (calls, outputs) = (ids("function_call"), ids("function_call_output"));
    if let Some(id) = calls.difference(&outputs).next() {
        return Err(format!("No tool output found for function call {id}."));
    }
    if let Some(id) = outputs.difference(&calls).next() {
        return Err(format!(
            "No tool call found for function call output with call_id {id}."
        ));
    }
    for (place, item) in items.iter().enumerate() {
        if item["type"] != "reasoning" {
            continue;
        }
        let id = item["id"].as_str().unwrap_or_default();
        if item["encrypted_content"] != sealed(item) {
            return Err(format!(
                "The encrypted content for item {id} could not be verified."
            ));
        }
        let next = items.get(place + 1).unwrap_or(&Value::Null);
        let is_led_to = next["type"] == "function_call"
            || next["type"] == "reasoning"
            || next["role"] == "assistant";
        if !is_led_to {
            return Err(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ));
        }
    }
    Ok(())
}
