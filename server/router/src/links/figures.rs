//! The figures that the runners linked to this server report: for people and metrics.
//!
//! Only this process knows them, and only while the link lives. Each server of one database reports its own
//! links; the sum of all of them is the fleet.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use shared_link::server::Figures;
use shared_telemetry::server::{
    FLEET_DISK_FREE_BYTES, FLEET_LOW_ON_DISK, FLEET_OPERATIONS_RUNNING, FLEET_SPOOL_BYTES,
};
use shared_types::{Generation, RunnerId};

/// A runner with less room than this on its disk is low on it.
const LOW_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FleetFigures {
    runners: Mutex<BTreeMap<RunnerId, (Generation, Figures)>>,
}

impl FleetFigures {
    /// The runner says so over its link of this generation; an older one does not count any more.
    pub(crate) fn report(&self, runner: RunnerId, link: Generation, figures: Figures) {
        self.with(|runners| match runners.get(&runner) {
            Some((newer, _)) if *newer > link => {}
            _ => drop(runners.insert(runner, (link, figures))),
        });
    }

    /// The link of this generation ended.
    pub(crate) fn forget(&self, runner: RunnerId, link: Generation) {
        self.with(|runners| {
            if runners
                .get(&runner)
                .is_some_and(|(known, _)| *known <= link)
            {
                runners.remove(&runner);
            }
        });
    }

    /// The last figures of the runner.
    pub(crate) fn of(&self, runner: RunnerId) -> Option<Figures> {
        self.with(|runners| runners.get(&runner).map(|(_, figures)| *figures))
    }

    /// Brings the metrics up to date.
    pub(crate) fn update_metrics(&self) {
        let all: Vec<_> = self.with(|runners| runners.values().map(|(_, one)| *one).collect());
        let sum = |figure: fn(&Figures) -> u64| {
            let figures = all.iter().map(figure);
            figures.fold(0, u64::saturating_add) as f64
        };
        FLEET_OPERATIONS_RUNNING.set(&[], sum(|one| one.operations_running));
        FLEET_SPOOL_BYTES.set(&[], sum(|one| one.spool_bytes));
        FLEET_DISK_FREE_BYTES.set(&[], sum(|one| one.disk_free_bytes));
        let low = all.iter().filter(|one| one.disk_free_bytes < LOW_BYTES);
        FLEET_LOW_ON_DISK.set(&[], low.count() as f64);
    }

    /// Nothing that panics runs under the lock.
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<RunnerId, (Generation, Figures)>) -> T) -> T {
        act(&mut self.runners.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNER: RunnerId = RunnerId::from_u128(1);

    fn running(operations_running: u64) -> Figures {
        Figures {
            operations_running,
            spool_bytes: 0,
            disk_free_bytes: 0,
        }
    }

    #[test]
    fn the_newest_link_of_a_runner_counts_until_it_ends() {
        let fleet = FleetFigures::default();
        fleet.report(RUNNER, Generation(2), running(2));
        fleet.report(RUNNER, Generation(1), running(1));
        assert_eq!(fleet.of(RUNNER), Some(running(2)));
        fleet.forget(RUNNER, Generation(1));
        assert_eq!(fleet.of(RUNNER), Some(running(2)));
        fleet.forget(RUNNER, Generation(2));
        assert_eq!(fleet.of(RUNNER), None);
    }
}
