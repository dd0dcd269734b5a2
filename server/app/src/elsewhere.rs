//! Decisions of other replicas about the runners that are linked here: a runner was revoked or locked, or an operation on
//! it is to stop. They are rows, and the replica with the link acts on them. A hint only makes it look sooner.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use server_router::links::Links;
use server_store::{Store, StoreError};
use shared_types::{OperationId, ReplicaId, TenantId};
use tokio::{sync::Notify, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Parts, operations::Operations};

/// The pause between two looks without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The least pause between two looks, however many hints come.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Operations that are stopped at the same time.
const STOPPED_AT_ONCE: usize = 16;

/// Word that another replica may have decided something. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Elsewhere(Arc<Notify>);

impl Elsewhere {
    /// Has this replica look.
    pub(crate) fn tell(&self) {
        self.0.notify_one();
    }

    /// Acts on what other replicas decide from now on. A database that is a file has one server, and none of this.
    pub(crate) fn act(
        self,
        parts: &Parts,
        links: &Links,
        operations: &Operations,
        tasks: &TaskTracker,
    ) {
        if !parts.store.is_shared() {
            return;
        }
        let acting = ActingHere {
            told: self,
            store: parts.store.clone(),
            replica: parts.replica,
            links: links.clone(),
            operations: operations.clone(),
            sent: Sent::default(),
        };
        tasks.spawn(acting.run(parts.stop.clone()));
    }
}

struct ActingHere {
    told: Elsewhere,
    store: Store,
    replica: ReplicaId,
    links: Links,
    operations: Operations,
    /// The operations that were stopped since this process started and have not ended: each is stopped once over a link,
    /// and a new link finds it by itself.
    sent: Sent,
}

type Sent = Arc<Mutex<BTreeSet<OperationId>>>;

impl ActingHere {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "what other servers decided about the runners here cannot be read; looking again");
            }
            let looks_again = async {
                sleep(LOOK_PAUSE).await;
                tokio::select! {
                    () = self.told.0.notified() => {}
                    () = sleep(LOOK_EVERY) => {}
                }
            };
            if stop.run_until_cancelled(looks_again).await.is_none() {
                return;
            }
        }
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        for (runner, is_revoked) in self.store.barred_but_linked(self.replica).await? {
            match is_revoked {
                true => self.links.revoke(runner).await,
                false => self.links.lock(runner).await,
            }
        }
        let all = self.store.to_stop_over_links(self.replica).await?;
        let new: Vec<_> = {
            let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.retain(|id| all.iter().any(|(_, open)| open == id));
            let new = all.into_iter().filter(|(_, id)| sent.insert(*id));
            new.collect()
        };
        if !new.is_empty() {
            // A runner may take its time to answer, and the next look is not to wait for it.
            tokio::spawn(stop_all(self.operations.clone(), self.sent.clone(), new));
        }
        Ok(())
    }
}

async fn stop_all(operations: Operations, sent: Sent, all: Vec<(TenantId, OperationId)>) {
    let stopped = futures_util::stream::iter(all);
    let stopped = stopped.for_each_concurrent(STOPPED_AT_ONCE, |(tenant, id)| {
        let (operations, sent) = (operations.clone(), sent.clone());
        async move {
            if let Err(error) = operations.send_stop(tenant, id).await {
                tracing::debug!(operation.id = %id, %error, "an operation cannot be stopped now; the next look tries again");
                let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
                sent.remove(&id);
            }
        }
    });
    stopped.await;
}
