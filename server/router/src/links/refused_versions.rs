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
pub(crate) struct RefusedVersions {
    versions: Mutex<BTreeMap<RunnerId, u32>>,
}

impl RefusedVersions {
    /// Notes that a link of this runner was refused. Call it only for a peer that has shown an
    /// access token: no other peer may fill this memory.
    pub(crate) fn add(&self, runner: RunnerId, version: u32) {
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
    fn a_version_is_refused_until_its_runner_is_let_in() {
        let (refused, runner) = (RefusedVersions::default(), RunnerId::from_u128(1));
        refused.add(runner, 0);
        refused.add(runner, 1);
        assert_eq!(refused.version(runner), Some(1));
        assert_eq!(refused.version(RunnerId::from_u128(2)), None);
        refused.forget(runner);
        assert_eq!(refused.version(runner), None);
    }

    #[test]
    fn many_runners_fill_no_memory_and_those_that_are_known_stay_so() {
        let refused = RefusedVersions::default();
        for runner in 0..=KEPT_AT_MOST as u128 {
            refused.add(RunnerId::from_u128(runner), 1);
        }
        let last = RunnerId::from_u128(KEPT_AT_MOST as u128);
        assert_eq!(refused.version(last), None);
        refused.add(RunnerId::from_u128(0), 0);
        assert_eq!(refused.version(RunnerId::from_u128(0)), Some(0));
    }
}
