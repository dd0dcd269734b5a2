//! Whether a call is tried anew, and when: one that only reads because its operation was lost, any
//! one because the runner had no room for it yet. A pure function of what became of it.
//!
//! An operation that the sandbox took is spent: the next attempt is another operation, with the
//! next number of the call's identity. One that was not taken is asked for again as it is.

use std::time::Duration;

use shared_types::{Effect, Refusal, RefusalCode, Remedy};

use super::follow::{Follow, Followed};
use crate::engine::{EngineLimits, RERUNS_AT_MOST};

/// How often a call was tried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attempts {
    /// The number of the operation that is tried, from 0.
    pub(super) number: u32,
    reruns: u32,
    retries: u32,
}

/// What is done after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It is told.
    Never,
    /// The next operation, at once.
    Rerun,
    /// After a while; `spent`: as the next operation.
    Retry {
        /// How long to wait.
        after: Duration,
        /// Whether the operation was taken, and did not start.
        spent: bool,
    },
}

impl Attempts {
    /// What is done after an attempt that became this.
    pub(super) fn after(
        &self,
        effect: Effect,
        limits: &EngineLimits,
        follow: &Follow<'_>,
        followed: &Followed,
    ) -> Again {
        match followed {
            Followed::DidNotStart(refusal) | Followed::Refused(refusal)
                if refusal.code == RefusalCode::Lost =>
            {
                match effect == Effect::Pure && self.reruns < RERUNS_AT_MOST {
                    true => Again::Rerun,
                    false => Again::Never,
                }
            }
            Followed::DidNotStart(refusal) => self.retry(limits, refusal, true),
            // It speaks of this start; whether one before it was carried out, it does not know.
            Followed::Refused(_) if follow.attached => Again::Never,
            Followed::Refused(refusal) => self.retry(limits, refusal, false),
            _ => Again::Never,
        }
    }

    /// The attempts with the one that this asks for.
    pub(super) fn next(self, again: &Again) -> Self {
        match again {
            Again::Never => self,
            Again::Rerun => Self {
                number: self.number + 1,
                reruns: self.reruns + 1,
                ..self
            },
            Again::Retry { spent, .. } => Self {
                number: self.number + u32::from(*spent),
                retries: self.retries + 1,
                ..self
            },
        }
    }

    fn retry(&self, limits: &EngineLimits, refusal: &Refusal, spent: bool) -> Again {
        let wait = refusal.retry_after_ms.map(Duration::from_millis);
        match wait {
            Some(after)
                if refusal.remedy() == Remedy::Retry
                    && after <= limits.retry_after_at_most
                    && self.retries < limits.retries_at_most =>
            {
                Again::Retry { after, spent }
            }
            _ => Again::Never,
        }
    }
}
