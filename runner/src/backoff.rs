//! How long to wait before the next connect: full jitter, so that a thousand runners do not
//! come back in step after the server was away.

use std::time::Duration;

/// The ceiling of the first wait.
pub(crate) const SHORTEST: Duration = Duration::from_millis(500);

/// The ceiling that no wait passes, where the runner was not told another.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

/// A link that lived this long was a good one: the next failure counts as the first.
pub(crate) const GOOD_LINK: Duration = Duration::from_secs(10);

/// The wait after this many failures in a row (from 1): evenly spread between nothing and a
/// ceiling that doubles from [`SHORTEST`] to `longest`. `random` is uniform over all of `u64`.
pub(crate) fn wait(failures: u32, longest: Duration, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = SHORTEST.saturating_mul(1 << doublings).min(longest);
    let share = random as f64 / u64::MAX as f64;
    ceiling.mul_f64(share)
}

/// Failures in a row, given how many there were before a link that lived for `lived`.
pub(crate) fn failures_after(before: u32, lived: Duration) -> u32 {
    if lived >= GOOD_LINK {
        1
    } else {
        before.saturating_add(1)
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
    fn only_a_link_that_lived_makes_the_next_failure_the_first() {
        assert_eq!(failures_after(5, GOOD_LINK), 1);
        assert_eq!(failures_after(5, Duration::from_secs(1)), 6);
        assert_eq!(failures_after(0, Duration::ZERO), 1);
        assert_eq!(failures_after(u32::MAX, Duration::ZERO), u32::MAX);
    }
}
