//! How long to wait before the next connect: full jitter, so that a thousand runners do not
//! come back in step after the server was away.

use std::time::Duration;

/// The ceiling of the first wait.
pub(crate) const SHORTEST: Duration = Duration::from_millis(500);

/// The ceiling that no wait passes, where the runner was not told another.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// A link that served this long, about a sign of life, was a good one: the next failure counts as
/// the first.
const GOOD_LINK: Duration = Duration::from_secs(10);

/// Failures that a link which served, but not for long, leaves at most: a server that was started
/// several times is back within two seconds, and one that ends every link is not run against.
const AFTER_SHORT_LINKS: u32 = 3;

/// The wait after this many failures in a row (from 1): evenly spread between nothing and a
/// ceiling that doubles from [`SHORTEST`] to `longest`. `random` is uniform over all of `u64`.
pub(crate) fn wait(failures: u32, longest: Duration, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = SHORTEST.saturating_mul(1 << doublings).min(longest);
    let share = random as f64 / u64::MAX as f64;
    ceiling.mul_f64(share)
}

/// Failures in a row, given how many there were before, and how long the link served that ended
/// now; nothing, where the server took none.
pub(crate) fn failures_after(before: u32, served: Option<Duration>) -> u32 {
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
    fn the_ceiling_doubles_from_half_a_second_to_thirty() {
        let ceilings: Vec<_> = (1..=9)
            .map(|failures| wait(failures, LONGEST, u64::MAX))
            .collect();
        let expected = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0];
        assert_eq!(ceilings, expected.map(Duration::from_secs_f64));
        assert_eq!(wait(u32::MAX, LONGEST, u64::MAX), LONGEST);
        let shorter = Duration::from_millis(200);
        assert_eq!(wait(1, shorter, u64::MAX), shorter);
    }

    #[test]
    fn the_wait_is_spread_over_everything_below_the_ceiling() {
        assert_eq!(wait(7, LONGEST, 0), Duration::ZERO);
        let middle = wait(7, LONGEST, u64::MAX / 2);
        assert!(middle.abs_diff(Duration::from_secs(15)) < Duration::from_millis(1));
    }

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
    fn a_server_that_takes_no_link_is_asked_ever_less_often_however_long_that_takes_it() {
        assert_eq!(failures_after(5, None), 6);
        assert_eq!(failures_after(u32::MAX, None), u32::MAX);
    }
}
