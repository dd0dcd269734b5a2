//! Challenges that runners sign when they ask to be let in, each good for a minute, at any replica of the database.
//!
//! Nothing is kept of a challenge, neither when it is issued nor when it is shown, so that no peer can
//! fill a table with them. It is 16 random bytes, the replica that made it, its number there, its expiry, and an HMAC
//! over all of it. That each is good once is seen to where it is used: a runner's row keeps the number of the last
//! challenge that let it in, and a key enrols once.
//!
//! The keys are made of the identity key, which all replicas have, and of the salt of the replica that made the
//! challenge, which is in that one's row as long as it lives. So a challenge may be shown to another replica: a proxy
//! may give each request of a runner to another one. A challenge of an earlier process never holds; a
//! runner that is refused for that asks for a new one. Nor can a thief of the identity key open what was sealed to a
//! replica that is gone.
//!
//! The expiry is on the boot-time clock, which no wall clock moves; of a challenge of another replica it is on the wall
//! clock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use aws_lc_rs::hmac;
use proto::agreement::Ephemeral;
use server_store::ChallengeNumber;
use shared_types::{Clock, Digest, Entropy, ReplicaId, Timestamp};

use crate::keys::SigningKey;

/// The time for which a challenge is good.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The most by which the clocks of two replicas may differ.
const CLOCKS_DIFFER_BY: Duration = Duration::from_secs(5);

/// Bytes before the HMAC: the random ones, the replica, the number and the two expiries.
const MESSAGE_BYTES: usize = 56;

/// The place of the replica in the message.
const REPLICA_AT: usize = 16;

/// See the module.
pub(crate) struct Challenges {
    replica: ReplicaId,
    /// Made of the identity key.
    secret: hmac::Key,
    own: ChallengeKeys,
    issued: AtomicU64,
}

/// The keys of the challenges of one replica.
#[derive(Clone)]
pub(crate) struct ChallengeKeys {
    key: hmac::Key,
    /// The key from which the private halves of sealing keys are derived.
    sealing: hmac::Key,
}

/// A challenge that is good now.
pub(crate) struct GoodChallenge {
    /// Its place among those of its replica.
    pub(crate) number: ChallengeNumber,
    /// The key to which an enrolment with it is sealed.
    pub(crate) sealing_key: Ephemeral,
}

impl Challenges {
    /// Challenges of this replica, with the salt of its row.
    pub(crate) fn new(replica: ReplicaId, identity: &SigningKey, salt: &Digest) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &identity.secret_for("challenges"));
        Self {
            replica,
            own: ChallengeKeys::of(&secret, salt),
            secret,
            issued: AtomicU64::new(0),
        }
    }

    /// A challenge that is good for one minute.
    pub(crate) fn issue(&self, clock: &dyn Clock, entropy: &dyn Entropy) -> Vec<u8> {
        let mut challenge = vec![0; REPLICA_AT];
        entropy.fill(&mut challenge);
        challenge.extend(self.replica.as_u128().to_be_bytes());
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        challenge.extend(number.to_be_bytes());
        let expiry = clock.boot_time().saturating_add(GOOD_FOR);
        challenge.extend(micros(expiry).to_be_bytes());
        let expiry = clock.now().after(GOOD_FOR);
        challenge.extend(expiry.as_micros().to_be_bytes());
        let tag = hmac::sign(&self.own.key, &challenge);
        challenge.extend(tag.as_ref());
        challenge
    }

    /// The other replica that has made the challenge by its own word.
    pub(crate) fn other_maker(&self, challenge: &[u8]) -> Option<ReplicaId> {
        let maker = Message::of(challenge)?.replica();
        (maker != self.replica).then_some(maker)
    }

    /// The keys of another replica, which has this salt.
    pub(crate) fn keys_of(&self, salt: &Digest) -> ChallengeKeys {
        ChallengeKeys::of(&self.secret, salt)
    }

    /// A challenge of this replica, if it is good now.
    pub(crate) fn check(&self, challenge: &[u8], clock: &dyn Clock) -> Option<GoodChallenge> {
        let message = Message::of(challenge)?;
        let is_good = micros(clock.boot_time()) < message.boot_expiry();
        let is_ours = message.replica() == self.replica;
        (is_ours && is_good)
            .then(|| self.own.good(&message))
            .flatten()
    }

    /// A challenge of another replica with these keys, if it is good now.
    pub(crate) fn check_other(
        &self,
        challenge: &[u8],
        keys: &ChallengeKeys,
        clock: &dyn Clock,
    ) -> Option<GoodChallenge> {
        let message = Message::of(challenge)?;
        let (now, expiry) = (clock.now(), message.expiry());
        let is_over = expiry.after(CLOCKS_DIFFER_BY) <= now;
        // Else a replica whose clock is ahead could make some that are good for long.
        let is_to_come = now.after(GOOD_FOR + CLOCKS_DIFFER_BY) < expiry;
        (!is_over && !is_to_come)
            .then(|| keys.good(&message))
            .flatten()
    }

    /// The number of the next challenge.
    pub(crate) fn next(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// The key to which an enrolment with this challenge of this replica is sealed: the same whenever it is asked for.
    pub(crate) fn sealing_key(&self, challenge: &[u8]) -> Ephemeral {
        self.own.sealing_key(challenge)
    }
}

impl ChallengeKeys {
    fn of(secret: &hmac::Key, salt: &Digest) -> Self {
        let key = |purpose: &[u8]| {
            let salted = [purpose, salt.as_bytes()].concat();
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(secret, &salted).as_ref())
        };
        Self {
            key: key(b"challenge"),
            sealing: key(b"sealing"),
        }
    }

    fn good(&self, message: &Message<'_>) -> Option<GoodChallenge> {
        hmac::verify(&self.key, message.bytes, message.tag).ok()?;
        Some(GoodChallenge {
            number: ChallengeNumber {
                replica: message.replica(),
                number: message.number(),
            },
            sealing_key: self.sealing_key(message.whole),
        })
    }

    fn sealing_key(&self, challenge: &[u8]) -> Ephemeral {
        let secret = hmac::sign(&self.sealing, challenge);
        let secret = secret.as_ref().try_into();
        Ephemeral::of(secret.expect("HMAC-SHA256 gives 32 bytes"))
    }
}

/// The parts of a challenge, which nobody has vouched for yet.
struct Message<'c> {
    whole: &'c [u8],
    bytes: &'c [u8; MESSAGE_BYTES],
    tag: &'c [u8],
}

impl<'c> Message<'c> {
    fn of(challenge: &'c [u8]) -> Option<Self> {
        let (bytes, tag) = challenge.split_first_chunk()?;
        Some(Self {
            whole: challenge,
            bytes,
            tag,
        })
    }

    fn replica(&self) -> ReplicaId {
        ReplicaId::from_u128(u128::from_be_bytes(self.part(REPLICA_AT)))
    }

    fn number(&self) -> u64 {
        u64::from_be_bytes(self.part(32))
    }

    fn boot_expiry(&self) -> u64 {
        u64::from_be_bytes(self.part(40))
    }

    fn expiry(&self) -> Timestamp {
        Timestamp::from_micros(i64::from_be_bytes(self.part(48)))
    }

    fn part<const BYTES: usize>(&self, at: usize) -> [u8; BYTES] {
        let part = self.bytes.get(at..at + BYTES);
        let part = part.and_then(|part| part.try_into().ok());
        part.expect("the parts fill the message")
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
