//! A request in which tools, calls and results are text, for servers that take no tools.

use std::{collections::VecDeque, fmt::Write as _};

use serde_json::{Map, Value, json};
use shared_types::event::{Part, Parts, ToolCall};

use crate::{Message, ModelRequest, ToolSpec};

/// The form of a call, for the model.
const FORM: &str = "\
# Tools

You call a tool by writing this, on lines of its own and in no code block or quotation:

<tool_call>
{\"name\": \"TOOL\", \"arguments\": {\"ARGUMENT\": \"VALUE\"}}
</tool_call>

It is JSON: a line break in a value is \\n. For several calls write several of these. End your answer after the last one: \
the results come in the next message, in <tool_response>. You never write <tool_response> yourself. The tools are:
";

/// The request without tools, told in text.
pub(super) fn request(request: &ModelRequest) -> ModelRequest {
    ModelRequest {
        system: system(request),
        messages: messages(&request.messages),
        tools: Vec::new(),
        images: request.images.clone(),
        trace: request.trace,
    }
}

fn system(request: &ModelRequest) -> String {
    let mut system = request.system.clone();
    if request.tools.is_empty() {
        return system;
    }
    if !system.is_empty() {
        system.push_str("\n\n");
    }
    system.push_str(FORM);
    for tool in &request.tools {
        describe(&mut system, tool);
    }
    system
}

fn describe(text: &mut String, tool: &ToolSpec) {
    let _ = writeln!(text, "\n{}: {}", tool.name, tool.description);
    let required = tool.parameters["required"].as_array();
    let none = Map::new();
    let properties = tool.parameters["properties"].as_object().unwrap_or(&none);
    for (name, schema) in properties {
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        let about = schema.remove("description");
        let kind = match schema.get("type") {
            Some(Value::String(kind)) if schema.len() == 1 => kind.clone(),
            _ => Value::Object(schema).to_string(),
        };
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
        let optional = if is_required { "" } else { ", optional" };
        let about = about.as_ref().and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(text, "- {name} ({kind}{optional}): {about}");
    }
}

fn messages(messages: &[Message]) -> Vec<Message> {
    let mut told: Vec<Message> = Vec::new();
    // The calls that have no result yet.
    let mut open: VecDeque<&ToolCall> = VecDeque::new();
    // Results that stand next to one another are one message.
    let mut is_after_result = false;
    for message in messages {
        let next = match message {
            Message::User { .. } => message.clone(),
            Message::Assistant { parts } => {
                open = parts.calls().collect();
                Message::Assistant {
                    parts: answer(parts),
                }
            }
            Message::ToolResult {
                vendor_id, parts, ..
            } => {
                let call = open.iter().position(|call| call.vendor_id == *vendor_id);
                let call = call.and_then(|place| open.remove(place));
                let result = result(call, parts);
                if let Some(Message::User { parts }) = told.last_mut().filter(|_| is_after_result) {
                    parts.0.extend(result.0);
                    continue;
                }
                Message::User { parts: result }
            }
        };
        is_after_result = matches!(message, Message::ToolResult { .. });
        told.push(next);
    }
    told
}

/// An answer with its calls in text.
fn answer(parts: &Parts) -> Parts {
    let calls = parts.calls().map(|call| {
        let arguments = serde_json::from_str::<Value>(&call.arguments);
        let arguments = arguments.unwrap_or_else(|_| call.arguments.as_str().into());
        let call = json!({ "name": call.name, "arguments": arguments });
        format!("<tool_call>\n{call}\n</tool_call>")
    });
    let calls: Vec<_> = calls.collect();
    let calls = Parts::text(calls.join("\n"));
    let others = parts.0.iter();
    let others = others.filter(|part| !matches!(part, Part::ToolCall(_)));
    Parts(others.cloned().chain(calls.0).collect())
}

/// A result in text, with its images behind it.
fn result(call: Option<&ToolCall>, parts: &Parts) -> Parts {
    let texts = parts.0.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    let name = call.map_or("tool", |call| call.name.as_str());
    // What a tool brings must not end its own frame and speak as the user.
    let said = texts
        .join("\n\n")
        .replace("</tool_response", "<\\/tool_response");
    let text = format!("<tool_response>\n{name}: {said}\n</tool_response>");
    let images = parts.0.iter();
    let images = images.filter(|part| matches!(part, Part::Image { .. }));
    Parts(
        [Part::Text { text }]
            .into_iter()
            .chain(images.cloned())
            .collect(),
    )
}
