//! The keys of other replicas' challenges: a proxy may give each request of a runner to another replica.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use shared_types::ReplicaId;

use super::Enrolment;
use crate::{
    AppError,
    challenges::{ChallengeKeys, GoodChallenge},
};

/// The replicas whose keys are remembered. A challenge of a replica that is gone is too old a minute later.
const REPLICAS: usize = 256;

/// See the module.
pub(super) struct Makers(Mutex<LruCache<ReplicaId, ChallengeKeys>>);

impl Makers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(LruCache::new(REPLICAS)))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ReplicaId, ChallengeKeys>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Enrolment {
    /// The challenge, if a live replica has made it and it is good now.
    ///
    /// # Errors
    /// If the store does not answer.
    pub(super) async fn good(&self, challenge: &[u8]) -> Result<Option<GoodChallenge>, AppError> {
        let inner = &*self.inner;
        let (challenges, clock) = (&inner.challenges, &*inner.clock);
        let Some(maker) = challenges.other_maker(challenge) else {
            return Ok(challenges.check(challenge, clock));
        };
        let known = inner.makers.lock().get(&maker).cloned();
        let keys = match known {
            Some(keys) => keys,
            None => {
                let Some(salt) = inner.store.challenge_salt(maker).await? else {
                    return Ok(None);
                };
                let keys = challenges.keys_of(&salt);
                inner.makers.lock().insert(maker, keys.clone());
                keys
            }
        };
        Ok(challenges.check_other(challenge, &keys, clock))
    }
}
