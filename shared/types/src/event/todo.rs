//! The to-do list of a session.

use serde::{Deserialize, Serialize};

/// An item of a to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TodoItem {
    /// The work to be done.
    pub text: String,
    /// Its state.
    pub state: TodoState,
}

/// The state of an item of a to-do list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TodoState {
    /// Nothing was done.
    Open,
    /// It is being done.
    Doing,
    /// It is done.
    Done,
}
