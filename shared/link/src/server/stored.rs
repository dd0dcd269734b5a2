//! What the store says of operations and of the runners where they were placed.

use shared_sandbox::Outcome;
use shared_types::{
    Digest, Effect, Epoch, Incarnation, Owner, Timestamp, TraceContext, clock::BootMoment,
    event::Place,
};

/// What is stored of an operation that was placed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredIntent {
    /// Of the canonical request.
    pub digest: Digest,
    /// What it belongs to.
    pub owner: Owner,
    /// The epoch of its owner now.
    pub epoch: Epoch,
    /// Where it was placed; never another place.
    pub place: Place,
    /// The runner's incarnation when it was placed.
    pub incarnation: Incarnation,
    /// Its end, once that is known.
    pub outcome: Option<Outcome>,
    /// Whether it is to be stopped.
    pub cancel_requested: bool,
    /// Its call has ended: nobody will send it any more.
    pub closed: bool,
    /// What a second run would do.
    pub effect: Effect,
    /// It must have started by then or not at all; absent where an earlier release placed it, of
    /// which nobody knows whether that is over.
    pub start_by: Option<BootMoment>,
    /// The span that it is part of, where it is traced.
    pub trace: Option<TraceContext>,
}

/// What settling an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// The outcome is stored now.
    First,
    /// This one had been stored before, and stays.
    Already(Outcome),
}

/// Whether a runner can be reached.
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
