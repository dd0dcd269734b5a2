//! The wall clock of a server that shares its database: that of the database.
//!
//! Rows carry times at which tickets, tokens, keys and questions end, and rates are counted by them. Servers whose clocks
//! differ would judge the same row differently. So each goes by the clock of the database, once its own differs by more
//! than [`LEFT_ALONE`]. A database that is a file has one server, and that one goes by its own clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use server_store::{Store, StoreError};
use shared_types::{Clock, SystemClock, Timestamp};
use tokio::time::sleep;

/// The pause between two looks at the database's clock.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The most looks in a row, where answers take too long.
const LOOKS: u32 = 5;

/// A difference up to this is left alone: clocks that are set by a network differ by less.
const LEFT_ALONE: Duration = Duration::from_millis(200);

/// An answer that took longer tells too little.
const ANSWERED_WITHIN: Duration = Duration::from_millis(400);

/// A difference from which on the operator is told.
const TOLD_FROM: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub struct DatabaseClock<C = SystemClock> {
    own: C,
    /// The time by which the own clock is ahead, in microseconds.
    ahead_us: AtomicI64,
}

impl<C: Clock> DatabaseClock<C> {
    /// The own clock, until the first look.
    pub fn new(own: C) -> Self {
        Self {
            own,
            ahead_us: AtomicI64::new(0),
        }
    }

    /// Goes by the clock of this database from now on, as far as that differs.
    ///
    /// Looks again, a few times, if the answer took too long to tell a difference by it.
    ///
    /// # Errors
    /// If the store does not answer. Then the difference stays as it was.
    pub async fn look(&self, store: &Store) -> Result<(), StoreError> {
        for _ in 0..LOOKS {
            let asked = (self.own.now(), self.own.monotonic());
            let Some(shown) = store.database_time().await? else {
                return Ok(());
            };
            if self.compare(asked, shown, self.own.monotonic()) {
                return Ok(());
            }
        }
        tracing::warn!("the database is too slow to compare its clock; the last difference counts");
        Ok(())
    }

    /// Looks now and again, for as long as it is polled.
    pub(crate) async fn follow(self: Arc<Self>, store: Store) {
        loop {
            sleep(LOOK_EVERY).await;
            if let Err(error) = self.look(&store).await {
                tracing::debug!(%error, "the clock of the database cannot be read");
            }
        }
    }

    /// The database showed this time between two moments. Returns false if they are too far apart.
    fn compare(
        &self,
        (asked_at, asked): (Timestamp, Duration),
        shown: Timestamp,
        now: Duration,
    ) -> bool {
        let took = now.saturating_sub(asked);
        if took > ANSWERED_WITHIN {
            return false;
        }
        let shown_at = asked_at.after(took / 2).as_micros();
        let ahead = shown_at.saturating_sub(shown.as_micros());
        let before = self.ahead_us.load(Relaxed);
        let differs = Duration::from_micros(ahead.abs_diff(before));
        if differs <= LEFT_ALONE {
            return true;
        }
        self.ahead_us.store(ahead, Relaxed);
        if Duration::from_micros(ahead.unsigned_abs()) >= TOLD_FROM {
            tracing::warn!(
                ahead_ms = ahead / 1000,
                "this machine's clock differs from that of the database, by which servers go; have both set by NTP"
            );
        }
        true
    }
}

impl<C: Clock> Clock for DatabaseClock<C> {
    fn now(&self) -> Timestamp {
        let ahead = self.ahead_us.load(Relaxed);
        Timestamp::from_micros(self.own.now().as_micros().saturating_sub(ahead))
    }

    fn monotonic(&self) -> Duration {
        self.own.monotonic()
    }

    fn boot_time(&self) -> Duration {
        self.own.boot_time()
    }

    fn boot(&self) -> &str {
        self.own.boot()
    }
}

#[cfg(test)]
mod tests {
    use shared_types::clock::ManualClock;

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_789_000_000_000_000);
    const MINUTES: i64 = 60 * 1_000_000;

    /// The database shows this much more than the own clock, after half of the time that its answer takes.
    fn compared(clock: &DatabaseClock<ManualClock>, more_us: i64, took: Duration) {
        let asked = (clock.own.now(), clock.own.monotonic());
        clock.own.advance(took / 2);
        let shown = Timestamp::from_micros(clock.own.now().as_micros() + more_us);
        clock.own.advance(took / 2);
        clock.compare(asked, shown, clock.own.monotonic());
    }

    #[test]
    fn a_clock_that_is_off_shows_the_databases_time_and_one_that_is_not_its_own() {
        let clock = DatabaseClock::new(ManualClock::at(START));
        let quick = Duration::from_millis(20);
        let differs = || clock.now().as_micros() - clock.own.now().as_micros();
        compared(&clock, 150_000, quick);
        assert_eq!(differs(), 0, "too little to be told from a slow answer");
        compared(&clock, -5 * MINUTES, quick);
        assert_eq!(differs(), -5 * MINUTES);
        compared(&clock, -5 * MINUTES + 150_000, quick);
        assert_eq!(differs(), -5 * MINUTES, "it does not waver");
        compared(&clock, 7 * MINUTES, Duration::from_secs(1));
        assert_eq!(differs(), -5 * MINUTES, "the answer took too long");
        clock.own.set_wall(-5 * MINUTES);
        compared(&clock, 0, quick);
        assert_eq!(differs(), 0, "its own clock was set right");
    }
}
