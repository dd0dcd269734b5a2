//! Answers of the model, and the tool calls in them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::is_zero;

/// One request of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolCall {
    /// The vendor's id, which its wire format wants back with the result; never our identity.
    pub vendor_id: String,
    /// The tool, as the model named it.
    pub name: String,
    /// The arguments as the model wrote them: meant to be JSON, not trusted to be.
    pub arguments: String,
    /// The vendor's own fields of the call, such as a signature of the thoughts behind it. The
    /// model that wrote them gets them back unchanged; nothing else reads them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub opaque: Map<String, Value>,
}

/// The tool through which a model calls tools that are not in its list.
pub const USE_TOOL: &str = "use_tool";

impl ToolCall {
    /// The call that the model means: the named tool's, for a call of [`USE_TOOL`]; else the call itself. It is for
    /// readers; the model gets its call back as it wrote it.
    pub fn as_meant(&self) -> Cow<'_, Self> {
        match self.through_use_tool() {
            Some((name, arguments)) => Cow::Owned(Self {
                name,
                arguments,
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        }
    }

    /// The tool and the arguments that a call of [`USE_TOOL`] names; nothing of another call, or where it names none.
    pub fn through_use_tool(&self) -> Option<(String, String)> {
        if self.name != USE_TOOL {
            return None;
        }
        let written: Value = serde_json::from_str(&self.arguments).ok()?;
        let name = written.get("name")?.as_str()?;
        let arguments = match written.get("arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            // Some models write JSON as a text.
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments) => arguments.to_string(),
        };
        Some((name.to_owned(), arguments))
    }
}

/// Tells if the model's answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Finish {
    /// It is whole.
    Complete,
    /// The model ran into its own length limit.
    Length,
    /// The turn was cancelled while it spoke; calls that it had begun are not in the answer.
    Cancelled,
}

/// Tokens of one model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Tokens that were sent.
    pub input: u64,
    /// Of those, tokens that the vendor had cached.
    pub cached: u64,
    /// Of those that were sent, tokens that the vendor cached now, where it asks a price of their own for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Tokens that came back.
    pub output: u64,
    /// Of those that came back, tokens of thoughts, where the vendor counts them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thoughts: u64,
}
