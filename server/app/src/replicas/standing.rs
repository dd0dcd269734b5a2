//! The standing of this replica among those of its database: its lease, whether it drains, and the signs of the others.
//! The loop of `replicas` keeps it up to date, and others ask it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use shared_types::{Clock, ReplicaId, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::LEASE;
use crate::ready::NotReady;

/// See the module. Clones are the same.
#[derive(Clone)]
pub(crate) struct Standing {
    clock: Arc<dyn Clock>,
    leaving: CancellationToken,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The start of the last renewal that succeeded, on the monotonic clock. None of a server that has no lease,
    /// because its database is a file.
    renewed_at: Option<Duration>,
    draining_since: Option<Timestamp>,
    /// The time when each other replica was last seen to have renewed its row.
    others: HashMap<ReplicaId, Duration>,
}

impl Standing {
    /// That of a server which has just begun.
    pub(crate) fn new(clock: Arc<dyn Clock>, is_shared: bool) -> Self {
        let renewed_at = is_shared.then(|| clock.monotonic());
        Self {
            clock,
            leaving: CancellationToken::new(),
            state: Arc::new(Mutex::new(State {
                renewed_at,
                draining_since: None,
                others: HashMap::new(),
            })),
        }
    }

    /// Records a renewal that began then and has succeeded. Others count this replica's silence from a later moment,
    /// so they hold it for dead only after its own lease is over.
    pub(super) fn renewed(&self, began_at: Duration, draining_since: Option<Timestamp>) {
        let mut state = self.lock();
        state.renewed_at = Some(began_at);
        state.draining_since = draining_since;
    }

    /// Records when the others were last seen to have renewed.
    pub(super) fn saw(&self, others: HashMap<ReplicaId, Duration>) {
        self.lock().others = others;
    }

    /// The time since the last renewal; none without a lease.
    pub(crate) fn renewal_age(&self) -> Option<Duration> {
        let renewed_at = self.lock().renewed_at?;
        Some(self.clock.monotonic().saturating_sub(renewed_at))
    }

    /// The time since another replica was last seen to have renewed.
    pub(crate) fn renewal_age_of(&self, other: ReplicaId) -> Option<Duration> {
        let seen_at = *self.lock().others.get(&other)?;
        Some(self.clock.monotonic().saturating_sub(seen_at))
    }

    /// The number of other replicas that live, as far as this one knows.
    pub(crate) fn others(&self) -> usize {
        self.lock().others.len()
    }

    /// True while no other replica may hold this one for dead.
    pub(super) fn has_lease(&self) -> bool {
        self.renewal_age().is_none_or(|age| age < LEASE)
    }

    /// The end of the lease, if nothing renews it.
    pub(super) fn lease_ends(&self) -> Option<Instant> {
        Some(Instant::now() + LEASE.saturating_sub(self.renewal_age()?))
    }

    /// Since when the operator lets this replica drain.
    pub(crate) fn draining_since(&self) -> Option<Timestamp> {
        self.lock().draining_since
    }

    /// The process will stop soon.
    pub(crate) fn leave(&self) {
        self.leaving.cancel();
    }

    /// Cancelled once the process will stop soon.
    pub(super) fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    /// Checks that this replica may take requests.
    ///
    /// # Errors
    /// [`NotReady::Leaving`], [`NotReady::Draining`] and [`NotReady::Lease`].
    pub(crate) fn check(&self) -> Result<(), NotReady> {
        if self.leaving.is_cancelled() {
            return Err(NotReady::Leaving);
        }
        if self.draining_since().is_some() {
            return Err(NotReady::Draining);
        }
        match self.renewal_age() {
            Some(age) if age >= LEASE => Err(NotReady::Lease {
                silent_s: age.as_secs(),
            }),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::clock::ManualClock;

    use super::*;

    #[test]
    fn a_lease_that_is_not_renewed_ends_and_comes_back_with_a_renewal_that_began_in_time() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
        let standing = Standing::new(clock.clone(), true);
        let began_at = clock.monotonic();
        clock.advance(LEASE);
        assert!(matches!(standing.check(), Err(NotReady::Lease { .. })));
        standing.renewed(began_at, None);
        assert!(!standing.has_lease(), "the process was stopped meanwhile");
        standing.renewed(clock.monotonic(), None);
        assert!(standing.has_lease() && standing.check().is_ok());
    }

    #[test]
    fn a_server_whose_database_is_a_file_needs_no_lease() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
        let standing = Standing::new(clock.clone(), false);
        clock.advance(LEASE * 2);
        assert!(standing.has_lease() && standing.check().is_ok());
    }
}
