//! A conversation in the words of the Gemini API: contents of a user and of the model, in turn.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared_types::event::{Part, Parts, ToolCall};

use super::{SIGNATURE, UNCHECKED_SIGNATURE};
use crate::{
    Images, Message, ModelRequest, Profile, Thinking, ToolSpec,
    formats::{
        conversation::{Ids, arguments, tool_name},
        seen::{ShownPart, seen},
    },
};

/// The optional parts of a request, which some servers refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GeminiShape {
    /// The field with the schema of a tool's arguments.
    pub(super) schema: GeminiSchema,
    /// True to ask for thoughts, where the profile does.
    pub(super) thoughts: bool,
    /// True to send the signatures of earlier answers back.
    pub(super) signatures: bool,
    /// True to send the signature that is not checked with calls that have none.
    pub(super) unchecked: bool,
}

impl Default for GeminiShape {
    fn default() -> Self {
        Self {
            schema: GeminiSchema::Json,
            thoughts: true,
            signatures: true,
            unchecked: false,
        }
    }
}

/// The field with the schema of a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GeminiSchema {
    /// `parametersJsonSchema`, which takes any JSON Schema, as the tools of other vendors have it.
    Json,
    /// `parameters`, which takes a part of OpenAPI's schemas. It refuses fields such as `additionalProperties`. Some
    /// servers know this one only.
    OpenApi,
}

/// The formats of images that Google takes.
const IMAGE_FORMATS: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
];

/// The body of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
    contents: Vec<GeminiContent>,
}

/// Consecutive messages of one side.
#[derive(Debug, Serialize)]
struct GeminiContent {
    role: &'static str,
    parts: Vec<Value>,
}

/// The body of the request. `toolConfig` is absent, so that the model decides.
pub(super) fn body(profile: &Profile, request: &ModelRequest, shape: GeminiShape) -> GeminiBody {
    let mut writer = GeminiWriter {
        profile,
        images: &request.images,
        shape,
        ids: Ids::default(),
        called: HashMap::new(),
        beside: Vec::new(),
        contents: Vec::new(),
    };
    for message in &request.messages {
        writer.message(message);
    }
    writer.show_beside();
    let declarations: Vec<_> = request
        .tools
        .iter()
        .map(|tool| declaration(tool, shape))
        .collect();
    let mut config = Map::new();
    if let Some(most) = profile.output {
        config.insert("maxOutputTokens".to_owned(), most.into());
    }
    if shape.thoughts && profile.thinking == Thinking::Adaptive {
        let thoughts = json!({ "includeThoughts": true });
        config.insert("thinkingConfig".to_owned(), thoughts);
    }
    GeminiBody {
        system_instruction: (!request.system.is_empty())
            .then(|| json!({ "parts": [{ "text": request.system }] })),
        tools: match declarations.is_empty() {
            true => Vec::new(),
            false => vec![json!({ "functionDeclarations": declarations })],
        },
        generation_config: config,
        contents: writer.contents,
    }
}

/// A call whose result is still to come.
struct Called {
    name: String,
    /// True if the vendor gave it an id, and so wants it back.
    has_id: bool,
}

/// Writes the contents of a conversation.
struct GeminiWriter<'a> {
    profile: &'a Profile,
    images: &'a Images,
    shape: GeminiShape,
    ids: Ids,
    /// The calls, by the ids under which they are sent.
    called: HashMap<String, Called>,
    /// Images of results. They stand behind the last result, because the vendor wants all results together.
    beside: Vec<Value>,
    contents: Vec<GeminiContent>,
}

impl GeminiWriter<'_> {
    fn message(&mut self, message: &Message) {
        match message {
            Message::User { parts } => {
                self.show_beside();
                let shown = self.shown(parts);
                self.say("user", shown);
            }
            Message::Assistant { parts } => {
                self.show_beside();
                let parts = self.answer(parts);
                self.say("model", parts);
            }
            Message::ToolResult {
                vendor_id,
                parts,
                failed,
            } => self.result(vendor_id, parts, *failed),
        }
    }

    /// Says these parts; what one side says in a row is one content.
    fn say(&mut self, role: &'static str, mut parts: Vec<Value>) {
        match self.contents.last_mut() {
            // The vendor refuses a content without parts.
            _ if parts.is_empty() => {}
            Some(last) if last.role == role => last.parts.append(&mut parts),
            _ => self.contents.push(GeminiContent { role, parts }),
        }
    }

    fn show_beside(&mut self) {
        if !self.beside.is_empty() {
            let images = std::mem::take(&mut self.beside);
            self.say("user", images);
        }
    }

    /// Text and images as the model is shown them; never empty.
    fn shown(&self, parts: &Parts) -> Vec<Value> {
        let parts = parts.0.iter();
        let seen = parts.filter_map(|part| seen(part, self.profile, self.images, IMAGE_FORMATS));
        let mut shown: Vec<Value> = seen
            .map(|seen| match seen {
                ShownPart::Words(text) => json!({ "text": text }),
                ShownPart::Image { media_type, data } => {
                    json!({ "inlineData": { "mimeType": media_type, "data": data } })
                }
            })
            .collect();
        if shown.is_empty() {
            shown.push(json!({ "text": "" }));
        }
        shown
    }

    /// The result of a call. Its images stand beside it, and words in their place: models before Gemini 3 take no
    /// image inside of a result.
    fn result(&mut self, vendor_id: &str, parts: &Parts, failed: bool) {
        let id = self.ids.of_result(vendor_id);
        let called = self.called.get(&id);
        let mut response = Map::new();
        if called.is_some_and(|called| called.has_id) {
            response.insert("id".to_owned(), id.into());
        }
        let name = called.map_or_else(|| tool_name(""), |called| called.name.clone());
        response.insert("name".to_owned(), name.into());
        let field = match failed {
            true => "error",
            false => "output",
        };
        response.insert("response".to_owned(), json!({ field: parts.words() }));
        let shown = self.shown(parts).into_iter();
        let images = shown.filter(|part| part.get("inlineData").is_some());
        self.beside.extend(images);
        self.say("user", vec![json!({ "functionResponse": response })]);
    }

    /// The parts of an answer, each with the vendor's own fields at the place they came from.
    fn answer(&mut self, parts: &Parts) -> Vec<Value> {
        let mut sent: Vec<Value> = Vec::new();
        for part in &parts.0 {
            match part {
                Part::Text { text } if text.is_empty() => {}
                Part::Text { text } => sent.push(json!({ "text": text })),
                Part::Image { .. } => {
                    let words = Parts(vec![part.clone()]).words().into_owned();
                    sent.push(json!({ "text": words }));
                }
                Part::ToolCall(call) => sent.push(self.call(call)),
                // Thoughts for people. Those for the vendor are an opaque part.
                Part::Reasoning { .. } => {}
                Part::Opaque { fields } => self.own(fields, &mut sent),
            }
        }
        let first = sent.iter_mut().find(|part| part.get(CALL).is_some());
        if let Some(first) = first.filter(|_| self.shape.unchecked)
            && first.get(SIGNATURE).is_none()
        {
            // Of calls that were made at the same time, the first one bears the signature.
            first[SIGNATURE] = UNCHECKED_SIGNATURE.into();
        }
        sent
    }

    /// A part of the vendor's own. The part of a signed text is the end of the text before it: that text is divided
    /// again where the signature stood.
    fn own(&self, fields: &Map<String, Value>, sent: &mut Vec<Value>) {
        let mut part = fields.clone();
        if !self.shape.signatures {
            part.remove(SIGNATURE);
        }
        let is_thought = part.get("thought").is_some_and(|thought| thought == true);
        let Some(Value::String(end)) = part.get("text").filter(|_| !is_thought) else {
            // A thought without its signature has no use for the vendor.
            if !is_thought || part.contains_key(SIGNATURE) {
                sent.push(part.into());
            }
            return;
        };
        if part.len() == 1 {
            return;
        }
        if end.is_empty() {
            sent.push(part.into());
            return;
        }
        let before = sent.last_mut().filter(|last| is_plain_text(last));
        let Some(Value::String(text)) = before.and_then(|last| last.get_mut("text")) else {
            return;
        };
        // A text that was shortened does not end so, and is not the one that was signed.
        if let Some(begin) = text.strip_suffix(end.as_str()) {
            match begin.is_empty() {
                true => {
                    sent.pop();
                }
                false => *text = begin.to_owned(),
            }
            sent.push(part.into());
        }
    }

    fn call(&mut self, call: &ToolCall) -> Value {
        let mut part = call.opaque.clone();
        if !self.shape.signatures {
            part.remove(SIGNATURE);
        }
        let mut function = match part.remove(CALL) {
            Some(Value::Object(function)) => function,
            _ => Map::new(),
        };
        let id = self.ids.of_call(&call.vendor_id);
        let name = tool_name(&call.name);
        let has_id = function.contains_key("id");
        if has_id {
            function.insert("id".to_owned(), id.clone().into());
        }
        function.insert("name".to_owned(), name.clone().into());
        function.insert("args".to_owned(), arguments(&call.arguments).into());
        part.insert(CALL.to_owned(), function.into());
        self.called.insert(id, Called { name, has_id });
        part.into()
    }
}

/// The field of a part that holds a call.
const CALL: &str = "functionCall";

fn is_plain_text(part: &Value) -> bool {
    part.as_object()
        .is_some_and(|fields| fields.len() == 1 && fields.contains_key("text"))
}

fn declaration(tool: &ToolSpec, shape: GeminiShape) -> Value {
    let field = match shape.schema {
        GeminiSchema::Json => "parametersJsonSchema",
        GeminiSchema::OpenApi => "parameters",
    };
    json!({ "name": tool.name, "description": tool.description, field: tool.parameters })
}

#[cfg(test)]
mod tests;
