//! Events of earlier versions, brought into the present form as they are read.
//!
//! Version 1 of `input.accepted`, `answer.recorded` and `call.ended` had one text, with thoughts, calls and the
//! vendor's fields beside it. Now they have an ordered list of parts.

use serde_json::{Map, Value, json};

/// Brings the fields of an event of this version into the present form.
pub(super) fn brought_up(kind: &str, version: u64, fields: &mut Map<String, Value>) {
    if version > 1 {
        return;
    }
    let parts = match kind {
        "input.accepted" | "call.ended" => text(fields),
        "answer.recorded" => answer(fields),
        _ => return,
    };
    fields.insert("parts".to_owned(), parts.into());
}

/// The text of a message or of a result.
fn text(fields: &mut Map<String, Value>) -> Vec<Value> {
    let text = fields.remove("text").unwrap_or_default();
    let text = (text != "").then(|| json!({ "type": "text", "text": text }));
    text.into_iter().collect()
}

/// An answer: thoughts, what the vendor wants back before the text, text, calls, and last the vendor's fields.
fn answer(fields: &mut Map<String, Value>) -> Vec<Value> {
    let thoughts = fields.remove("reasoning");
    let thoughts = thoughts.map(|text| json!({ "type": "reasoning", "text": text }));
    let mut parts: Vec<_> = thoughts.into_iter().collect();
    let opaque = fields.remove("opaque").unwrap_or_default();
    let own = |name: &str| {
        let own = opaque.get(name)?;
        Some(json!({ "type": "opaque", "fields": { name: own } }))
    };
    parts.extend(own("before_text"));
    parts.extend(text(fields));
    if let Some(Value::Array(calls)) = fields.remove("calls") {
        parts.extend(calls.into_iter().map(|mut call| {
            if let Value::Object(call) = &mut call {
                call.insert("type".to_owned(), "tool_call".into());
            }
            call
        }));
    }
    parts.extend(own("fields"));
    parts
}
