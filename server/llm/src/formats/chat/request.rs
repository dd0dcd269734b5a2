//! A conversation in the words of the Chat Completions API.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared_types::event::{Parts, ToolCall};

use super::{
    super::conversation::{ENDED_HERE, Ids, arguments_text, tool_name},
    own::Own,
};
use crate::{Message, ModelRequest, ToolSpec};

/// The optional parts of a request, which some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// True to ask for the usage, with `stream_options`.
    pub(super) usage: bool,
    /// The vendor's own parts of earlier answers.
    pub(super) own: OwnParts,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            usage: true,
            own: OwnParts::AsTheyCame,
        }
    }
}

/// The treatment of the vendor's own parts of earlier answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnParts {
    /// Unchanged.
    AsTheyCame,
    /// Not at all.
    LeftOut,
    /// Unchanged, and answers without `reasoning_content` get an empty one.
    WithReasoning,
    /// Unchanged, and calls without a signature of Google's get the one that is not checked.
    WithSignatures,
}

/// The signature that Google documents for calls of another model.
const UNCHECKED_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Value>,
}

/// The body of the request. `tool_choice` is absent, so that the model decides, and an empty
/// list of tools is left out, because servers refuse it.
pub(super) fn body<'a>(model: &'a str, request: &ModelRequest, shape: Shape) -> Body<'a> {
    let system = (!request.system.is_empty())
        .then(|| json!({ "role": "system", "content": request.system }));
    let mut messages: Vec<Value> = system.into_iter().collect();
    let mut ids = Ids::default();
    for next in &request.messages {
        match (next, messages.last_mut()) {
            // Some servers refuse two in a row, and a user's right behind a result: of a turn that was
            // stopped or failed.
            (Message::User { parts }, Some(last)) if last["role"] == "user" => {
                let before = last["content"].as_str().unwrap_or_default();
                last["content"] = format!("{before}\n\n{}", parts.words()).into();
            }
            (Message::User { .. }, Some(last)) if last["role"] == "tool" => {
                let ended = assistant(&Parts::text(ENDED_HERE), shape.own, &mut ids);
                messages.extend([ended, message(next, shape.own, &mut ids)]);
            }
            _ => messages.push(message(next, shape.own, &mut ids)),
        }
    }
    Body {
        model,
        stream: true,
        stream_options: shape.usage.then(|| json!({ "include_usage": true })),
        tools: request.tools.iter().map(tool).collect(),
        messages,
    }
}

fn message(message: &Message, own: OwnParts, ids: &mut Ids) -> Value {
    match message {
        Message::User { parts } => json!({ "role": "user", "content": parts.words() }),
        Message::Assistant { parts } => assistant(parts, own, ids),
        Message::ToolResult {
            vendor_id, parts, ..
        } => {
            let id = ids.of_result(vendor_id);
            json!({ "role": "tool", "tool_call_id": id, "content": parts.words() })
        }
    }
}

fn assistant(parts: &Parts, own: OwnParts, ids: &mut Ids) -> Value {
    let Own {
        before_text,
        fields,
    } = Own::of(parts);
    let mut message = match own {
        OwnParts::LeftOut => Map::new(),
        _ => fields,
    };
    if own == OwnParts::WithReasoning {
        let field = message.entry("reasoning_content");
        field.or_insert_with(|| "".into());
    }
    let text = format!("{before_text}{}", parts.words());
    let mut calls: Vec<_> = parts
        .calls()
        .map(|call| sent_call(call, own, ids))
        .collect();
    let content = (calls.is_empty() || !text.is_empty()).then_some(text);
    let content = match message.remove("content") {
        // Thoughts that stood beside the text, as Mistral sends them.
        Some(Value::Array(thoughts)) => {
            let text = content.map(|text| json!({ "type": "text", "text": text }));
            thoughts.into_iter().chain(text).collect()
        }
        _ => content.into(),
    };
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content);
    if !calls.is_empty() {
        if own == OwnParts::WithSignatures && !calls.iter().any(is_signed) {
            // Of calls that were made at the same time, the first one bears the signature.
            calls[0]["extra_content"] =
                json!({ "google": { "thought_signature": UNCHECKED_SIGNATURE } });
        }
        message.insert("tool_calls".to_owned(), calls.into());
    }
    message.into()
}

fn sent_call(call: &ToolCall, own: OwnParts, ids: &mut Ids) -> Value {
    let mut fields = match own {
        OwnParts::LeftOut => Map::new(),
        _ => call.opaque.clone(),
    };
    let mut function = match fields.remove("function") {
        Some(Value::Object(function)) => function,
        _ => Map::new(),
    };
    function.insert("name".to_owned(), tool_name(&call.name).into());
    function.insert(
        "arguments".to_owned(),
        arguments_text(&call.arguments).into(),
    );
    fields.insert("id".to_owned(), ids.of_call(&call.vendor_id).into());
    fields.insert("type".to_owned(), "function".into());
    fields.insert("function".to_owned(), function.into());
    fields.into()
}

fn is_signed(call: &Value) -> bool {
    !call["extra_content"]["google"]["thought_signature"].is_null()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

#[cfg(test)]
mod tests;
