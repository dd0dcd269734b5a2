//! The parts of a conversation that the model is not sent any more.

use serde::{Deserialize, Serialize};

/// Calls that follow one another, by their numbers in the session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// The reason why the model is sent less of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LeftOutBecause {
    /// The request came near the model's window, as the server estimates it.
    NearWindow,
    /// The model refused the request as too long.
    Refused,
}

/// The reason why a conversation was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CompactedBecause {
    /// The request came near the model's window, as the server estimates it.
    NearWindow,
    /// The model refused the request as too long.
    Refused,
    /// A person asked for it.
    Asked,
}
