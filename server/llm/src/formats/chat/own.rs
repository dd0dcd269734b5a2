//! The state of a vendor in one of its answers: what only it can read, and wants back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared_types::event::{Part, Parts};

/// The vendor's own state beside the text and the calls of an answer. It is recorded as opaque parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Own {
    /// Text before the answer that is no part of it: thoughts between tags, with the tags.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) before_text: String,
    /// The fields of the message that the wire format does not know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) fields: Map<String, Value>,
}

impl Own {
    /// The state in the parts of an earlier answer; empty where the answer has none.
    pub(super) fn of(parts: &Parts) -> Self {
        let opaque = parts.0.iter().filter_map(|part| match part {
            Part::Opaque { fields } => Self::deserialize(fields).ok(),
            _ => None,
        });
        opaque.fold(Self::default(), |mut all, next| {
            all.before_text.push_str(&next.before_text);
            all.fields.extend(next.fields);
            all
        })
    }

    /// The parts that record it: the text before the answer, and the fields. Either is absent where it is empty.
    pub(super) fn into_parts(self) -> [Option<Part>; 2] {
        let before_text = Self {
            before_text: self.before_text,
            ..Self::default()
        };
        let fields = Self {
            fields: self.fields,
            ..Self::default()
        };
        [before_text, fields].map(|own| match serde_json::to_value(own) {
            Ok(Value::Object(fields)) if !fields.is_empty() => Some(Part::Opaque { fields }),
            _ => None,
        })
    }
}
