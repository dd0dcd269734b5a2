//! Renewals of runners' join states by other processes, as far as this one has come upon them: they give
//! its challenges a place behind those renewals.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use server_store::ChallengeNumber;
use shared_types::RunnerId;

/// The number of runners whose renewals are remembered. Only runners that show a state which a link has
/// left behind count. The next request of a forgotten runner is refused once more.
const RUNNERS: usize = 1024;

/// See the module.
pub(super) struct Renewals(Mutex<LruCache<RunnerId, KnownRenewal>>);

#[derive(Debug, Clone, Copy)]
struct KnownRenewal {
    renewal: ChallengeNumber,
    /// The first challenge of this process that is newer.
    since: u64,
}

impl Renewals {
    pub(super) fn new() -> Self {
        Self(Mutex::new(LruCache::new(RUNNERS)))
    }

    /// This renewal has happened; `next` is the challenge that is made next.
    pub(super) fn note(&self, runner: RunnerId, renewal: ChallengeNumber, next: u64) {
        let mut all = self.lock();
        let known = all.get(&runner).copied();
        // Noted again it would be known for the newer challenges alone.
        if known.is_none_or(|known| known.renewal != renewal) {
            let since = next;
            all.insert(runner, KnownRenewal { renewal, since });
        }
    }

    /// The renewal of this runner's that was known when the challenge was made.
    pub(super) fn known(&self, runner: RunnerId, challenge: u64) -> Option<ChallengeNumber> {
        let known = *self.lock().get(&runner)?;
        (challenge >= known.since).then_some(known.renewal)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<RunnerId, KnownRenewal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
