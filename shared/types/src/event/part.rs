//! The parts of a message: what a person, a model or a tool said, in the order in which it was said.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ToolCall;
use crate::Digest;

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Part {
    /// Words for the reader.
    Text {
        /// The words.
        text: String,
    },
    /// Thoughts of a model before it went on.
    Reasoning {
        /// The thoughts, for people; empty where the vendor keeps them to itself.
        text: String,
        /// The vendor's signature of the thoughts. It goes back unchanged to the origin of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A picture. Its bytes are stored once, under their digest.
    Image {
        /// The SHA-256 of the bytes.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        digest: Digest,
        /// Its format, such as `image/png`.
        media_type: String,
        /// Its size, in bytes.
        bytes: u64,
    },
    /// A request of the model to a tool.
    ToolCall(ToolCall),
    /// A part that only its vendor can read. It goes back unchanged, at its place, to the origin of the answer.
    Opaque {
        /// The vendor's fields.
        #[cfg_attr(feature = "openapi", schema(value_type = Object))]
        fields: Map<String, Value>,
    },
}

/// The parts of one message, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Parts(pub Vec<Part>);

impl Parts {
    /// A message of words alone; without parts where there are no words.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        match text.is_empty() {
            true => Self::default(),
            false => Self(vec![Part::Text { text }]),
        }
    }

    /// The words of the message. A blank line stands between two parts of text, and an image is described.
    pub fn words(&self) -> Cow<'_, str> {
        let mut words = self.0.iter().filter_map(Part::words);
        let first = words.next().unwrap_or_default();
        words.fold(first, |mut said, next| {
            let all = said.to_mut();
            all.push_str("\n\n");
            all.push_str(&next);
            said
        })
    }

    /// The thoughts of the message, in their order.
    pub fn reasoning(&self) -> Cow<'_, str> {
        let mut thoughts = self.0.iter().filter_map(|part| match part {
            Part::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let first = Cow::Borrowed(thoughts.next().unwrap_or_default());
        thoughts.fold(first, |all, next| Cow::Owned(format!("{all}\n\n{next}")))
    }

    /// The tool calls of the message. A call's ordinal is its place among them, from 0.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.0.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

impl Part {
    /// The words of the part; `None` for a part that is not for reading.
    fn words(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text { text } if text.is_empty() => None,
            Self::Text { text } => Some(text.as_str().into()),
            Self::Image {
                media_type, bytes, ..
            } => Some(format!("[an image: {media_type}, {bytes} bytes]").into()),
            Self::Reasoning { .. } | Self::ToolCall(_) | Self::Opaque { .. } => None,
        }
    }
}

/// Where an answer came from. A vendor's own state (signatures, opaque parts, ids of calls) goes back to the same
/// origin and model, and to no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Origin {
    /// The wire format, such as `openai-chat`.
    pub format: String,
    /// The account at the vendor: the host of the model server where it has no better name.
    pub account: String,
}
