//! How long to wait before another attempt: exponential with full jitter, so that a thousand
//! clients of a restarted server do not return in the same instant.

use std::time::Duration;

use shared_types::Entropy;

/// The longest wait after the first failure.
const FIRST: Duration = Duration::from_millis(250);

/// The longest wait after any failure.
const LONGEST: Duration = Duration::from_secs(10);

/// The wait after `failures` (from 1) in a row: a random part of 0.25 s, 0.5 s, …, 10 s.
pub(crate) fn before(failures: u32, entropy: &dyn Entropy) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let ceiling = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let mut random = [0; 4];
    entropy.fill(&mut random);
    ceiling.mul_f64(f64::from(u32::from_be_bytes(random)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn waits_grow_but_never_beyond_the_longest() {
        let entropy = SeededEntropy::new(1);
        let longest = |failures| {
            (0..200)
                .map(|_| before(failures, &entropy))
                .max()
                .unwrap_or_default()
        };
        assert!(longest(1) <= FIRST);
        assert!(longest(4) > FIRST);
        assert!(longest(u32::MAX) <= LONGEST);
    }
}
