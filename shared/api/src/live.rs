//! Unfinished work, which no log holds.

use serde::{Deserialize, Serialize};
use shared_types::{OperationId, TurnId};

#[cfg(feature = "openapi")]
use crate::StreamName;

/// Unfinished work of a turn. By its offset a client recognises bytes that it has already, and drops them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Live {
    /// The model thinks before it speaks.
    Reasoning {
        /// The turn.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The number of the attempt, from 1. A higher number starts the thoughts again.
        attempt: u32,
        /// The part of the answer: its place among the parts of text and of thoughts, in the order in which they
        /// began, from 0.
        #[serde(default)]
        part: u32,
        /// The offset of `text` in the part, in bytes from 0.
        offset: u64,
        /// The thoughts.
        text: String,
    },
    /// The model speaks.
    Text {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The number of the attempt, from 1. A higher number starts the text again.
        attempt: u32,
        /// The part of the answer: its place among the parts of text and of thoughts, in the order in which they
        /// began, from 0.
        #[serde(default)]
        part: u32,
        /// The offset of `text` in the part, in bytes from 0.
        offset: u64,
        /// The text.
        text: String,
    },
    /// A command writes.
    Output {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        stream: String,
        /// The offset of the first byte in the stream, from 0. After a jump bytes are missing. The server skips output
        /// that a slow client does not read, and sends a late client the last 64 KiB.
        offset: u64,
        /// The bytes as text; invalid UTF-8 is replaced. `bytes` counts the original ones.
        text: String,
        /// The number of bytes.
        bytes: u64,
    },
    /// Missing output of a command, which is no longer stored. The stream continues at `to`.
    Gap {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// `stdout` or `stderr`.
        #[cfg_attr(feature = "openapi", schema(value_type = StreamName))]
        stream: String,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap.
        to: u64,
    },
    /// The attempt broke off: its text and thoughts are void. Another attempt may follow, with a higher number.
    TakenBack {
        /// The turn.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The attempt at it, from 1.
        attempt: u32,
    },
    /// A note for people, such as a retry of the model or a wait for the runner.
    Notice {
        /// The turn.
        turn: TurnId,
        /// The words.
        text: String,
    },
}
