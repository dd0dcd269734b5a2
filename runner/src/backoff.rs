//! The wait before the next attempt to connect. It has full jitter, so that a thousand runners do
//! not come back in step after the server was away.
//!
//! A host that gets another network need not wait any longer for a server that it may reach now. So a
//! long wait may be cut short, and the waits behind it begin with the shortest again. That is bounded,
//! because an interface that flaps, or containers that come and go, change the network all the time.

use std::time::Duration;

use shared_types::backoff::full_jitter;

/// The ceiling of the first wait.
const SHORTEST: Duration = Duration::from_millis(500);

/// The ceiling that no wait passes, where the runner was not told another.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// A link that served this long, about a sign of life, was a good one: the next failure counts as
/// the first.
const GOOD_LINK: Duration = Duration::from_secs(10);

/// The most failures that still count after a link which served, but not for long. So a server that
/// was started several times is back within two seconds, and a server that ends every link is not
/// asked without pause.
const AFTER_SHORT_LINKS: u32 = 3;

/// The most waits in a row that may be cut short: the kernel reports one change in pieces,
/// addresses before routes.
const HURRIES: u32 = 3;

/// The time until one more wait may be cut short. At the most it doubles how often a server that is
/// away is asked.
const HURRY_EVERY: Duration = Duration::from_secs(60);

/// When the next attempt is due.
#[derive(Debug)]
pub(crate) struct Backoff {
    longest: Duration,
    /// In a row.
    failures: u32,
    /// By when all of [`HURRIES`] may be taken again; boot time.
    hurries_at: Duration,
}

impl Backoff {
    /// No wait passes `longest`.
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest,
            failures: 0,
            hurries_at: Duration::ZERO,
        }
    }

    /// After so many failures.
    #[cfg(test)]
    pub(crate) fn after(failures: u32, longest: Duration) -> Self {
        Self {
            failures,
            ..Self::new(longest)
        }
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// The wait after one more failure; `served` is the time for which there was a link before it.
    /// `random` is uniform over all of `u64`.
    pub(crate) fn failed(&mut self, served: Option<Duration>, random: u64) -> Duration {
        self.failures = failures_after(self.failures, served);
        wait(self.failures, self.longest, random)
    }

    /// The time from this boot time until a wait may be cut short.
    pub(crate) fn hurry_in(&self, now: Duration) -> Duration {
        let taken = self.hurries_at.saturating_sub(now);
        taken.saturating_sub(HURRY_EVERY * (HURRIES - 1))
    }

    /// Cuts a wait short at this boot time: what is left of it, and never longer than before. What
    /// would be over soon anyway is left as it is.
    pub(crate) fn hurry(&mut self, left: Duration, now: Duration, random: u64) -> Duration {
        if left <= SHORTEST {
            return left;
        }
        self.hurries_at = self.hurries_at.max(now).saturating_add(HURRY_EVERY);
        self.failures = 1;
        wait(self.failures, self.longest, random)
    }
}

/// The wait after this many failures in a row (from 1).
fn wait(failures: u32, longest: Duration, random: u64) -> Duration {
    full_jitter(SHORTEST, longest, failures, random)
}

/// Failures in a row, given how many there were before, and how long the link served that ended
/// now; nothing, where the server took none.
fn failures_after(before: u32, served: Option<Duration>) -> u32 {
    let failures = before.saturating_add(1);
    match served {
        None => failures,
        Some(served) if served < GOOD_LINK => failures.min(AFTER_SHORT_LINKS),
        Some(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_served_long_makes_the_next_failure_the_first() {
        assert_eq!(failures_after(5, Some(GOOD_LINK)), 1);
        assert_eq!(failures_after(0, None), 1);
    }

    #[test]
    fn links_that_serve_shortly_never_make_the_wait_longer_than_two_seconds() {
        let short = Some(Duration::from_millis(1));
        let after = (0..10).scan(0, |failures, _| {
            *failures = failures_after(*failures, short);
            Some(*failures)
        });
        assert_eq!(after.collect::<Vec<_>>()[..4], [1, 2, 3, 3]);
        // Nor does what went before, however long the server was away.
        let back = failures_after(u32::MAX, short);
        assert_eq!(wait(back, LONGEST, u64::MAX), Duration::from_secs(2));
    }

    #[test]
    fn a_wait_that_is_cut_short_is_the_first_one_again_and_so_are_those_behind_it() {
        let mut backoff = Backoff::after(20, LONGEST);
        assert_eq!(backoff.failed(None, u64::MAX), LONGEST);
        let cut = backoff.hurry(LONGEST, Duration::from_secs(1), u64::MAX);
        assert_eq!(cut, SHORTEST);
        assert_eq!(backoff.failed(None, u64::MAX), 2 * SHORTEST);
    }

    #[test]
    fn a_wait_that_is_over_soon_is_not_cut_short() {
        let mut backoff = Backoff::after(20, LONGEST);
        assert_eq!(backoff.hurry(SHORTEST, Duration::ZERO, u64::MAX), SHORTEST);
        assert_eq!(
            (backoff.failures(), backoff.hurries_at),
            (20, Duration::ZERO)
        );
    }

    #[test]
    fn a_network_that_changes_all_the_time_cuts_few_waits_short() {
        let mut backoff = Backoff::new(LONGEST);
        let mut now = Duration::from_secs(1000);
        for _ in 0..HURRIES {
            assert_eq!(backoff.hurry_in(now), Duration::ZERO);
            backoff.hurry(LONGEST, now, 0);
        }
        for _ in 0..10 {
            assert_eq!(backoff.hurry_in(now), HURRY_EVERY);
            now += HURRY_EVERY;
            assert_eq!(backoff.hurry_in(now), Duration::ZERO);
            backoff.hurry(LONGEST, now, 0);
        }
        now += HURRY_EVERY * HURRIES;
        for _ in 0..HURRIES {
            assert_eq!(backoff.hurry_in(now), Duration::ZERO);
            backoff.hurry(LONGEST, now, 0);
        }
        assert_eq!(backoff.hurry_in(now), HURRY_EVERY);
    }

    #[test]
    fn a_server_that_takes_no_link_is_asked_ever_less_often_however_long_that_takes_it() {
        assert_eq!(failures_after(5, None), 6);
        assert_eq!(failures_after(u32::MAX, None), u32::MAX);
    }
}
