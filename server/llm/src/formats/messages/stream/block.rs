//! One content block.

use serde_json::{Map, Value};
use shared_types::event::{Part, ToolCall};

use super::super::Messages;
use crate::{
    ModelError, Voice,
    formats::{Format as _, broken, conversation::id_of_ours, malformed},
};

/// A block that grows.
#[derive(Debug)]
pub(super) enum GrowingBlock {
    Text(String),
    Thoughts {
        text: String,
        /// Empty until it comes.
        signature: String,
    },
    Call {
        id: String,
        name: String,
        /// The arguments as they came with the beginning of the block.
        input: Value,
        /// The arguments as the model wrote them.
        arguments: String,
        /// The fields that are not known here.
        fields: Map<String, Value>,
    },
    /// A block of a kind that only the vendor can read.
    Opaque {
        fields: Map<String, Value>,
        /// The text of its field `input`, where that comes in pieces.
        input: String,
    },
}

/// The effect of a delta.
#[derive(Debug, Default)]
pub(super) struct Grown {
    /// The bytes by which the block grew, about.
    pub(super) weight: usize,
    /// More of the text or the thoughts.
    pub(super) said: Option<String>,
}

impl GrowingBlock {
    /// The block that begins with this content.
    ///
    /// # Errors
    /// Fails if it has no kind.
    pub(super) fn of(mut fields: Map<String, Value>) -> Result<Self, ModelError> {
        let kind = fields.get("type").and_then(Value::as_str);
        Ok(match kind {
            Some("text") => Self::Text(take_text(&mut fields, "text")),
            Some("thinking") => Self::Thoughts {
                text: take_text(&mut fields, "thinking"),
                signature: take_text(&mut fields, "signature"),
            },
            Some("tool_use") => {
                fields.remove("type");
                Self::Call {
                    id: take_text(&mut fields, "id"),
                    name: take_text(&mut fields, "name"),
                    input: fields.remove("input").unwrap_or_default(),
                    arguments: String::new(),
                    fields,
                }
            }
            Some(_) => Self::Opaque {
                fields,
                input: String::new(),
            },
            None => return Err(malformed(Messages::NAME, &"a block without a type")),
        })
    }

    /// The empty block to which a delta without one can only belong.
    pub(super) fn begun_by(delta: &Map<String, Value>) -> Option<Map<String, Value>> {
        let kind = match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => "text",
            Some("thinking_delta" | "signature_delta") => "thinking",
            _ => return None,
        };
        Some(Map::from_iter([("type".to_owned(), kind.into())]))
    }

    /// Takes more of the block. Kinds of deltas that are not known here, such as citations, are passed over.
    ///
    /// # Errors
    /// Fails if the delta is for a block of another kind.
    pub(super) fn grow(&mut self, mut delta: Map<String, Value>) -> Result<Grown, ModelError> {
        let kind = take_text(&mut delta, "type");
        match (kind.as_str(), self) {
            ("text_delta", Self::Text(text)) => Ok(said(text, take_text(&mut delta, "text"))),
            ("thinking_delta", Self::Thoughts { text, .. }) => {
                Ok(said(text, take_text(&mut delta, "thinking")))
            }
            ("signature_delta", Self::Thoughts { signature, .. }) => {
                *signature = take_text(&mut delta, "signature");
                Ok(grown(signature.len()))
            }
            (
                "input_json_delta",
                Self::Call {
                    arguments: written, ..
                },
            )
            | ("input_json_delta", Self::Opaque { input: written, .. }) => {
                let more = take_text(&mut delta, "partial_json");
                written.push_str(&more);
                Ok(grown(more.len()))
            }
            (_, Self::Opaque { fields, .. }) => Ok(grown(merge(fields, delta))),
            ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta", _) => {
                Err(malformed(
                    Messages::NAME,
                    &format_args!("a {kind} for a block of another kind"),
                ))
            }
            _ => Ok(Grown::default()),
        }
    }

    /// The kind of the part that is shown while it grows; `None` for a block that is not shown.
    pub(super) fn voice(&self) -> Option<Voice> {
        match self {
            Self::Text(_) => Some(Voice::Text),
            Self::Thoughts { .. } => Some(Voice::Reasoning),
            Self::Call { .. } | Self::Opaque { .. } => None,
        }
    }

    /// The text that is shown of it so far.
    pub(super) fn said(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Thoughts { text, .. } => Some(text),
            Self::Call { .. } | Self::Opaque { .. } => None,
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }

    /// True if it would be no part of an answer.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Thoughts { text, signature } => text.is_empty() && signature.is_empty(),
            Self::Call { .. } | Self::Opaque { .. } => false,
        }
    }

    /// False if the arguments of a call break off.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Call { arguments, .. } => {
                arguments.is_empty()
                    || serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
            }
            Self::Text(_) | Self::Thoughts { .. } | Self::Opaque { .. } => true,
        }
    }

    /// The bytes that it takes, about.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thoughts { text, signature } => text.len() + signature.len(),
            Self::Call {
                id,
                name,
                input,
                arguments,
                fields,
            } => {
                let texts = id.len() + name.len() + arguments.len();
                texts + input.to_string().len() + fields_weight(fields)
            }
            Self::Opaque { fields, input } => input.len() + fields_weight(fields),
        }
    }

    /// The part of the answer; `None` for an empty block. `calls` is the number of the calls before it.
    ///
    /// # Errors
    /// Fails if it is a call without a name.
    pub(super) fn into_part(self, calls: usize) -> Result<Option<Part>, ModelError> {
        if self.is_empty() {
            return Ok(None);
        }
        Ok(match self {
            Self::Text(text) => Some(Part::Text { text }),
            Self::Thoughts { text, signature } => Some(Part::Reasoning {
                text,
                signature: Some(signature).filter(|signature| !signature.is_empty()),
            }),
            Self::Call { name, .. } if name.is_empty() => {
                return Err(broken("the answer asks for a tool without naming it"));
            }
            Self::Call {
                id,
                name,
                input,
                arguments,
                fields,
            } => Some(Part::ToolCall(ToolCall {
                vendor_id: match id.as_str() {
                    "" => id_of_ours(calls),
                    _ => id,
                },
                name,
                arguments: match (arguments.is_empty(), input) {
                    (false, _) => arguments,
                    (true, Value::Null) => "{}".to_owned(),
                    (true, input) => input.to_string(),
                },
                opaque: fields,
            })),
            Self::Opaque { fields, input } if input.is_empty() => Some(Part::Opaque { fields }),
            // The vendor would refuse one whose input breaks off.
            Self::Opaque { mut fields, input } => {
                serde_json::from_str::<Value>(&input).ok().map(|input| {
                    fields.insert("input".to_owned(), input);
                    Part::Opaque { fields }
                })
            }
        })
    }
}

fn said(text: &mut String, more: String) -> Grown {
    text.push_str(&more);
    Grown {
        weight: more.len(),
        said: Some(more),
    }
}

fn grown(weight: usize) -> Grown {
    Grown { weight, said: None }
}

/// Adds the fields of a delta to those of its block: text to text, and everything else in place of what was there.
fn merge(fields: &mut Map<String, Value>, delta: Map<String, Value>) -> usize {
    let weight = fields_weight(&delta);
    for (name, more) in delta {
        match (fields.get_mut(&name), more) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (_, more) => {
                fields.insert(name, more);
            }
        }
    }
    weight
}

/// The bytes of the fields as JSON.
fn fields_weight(fields: &Map<String, Value>) -> usize {
    let bytes = fields
        .iter()
        .map(|(name, value)| name.len() + value.to_string().len());
    bytes.sum()
}

/// Takes a text out of the fields; empty where it is none.
fn take_text(fields: &mut Map<String, Value>, name: &str) -> String {
    match fields.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}
