//! Challenges that runners sign when they ask to be let in, each good once, for a minute, at the
//! process that issued it.
//!
//! Asking for one costs nothing: it is 16 random bytes, the expiry and an HMAC over both, and nothing
//! is kept of it. What was spent is kept until it would have expired anyway. The key of the HMAC
//! lives as long as the process, so that nothing that was spent is good again after a restart;
//! whoever is turned away for an old challenge asks for a new one.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::hmac;
use shared_types::{Clock, Entropy, Timestamp};

/// How long a challenge is good for.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// Spent challenges that are remembered, of 40 bytes each. While there are as many, none is good.
const SPENT_AT_MOST: usize = 65_536;

/// Bytes before the HMAC: the random ones and the expiry.
const MESSAGE_BYTES: usize = 24;

/// See the module.
pub(crate) struct Challenges {
    key: hmac::Key,
    /// When it would have expired, and its HMAC.
    spent: Mutex<BTreeSet<(i64, [u8; 32])>>,
    spent_at_most: usize,
}

impl Challenges {
    /// Challenges under a new key.
    pub(crate) fn new(entropy: &dyn Entropy) -> Self {
        let mut secret = [0; 32];
        entropy.fill(&mut secret);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
            spent: Mutex::default(),
            spent_at_most: SPENT_AT_MOST,
        }
    }

    /// A challenge that is good for one minute.
    pub(crate) fn issue(&self, clock: &dyn Clock, entropy: &dyn Entropy) -> Vec<u8> {
        let mut challenge = vec![0; 16];
        entropy.fill(&mut challenge);
        challenge.extend(clock.now().after(GOOD_FOR).as_micros().to_be_bytes());
        let tag = hmac::sign(&self.key, &challenge);
        challenge.extend(tag.as_ref());
        challenge
    }

    /// Spends the challenge; answers whether it was good. Spend only what the holder of a key or
    /// token that is known has signed: nobody else may fill the memory of it.
    pub(crate) fn spend(&self, challenge: &[u8], clock: &dyn Clock) -> bool {
        let now = clock.now();
        let Some((expiry, tag)) = self.parse(challenge) else {
            return false;
        };
        // Nothing that panics runs under the lock.
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        while spent
            .first()
            .is_some_and(|first| first.0 <= now.as_micros())
        {
            spent.pop_first();
        }
        now < Timestamp::from_micros(expiry)
            && spent.len() < self.spent_at_most
            && spent.insert((expiry, tag))
    }

    /// The expiry and the HMAC of a challenge of ours.
    fn parse(&self, challenge: &[u8]) -> Option<(i64, [u8; 32])> {
        let (message, tag) = challenge.split_at_checked(MESSAGE_BYTES)?;
        let expiry = i64::from_be_bytes(*message.last_chunk::<8>()?);
        hmac::verify(&self.key, message, tag).ok()?;
        Some((expiry, tag.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{clock::ManualClock, entropy::SeededEntropy};

    use super::*;

    fn setting() -> (SeededEntropy, ManualClock, Challenges) {
        let entropy = SeededEntropy::new(1);
        let challenges = Challenges::new(&entropy);
        let clock = ManualClock::at(Timestamp::from_micros(5));
        (entropy, clock, challenges)
    }

    #[test]
    fn a_challenge_is_good_once_within_a_minute_and_only_where_it_was_made() {
        let (entropy, clock, challenges) = setting();
        let [first, second] = [(); 2].map(|()| challenges.issue(&clock, &entropy));
        assert!(!Challenges::new(&entropy).spend(&first, &clock));
        assert!(!challenges.spend(&first[1..], &clock));
        assert!(!challenges.spend(b"", &clock));
        assert!(challenges.spend(&first, &clock));
        assert!(!challenges.spend(&first, &clock));
        clock.advance(GOOD_FOR - Duration::from_micros(1));
        assert!(!challenges.spend(&first, &clock));
        clock.advance(Duration::from_micros(1));
        assert!(!challenges.spend(&second, &clock));
    }

    #[test]
    fn where_too_many_were_spent_none_is_good_until_some_have_expired() {
        let (entropy, clock, mut challenges) = setting();
        challenges.spent_at_most = 2;
        let [first, second, third] = [(); 3].map(|()| challenges.issue(&clock, &entropy));
        assert!(challenges.spend(&first, &clock) && challenges.spend(&second, &clock));
        clock.advance(Duration::from_secs(1));
        let fourth = challenges.issue(&clock, &entropy);
        assert!(!challenges.spend(&third, &clock) && !challenges.spend(&fourth, &clock));
        clock.advance(GOOD_FOR - Duration::from_secs(1));
        assert!(challenges.spend(&fourth, &clock));
        assert_eq!(challenges.spent.lock().expect("no panic").len(), 1);
    }
}
