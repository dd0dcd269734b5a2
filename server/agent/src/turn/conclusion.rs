//! The engine's conclusion on one operation.

use shared_sandbox::Outcome;
use shared_types::{Refusal, RefusalCode, Timestamp, event::Awaited};
use tokio::time::Instant;

/// The fate of an operation, as the engine sees it.
#[derive(Debug)]
pub(super) enum Conclusion {
    /// It ended; not by a refusal.
    Ended(Outcome),
    /// The sandbox took it, and it did not start or is lost.
    DidNotStart(Refusal),
    /// It runs, and its end is not waited for any longer.
    StillRuns,
    /// Its end is waited for until then, which needs no worker.
    Waits { until: Instant, awaits: Awaited },
    /// The sandbox did not take it.
    Refused(Refusal),
    /// The runner was gone for too long.
    Parked { since: Timestamp },
    /// Nothing was heard of it in time.
    Silent,
    /// It was cancelled before it started.
    NotRun,
    /// It is stopped when the runner is back.
    StopRecorded,
    /// It was to be stopped, and nothing was heard of it in time.
    StopUnanswered,
}

impl Conclusion {
    /// The reason for which it was refused.
    pub(super) fn refusal(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) | Self::DidNotStart(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    /// Its end, where that is known.
    pub(super) fn into_outcome(self) -> Option<Outcome> {
        match self {
            Self::Ended(outcome) => Some(outcome),
            Self::DidNotStart(refusal) => Some(Outcome::Refused(refusal)),
            _ => None,
        }
    }
}
