//! How long a client waits before another attempt.

use std::time::Duration;

use shared_types::{Entropy, backoff::full_jitter};

/// The longest wait after the first failure.
const FIRST: Duration = Duration::from_millis(250);

/// The longest wait after any failure.
const LONGEST: Duration = Duration::from_secs(10);

/// The wait after `failures` (from 1) in a row.
pub(crate) fn before(failures: u32, entropy: &dyn Entropy) -> Duration {
    let mut random = [0; 8];
    entropy.fill(&mut random);
    full_jitter(FIRST, LONGEST, failures, u64::from_be_bytes(random))
}
