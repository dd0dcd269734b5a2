//! Runners whose links are refused because of the version of the link protocol that they speak. A user
//! who finds such a runner offline sees the reason.
//!
//! Only this process knows it, since its start, and until the runner links or is removed. A runner
//! that is refused tries again, so a server that restarted soon knows it again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use shared_types::RunnerId;

/// Runners that are remembered; of more it is not known why they are offline.
const KEPT_AT_MOST: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Outdated {
    versions: Mutex<BTreeMap<RunnerId, u32>>,
}

impl Outdated {
    /// Notes that a link of this runner was refused. Call it only for a peer that has shown an
    /// access token: no other peer may fill this memory.
    pub(crate) fn refused(&self, runner: RunnerId, version: u32) {
        self.with(|versions| {
            if versions.len() < KEPT_AT_MOST || versions.contains_key(&runner) {
                versions.insert(runner, version);
            }
        });
    }

    /// This runner is let in, or gone.
    pub(crate) fn forget(&self, runner: RunnerId) {
        self.with(|versions| versions.remove(&runner));
    }

    /// The version for which its last link was refused.
    pub(crate) fn version(&self, runner: RunnerId) -> Option<u32> {
        self.with(|versions| versions.get(&runner).copied())
    }

    /// Nothing that panics runs under the lock.
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<RunnerId, u32>) -> T) -> T {
        act(&mut self.versions.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_outdated_until_it_is_let_in() {
        let (outdated, runner) = (Outdated::default(), RunnerId::from_u128(1));
        outdated.refused(runner, 0);
        outdated.refused(runner, 1);
        assert_eq!(outdated.version(runner), Some(1));
        assert_eq!(outdated.version(RunnerId::from_u128(2)), None);
        outdated.forget(runner);
        assert_eq!(outdated.version(runner), None);
    }

    #[test]
    fn many_runners_fill_no_memory_and_those_that_are_known_stay_so() {
        let outdated = Outdated::default();
        for runner in 0..=KEPT_AT_MOST as u128 {
            outdated.refused(RunnerId::from_u128(runner), 1);
        }
        let last = RunnerId::from_u128(KEPT_AT_MOST as u128);
        assert_eq!(outdated.version(last), None);
        outdated.refused(RunnerId::from_u128(0), 0);
        assert_eq!(outdated.version(RunnerId::from_u128(0)), Some(0));
    }
}
