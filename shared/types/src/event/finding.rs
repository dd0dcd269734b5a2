//! The findings about a result: text in it that looks like instructions to the model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Text in a result that looks like instructions to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// The kind of instruction.
    pub category: FindingCategory,
    /// The likelihood that it is meant for the model, from 0 to 100.
    pub score: u8,
}

/// A kind of instruction in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingCategory {
    /// It revokes the instructions that the model has.
    Override,
    /// It passes for another role of the conversation.
    Role,
    /// It passes for a tool call, or for words of Gantry.
    Frame,
    /// It asks to keep something from the user.
    Concealment,
    /// It asks to send data away.
    Exfiltration,
    /// It is not visible to people.
    HiddenText,
    /// A kind that a newer version names.
    #[serde(other)]
    Other,
}

/// Writes the category in words for people and models.
impl fmt::Display for FindingCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Override => "new instructions",
            Self::Role => "another role",
            Self::Frame => "a made-up frame",
            Self::Concealment => "secrecy from the user",
            Self::Exfiltration => "sending data away",
            Self::HiddenText => "hidden text",
            Self::Other => "another kind",
        })
    }
}
