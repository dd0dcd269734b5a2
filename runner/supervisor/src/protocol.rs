//! The frames on the socket in an operation's directory.
//!
//! A frame is a head in JSON and bytes that belong to it (see `wire`). Unknown fields are ignored.
//! Unknown kinds are refused and nothing happens: so version N speaks with N − 1 both ways. Both
//! ends say hello first.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shared_types::OperationId;

use crate::{
    record::{ExitRecord, ProcessIdentity, StartRecord},
    request::{CommandTerms, millis_always},
    spool::SpoolStream,
};

/// The version of protocol and directory that this code writes.
pub const VERSION: u32 = 1;

/// The oldest version that it reads. Version 0 never was; the next one keeps reading this one.
pub const OLDEST_VERSION: u32 = VERSION.saturating_sub(1);

/// Largest piece of input in one frame, in bytes.
pub const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Longest name of an operation's directory, in bytes (`NAME_MAX`).
pub const MAX_NAME_BYTES: usize = 255;

/// The version that both ends speak, if they are not more than one apart.
pub fn agreed_version(theirs: u32) -> Option<u32> {
    (theirs.abs_diff(VERSION) <= 1).then_some(theirs.min(VERSION))
}

/// A frame of a daemon to a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToSupervisor {
    /// The first frame on each connection.
    Hello {
        /// The daemon's [`VERSION`].
        version: u32,
    },
    /// The request for the one command that waits to be. Its strings are the frame's bytes: words, then variables, each with a NUL
    /// at its end. A descriptor that comes along is the directory.
    Start {
        /// The operation.
        operation: OperationId,
        /// The number of words.
        words: usize,
        /// The number of variables.
        variables: usize,
        /// Everything else.
        terms: CommandTerms,
    },
    /// Input, in the frame's bytes.
    Input {
        /// The offset in the input; what was taken already is discarded.
        offset: u64,
        /// True if the input ends after it.
        #[serde(default)]
        end: bool,
    },
    /// Output below this offset is durable elsewhere and may be evicted.
    Commit {
        /// The stream.
        stream: SpoolStream,
        /// The offset; less than before changes nothing.
        offset: u64,
    },
    /// End it. Saying so twice changes nothing.
    Cancel,
    /// It is not orphaned before this time is over, nor before the time that it may run; with zero
    /// it is orphaned now.
    Renew {
        /// From now on, in milliseconds.
        #[serde(with = "millis_always")]
        orphan_for: Duration,
    },
    /// The terminal has another size.
    Resize {
        /// Larger than the one before, or it is a repeat and only answered.
        id: u64,
        /// Height in characters.
        rows: u16,
        /// Width in characters.
        columns: u16,
    },
    /// The command has ended and no reader will ask for its records and output any more. Clear them
    /// away, and wait for another request. The answer is a hello, as from a new supervisor.
    Again,
    /// A signal for the command's process group.
    Signal {
        /// An id as for a resize.
        id: u64,
        /// The signal's number.
        signal: i32,
    },
    /// A kind of a later version.
    #[serde(other)]
    Unknown,
}

/// A frame of a supervisor to its daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FromSupervisor {
    /// The first frame on each connection.
    Hello {
        /// The supervisor's [`VERSION`].
        version: u32,
        /// The supervisor that speaks.
        identity: ProcessIdentity,
        /// The number of input bytes that were taken.
        #[serde(default)]
        input: u64,
        /// The largest id of a resize or signal that was carried out.
        #[serde(default)]
        last_id: u64,
    },
    /// It cannot run anything; nothing was started.
    Unfit {
        /// The reason.
        reason: String,
        /// The same as a number of the host's (errno), where it is one.
        #[serde(default)]
        errno: Option<i32>,
    },
    /// The fate is linked and the gate is open. Not sent for a command that is over at once.
    Started(StartRecord),
    /// The length of each stream that is readable on disk. Frames of this kind replace one another.
    Output {
        /// Bytes of the first stream.
        out: u64,
        /// Bytes of the second stream.
        err: u64,
    },
    /// Input is taken up to here; send on from here.
    InputTaken {
        /// The offset.
        offset: u64,
    },
    /// The resize or signal is carried out.
    Done {
        /// Its id.
        id: u64,
    },
    /// The resize or signal cannot be carried out, or came behind a later one, and will not be.
    NotDone {
        /// Its id.
        id: u64,
        /// The reason.
        reason: String,
        /// Only because it came behind a later one: under a new id it may be.
        #[serde(default)]
        overtaken: bool,
    },
    /// The operation was fenced before it started: the command did not run.
    Fenced,
    /// It is over, and the record is on disk.
    Exited(ExitRecord),
    /// A frame was not carried out; the connection goes on where that is possible.
    Refused {
        /// The reason.
        reason: String,
    },
    /// A kind of a later version.
    #[serde(other)]
    Unknown,
}
