//! The effect of a message on a turn that works already.

use serde::{Deserialize, Serialize};

/// The effect of a message that comes while a turn of its session works. Where none works, it starts a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WhileWorking {
    /// It joins that turn: the model is sent it before its next answer.
    Steer,
    /// It waits for the end of that turn, and starts the next one.
    #[default]
    Queue,
    /// It stops that turn, and starts the next one.
    Interrupt,
}
