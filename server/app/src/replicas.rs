//! This server process among those that use the same database (`server_store::OtherReplica`): it renews its
//! row, and removes the rows of those that stopped renewing theirs. The turns and the callers' operations of a
//! server that is gone are looked at, whether it was removed or has stopped in order.
//!
//! A server that could not renew its row for the length of its lease is *fenced*: others may have taken over its work. It
//! is not ready, and drops its workers where they stand. It works again with the next renewal. One whose operator lets
//! it drain gives its links and turns to others, and goes on serving requests until it is stopped.

mod drain;
mod standing;

use std::{collections::HashMap, sync::Arc, time::Duration};

use server_agent::{TurnWork, Turns};
use server_records::{Hint, HintBatch};
use server_router::links::Links;
use server_store::{OtherReplica, Renewed, Store, StoreError, ThisReplica};
use shared_telemetry::server::{REPLICAS, REPLICAS_TAKEN_OVER};
use shared_types::{Clock, Digest, ReplicaId, Timestamp};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::drain::{Drain, DrainProgress};
pub(crate) use self::standing::Standing;
use crate::{AppError, Parts, hints::Listeners, operations::Operations};

/// The pause between two renewals of a replica's row, with a look at the rows of the others. A hint ends it early. The
/// turns of a server that stops may wait so long for another one if the hint is lost.
const RENEWED_EVERY: Duration = Duration::from_secs(1);

/// After this long without a renewal a replica is held for dead. Its turns are to go on within 15 s after its last sign of
/// life: another replica sees that sign up to one pause late, its own looks are a pause apart, and the claims take their
/// time. A longer lease forgives more: a process that had no processor, a slow disk of the database, a network that was
/// away for a moment. A replica that was taken over and lives loses the answers that its models were giving, and no
/// effect comes twice.
const LEASE: Duration = Duration::from_secs(10);

/// After this long without a look of our own nothing is known of the others: the database was away, for them too, and
/// they connect again when they can.
const LOOKED_WITHIN: Duration = Duration::from_secs(3);

/// The time that a replica which stops waits for its workers, before others may have its turns.
const WORKERS_GONE_WITHIN: Duration = Duration::from_secs(1);

/// The time that it takes at most to say that it is gone; else others find out by its lease.
const GONE_WITHIN: Duration = Duration::from_secs(3);

/// See the module.
pub(crate) struct Replicas {
    store: Store,
    clock: Arc<dyn Clock>,
    replica: ThisReplica,
    started_at: Timestamp,
    standing: Standing,
    listeners: Listeners,
    links: Links,
    turns: Turns,
    operations: Operations,
}

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
    let store = parts.store.clone();
    // No link of an earlier process here is alive, and its generation must not look as if it were.
    match store.start_replica(this, parts.clock.now()).await {
        // The others may be dead, and none may live to find that.
        Err(StoreError::Conflict(_)) => {
            tracing::warn!("a server with another identity key may run; looking if it lives");
            remove_silent(&store).await?;
            store.start_replica(this, parts.clock.now()).await?;
        }
        started => drop(started?),
    }
    Ok(store)
}

/// Removes the servers that do not renew their rows for as long as a lease.
async fn remove_silent(store: &Store) -> Result<(), AppError> {
    let before = store.replicas().await?;
    sleep(LEASE + 2 * RENEWED_EVERY).await;
    for row in before {
        store.end_replica(row.id, Some(row.renewals)).await?;
    }
    Ok(())
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
        version: parts.version.clone(),
    }
}

/// Tells the servers of the database to look at one another's rows. Without it they look a moment later.
async fn tell(store: &Store, from: Option<ReplicaId>) -> Result<(), AppError> {
    let Some(wire) = store.hints() else {
        return Ok(());
    };
    let hints = [Hint::Replicas].into();
    let sent = wire.send(HintBatch { from, hints }.texts()).await;
    sent.map_err(AppError::unavailable)
}

impl Replicas {
    /// Renews the row of this process from now on.
    pub(crate) fn start(
        parts: &Parts,
        (this, standing, listeners): (ThisReplica, &Standing, Listeners),
        links: &Links,
        turns: Turns,
        operations: &Operations,
        tasks: &TaskTracker,
    ) {
        REPLICAS.set(&[], 1.0);
        let replicas = Self {
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            replica: this,
            started_at: parts.clock.now(),
            standing: standing.clone(),
            listeners,
            links: links.clone(),
            turns,
            operations: operations.clone(),
        };
        // A database that is a file has one server alone, and nothing to be renewed.
        if parts.store.is_shared() {
            tasks.spawn(replicas.run(parts.stop.clone()));
        }
    }

    /// Renews now and again, until `stop`. Then says that this server is gone.
    async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.renew()).await;
        self.end().await;
    }

    async fn renew(&self) {
        // A server that goes before the first look is not seen to go, so all turns are looked at after that.
        let (mut seen, leaving) = (None, self.standing.leaving());
        loop {
            let looked = {
                let mut look = std::pin::pin!(self.look(&mut seen));
                tokio::select! {
                    looked = look.as_mut() => looked,
                    () = self.lease_is_over() => {
                        self.work().await;
                        look.await
                    }
                }
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "the lease of this server cannot be renewed; trying again");
            }
            self.work().await;
            tokio::select! {
                () = sleep(RENEWED_EVERY) => {}
                () = self.listeners.replicas.notified() => {}
                () = self.lease_is_over() => self.work().await,
                () = leaving.cancelled(), if !leaving.is_cancelled() => {}
            }
        }
    }

    /// Waits for the end of the lease, forever where it has ended already.
    async fn lease_is_over(&self) {
        match self.standing.lease_ends() {
            Some(at) if self.standing.has_lease() => sleep_until(at).await,
            _ => std::future::pending().await,
        }
    }

    async fn look(&self, seen: &mut Option<ReplicaSightings>) -> Result<(), AppError> {
        let began_at = self.clock.monotonic();
        let drains = self.standing.draining_since();
        let renewed = self
            .store
            .renew_replica(&self.replica, drains, self.started_at);
        let Renewed {
            others,
            was_gone,
            draining_since,
        } = renewed.await?;
        if was_gone {
            tracing::warn!(
                "other servers have held this one for dead; its turns are looked at again"
            );
            self.turns.do_work(TurnWork::Stopped).await;
        }
        self.standing.renewed(began_at, draining_since);
        let is_first = seen.is_none();
        let seen = seen.get_or_insert_default();
        let has_left = has_left(seen, &others);
        if has_left {
            tracing::info!("the row of another server is gone; its turns are looked at");
            REPLICAS_TAKEN_OVER.add(&["gone"], 1);
        }
        if has_left || is_first {
            self.take_over().await;
        }
        let silent = silent(seen, others, self.clock.monotonic());
        for OtherReplica { id, renewals } in silent {
            if self.store.end_replica(id, Some(renewals)).await? {
                seen.others.remove(&id);
                tracing::warn!(replica.id = %id, "another server has not renewed its lease; its turns are taken over");
                REPLICAS_TAKEN_OVER.add(&["silent"], 1);
                self.take_over().await;
            }
        }
        let others = seen.others.iter().map(|(id, (_, since))| (*id, *since));
        self.standing.saw(others.collect());
        REPLICAS.set(&[], (seen.others.len() + 1) as f64);
        Ok(())
    }

    /// Has turns worked on, and links held, as this replica may now.
    async fn work(&self) {
        let has_others = self.standing.others() > 0;
        let drains = self.standing.draining_since().is_some();
        let leaves = self.standing.leaving().is_cancelled();
        let work = match self.standing.has_lease() {
            // Where no other replica is, none has taken over, and what the models answer is not thrown away.
            false if has_others => TurnWork::Stopped,
            _ if drains || (has_others && leaves) => TurnWork::LetsGo,
            _ => TurnWork::All,
        };
        self.turns.do_work(work).await;
        if drains {
            self.links.drain().await;
        }
    }

    /// Looks at the work of a server that is gone, which may have committed without telling.
    async fn take_over(&self) {
        self.turns.wake_unfinished();
        self.operations.take_over();
        self.listeners.all().await;
    }

    /// Says to other servers that this one is gone, as soon as no worker of it writes any more. Requests that are under way
    /// may still end.
    async fn end(&self) {
        let _ = timeout(WORKERS_GONE_WITHIN, self.turns.ended()).await;
        let gone = async {
            self.store.end_replica(self.replica.id, None).await?;
            tell(&self.store, Some(self.replica.id)).await
        };
        match timeout(GONE_WITHIN, gone).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "other servers cannot be told that this one is gone");
            }
            Err(_) => tracing::warn!("other servers cannot be told in time that this one is gone"),
        }
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

    const OTHER: ReplicaId = ReplicaId::from_u128(2);

    /// The silent ones after looks at each of these seconds, at which the other was found with these renewals.
    fn after(seen: &mut ReplicaSightings, renewals: u64, seconds: std::ops::Range<u64>) -> usize {
        let other = OtherReplica {
            id: OTHER,
            renewals,
        };
        let mut found = 0;
        for second in seconds {
            found = silent(seen, vec![other], Duration::from_secs(second)).len();
        }
        found
    }

    #[test]
    fn only_a_replica_that_is_not_renewed_for_a_lease_is_silent() {
        let mut seen = ReplicaSightings::default();
        assert_eq!(after(&mut seen, 7, 100..110), 0);
        assert_eq!(after(&mut seen, 8, 110..120), 0);
        assert_eq!(after(&mut seen, 8, 120..121), 1);
        let other = OtherReplica {
            id: OTHER,
            renewals: 9,
        };
        assert!(!has_left(&seen, &[other]));
        assert!(has_left(&seen, &[]));
        assert_eq!(silent(&mut seen, vec![], Duration::from_secs(121)), []);
        assert!(!has_left(&seen, &[]), "that is told once");
        assert_eq!(after(&mut seen, 8, 122..132), 0);
    }

    #[test]
    fn the_time_in_which_the_database_was_away_is_nobodys_silence() {
        let mut seen = ReplicaSightings::default();
        assert_eq!(after(&mut seen, 7, 100..109), 0);
        assert_eq!(after(&mut seen, 7, 160..170), 0);
        assert_eq!(after(&mut seen, 7, 170..171), 1);
    }
}
