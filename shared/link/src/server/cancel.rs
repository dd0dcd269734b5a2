//! The decision about a request to stop an operation.

use shared_sandbox::CancelAnswer;
use shared_types::Refusal;

use super::{Linked, RunnerConnection, StoredIntent, refusals::lost_to_revocation};

/// The next step for a request to stop an operation, which is recorded before it is sent.
#[derive(Debug, PartialEq)]
pub enum CancelStep {
    /// This is the answer.
    Answer(CancelAnswer),
    /// The runner is asked.
    Send,
    /// It will never be known: this is the outcome to store.
    Lost(Refusal),
}

/// Decides about a cancel, once it is recorded. The intent is read after the connection. So an
/// operation that the runner of this link has forgotten is lost by then. The runner can be asked
/// about an open operation, also where it was started under an earlier incarnation.
pub fn cancel(intent: &StoredIntent, connection: &RunnerConnection<Linked>) -> CancelStep {
    if intent.outcome.is_some() {
        return CancelStep::Answer(CancelAnswer::AlreadyExited);
    }
    match connection {
        RunnerConnection::Online(_) => CancelStep::Send,
        RunnerConnection::Revoked => CancelStep::Lost(lost_to_revocation()),
        RunnerConnection::Offline { .. } | RunnerConnection::Linking => {
            CancelStep::Answer(CancelAnswer::Recorded)
        }
    }
}
