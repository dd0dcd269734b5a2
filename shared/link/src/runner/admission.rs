//! The decision whether an operation starts, is attached to, or is refused
//! (docs/internals/contracts.md#a3 to #a5): a pure function of what the runner knows.

use std::time::Duration;

use shared_sandbox::Request;
use shared_types::{
    Digest, Epoch, Incarnation, Refusal,
    RefusalCode::{
        self, Conflict, Draining, Expired, Fenced, ForbiddenByRunnerPolicy, NotFound,
        ResourceExhausted, SpoolFull, StaleEpoch,
    },
    SandboxId,
    limits::SPOOL_BYTES_PER_STREAM,
};

use super::orders::Incoming;

/// Operations that run at the same time, at most.
pub(super) const MAX_RUNNING: usize = 64;

/// Operations that are remembered, running ones included, at most.
pub(super) const MAX_REMEMBERED: usize = 512;

/// Disk for output, at most, in bytes (docs/internals/contracts.md#a11). A running operation counts
/// with [`RESERVED_BYTES`], one that ended with what it really left.
pub(super) const MAX_RETAINED_BYTES: u64 = 1024 * 1024 * 1024;

/// The most bytes that one running operation may come to keep: two full streams.
pub(super) const RESERVED_BYTES: u64 = 2 * SPOOL_BYTES_PER_STREAM;

/// The wait before a refused operation may be tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The reason to refuse one more owner: its epoch could not be kept.
pub(super) const TOO_MANY_OWNERS: &str =
    "the runner served as many sessions and sandboxes within a day as it can tell apart";

/// The runner's knowledge that matters to one operation.
#[derive(Debug, Clone)]
pub(super) struct RunnerView<'a> {
    pub(super) incarnation: &'a Incarnation,
    /// True if something new may happen in the sandbox that the operation names.
    pub(super) has_sandbox: bool,
    /// The highest epoch that was seen of the operation's owner.
    pub(super) epoch: Epoch,
    /// True if the owner's epoch is known, or can be noted.
    pub(super) has_room_for_owner: bool,
    /// The sandbox and the digest under which the operation is known already.
    pub(super) known: Option<(SandboxId, Digest)>,
    /// True if it was cancelled before it came, or has ended and was forgotten.
    pub(super) over: bool,
    pub(super) draining: bool,
    pub(super) load: Load,
}

/// The load of all operations together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) running: usize,
    pub(super) remembered: usize,
    pub(super) retained_bytes: u64,
    pub(super) receipts_full: bool,
    /// True if the disk has no more room than is to be kept free.
    pub(super) disk_short: bool,
    /// The part of it that the same sandbox takes; nothing, where no other sandbox shares the
    /// runner.
    pub(super) of_sandbox: Share,
}

/// A sandbox's part of what all operations take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) running: usize,
    pub(super) remembered: usize,
}

/// The decision about an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    Start,
    Attach,
    Refuse(Refusal),
}

/// Decides; the first rule that applies counts.
pub(super) fn admit(view: &RunnerView<'_>, operation: &Incoming) -> Admission {
    known_operation(view, operation)
        .or_else(|| refused_request(view, operation))
        .or_else(|| no_room(&view.load, operation))
        .unwrap_or(Admission::Start)
}

/// The decision on a request that is not for this runner as it is now, or that the runner knows already.
fn known_operation(view: &RunnerView<'_>, operation: &Incoming) -> Option<Admission> {
    if operation.incarnation.as_ref() != Some(view.incarnation) {
        return refuse(
            Fenced,
            "the runner was restarted: it does not know what it did before",
        );
    }
    // A reader may still attach to what was begun in a sandbox that is gone by now.
    if !view.has_sandbox && view.known.is_none() && !view.over {
        return refuse(
            NotFound,
            "the runner does not serve this workspace (any more): choose one that `gantry runners` lists",
        );
    }
    if operation.epoch < view.epoch {
        return refuse(StaleEpoch, "a newer holder of the operation's owner exists");
    }
    if !view.has_room_for_owner {
        return refuse_for_now(ResourceExhausted, TOO_MANY_OWNERS);
    }
    match view.known {
        Some(known) if known == (operation.sandbox, operation.digest) => Some(Admission::Attach),
        Some((sandbox, _)) if sandbox != operation.sandbox => {
            refuse(Conflict, "the same operation came for another sandbox")
        }
        Some(_) => refuse(Conflict, "the same operation came with another request"),
        None if view.over => refuse(
            Fenced,
            "the operation was cancelled, or has ended and was forgotten",
        ),
        None => None,
    }
}

/// The refusal of a new request that may not start here, or not any more.
fn refused_request(view: &RunnerView<'_>, operation: &Incoming) -> Option<Admission> {
    if operation.request.is_none() {
        return refuse(NotFound, "the runner does not know this operation");
    }
    if !operation.consent.covers(&operation.digest) {
        return refuse(
            ForbiddenByRunnerPolicy,
            "the request is not the one that was approved; ask again",
        );
    }
    if let Some(reason) = &operation.forbidden {
        return Some(Admission::Refuse(reason.clone()));
    }
    if operation.start_within.is_zero() {
        return refuse(
            Expired,
            "the time in which the operation had to start has passed",
        );
    }
    if view.draining {
        return refuse_for_now(Draining, "the runner is stopping");
    }
    None
}

/// The refusal of a request for which the runner has no room.
fn no_room(load: &Load, operation: &Incoming) -> Option<Admission> {
    let reads = operation.request.as_ref().is_some_and(Request::only_reads);
    if load.disk_short && !reads {
        // Waiting alone makes no room, so there is no time to wait.
        return refuse(
            SpoolFull,
            "the runner's disk is nearly full, and what is left is kept free: free some",
        );
    }
    let Load {
        running,
        remembered,
        of_sandbox,
        ..
    } = *load;
    let full = [
        (running >= MAX_RUNNING, "runs"),
        (remembered >= MAX_REMEMBERED, "remembers"),
        (load.receipts_full, "keeps receipts of"),
    ];
    if let Some((_, what)) = full.into_iter().find(|(full, _)| *full) {
        let message = format!("the runner {what} as many operations as it can");
        return refuse_for_now(ResourceExhausted, &message);
    }
    // A sandbox takes no more places than it leaves free, so that none shuts out the others. These
    // are the dynamic thresholds of Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998,
    // with a factor of 1.
    if running + of_sandbox.running >= MAX_RUNNING {
        let message = format!(
            "this sandbox has {} commands running, and what is left of the runner's {MAX_RUNNING} places is \
             kept for other sandboxes: wait until some have ended, or end them",
            of_sandbox.running
        );
        return refuse_for_now(ResourceExhausted, &message);
    }
    if remembered + of_sandbox.remembered >= MAX_REMEMBERED {
        let message = "the runner remembers as many operations of this sandbox as it can";
        return refuse_for_now(ResourceExhausted, message);
    }
    if load.retained_bytes + RESERVED_BYTES > MAX_RETAINED_BYTES {
        return refuse_for_now(SpoolFull, "the runner keeps as much output as it may");
    }
    None
}

fn refuse(code: RefusalCode, message: &str) -> Option<Admission> {
    Some(Admission::Refuse(Refusal::new(code, message)))
}

/// A refusal after which the same request may be sent again later.
fn refuse_for_now(code: RefusalCode, message: &str) -> Option<Admission> {
    let refusal = Refusal::new(code, message).retry_after(RETRY_AFTER);
    Some(Admission::Refuse(refusal))
}

#[cfg(test)]
mod tests;
