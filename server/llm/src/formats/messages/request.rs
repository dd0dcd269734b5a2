//! A conversation in the words of the Messages API.
//!
//! The vendor refuses a whole conversation for one block that it does not like: text that is blank, white space at the
//! end of an answer that it is to go on with, an answer that ends in thoughts. Such blocks are left out here.

mod cache;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use shared_types::event::{Part, Parts, ToolCall};

use super::super::{
    conversation::{Ids, arguments_text, tool_name},
    seen::{ShownPart, seen},
};
use crate::{Message, ModelRequest, Profile, Thinking, ToolSpec};

/// Most tokens of one answer of a model whose own limit is unknown.
const DEFAULT_OUTPUT: u32 = 32_000;

/// The formats of images that the vendor takes.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The optional parts of a request, which some servers and some models refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessagesShape {
    /// True to mark the ends of the prefixes that the vendor caches.
    pub(super) cache: bool,
    /// The request for thoughts.
    pub(super) thinking: ThinkingRequest,
    /// True to send the vendor's own parts of earlier answers: its thoughts, and blocks that only it can read.
    pub(super) own: bool,
    /// Most tokens of one answer, where the server has named its limit.
    pub(super) output: Option<u32>,
}

impl Default for MessagesShape {
    fn default() -> Self {
        Self {
            cache: true,
            thinking: ThinkingRequest::AsProfiled,
            own: true,
            output: None,
        }
    }
}

/// The request for thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingRequest {
    /// As the model's profile says.
    AsProfiled,
    /// Not in this conversation: it has answers without thoughts, of another model or of an earlier release.
    NotHere,
    /// Never: the server does not know it.
    Never,
}

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct MessagesBody<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<RoleTurn>,
}

/// Consecutive messages of one role.
#[derive(Debug, Serialize)]
struct RoleTurn {
    role: &'static str,
    content: Vec<ContentBlock>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ContentBlock {
    Plain(Value),
    Call {
        #[serde(flatten)]
        fields: Map<String, Value>,
        /// The arguments as the model wrote them, byte for byte: later thoughts may be bound to them.
        input: Box<RawValue>,
    },
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

/// The body of the request. `tool_choice` is absent, so that the model decides.
pub(super) fn body<'a>(
    profile: &'a Profile,
    request: &ModelRequest,
    shape: MessagesShape,
) -> MessagesBody<'a> {
    let thinking = match (shape.thinking, profile.thinking) {
        (ThinkingRequest::AsProfiled, Thinking::Adaptive) => Some(json!({ "type": "adaptive" })),
        _ => None,
    };
    let known = profile.output.unwrap_or(DEFAULT_OUTPUT);
    let mut body = MessagesBody {
        model: &profile.model,
        max_tokens: shape.output.map_or(known, |most| most.min(known)),
        stream: true,
        thinking,
        tools: request.tools.iter().map(tool).collect(),
        system: text(&request.system).into_iter().collect(),
        messages: turns(profile, request, shape),
    };
    if shape.cache {
        cache::mark(&mut body);
    }
    body
}

fn turns(profile: &Profile, request: &ModelRequest, shape: MessagesShape) -> Vec<RoleTurn> {
    let mut turns: Vec<RoleTurn> = Vec::new();
    let mut ids = Ids::default();
    let shown = |part: &Part| shown(part, profile, request);
    for message in &request.messages {
        let (role, content) = match message {
            Message::User { parts } => {
                let content = parts.0.iter().filter_map(shown).map(ContentBlock::Plain);
                (USER, content.collect())
            }
            Message::Assistant { parts } => (ASSISTANT, answer(parts, shape.own, &mut ids)),
            Message::ToolResult {
                vendor_id,
                parts,
                failed,
            } => {
                let id = ids.of_result(&id(vendor_id));
                let shown = match failed {
                    // The vendor takes nothing but text of a call that failed.
                    true => text(&parts.words()).into_iter().collect(),
                    false => parts.0.iter().filter_map(shown).collect(),
                };
                (USER, vec![ContentBlock::Plain(result(id, shown, *failed))])
            }
        };
        match turns.last_mut() {
            // The vendor takes results first in the message after their calls. So what the user says next stands
            // behind them, in the same message.
            Some(last) if last.role == role => last.content.extend(content),
            _ if content.is_empty() => {}
            _ => turns.push(RoleTurn { role, content }),
        }
    }
    trim_end(&mut turns);
    turns
}

/// A part of a user's message or of a result; `None` for one that the vendor would refuse.
fn shown(part: &Part, profile: &Profile, request: &ModelRequest) -> Option<Value> {
    match seen(part, profile, &request.images, IMAGES)? {
        ShownPart::Words(words) => text(&words),
        ShownPart::Image { media_type, data } => Some(json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": data },
        })),
    }
}

/// The blocks of an answer, each at its place.
fn answer(parts: &Parts, own: bool, ids: &mut Ids) -> Vec<ContentBlock> {
    let mut blocks: Vec<_> = parts
        .0
        .iter()
        .filter_map(|part| match part {
            Part::Text { text: said } => text(said).map(ContentBlock::Plain),
            Part::Image { .. } => text(&Parts(vec![part.clone()]).words()).map(ContentBlock::Plain),
            Part::Reasoning {
                text,
                signature: Some(signature),
            } if own => Some(ContentBlock::Plain(
                json!({ "type": "thinking", "thinking": text, "signature": signature }),
            )),
            Part::Opaque { fields } if own && fields.contains_key("type") => {
                Some(ContentBlock::Plain(fields.clone().into()))
            }
            Part::Reasoning { .. } | Part::Opaque { .. } => None,
            Part::ToolCall(call) => Some(sent_call(call, own, ids)),
        })
        .collect();
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    blocks
}

fn is_thought(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Plain(block) => {
            matches!(
                block["type"].as_str(),
                Some("thinking" | "redacted_thinking")
            )
        }
        ContentBlock::Call { .. } => false,
    }
}

fn sent_call(call: &ToolCall, own: bool, ids: &mut Ids) -> ContentBlock {
    let mut fields = match own {
        true => call.opaque.clone(),
        false => Map::new(),
    };
    fields.remove("input");
    fields.insert("type".to_owned(), "tool_use".into());
    fields.insert("id".to_owned(), ids.of_call(&id(&call.vendor_id)).into());
    fields.insert("name".to_owned(), tool_name(&call.name).into());
    ContentBlock::Call {
        fields,
        // The text is that of an object.
        input: RawValue::from_string(arguments_text(&call.arguments)).unwrap_or_default(),
    }
}

/// An id as the vendor takes it: letters, digits, `_` and `-`. A conversation may have begun at a vendor with others.
fn id(id: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let letters = id.chars();
    letters
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect()
}

fn result(id: String, shown: Vec<Value>, failed: bool) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": id });
    if !shown.is_empty() {
        result["content"] = shown.into();
    }
    if failed {
        result["is_error"] = true.into();
    }
    result
}

/// A block of text; `None` for text that is blank.
fn text(text: &str) -> Option<Value> {
    let is_blank = text.trim().is_empty();
    (!is_blank).then(|| json!({ "type": "text", "text": text }))
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    })
}

/// Takes the white space from the end of an answer that the vendor is to go on with.
fn trim_end(turns: &mut [RoleTurn]) {
    if let Some(last) = turns.last_mut()
        && last.role == ASSISTANT
        && let Some(ContentBlock::Plain(block)) = last.content.last_mut()
        && let Some(text) = block["text"].as_str()
    {
        block["text"] = text.trim_end().into();
    }
}

#[cfg(test)]
mod tests;
