//! Counts of runners, turns and operations, read from the database at each scrape.

use std::{sync::Arc, time::Duration};

use server_router::links::Links;
use server_store::{Store, StoreCounts, StoreError};
use shared_telemetry::server::{
    OPERATIONS_OPEN, OPERATIONS_UNKNOWN, REPLICA_DRAINS, REPLICA_RENEWAL_AGE, RUNNER_VERSIONS,
    RUNNERS, STORE_CONNECTIONS, TURNS_OLDEST_QUEUED, TURNS_QUEUED,
};
use shared_types::Clock;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{Parts, replicas::Standing};

/// The database is asked at most this often.
const UPDATED_EVERY: Duration = Duration::from_secs(1);

/// The version by which runners are told apart: that of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest time that the database may take to count.
const COUNTED_WITHIN: Duration = Duration::from_secs(3);

/// Counts what there is.
#[derive(Clone)]
pub(crate) struct Gauges {
    store: Store,
    clock: Arc<dyn Clock>,
    links: Links,
    standing: Standing,
    updated_at: Arc<Mutex<Option<Instant>>>,
}

impl Gauges {
    pub(crate) fn new(parts: &Parts, links: &Links, standing: &Standing) -> Self {
        Self {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            links: links.clone(),
            standing: standing.clone(),
            updated_at: Arc::default(),
        }
    }

    /// Brings the metrics of what there is up to date; where the database does not answer, they stay
    /// as they were. Several that ask at once are answered by one look.
    pub(crate) async fn update(&self) {
        self.links.update_metrics();
        let renewal_age = self.standing.renewal_age().unwrap_or_default();
        REPLICA_RENEWAL_AGE.set(&[], renewal_age.as_secs_f64());
        let drains = self.standing.draining_since().is_some();
        REPLICA_DRAINS.set(&[], f64::from(drains));
        let (in_use, idle) = self.store.connections();
        STORE_CONNECTIONS.set(&["in_use"], count(in_use as u64));
        STORE_CONNECTIONS.set(&["idle"], count(idle as u64));
        let mut updated_at = self.updated_at.lock().await;
        if updated_at.is_some_and(|at| at.elapsed() < UPDATED_EVERY) {
            return;
        }
        match timeout(COUNTED_WITHIN, self.store.counts(VERSION)).await {
            Ok(Ok(counts)) => self.set(&counts),
            Ok(Err(error)) => failed(&error),
            Err(_) => tracing::warn!(
                waited_s = COUNTED_WITHIN.as_secs(),
                "what there is cannot be counted in time; its metrics are old"
            ),
        }
        *updated_at = Some(Instant::now());
    }

    fn set(&self, counts: &StoreCounts) {
        let oldest = counts.oldest_queued.map(|at| self.clock.now().since(at));
        TURNS_QUEUED.set(&[], count(counts.turns_queued));
        TURNS_OLDEST_QUEUED.set(&[], oldest.unwrap_or_default().as_secs_f64());
        OPERATIONS_OPEN.set(&[], count(counts.operations_open));
        OPERATIONS_UNKNOWN.set(&[], count(counts.operations_unknown));
        RUNNERS.set(&["online"], count(counts.runners_online));
        RUNNERS.set(&["offline"], count(counts.runners_offline));
        RUNNERS.set(&["locked"], count(counts.runners_locked));
        let others = counts
            .runners_online
            .saturating_sub(counts.runners_of_version);
        RUNNER_VERSIONS.set(&["same"], count(counts.runners_of_version));
        RUNNER_VERSIONS.set(&["other"], count(others));
    }
}

fn failed(error: &StoreError) {
    tracing::warn!(%error, "what there is cannot be counted; its metrics are old");
}

/// No count comes near to 2^53, above which this rounds.
fn count(count: u64) -> f64 {
    count as f64
}
