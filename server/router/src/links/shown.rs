//! A runner's memory as one link has shown it; the store may not have it yet.

use std::sync::atomic::{AtomicU64, Ordering};

use shared_link::server::{HelloFacts, KnownMemory};
use shared_types::Incarnation;

/// The memory that one link has shown. Its task raises it, and the next link of the runner is
/// compared with it.
#[derive(Debug)]
pub(super) struct ReportedMemory {
    incarnation: Incarnation,
    journal_sequence: u64,
    accepted: AtomicU64,
}

impl ReportedMemory {
    pub(super) fn of(facts: &HelloFacts) -> Self {
        Self {
            incarnation: facts.incarnation.clone(),
            journal_sequence: facts.journal_sequence,
            accepted: AtomicU64::new(facts.journal_sequence),
        }
    }

    /// Raises the number of operations that the runner has accepted.
    pub(super) fn raise(&self, accepted: u64) {
        self.accepted.fetch_max(accepted, Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(super) fn seen(&self) -> KnownMemory {
        KnownMemory {
            incarnation: self.incarnation.clone(),
            journal_sequence: self.journal_sequence,
            accepted_sequence: self.accepted(),
        }
    }
}
