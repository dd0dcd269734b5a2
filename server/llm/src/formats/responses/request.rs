//! A conversation in the words of the Responses API: a list of items.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared_types::event::{Part, Parts, ToolCall};

use crate::{
    Images, Message, ModelRequest, Profile, Thinking, ToolSpec,
    formats::{
        conversation::{Ids, arguments_text, tool_name},
        seen::{ShownPart, seen},
    },
};

/// The optional parts of a request, which some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponsesShape {
    /// True to ask for encrypted thoughts, with `include`.
    pub(super) include: bool,
    /// True to ask for a summary of the thoughts, where the profile asks for thoughts.
    pub(super) summary: bool,
    /// True to send the thoughts of earlier answers back.
    pub(super) reasoning: bool,
}

impl Default for ResponsesShape {
    fn default() -> Self {
        Self {
            include: true,
            summary: true,
            reasoning: true,
        }
    }
}

/// The formats of images that OpenAI takes.
const IMAGE_FORMATS: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct ResponsesBody<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    input: Vec<Value>,
}

/// The body of the request. `tool_choice` is absent, so that the model decides.
pub(super) fn body<'a>(
    profile: &'a Profile,
    request: &'a ModelRequest,
    shape: ResponsesShape,
) -> ResponsesBody<'a> {
    let mut writer = ResponsesWriter {
        profile,
        images: &request.images,
        shape,
        ids: Ids::default(),
        input: Vec::new(),
    };
    for message in &request.messages {
        writer.message(message);
    }
    let wants_summary = shape.summary && profile.thinking == Thinking::Adaptive;
    ResponsesBody {
        model: &profile.model,
        stream: true,
        store: false,
        include: match shape.include {
            true => &["reasoning.encrypted_content"],
            false => &[],
        },
        reasoning: wants_summary.then(|| json!({ "summary": "auto" })),
        max_output_tokens: profile.output,
        instructions: &request.system,
        tools: request.tools.iter().map(tool).collect(),
        input: writer.input,
    }
}

/// Writes the items of a conversation.
struct ResponsesWriter<'a> {
    profile: &'a Profile,
    images: &'a Images,
    shape: ResponsesShape,
    ids: Ids,
    input: Vec<Value>,
}

impl ResponsesWriter<'_> {
    fn message(&mut self, message: &Message) {
        match message {
            Message::User { parts } => {
                let content = self.content(parts);
                self.input
                    .push(json!({ "type": "message", "role": "user", "content": content }));
            }
            Message::Assistant { parts } => self.answer(parts),
            Message::ToolResult {
                vendor_id, parts, ..
            } => {
                let content = self.content(parts);
                let has_image = content.iter().any(|part| part["type"] == "input_image");
                let output: Value = match has_image {
                    true => content.into(),
                    false => parts.words().into_owned().into(),
                };
                let id = self.ids.of_result(vendor_id);
                self.input.push(
                    json!({ "type": "function_call_output", "call_id": id, "output": output }),
                );
            }
        }
    }

    /// Text and images as the model is shown them; never empty.
    fn content(&self, parts: &Parts) -> Vec<Value> {
        let words = |text: String| json!({ "type": "input_text", "text": text });
        let parts = parts.0.iter();
        let seen = parts.filter_map(|part| seen(part, self.profile, self.images, IMAGE_FORMATS));
        let mut content: Vec<Value> = seen
            .map(|seen| match seen {
                ShownPart::Words(text) => words(text),
                ShownPart::Image { media_type, data } => json!({
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": format!("data:{media_type};base64,{data}"),
                }),
            })
            .collect();
        if content.is_empty() {
            content.push(words(String::new()));
        }
        content
    }

    /// The items of an answer, in their order. Thoughts wait for the item that they led to, because the vendor refuses
    /// them without it.
    fn answer(&mut self, parts: &Parts) {
        let mut thoughts = Vec::new();
        let mut of_message = Map::new();
        for part in &parts.0 {
            let item = match part {
                Part::Text { text } if text.is_empty() => continue,
                Part::Text { text } => self.said(std::mem::take(&mut of_message), text),
                Part::Image { .. } => {
                    let words = Parts(vec![part.clone()]).words().into_owned();
                    self.said(Map::new(), &words)
                }
                Part::ToolCall(call) => self.call(call),
                // Thoughts for people. Those for the vendor are an opaque part.
                Part::Reasoning { .. } => continue,
                Part::Opaque { fields } => match fields.get("type").and_then(Value::as_str) {
                    Some("reasoning") => {
                        if self.shape.reasoning && has_thoughts(fields) {
                            thoughts.push(fields.clone().into());
                        }
                        continue;
                    }
                    Some("message") => {
                        of_message = fields.clone();
                        continue;
                    }
                    None => continue,
                    // Items such as a compaction hold encrypted thoughts too.
                    Some(_) if !self.shape.reasoning && is_encrypted(fields) => continue,
                    Some(_) => fields.clone().into(),
                },
            };
            self.input.append(&mut thoughts);
            self.input.push(item);
        }
    }

    /// A message of the model. With the vendor's id it is an item of an earlier answer, which has its content in a list.
    /// Without one it is text alone.
    fn said(&self, mut fields: Map<String, Value>, text: &str) -> Value {
        self.unbind(&mut fields);
        let content = match fields.contains_key("id") {
            true => json!([{ "type": "output_text", "text": text, "annotations": [] }]),
            false => {
                fields.retain(|name, _| name == "phase");
                text.into()
            }
        };
        fields.insert("type".to_owned(), "message".into());
        fields.insert("role".to_owned(), "assistant".into());
        fields.insert("content".to_owned(), content);
        fields.into()
    }

    fn call(&mut self, call: &ToolCall) -> Value {
        let mut fields = call.opaque.clone();
        self.unbind(&mut fields);
        let arguments = arguments_text(&call.arguments);
        fields.insert("type".to_owned(), "function_call".into());
        fields.insert(
            "call_id".to_owned(),
            self.ids.of_call(&call.vendor_id).into(),
        );
        fields.insert("name".to_owned(), tool_name(&call.name).into());
        fields.insert("arguments".to_owned(), arguments.into());
        fields.into()
    }

    /// Removes the id of an item whose thoughts are left out. The vendor knows by it that they are missing.
    fn unbind(&self, fields: &mut Map<String, Value>) {
        if !self.shape.reasoning {
            fields.remove("id");
        }
    }
}

/// True if the item carries its thoughts. With an id alone the vendor looks for them in its store, and fails.
fn has_thoughts(item: &Map<String, Value>) -> bool {
    let content = item.get("content").and_then(Value::as_array);
    is_encrypted(item) || content.is_some_and(|content| !content.is_empty())
}

fn is_encrypted(item: &Map<String, Value>) -> bool {
    let encrypted = item.get("encrypted_content").and_then(Value::as_str);
    encrypted.is_some_and(|text| !text.is_empty())
}

/// The tool. Without `strict: false` the vendor takes the schema for a strict one, and refuses optional arguments.
fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": false,
    })
}

#[cfg(test)]
mod tests;
