//! The pause of a client before its next attempt.

use std::time::Duration;

use shared_types::{Entropy, backoff::full_jitter};

/// The longest wait after the first failure.
const FIRST: Duration = Duration::from_millis(250);

/// The longest wait after any failure.
const LONGEST: Duration = Duration::from_secs(10);

/// The longest that a server may have a client stay away.
const ASKED_AT_MOST: Duration = Duration::from_secs(60);

/// The wait before the next connection, where the server asked for one within this time: a random part of
/// it, and of no less than after a first failure, so that a server that asks all the time is not run against.
pub(crate) fn asked(within: Duration, entropy: &dyn Entropy) -> Duration {
    let within = within.clamp(FIRST, ASKED_AT_MOST);
    full_jitter(within, within, 1, random(entropy))
}

/// The wait after `failures` (from 1) in a row.
pub(crate) fn before(failures: u32, entropy: &dyn Entropy) -> Duration {
    full_jitter(FIRST, LONGEST, failures, random(entropy))
}

fn random(entropy: &dyn Entropy) -> u64 {
    let mut random = [0; 8];
    entropy.fill(&mut random);
    u64::from_be_bytes(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are all the same.
    #[derive(Debug)]
    struct Always(u8);

    impl Entropy for Always {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn a_server_that_asks_for_another_connection_is_given_a_random_part_of_the_time() {
        let longest = |ms| asked(Duration::from_millis(ms), &Always(0xff)).as_millis();
        assert_eq!(longest(5_000), 5_000);
        assert_eq!(longest(0), FIRST.as_millis());
        assert_eq!(longest(u64::from(u32::MAX)), ASKED_AT_MOST.as_millis());
        assert_eq!(asked(ASKED_AT_MOST, &Always(0)), Duration::ZERO);
    }
}
