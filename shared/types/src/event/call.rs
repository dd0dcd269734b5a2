//! The ends of tool calls.

use serde::{Deserialize, Serialize};

use crate::FileDigest;

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CallOutcome {
    /// It did what was asked; for a command, with any exit code.
    Completed,
    /// It could not do what was asked; the text says why.
    Failed,
    /// It was not run: no place, bad arguments, or a refusal.
    Refused,
    /// It reached a time limit of its own and was stopped.
    TimedOut,
    /// It was stopped on request.
    Cancelled,
    /// Its fate is not known; it is not run again.
    Unknown,
    /// It goes on in the background, as a task.
    Background,
}

/// The thing that a call waited for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Awaited {
    /// The runner, which is away and may come back at any moment.
    Runner,
    /// The command, which still runs.
    Command,
}

/// A file whose content a call has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileSeen {
    /// Its path relative to the root of the sandbox, in one form for each file: `a`, not `./a` or `b/../a`.
    pub path: String,
    /// The digest of all of it after the call; absent where the runner did not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
    /// True if the call wrote or edited it; false if it read it.
    pub changed: bool,
}
