//! The contract itself.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shared_types::{
    Effect, Epoch, OperationId, OperationKey, Owner, Refusal, Timestamp, TraceContext, event::Place,
};

use crate::{Consent, Controls, Events, Outcome, Request};

/// A place where operations happen.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Starts the operation, or attaches to it where its id is known already: asking twice never runs it twice.
    /// It is in the sandbox's memory before this returns. Where the sandbox has no room yet, it tries again
    /// until the time to start has passed. The last caller receives all of the output, and gets the right to
    /// store the end ([`EndToken`](crate::EndToken)).
    ///
    /// # Errors
    /// A refusal: then nothing was started, here or anywhere, by this call.
    async fn start(&self, operation: Operation) -> Result<Running, Refusal>;

    /// Stops the operation and everything that it started. It does not need the caller to stay,
    /// and may be asked again.
    ///
    /// # Errors
    /// A refusal, when the sandbox does not know it and will not run it. The code is
    /// [`RefusalCode::NotFound`](shared_types::RefusalCode::NotFound) when it was never asked for: then nothing
    /// is promised about a start that comes later.
    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Result<CancelAnswer, Refusal>;

    /// Reads an operation from these offsets of stdout and stderr on. Nothing is started by it, and the
    /// reader gets no right to store the end.
    ///
    /// # Errors
    /// A refusal; with [`RefusalCode::NotFound`](shared_types::RefusalCode::NotFound), when it was never
    /// asked for.
    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal>;

    /// Tells the sandbox that the caller waits no more for the end of an operation, which may never have
    /// been asked for. What runs goes on; what never started never does. The sandbox stores the end
    /// either way.
    async fn leave(&self, operation: OperationId);
}

/// A request with everything that identifies and bounds it (docs/internals/contracts.md#a1 to #a4).
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The id, derived from tenant, owner and key; every replica computes the same.
    pub id: OperationId,
    /// The owner that it belongs to.
    pub owner: Owner,
    /// The owner's name for it.
    pub key: OperationKey,
    /// The owner's epoch; a lower one than the sandbox has seen is refused.
    pub epoch: Epoch,
    /// The effect of a second run.
    pub effect: Effect,
    /// The times that it may take.
    pub limits: OperationLimits,
    /// The request itself.
    pub request: Request,
    /// The consent that covers it. It identifies nothing: the same operation may come again under another one.
    pub consent: Consent,
    /// The span that it is part of, where it is traced. Where the operation is placed already, that one's stays.
    pub trace: Option<TraceContext>,
}

/// Times, each as what remains: they shrink at every hop and never name a wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLimits {
    /// It must start within this time or not at all.
    pub start_within: Duration,
    /// It is stopped after running this long.
    pub run_for: Duration,
}

/// An operation that is known to its sandbox. Dropping it stops nothing.
#[derive(Debug)]
pub struct Running {
    /// The place where it runs; recorded before the operation was sent.
    pub place: Place,
    /// Its events; the last one is [`OperationEvent::Ended`]. A slow reader delays nothing: it receives the part
    /// of the output that is kept. Only where nothing is kept ([`crate::Retention::None`], a download) the
    /// output waits for its one reader.
    pub events: Box<dyn Events>,
    /// Its controls: input, signals, the terminal's size, and commits of output.
    pub controls: Arc<dyn Controls>,
}

/// An event of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationEvent {
    /// Its place has it, and starts it unless it has started it before. Each reader that attaches receives this
    /// once, where the answer had to come from the place; some of the output may come first.
    Accepted,
    /// Bytes of an output stream, in order and without repeats.
    Output {
        /// The stream.
        stream: OutputStream,
        /// The offset of the bytes in the stream, from 0.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Bytes from `from` up to `to` are not kept any more; the stream goes on at `to`.
    Gap {
        /// The stream.
        stream: OutputStream,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap.
        to: u64,
    },
    /// The place cannot be reached since then; the operation goes on, and so does this stream
    /// once the place is back.
    Unreachable {
        /// When it was last heard of.
        since: Timestamp,
    },
    /// The place is back.
    Reachable,
    /// Its input below this offset is taken and need not be sent again. The offset is lower than before where
    /// the place has lost input (an upload whose runner was restarted): then send on from here. A reader that
    /// attaches to an operation that takes input receives this at once.
    InputTaken(u64),
    /// It ended; nothing follows. The end is stored, or the reader may store it
    /// ([`Events::end_token`]).
    Ended(Outcome),
}

/// One of a process's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output, and standard error too where they are merged.
    Stdout,
    /// Standard error.
    Stderr,
}

impl fmt::Display for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

/// The answer to a request to stop (docs/internals/contracts.md#a17): exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAnswer {
    /// It had not started and never will.
    NeverStarted,
    /// It had ended by itself.
    AlreadyExited,
    /// It was stopped; its end arrives with the output so far.
    Cancelled,
    /// The place cannot be reached; it is stopped when it is back.
    Recorded,
}
