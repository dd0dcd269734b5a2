//! The rates of users over all replicas.
//!
//! A replica decides by what it knows, and no request waits for the database. A second later it adds what it has allowed
//! to the rows, and learns what the others have. So at first each replica may allow a minute's worth. Then the user waits
//! until all of it is made up for: over a longer time the replicas together allow what one would.

use std::{sync::Arc, time::Duration};

use server_store::{Store, StoreError, TakenRate};
use tokio::{sync::Notify, time::sleep};

use super::{Allowance, Whose};

/// The time over which what was allowed is told together.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Rates of users that one transaction tells.
const TOLD_AT_ONCE: usize = 256;

impl Allowance {
    /// Tells other replicas what this one allows, and learns what they do, for as long as it is polled.
    pub(super) async fn tell_others(self, store: Store, news: Arc<Notify>) {
        loop {
            news.notified().await;
            sleep(TOLD_EVERY).await;
            if let Err(error) = self.tell(&store).await {
                tracing::warn!(%error, "the rates of users cannot be counted together with other servers; trying again");
                news.notify_one();
            }
        }
    }

    /// Tells all that others do not know of.
    ///
    /// # Errors
    /// The store does not answer. What was not told is told the next time.
    pub(super) async fn tell(&self, store: &Store) -> Result<(), StoreError> {
        let untold = self.take_untold();
        let mut told = untold.chunks(TOLD_AT_ONCE);
        while let Some(some) = told.next() {
            if let Err(error) = self.tell_some(store, some).await {
                self.give_untold_back(some);
                told.for_each(|some| self.give_untold_back(some));
                return Err(error);
            }
        }
        Ok(())
    }

    /// In the order of users, in which every replica locks their rows.
    fn take_untold(&self) -> Vec<(Whose, i64)> {
        let mut untold = self.with(|counts| {
            let untold = counts.iter_mut().filter(|(_, count)| count.untold_us != 0);
            let taken = untold.map(|(of, count)| (*of, std::mem::take(&mut count.untold_us)));
            taken.collect::<Vec<_>>()
        });
        untold.sort_by_key(|((tenant, user, rate), _)| (*tenant, *user, rate.word()));
        untold
    }

    fn give_untold_back(&self, untold: &[(Whose, i64)]) {
        self.with(|counts| {
            for (of, untold_us) in untold {
                let count = counts.entry(*of).or_default();
                count.untold_us = count.untold_us.saturating_add(*untold_us);
            }
        });
    }

    async fn tell_some(&self, store: &Store, some: &[(Whose, i64)]) -> Result<(), StoreError> {
        let taken = some.iter();
        let taken = taken.map(|((tenant, user, rate), takes_us)| TakenRate {
            tenant: *tenant,
            user: *user,
            kind: rate.word(),
            takes_us: *takes_us,
        });
        let taken: Vec<_> = taken.collect();
        let now = self.clock.now();
        let free_at = store.take_rates(&taken, now).await?;
        let here = self.clock.monotonic();
        self.with(|counts| {
            for ((of, _), free_at) in some.iter().zip(free_at) {
                let count = counts.entry(*of).or_default();
                let since = Duration::from_micros(count.untold_us.try_into().unwrap_or(0));
                count.free_at = here + free_at.since(now) + since;
            }
        });
        Ok(())
    }
}
