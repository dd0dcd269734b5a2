//! The stored state of operations, and of the runners where they were placed.

use shared_sandbox::Outcome;
use shared_types::{
    Digest, Effect, Epoch, Incarnation, Owner, Timestamp, TraceContext, clock::BootMoment,
    event::Place,
};

/// The stored state of an operation that was placed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredIntent {
    /// Of the canonical request.
    pub digest: Digest,
    /// The owner that it belongs to.
    pub owner: Owner,
    /// The epoch of its owner now.
    pub epoch: Epoch,
    /// The place that was chosen for it; it never changes.
    pub place: Place,
    /// The runner's incarnation when it was placed.
    pub incarnation: Incarnation,
    /// Its end, once that is known.
    pub outcome: Option<Outcome>,
    /// True if it must be stopped.
    pub cancel_requested: bool,
    /// Its call has ended: no caller will send it any more.
    pub closed: bool,
    /// The effect of a second run.
    pub effect: Effect,
    /// It must have started by then or not at all; absent where an earlier release placed it,
    /// because then the time is not known.
    pub start_by: Option<BootMoment>,
    /// The span that it is part of, where it is traced.
    pub trace: Option<TraceContext>,
}

/// The result of settling an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// The outcome is stored now.
    First,
    /// This one had been stored before, and stays.
    Already(Outcome),
}

/// The state of a runner in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerState {
    /// It has a link.
    Online,
    /// It has none.
    Offline {
        /// When it was last heard of; absent where it never was.
        since: Option<Timestamp>,
    },
    /// Its credential was withdrawn; it never comes back.
    Revoked,
}
