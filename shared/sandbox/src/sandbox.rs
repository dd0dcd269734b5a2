//! The contract itself.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shared_types::{
    Effect, Epoch, OperationId, OperationKey, Owner, Refusal, Timestamp, TraceContext, event::Place,
};

use crate::{Controls, Events, Outcome, Request};

/// A place where operations happen.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Starts the operation, or attaches to it where its id is known already: asking twice never
    /// runs it twice. It is in the sandbox's memory before this returns. Where it has no room yet, it is
    /// tried again until the time to start has passed. The caller that asked last is told all of the
    /// output, and gets the right to store the end ([`EndToken`](crate::EndToken)).
    ///
    /// # Errors
    /// A refusal: then nothing was started, here or anywhere, by this call.
    async fn start(&self, operation: Operation) -> Result<Running, Refusal>;

    /// Stops the operation and everything that it started. It does not need the caller to stay,
    /// and may be asked again.
    ///
    /// # Errors
    /// A refusal, when the sandbox does not know it and will not run it; with
    /// [`RefusalCode::NotFound`](shared_types::RefusalCode::NotFound), when it was never asked for:
    /// then nothing is promised of a start that comes later.
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
    /// Derived from tenant, owner and key; the same whoever computes it.
    pub id: OperationId,
    /// What it belongs to.
    pub owner: Owner,
    /// What the owner calls it.
    pub key: OperationKey,
    /// The owner's epoch; a lower one than the sandbox has seen is refused.
    pub epoch: Epoch,
    /// What a second run would do.
    pub effect: Effect,
    /// How long it may take.
    pub limits: OperationLimits,
    /// What is asked.
    pub request: Request,
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
    /// Where it runs; recorded before it was sent.
    pub place: Place,
    /// What happens to it; the last one is [`OperationEvent::Ended`]. A slow reader holds up nothing: it is
    /// told what is kept of the output. Only where nothing is kept ([`crate::Retention::None`], a download)
    /// the output waits for its one reader.
    pub events: Box<dyn Events>,
    /// What can be passed on to it.
    pub controls: Arc<dyn Controls>,
}

/// What happens to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationEvent {
    /// Its place has it, and starts it unless it has started it before. Told once to whoever
    /// attaches, where that needed the place; some of the output may come first.
    Accepted,
    /// Bytes of an output stream, in order and without repeats.
    Output {
        /// The stream.
        stream: OutputStream,
        /// Where the bytes stand in it, from 0.
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
    /// Its input below this offset is taken and need not be sent again. Less than before where the
    /// place has lost it (an upload whose runner was started anew): then send on from here. Told
    /// at once to whoever attaches to what takes input.
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

/// What became of a wish to stop (docs/internals/contracts.md#a17): exactly one of these.
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
