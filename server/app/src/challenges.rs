//! Challenges that runners sign when they ask to be let in, each good for a minute, at the process that
//! issued it.
//!
//! Nothing is kept of a challenge, neither when it is issued nor when it is shown, so that no peer can
//! fill a table with them. It is 16 random bytes, its number, its expiry, and an HMAC over all of it.
//! That each is good once is seen to where it is used: a runner's row keeps the number of the last
//! challenge that let it in, and a key enrols once.
//!
//! The keys live as long as the process, so that a challenge of an earlier one never holds; a runner
//! that is refused for that asks for a new one. The expiry is on the boot-time clock, which no wall
//! clock moves.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use aws_lc_rs::hmac;
use proto::agreement::Ephemeral;
use server_store::ChallengeNumber;
use shared_types::{Clock, Entropy, ReplicaId};

/// The time for which a challenge is good.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// Bytes before the HMAC: the random ones, the number and the expiry.
const MESSAGE_BYTES: usize = 32;

/// See the module.
pub(crate) struct Challenges {
    replica: ReplicaId,
    key: hmac::Key,
    /// The key from which the private halves of sealing keys are derived.
    sealing: hmac::Key,
    issued: AtomicU64,
}

impl Challenges {
    /// Challenges of this process, under new keys.
    pub(crate) fn new(replica: ReplicaId, entropy: &dyn Entropy) -> Self {
        let key = || {
            let mut secret = [0; 32];
            entropy.fill(&mut secret);
            hmac::Key::new(hmac::HMAC_SHA256, &secret)
        };
        Self {
            replica,
            key: key(),
            sealing: key(),
            issued: AtomicU64::new(0),
        }
    }

    /// A challenge that is good for one minute.
    pub(crate) fn issue(&self, clock: &dyn Clock, entropy: &dyn Entropy) -> Vec<u8> {
        let mut challenge = vec![0; 16];
        entropy.fill(&mut challenge);
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        challenge.extend(number.to_be_bytes());
        let expiry = clock.boot_time().saturating_add(GOOD_FOR);
        challenge.extend(micros(expiry).to_be_bytes());
        let tag = hmac::sign(&self.key, &challenge);
        challenge.extend(tag.as_ref());
        challenge
    }

    /// The number of a challenge that is good now.
    pub(crate) fn check(&self, challenge: &[u8], clock: &dyn Clock) -> Option<ChallengeNumber> {
        let (message, tag) = challenge.split_at_checked(MESSAGE_BYTES)?;
        hmac::verify(&self.key, message, tag).ok()?;
        let (rest, expiry) = message.split_last_chunk::<8>()?;
        let number = u64::from_be_bytes(*rest.last_chunk::<8>()?);
        let is_good = micros(clock.boot_time()) < u64::from_be_bytes(*expiry);
        is_good.then_some(ChallengeNumber {
            replica: self.replica,
            number,
        })
    }

    /// The number of the next challenge.
    pub(crate) fn next(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// The key to which an enrolment with this challenge is sealed: the same whenever it is asked for.
    pub(crate) fn sealing_key(&self, challenge: &[u8]) -> Ephemeral {
        let secret = hmac::sign(&self.sealing, challenge);
        let secret = secret.as_ref().try_into();
        Ephemeral::of(secret.expect("HMAC-SHA256 gives 32 bytes"))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use shared_types::{Timestamp, clock::ManualClock, entropy::SeededEntropy};

    use super::*;

    fn setting() -> (SeededEntropy, ManualClock, Challenges) {
        let entropy = SeededEntropy::new(1);
        let challenges = Challenges::new(ReplicaId::from_u128(1), &entropy);
        let clock = ManualClock::at(Timestamp::from_micros(5));
        (entropy, clock, challenges)
    }

    #[test]
    fn a_challenge_is_good_for_a_minute_and_only_where_it_was_made() {
        let (entropy, clock, challenges) = setting();
        let challenge = challenges.issue(&clock, &entropy);
        let other = Challenges::new(ReplicaId::from_u128(2), &entropy);
        assert_eq!(other.check(&challenge, &clock), None);
        assert_eq!(challenges.check(&challenge[1..], &clock), None);
        assert_eq!(challenges.check(b"", &clock), None);
        for byte in 0..challenge.len() {
            let mut changed = challenge.clone();
            changed[byte] ^= 1;
            assert_eq!(challenges.check(&changed, &clock), None, "byte {byte}");
        }
        // A wall clock that goes back makes none of them good for longer.
        clock.set_wall(-3_600_000_000);
        clock.advance(GOOD_FOR - Duration::from_micros(1));
        assert!(challenges.check(&challenge, &clock).is_some());
        clock.advance(Duration::from_micros(1));
        assert_eq!(challenges.check(&challenge, &clock), None);
    }

    #[test]
    fn challenges_are_numbered_in_their_order() {
        let (entropy, clock, challenges) = setting();
        let numbers = [(); 3].map(|()| {
            let challenge = challenges.issue(&clock, &entropy);
            let known = challenges.check(&challenge, &clock).expect("it is good");
            assert_eq!(known.replica, ReplicaId::from_u128(1));
            known.number
        });
        assert!(
            numbers.is_sorted() && numbers[0] < numbers[2],
            "{numbers:?}"
        );
    }

    #[test]
    fn each_challenge_has_a_sealing_key_of_its_own_that_stays() {
        let (entropy, clock, challenges) = setting();
        let [first, second] = [(); 2].map(|()| challenges.issue(&clock, &entropy));
        let public = |challenge: &[u8]| challenges.sealing_key(challenge).public();
        assert_eq!(public(&first), public(&first));
        assert_ne!(public(&first), public(&second));
    }
}
