//! The decision to run a call again, as another operation: only if the operation was lost, and the call
//! merely reads. It is a pure function of the conclusion, so that every worker that resumes the turn
//! comes to the same operation.

use shared_types::{Effect, RefusalCode};

use super::conclusion::Conclusion;
use crate::bounds::RERUNS_AT_MOST;

/// `attempt`: the number of the operation that became this, from 0.
pub(super) fn is_run_anew(effect: Effect, attempt: u32, conclusion: &Conclusion) -> bool {
    let lost = conclusion.refusal() == Some(RefusalCode::Lost);
    lost && effect == Effect::Pure && attempt < RERUNS_AT_MOST
}
