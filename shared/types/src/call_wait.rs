//! The wait of a turn that has nothing else to do.

use serde::{Deserialize, Serialize};

use crate::{ApprovalId, OperationId, Timestamp, TurnId};

/// A tool call of a turn whose worker has let go of the turn until there is more to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWait {
    /// The model call that asked for it, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The event that ends the wait early.
    pub waits_for: WaitsFor,
    /// Then it waits no longer.
    pub until: Timestamp,
    /// Then a command that still runs goes on in the background; nothing, where that is not known.
    pub listens_until: Option<Timestamp>,
}

/// The event that ends a wait before its time limit: a kind, and the subject of which the store asks if the wait is
/// over.
///
/// The store keeps this JSON in two columns, so a word stays as it is. A new kind is a variant here and a question in
/// `server/store/src/turn/waiting.rs`. A release knows a kind before a later one waits for it: both run for a while on
/// the same database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "subject", rename_all = "snake_case")]
pub enum WaitsFor {
    /// The end of the operation.
    #[serde(rename = "command")]
    Operation(OperationId),
    /// The end of the operation, or a link of its runner.
    Runner(OperationId),
    /// The end of another turn of the same tenant.
    Turn(TurnId),
    /// The answer of a person.
    Person(ApprovalId),
    /// Nothing: the time limit alone ends the wait.
    Time,
}

impl WaitsFor {
    /// The operation of the wait, where it is for one.
    pub const fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Operation(operation) | Self::Runner(operation) => Some(*operation),
            Self::Turn(_) | Self::Person(_) | Self::Time => None,
        }
    }
}
