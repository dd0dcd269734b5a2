//! Runners that do not come back (docs/internals/contracts.md#a15). Once they were silent for long
//! enough, what they have open is lost, and those that are ephemeral are removed.
//!
//! Only silence counts in which this server was there to hear them: what goes by between its looks on
//! the boot-time clock, which is stored with the runner. So no wall clock that is set makes anything
//! due; another process goes on where the one before ended, and the time in between counts as nothing.
//! What a look counts is due with the next one at the earliest, and a server that was just started, or
//! whose host was suspended, gives every runner that lives the time until then to come back (it tries
//! again at least every 30 s).

use std::{sync::Arc, time::Duration};

use server_store::Store;
use shared_types::{Clock, ReplicaId};
use tokio_util::sync::CancellationToken;

use crate::{AppError, silent::Silent, sweep::Sweep};

/// The pause between two looks for such runners, and before the first one. A process that ends in
/// between has counted less by so much at most.
const EVERY: Duration = Duration::from_secs(10 * 60);

/// See the module.
pub(crate) struct Silence {
    store: Store,
    clock: Arc<dyn Clock>,
    replica: ReplicaId,
    /// The moment up to which the time is counted, on the boot-time clock.
    counted_to: Duration,
}

impl Silence {
    /// Counts from now on.
    pub(crate) fn from_now(store: Store, clock: Arc<dyn Clock>, replica: ReplicaId) -> Self {
        Self {
            counted_to: clock.boot_time(),
            store,
            clock,
            replica,
        }
    }

    /// Looks now and again, until `stop`.
    pub(crate) async fn run(mut self, silent: Silent, sweep: Sweep, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
            let due = async || {
                silent.settle().await?;
                sweep.once().await
            };
            if let Err(error) = self.look(due).await {
                tracing::warn!(%error, "what is due of silent runners cannot be done; trying again later");
            }
        }
    }

    /// Does what is due, then counts what has gone by: all of it with the next look, where this fails.
    pub(crate) async fn look(
        &mut self,
        due: impl AsyncFnOnce() -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        due().await?;
        let now = self.clock.boot_time();
        let passed = now.saturating_sub(self.counted_to);
        self.store.count_silence(self.replica, passed).await?;
        self.counted_to = now;
        Ok(())
    }
}
