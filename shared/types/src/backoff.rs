//! The wait between attempts, spread so that many peers do not try again at the same moment.

use std::time::Duration;

/// The wait after this many failures in a row (from 1): exponential with full jitter, evenly spread
/// between nothing and a ceiling that doubles from `first` to `longest`. So a thousand peers that
/// failed together do not come back together
/// (<https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/>).
///
/// `random` is uniform over all of `u64`.
pub fn full_jitter(first: Duration, longest: Duration, failures: u32, random: u64) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    let ceiling = first.saturating_mul(doubled).min(longest);
    ceiling.mul_f64(random as f64 / u64::MAX as f64)
}

/// A time within a tenth of `age`, evenly spread, at which a connection of that greatest age ends. So
/// connections that began together do not end together (as gRPC's MAX_CONNECTION_AGE,
/// <https://github.com/grpc/proposal/blob/master/A9-server-side-conn-mgt.md>).
///
/// `random` is uniform over all of `u64`.
pub fn aged_at(age: Duration, random: u64) -> Duration {
    age.mul_f64(0.9 + 0.2 * (random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);

    #[test]
    fn the_ceiling_doubles_from_the_first_to_the_longest() {
        let ceilings: Vec<_> = (0..=9)
            .map(|failures| full_jitter(FIRST, LONGEST, failures, u64::MAX).as_secs_f64())
            .collect();
        assert_eq!(
            ceilings,
            [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
        );
        assert_eq!(full_jitter(FIRST, LONGEST, u32::MAX, u64::MAX), LONGEST);
        let shorter = Duration::from_millis(200);
        assert_eq!(full_jitter(FIRST, shorter, 1, u64::MAX), shorter);
    }

    #[test]
    fn the_wait_is_spread_over_everything_below_the_ceiling() {
        assert_eq!(full_jitter(FIRST, LONGEST, 7, 0), Duration::ZERO);
        let middle = full_jitter(FIRST, LONGEST, 7, u64::MAX / 2);
        assert!(middle.abs_diff(LONGEST / 2) < Duration::from_millis(1));
    }

    #[test]
    fn a_connection_ends_within_a_tenth_of_its_greatest_age() {
        let age = Duration::from_secs(3600);
        let millis = |random| aged_at(age, random).as_millis();
        assert_eq!(millis(0), 3_240_000);
        assert_eq!(millis(u64::MAX), 3_960_000);
        assert!(aged_at(age, u64::MAX / 2).abs_diff(age) < Duration::from_millis(1));
    }
}
