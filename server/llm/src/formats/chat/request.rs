//! A conversation in the words of the Chat Completions API.

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared_types::event::{Parts, ToolCall};

use super::{
    super::{
        conversation::{Ids, NO_ANSWER, arguments_text, tool_name},
        seen::{ShownPart, seen},
    },
    own::Own,
};
use crate::{Images, Message, ModelRequest, Profile, ToolSpec};

/// The optional parts of a request, which some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChatShape {
    /// True to ask for the usage, with `stream_options`.
    pub(super) usage: bool,
    /// The vendor's own parts of earlier answers.
    pub(super) own: OwnParts,
}

impl Default for ChatShape {
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

/// The formats of images that servers of this API take.
const IMAGE_FORMATS: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The words of the model between results and their images.
const LOOKS: &str = "I look at the images of these results.";

/// The signature that Google documents for calls of another model.
const UNCHECKED_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct ChatBody<'a> {
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
pub(super) fn body<'a>(
    profile: &'a Profile,
    request: &'a ModelRequest,
    shape: ChatShape,
) -> ChatBody<'a> {
    let mut conversation = ChatConversation {
        profile,
        images: &request.images,
        own: shape.own,
        messages: Vec::new(),
        ids: Ids::default(),
        beside: Vec::new(),
    };
    if !request.system.is_empty() {
        conversation
            .messages
            .push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        conversation.add(message);
    }
    conversation.show_beside();
    ChatBody {
        model: &profile.model,
        stream: true,
        stream_options: shape.usage.then(|| json!({ "include_usage": true })),
        tools: request.tools.iter().map(tool).collect(),
        messages: conversation.messages,
    }
}

/// The messages, as they are written.
struct ChatConversation<'a> {
    profile: &'a Profile,
    images: &'a Images,
    own: OwnParts,
    messages: Vec<Value>,
    ids: Ids,
    /// The images of the results that were written last. A result takes words alone.
    beside: Vec<Value>,
}

impl ChatConversation<'_> {
    fn add(&mut self, message: &Message) {
        match message {
            Message::User { parts } => {
                self.show_beside();
                let content = self.content(parts);
                self.say(content, NO_ANSWER);
            }
            Message::Assistant { parts } => {
                self.show_beside();
                let answer = assistant(parts, self.own, &mut self.ids);
                self.messages.push(answer);
            }
            Message::ToolResult {
                vendor_id, parts, ..
            } => {
                let id = self.ids.of_result(vendor_id);
                let content = parts.words();
                self.messages
                    .push(json!({ "role": "tool", "tool_call_id": id, "content": content }));
                let shown = self.content(parts).into_iter();
                self.beside
                    .extend(shown.filter(|part| part["type"] == "image_url"));
            }
        }
    }

    /// Shows the images of the results before, in a message of the user.
    fn show_beside(&mut self) {
        if !self.beside.is_empty() {
            let images = std::mem::take(&mut self.beside);
            self.say(images, LOOKS);
        }
    }

    /// Writes a message of the user. Some servers refuse two in a row, and one right behind a result: `between` stands
    /// between them then, in the words of the model.
    fn say(&mut self, content: Vec<Value>, between: &str) {
        match self.messages.last_mut() {
            Some(last) if last["role"] == "user" => {
                let before = match last["content"].take() {
                    Value::Array(before) => before,
                    text => vec![json!({ "type": "text", "text": text })],
                };
                last["content"] = as_content([before, content].concat());
                return;
            }
            Some(last) if last["role"] == "tool" => {
                let answer = assistant(&Parts::text(between), self.own, &mut self.ids);
                self.messages.push(answer);
            }
            _ => {}
        }
        self.messages
            .push(json!({ "role": "user", "content": as_content(content) }));
    }

    /// Text and images as the model is shown them.
    fn content(&self, parts: &Parts) -> Vec<Value> {
        let parts = parts.0.iter();
        let seen = parts.filter_map(|part| seen(part, self.profile, self.images, IMAGE_FORMATS));
        seen.map(|seen| match seen {
            ShownPart::Words(text) => json!({ "type": "text", "text": text }),
            ShownPart::Image { media_type, data } => json!({
                "type": "image_url",
                "image_url": { "url": format!("data:{media_type};base64,{data}") },
            }),
        })
        .collect()
    }
}

/// Content as servers take it: words alone are one text, because some take no list.
fn as_content(parts: Vec<Value>) -> Value {
    if parts.iter().any(|part| part["type"] != "text") {
        return parts.into();
    }
    let texts: Vec<_> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    texts.join("\n\n").into()
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
