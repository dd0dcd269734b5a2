//! A conversation in the words of the Chat Completions API.

use serde_json::{Map, Value, json};
use shared_types::event::ToolCall;

use crate::{Message, ModelRequest, ToolSpec};

/// The body of the request. `tool_choice` is absent, so that the model decides, and an empty
/// list of tools is left out, because servers refuse it.
pub(super) fn body(model: &str, request: &ModelRequest) -> Value {
    let system = (!request.system.is_empty())
        .then(|| json!({ "role": "system", "content": request.system }));
    let mut messages: Vec<Value> = system.into_iter().collect();
    for next in &request.messages {
        match (next, messages.last_mut()) {
            // Some servers refuse two in a row.
            (Message::User { text }, Some(last)) if last["role"] == "user" => {
                let before = last["content"].as_str().unwrap_or_default();
                last["content"] = format!("{before}\n\n{text}").into();
            }
            _ => messages.push(message(next)),
        }
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls } => json!({
            "role": "assistant",
            "content": (!text.is_empty()).then_some(text),
            "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        }),
        Message::ToolResult {
            vendor_id, text, ..
        } => json!({ "role": "tool", "tool_call_id": vendor_id, "content": text }),
    }
}

fn call(call: &ToolCall) -> Value {
    json!({
        "id": call.vendor_id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments(&call.arguments) },
    })
}

/// Many servers parse the arguments of earlier calls and refuse the whole conversation, now and
/// for ever, where they are not an object. So what the model wrote wrongly is shown to it
/// inside of one.
fn arguments(written: &str) -> String {
    if written.trim().is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Map<String, Value>>(written) {
        Ok(_) => written.to_owned(),
        Err(_) => json!({ "invalid_arguments": written }).to_string(),
    }
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
mod tests {
    use super::*;

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: String::new(),
            messages,
            tools: Vec::new(),
        }
    }

    fn asked(arguments: &str) -> Message {
        Message::Assistant {
            text: String::new(),
            calls: vec![ToolCall {
                vendor_id: "c1".to_owned(),
                name: "Shell".to_owned(),
                arguments: arguments.to_owned(),
            }],
        }
    }

    #[test]
    fn what_a_user_says_in_a_row_is_one_message() {
        let said = |text: &str| Message::User {
            text: text.to_owned(),
        };
        let body = body(
            "m",
            &ModelRequest {
                system: String::new(),
                messages: vec![said("one"), said("two"), asked("{}"), said("three")],
                tools: Vec::new(),
            },
        );
        let messages = body["messages"].as_array().expect("a list");
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[0]["content"], "one\n\ntwo");
        assert_eq!(messages[2]["content"], "three");
    }

    #[test]
    fn a_conversation_with_tools_has_the_vendors_form() {
        let body = body(
            "m",
            &ModelRequest {
                system: "be brief".to_owned(),
                messages: vec![
                    Message::User {
                        text: "hi".to_owned(),
                    },
                    asked(r#"{"command":"ls"}"#),
                    Message::ToolResult {
                        vendor_id: "c1".to_owned(),
                        text: "a\nb".to_owned(),
                        failed: false,
                    },
                ],
                tools: vec![ToolSpec {
                    name: "Shell".to_owned(),
                    description: "runs".to_owned(),
                    parameters: json!({ "type": "object" }),
                }],
            },
        );
        assert_eq!(
            body,
            json!({
                "model": "m",
                "stream": true,
                "stream_options": { "include_usage": true },
                "messages": [
                    { "role": "system", "content": "be brief" },
                    { "role": "user", "content": "hi" },
                    { "role": "assistant", "content": null, "tool_calls": [{
                        "id": "c1", "type": "function",
                        "function": { "name": "Shell", "arguments": r#"{"command":"ls"}"# },
                    }] },
                    { "role": "tool", "tool_call_id": "c1", "content": "a\nb" },
                ],
                "tools": [{ "type": "function", "function": {
                    "name": "Shell", "description": "runs", "parameters": { "type": "object" },
                } }],
            })
        );
    }

    #[test]
    fn without_tools_and_system_text_neither_is_sent() {
        let body = body("m", &request(Vec::new()));
        assert_eq!(body["messages"], json!([]));
        assert!(body.get("tools").is_none());
    }

    #[test]
    fn broken_arguments_of_an_earlier_call_are_sent_as_a_valid_object() {
        for (written, sent) in [
            ("", "{}"),
            (r#"{"a":"#, r#"{"invalid_arguments":"{\"a\":"}"#),
            ("[1]", r#"{"invalid_arguments":"[1]"}"#),
        ] {
            let body = body("m", &request(vec![asked(written)]));
            assert_eq!(
                body["messages"][0]["tool_calls"][0]["function"]["arguments"],
                sent
            );
        }
    }
}
