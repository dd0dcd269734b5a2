//! The heads of frames: the daemon asks, the program in the container says.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shared_sandbox::{ExitCause, Outcome, Request};
use shared_types::Refusal;

use super::{
    Hello,
    wire::{Encoded, TooLarge},
};
use crate::{Change, SettledChange, There};

/// A frame of the daemon to the program. An id names one request for as long as the socket lives.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DaemonFrame {
    /// Perform a request. Its bytes are the content of a write.
    Perform {
        id: u64,
        request: Request,
        run_for_ms: u64,
    },
    /// Find out what became of a change.
    Settle {
        id: u64,
        change: Change,
        later: Vec<Option<There>>,
    },
    /// Take a piece of an upload: its bytes.
    Piece { id: u64, offset: u64, end: bool },
    /// No more pieces come, although the input has not ended.
    NoMorePieces { id: u64 },
    /// Make the change that was announced, or do not.
    Answer { id: u64, refusal: Option<Refusal> },
    /// End a request early.
    Stop { id: u64, cause: ExitCause },
    /// Let changes go on that meet this one: its end is written down.
    Release { id: u64 },
}

/// A frame of the program to the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProgramFrame {
    /// It is ready. The first frame.
    Hello(Hello),
    /// A change waits for its answer.
    Changing { id: u64, change: Change },
    /// A file is open, so large; its descriptor comes with this.
    Opened { id: u64, bytes: u64 },
    /// So much of an upload is taken.
    InputTaken { id: u64, up_to: u64 },
    /// One more piece of an upload may be sent.
    Room { id: u64 },
    /// A request ended. Its bytes are the content of what was read.
    Ended { id: u64, outcome: Outcome },
    /// The result of a change.
    Settled { id: u64, verdict: ChangeVerdict },
}

/// The result of a change; the outcome of one that was made stands in the change.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeVerdict {
    Applied,
    NotApplied,
    Unclear,
}

impl DaemonFrame {
    /// The frame that asks for a request.
    pub(super) fn perform(
        id: u64,
        mut request: Request,
        run_for: Duration,
    ) -> Result<Encoded, TooLarge> {
        let content = match &mut request {
            Request::Write(write) => std::mem::take(&mut write.content),
            _ => Vec::new(),
        };
        let run_for_ms = u64::try_from(run_for.as_millis()).unwrap_or(u64::MAX);
        let ask = Self::Perform {
            id,
            request,
            run_for_ms,
        };
        Encoded::new(&ask, &content)
    }
}

impl ProgramFrame {
    /// The frame that says the end of a request.
    pub(super) fn ended(id: u64, mut outcome: Outcome) -> Result<Encoded, TooLarge> {
        let content = match &mut outcome {
            Outcome::Read(read) => std::mem::take(&mut read.content),
            _ => Vec::new(),
        };
        Encoded::new(&Self::Ended { id, outcome }, &content)
    }
}

/// The request with the content that came behind it.
pub(super) fn with_content(mut request: Request, content: Vec<u8>) -> Request {
    if let Request::Write(write) = &mut request {
        write.content = content;
    }
    request
}

/// The outcome with the content that came behind it.
pub(super) fn with_read(mut outcome: Outcome, content: Vec<u8>) -> Outcome {
    if let Outcome::Read(read) = &mut outcome {
        read.content = content;
    }
    outcome
}

impl From<SettledChange> for ChangeVerdict {
    fn from(settled: SettledChange) -> Self {
        match settled {
            SettledChange::Applied(_) => Self::Applied,
            SettledChange::NotApplied => Self::NotApplied,
            SettledChange::Unclear => Self::Unclear,
        }
    }
}
