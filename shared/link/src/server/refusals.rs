//! The reasons why an operation ends without its runner's answer.

use shared_sandbox::{ExitRecord, OutputStream};
use shared_types::{Refusal, RefusalCode};

/// The reason for an operation that its runner never had, or only as a read whose answer no reader
/// got. It will never be sent (docs/internals/contracts.md#a15, #a17).
pub fn never_started() -> Refusal {
    Refusal::new(
        RefusalCode::Fenced,
        "it was given up before its runner had it: it changed nothing and never starts",
    )
}

/// The reason for a lost operation that its runner does not remember
/// (docs/internals/contracts.md#a3).
pub fn forgotten() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was restarted and remembers nothing of this operation",
    )
}

/// The reason for a lost operation that is open only in a restored database.
pub fn lost_to_restoration() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the server's database was restored from an older copy, and the runner remembers nothing of this operation; what it did is not known",
    )
}

/// The reason for a lost operation whose runner never comes back (docs/internals/contracts.md#a15).
pub fn lost_to_revocation() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was revoked while this operation may have been running; what it did is not known",
    )
}

/// The reason for a lost operation whose runner has not come back for too long
/// (docs/internals/contracts.md#a15).
pub fn lost_to_silence() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner did not come back; what this operation did is not known",
    )
}

/// The reason for a lost operation whose output differs from what its supervisor saw
/// (docs/internals/contracts.md#a12).
pub(super) fn damaged(stream: OutputStream, record: &ExitRecord) -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        format!(
            "it ended {} ({}), but the {stream} that came is not what it wrote: the checksums differ",
            record.cause, record.status
        ),
    )
}

/// The reason for a lost operation whose end reports less output than came
/// (docs/internals/contracts.md#a12).
pub(super) fn cut_short(stream: OutputStream, record: &ExitRecord) -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        format!(
            "it ended {} ({}), but more of its {stream} came before than its end knows of",
            record.cause, record.status
        ),
    )
}

/// The reason for a lost operation whose end reports output that neither came nor was reported as a
/// gap (docs/internals/contracts.md#a12).
pub(super) fn never_came(stream: OutputStream, record: &ExitRecord) -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        format!(
            "it ended {} ({}), but less of its {stream} came than its end knows of",
            record.cause, record.status
        ),
    )
}

pub(super) fn expired() -> Refusal {
    Refusal::new(
        RefusalCode::Expired,
        "the operation could not be sent to its runner in time and was not started",
    )
}
