//! The reaper of runners that do not come back (docs/internals/contracts.md#a15). Once they were silent for long
//! enough, their open operations are lost, and those that are ephemeral are removed: machines of a fleet are killed more
//! often than asked to leave.
//!
//! Only silence counts in which this server was there to hear them: what goes by between its looks on
//! the boot-time clock, which is stored with the runner. So no wall clock that is set makes anything
//! due; another process goes on where the one before ended, and the time in between counts as nothing.
//! What a look counts is due with the next one at the earliest, and a server that was just started, or
//! whose host was suspended, gives every runner that lives the time until then to come back (it tries
//! again at least every 30 s).
//!
//! Of several replicas one has this duty. The one that takes it over counts from then on: so no time counts twice, and
//! a replica that was stopped for a while does nothing that another one does already.

use std::{sync::Arc, time::Duration};

use server_records::{Duty, PortError, SilentRunners};
use shared_types::Clock;
use tokio_util::sync::CancellationToken;

use crate::links::Links;

/// The pause between two looks for such runners. A process that ends in between has counted less by so much at most.
const EVERY: Duration = Duration::from_secs(10 * 60);

/// The time without a word after which something is over.
#[derive(Debug, Clone, Copy)]
pub struct SilenceLimits {
    /// Of a runner whose open operations are lost.
    pub operations_lost_after: Duration,
    /// Of an ephemeral runner that is removed.
    pub ephemeral_removed_after: Duration,
}

/// See the module.
pub struct Reaper {
    rows: Arc<dyn SilentRunners>,
    links: Links,
    clock: Arc<dyn Clock>,
    limits: SilenceLimits,
    /// The moment up to which the time is counted, on the boot-time clock.
    counted_to: Duration,
}

impl Reaper {
    /// Counts from now on.
    pub fn from_now(
        rows: Arc<dyn SilentRunners>,
        links: Links,
        clock: Arc<dyn Clock>,
        limits: SilenceLimits,
    ) -> Self {
        Self {
            counted_to: clock.boot_time(),
            rows,
            links,
            clock,
            limits,
        }
    }

    /// Looks now and again, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "what is due of silent runners cannot be done; trying again later");
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Does what is due, then counts what has gone by: all of it with the next look, where this fails. The first look
    /// takes the duty, and counts nothing; a look without the duty does nothing.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn look(&mut self) -> Result<(), PortError> {
        if self.rows.take_duty().await? != Duty::Continued {
            self.counted_to = self.clock.boot_time();
            return Ok(());
        }
        self.lose_operations().await?;
        self.remove_ephemeral().await?;
        let now = self.clock.boot_time();
        let passed = now.saturating_sub(self.counted_to);
        self.rows.count_silence(passed).await?;
        self.counted_to = now;
        Ok(())
    }

    /// Settles the operations whose runner will never report on them, a page at a time, so that others can write in
    /// between.
    async fn lose_operations(&self) -> Result<(), PortError> {
        loop {
            let after = self.limits.operations_lost_after;
            let settled = self.rows.lose_operations(after).await?;
            if settled == 0 {
                return Ok(());
            }
            tracing::info!(operations = settled, "silent runners' operations are lost");
        }
    }

    /// Ends the ephemeral runners that stayed away, and their links.
    async fn remove_ephemeral(&self) -> Result<(), PortError> {
        let after = self.limits.ephemeral_removed_after;
        for runner in self.rows.remove_ephemeral(after).await? {
            self.links.revoke(runner).await;
            tracing::info!(runner.id = %runner, "an ephemeral runner stayed away and was removed");
        }
        Ok(())
    }
}
