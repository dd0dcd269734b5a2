//! One piece of a stream, or the whole answer of a server that does not stream, read leniently.
//!
//! The parts of the answer itself must have the right form. Any other part may be damaged, of
//! another type or missing, and then counts as absent.

use serde_json::{Map, Value};
use shared_types::event::Usage;

use crate::formats::tokens;

/// Longest name of a model that is kept, in bytes.
const MAX_MODEL_BYTES: usize = 128;

/// A piece, read.
#[derive(Debug, Default)]
pub(in crate::formats::chat) struct Chunk {
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Option<Usage>,
    /// Cut where it is too long for a name.
    pub(super) model: String,
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) index: u64,
    /// The addition of a stream's piece.
    pub(super) delta: Option<MessagePart>,
    /// The whole message. Some servers send it where others send a delta, or beside one.
    pub(super) message: Option<MessagePart>,
    pub(super) finish_reason: Option<String>,
}

/// A part of the message, or all of it.
#[derive(Debug, Default)]
pub(super) struct MessagePart {
    pub(super) text: String,
    /// More of the thoughts, by the field that carries them.
    pub(super) reasoning: Option<(ThoughtsField, String)>,
    pub(super) calls: Vec<CallPart>,
    /// The fields that are not of the wire format.
    pub(super) fields: Map<String, Value>,
    /// True if its fields are complete, and not pieces of fields.
    pub(super) is_message: bool,
}

/// The field that holds thoughts. Servers send the same thoughts in several fields at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThoughtsField {
    ReasoningContent,
    Reasoning,
    Content,
    ReasoningDetails,
}

#[derive(Debug, Default)]
pub(super) struct CallPart {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// The fields that are not of the wire format.
    pub(super) fields: Map<String, Value>,
}

/// The part of an answer that does not have OpenAI's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} has another type")]
pub(in crate::formats::chat) struct Malformed(&'static str);

impl Chunk {
    /// # Errors
    /// Fails if a part of the answer itself has another type.
    pub(in crate::formats::chat) fn of(value: Value) -> Result<Self, Malformed> {
        let Value::Object(mut fields) = value else {
            return Err(Malformed("the answer"));
        };
        let choices = list(fields.remove("choices"), "choices")?;
        let usage = fields.get("usage").filter(|usage| usage.is_object());
        let model = fields.get("model").and_then(Value::as_str);
        let mut model = model.unwrap_or_default().to_owned();
        model.truncate(model.floor_char_boundary(MAX_MODEL_BYTES));
        Ok(Self {
            choices: choices
                .into_iter()
                .map(Choice::of)
                .collect::<Result<_, _>>()?,
            usage: usage.map(read_usage),
            model,
        })
    }
}

impl Choice {
    fn of(value: Value) -> Result<Self, Malformed> {
        let Value::Object(mut fields) = value else {
            return Err(Malformed("a choice"));
        };
        let mut part = |name| match fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(fields)) => MessagePart::of(fields, name == "message").map(Some),
            Some(_) => Err(Malformed(name)),
        };
        Ok(Self {
            delta: part("delta")?,
            message: part("message")?,
            index: fields.get("index").and_then(whole_number).unwrap_or(0),
            finish_reason: match fields.remove("finish_reason") {
                // Some servers send an empty reason until there is one.
                Some(Value::String(reason)) if !reason.is_empty() => Some(reason),
                _ => None,
            },
        })
    }
}

impl MessagePart {
    fn of(mut fields: Map<String, Value>, is_message: bool) -> Result<Self, Malformed> {
        fields.remove("role");
        let (mut text, thoughts) = content(fields.remove("content"))?;
        // The model's own words when it declines.
        text.push_str(&string(fields.remove("refusal")));
        let mut calls = Vec::new();
        for call in list(fields.remove("tool_calls"), "tool_calls")? {
            calls.push(CallPart::of(call)?);
        }
        if let Some(Value::Object(function)) = fields.remove("function_call") {
            calls.push(CallPart::of_function(Map::new(), function));
        }
        Ok(Self {
            reasoning: reasoning(&fields, thoughts),
            text,
            calls,
            fields,
            is_message,
        })
    }

    /// True if the piece says nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.fields.is_empty()
    }
}

impl CallPart {
    fn of(value: Value) -> Result<Self, Malformed> {
        let Value::Object(mut fields) = value else {
            return Err(Malformed("a tool call"));
        };
        let function = match fields.remove("function") {
            Some(Value::Object(function)) => function,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err(Malformed("a tool call's function")),
        };
        Ok(Self::of_function(fields, function))
    }

    fn of_function(mut fields: Map<String, Value>, mut function: Map<String, Value>) -> Self {
        fields.remove("type");
        let index = fields.remove("index").as_ref().and_then(whole_number);
        let id = string(fields.remove("id"));
        let name = string(function.remove("name"));
        let arguments = match function.remove("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(arguments)) => arguments,
            Some(object) => object.to_string(),
        };
        if !function.is_empty() {
            fields.insert("function".to_owned(), Value::Object(function));
        }
        Self {
            index,
            id,
            name,
            arguments,
            fields,
        }
    }
}

/// The text, and the thoughts that stand beside it.
fn content(value: Option<Value>) -> Result<(String, String), Malformed> {
    match value {
        None | Some(Value::Null) => Ok(Default::default()),
        Some(Value::String(text)) => Ok((text, String::new())),
        Some(Value::Array(parts)) => Ok((
            parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect(),
            parts.iter().map(|part| texts(&part["thinking"])).collect(),
        )),
        Some(_) => Err(Malformed("content")),
    }
}

/// The thoughts of a part, from the first place that has any.
fn reasoning(fields: &Map<String, Value>, thoughts: String) -> Option<(ThoughtsField, String)> {
    let field = |name: &str| fields.get(name).unwrap_or(&Value::Null);
    [
        (
            ThoughtsField::ReasoningContent,
            texts(field("reasoning_content")),
        ),
        (ThoughtsField::Reasoning, texts(field("reasoning"))),
        (ThoughtsField::Content, thoughts),
        (
            ThoughtsField::ReasoningDetails,
            texts(field("reasoning_details")),
        ),
    ]
    .into_iter()
    .find(|(_, text)| !text.is_empty())
}

/// The text, or what a list of parts has of it.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| {
                let text = part["text"].as_str().or(part["summary"].as_str());
                text.map(str::to_owned)
            };
            parts.iter().filter_map(text).collect()
        }
        _ => String::new(),
    }
}

fn read_usage(usage: &Value) -> Usage {
    let cached = [
        &usage["prompt_tokens_details"]["cached_tokens"],
        // DeepSeek's own name, and Moonshot's.
        &usage["prompt_cache_hit_tokens"],
        &usage["cached_tokens"],
    ];
    Usage {
        input: tokens(&usage["prompt_tokens"]),
        cached: cached.into_iter().map(tokens).max().unwrap_or_default(),
        cache_written: tokens(&usage["prompt_tokens_details"]["cache_write_tokens"]),
        output: tokens(&usage["completion_tokens"]),
        thoughts: tokens(&usage["completion_tokens_details"]["reasoning_tokens"]),
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    }
}

fn string(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn list(value: Option<Value>, name: &'static str) -> Result<Vec<Value>, Malformed> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Malformed(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_of_tokens_that_is_none_counts_as_zero() {
        for (value, expected) in [
            (json!(7), 7),
            (json!(u64::MAX), u64::MAX),
            (json!(7.6), 8),
            (json!("12"), 12),
            (json!(-3), 0),
            (json!(-0.5), 0),
            (json!(1e300), u64::MAX),
            (json!("many"), 0),
            (json!({}), 0),
        ] {
            assert_eq!(tokens(&value), expected, "{value}");
        }
    }

    #[test]
    fn what_the_answer_consists_of_has_to_have_its_form() {
        for value in [
            json!([]),
            json!({ "choices": {} }),
            json!({ "choices": [7] }),
            json!({ "choices": [{ "delta": "x" }] }),
            json!({ "choices": [{ "delta": { "content": 7 } }] }),
            json!({ "choices": [{ "delta": { "tool_calls": {} } }] }),
            json!({ "choices": [{ "delta": { "tool_calls": [{ "function": "x" }] } }] }),
        ] {
            assert!(Chunk::of(value.clone()).is_err(), "{value}");
        }
    }
}
