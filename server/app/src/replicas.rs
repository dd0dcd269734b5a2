//! This server process among those that use the same database (`server_store::OtherReplica`): it renews its
//! row, and removes the rows of those that stopped renewing theirs. The turns and the callers' operations of a
//! server that is gone are looked at, whether it was removed or has stopped in order.

use std::{collections::HashMap, sync::Arc, time::Duration};

use server_agent::Turns;
use server_store::{OtherReplica, Store, ThisReplica};
use shared_types::{Clock, Digest, ReplicaId};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{AppError, Parts, hints::Listeners, operations::Operations};

/// The pause between two renewals of a replica's row, with a look at the rows of the others. The turns of a
/// server that stops may wait so long for another one.
const RENEWED_EVERY: Duration = Duration::from_secs(1);

/// After this long without a renewal a replica is held for dead.
const LEASE: Duration = Duration::from_secs(20);

/// See the module.
pub(crate) struct Replicas {
    store: Store,
    clock: Arc<dyn Clock>,
    replica: ThisReplica,
    listeners: Listeners,
    turns: Turns,
    operations: Operations,
}

/// After this long without a look of our own nothing is known of the others: the database was away, for them
/// too.
const LOOKED_WITHIN: Duration = Duration::from_secs(10);

/// The knowledge of the other replicas. Times are on the monotonic clock.
#[derive(Default)]
struct ReplicaSightings {
    /// The newest number of renewals of each, and since when it is known.
    others: HashMap<ReplicaId, (u64, Duration)>,
    looked_at: Duration,
}

/// Begins this process in the store, and returns that.
///
/// # Errors
/// If another server of the database has another identity, or the store does not answer.
pub(crate) async fn begin(parts: &Parts, this: &ThisReplica) -> Result<Store, AppError> {
    let (store, now) = (parts.store.clone(), parts.clock.now());
    // No link of an earlier process here is alive, and its generation must not look as if it were.
    store.start_replica(this, now).await?;
    Ok(store)
}

/// This process, with a salt of its own.
pub(crate) fn this(parts: &Parts) -> ThisReplica {
    let mut salt = [0; 32];
    parts.entropy.fill(&mut salt);
    ThisReplica {
        id: parts.replica,
        place: parts.place.clone(),
        address: parts.peer_address.clone(),
        identity: Digest::of(&parts.identity.public()),
        challenge_salt: salt.into(),
    }
}

impl Replicas {
    /// Renews the row of this process from now on.
    pub(crate) fn start(
        parts: &Parts,
        this: ThisReplica,
        listeners: Listeners,
        turns: Turns,
        operations: &Operations,
        tasks: &TaskTracker,
    ) {
        let replicas = Self {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            replica: this,
            listeners,
            turns,
            operations: operations.clone(),
        };
        tasks.spawn(replicas.run(parts.stop.clone()));
    }

    /// Renews now and again, until `stop`. A database that is a file has one server alone, and nothing to
    /// be renewed.
    async fn run(self, stop: CancellationToken) {
        if !self.store.is_shared() {
            return;
        }
        // A server that goes before the first look is not seen to go, so all turns are looked at after that.
        let mut seen = None;
        loop {
            if let Err(error) = self.look(&mut seen).await {
                tracing::warn!(%error, "the lease of this server cannot be renewed; trying again");
            }
            tokio::select! {
                () = tokio::time::sleep(RENEWED_EVERY) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn look(&self, seen: &mut Option<ReplicaSightings>) -> Result<(), AppError> {
        let now = self.clock.now();
        let others = self.store.renew_replica(&self.replica, now).await?;
        let is_first = seen.is_none();
        let seen = seen.get_or_insert_default();
        let has_left = has_left(seen, &others);
        if has_left {
            tracing::info!("another server has stopped; its turns are taken over");
        }
        if has_left || is_first {
            self.take_over().await;
        }
        let silent = silent(seen, others, self.clock.monotonic());
        for OtherReplica { id, renewals } in silent {
            if self.store.end_replica(id, Some(renewals)).await? {
                seen.others.remove(&id);
                tracing::warn!(replica.id = %id, "another server has not renewed its lease; its turns are taken over");
                self.take_over().await;
            }
        }
        Ok(())
    }

    /// Looks at the work of a server that is gone, which may have committed without telling.
    async fn take_over(&self) {
        self.turns.wake_unfinished();
        self.operations.take_over();
        self.listeners.all().await;
    }
}

/// True if a replica that was there is gone.
fn has_left(seen: &ReplicaSightings, others: &[OtherReplica]) -> bool {
    let is_there = |id| others.iter().any(|other| other.id == id);
    seen.others.keys().any(|id| !is_there(*id))
}

/// Those that were not renewed for the length of a lease. Forgets those that are gone.
fn silent(
    seen: &mut ReplicaSightings,
    others: Vec<OtherReplica>,
    now: Duration,
) -> Vec<OtherReplica> {
    if now.saturating_sub(seen.looked_at) > LOOKED_WITHIN {
        seen.others.values_mut().for_each(|(_, since)| *since = now);
    }
    seen.looked_at = now;
    seen.others
        .retain(|id, _| others.iter().any(|other| other.id == *id));
    let is_silent = |other: &OtherReplica| {
        let known = seen.others.entry(other.id).or_insert((other.renewals, now));
        if known.0 != other.renewals {
            *known = (other.renewals, now);
        }
        now.saturating_sub(known.1) >= LEASE
    };
    others.into_iter().filter(is_silent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replica_that_is_not_renewed_for_a_lease_is_silent() {
        let (mut seen, id) = (ReplicaSightings::default(), ReplicaId::from_u128(2));
        let other = |renewals| vec![OtherReplica { id, renewals }];
        let at = Duration::from_secs;
        for second in [100, 110, 119] {
            assert_eq!(silent(&mut seen, other(7), at(second)), []);
        }
        assert_eq!(silent(&mut seen, other(8), at(120)), []);
        assert_eq!(silent(&mut seen, other(8), at(130)), []);
        assert_eq!(silent(&mut seen, other(8), at(140)), other(8));
        assert!(!has_left(&seen, &other(9)));
        assert!(has_left(&seen, &[]));
        assert_eq!(silent(&mut seen, vec![], at(141)), []);
        assert!(!has_left(&seen, &[]), "that is told once");
        assert_eq!(silent(&mut seen, other(8), at(150)), []);
    }

    #[test]
    fn the_time_in_which_the_database_was_away_is_nobodys_silence() {
        let (mut seen, id) = (ReplicaSightings::default(), ReplicaId::from_u128(2));
        let other = || vec![OtherReplica { id, renewals: 7 }];
        let at = Duration::from_secs;
        assert_eq!(silent(&mut seen, other(), at(100)), []);
        assert_eq!(silent(&mut seen, other(), at(160)), []);
        assert_eq!(silent(&mut seen, other(), at(170)), []);
        assert_eq!(silent(&mut seen, other(), at(179)), []);
        assert_eq!(silent(&mut seen, other(), at(180)), other());
    }
}
