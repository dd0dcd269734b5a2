//! Why an operation ends without its runner's word.

use shared_types::{Refusal, RefusalCode};

/// Why an operation is lost of which its runner remembers nothing (contract A3).
pub fn forgotten() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was restarted and remembers nothing of this operation",
    )
}

/// Why an operation is lost whose runner never comes back (contract A15).
pub fn lost_to_revocation() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner was revoked while this operation may have been running; what it did is not known",
    )
}

/// Why an operation is lost whose runner has not come back for too long (contract A15).
pub fn lost_to_silence() -> Refusal {
    Refusal::new(
        RefusalCode::Lost,
        "the runner did not come back; what this operation did is not known",
    )
}

pub(super) fn expired() -> Refusal {
    Refusal::new(
        RefusalCode::Expired,
        "the operation could not be sent to its runner in time and was not started",
    )
}
