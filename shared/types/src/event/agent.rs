//! Agents that work for a call of another session.

use serde::{Deserialize, Serialize};

use crate::{SessionId, TurnId};

/// A tool call of a session, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallOfSession {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
}
