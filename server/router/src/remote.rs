//! The sandbox contract over the links: an operation is placed once, committed, sent, followed
//! over every reconnect, and settled once. The rules are in
//! [`shared_link::server`].

mod cancel;
mod controls;
mod cursor;
mod follow;
mod reach;
mod recording;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use shared_link::server::{self, Linked};
use shared_sandbox::{CancelAnswer, Operation, Request, Retention, Running, Sandbox};
use shared_types::{Clock, Digest, Epoch, Generation, OperationId, Refusal, RefusalCode, RunnerId};
use tokio::{
    sync::watch,
    time::{Duration, timeout},
};

use crate::{
    frame,
    links::{Connection, Links},
    placement::Placement,
    ports::{Fleet, Intents, NewIntent, Outputs, PlaceError, PortError, StoredIntent},
};

/// How long the caller of a start or a cancel waits for a runner that is just linking.
const LINKING_WITHIN: Duration = Duration::from_secs(5);

/// After how long something may be tried again that is as it should be soon.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A sandbox on an enrolled runner: the one that was chosen when the turn was claimed.
#[derive(Clone)]
pub struct RemoteSandbox {
    links: Links,
    fleet: Arc<dyn Fleet>,
    intents: Arc<dyn Intents>,
    clock: Arc<dyn Clock>,
    /// How the runner that was asked for last is connected.
    watched: Arc<Mutex<Option<(RunnerId, Watch)>>>,
    waiting: Arc<reach::WaitingCalls>,
}

/// Follows how a runner is connected.
type Watch = watch::Receiver<Connection>;

impl std::fmt::Debug for RemoteSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSandbox").finish_non_exhaustive()
    }
}

impl RemoteSandbox {
    /// A sandbox whose operations are placed in `fleet` and stored in `intents`.
    pub fn new(
        links: Links,
        fleet: Arc<dyn Fleet>,
        intents: Arc<dyn Intents>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            links,
            fleet,
            intents,
            clock,
            watched: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Places a new operation and commits it; nothing is sent yet. Also returns the link that the
    /// runner had just before.
    async fn place(
        &self,
        operation: &Operation,
        digest: Digest,
    ) -> Result<(StoredIntent, Generation), Refusal> {
        let (Placement { place, incarnation }, link) = self.reach().await?;
        let start_within = operation.limits.start_within;
        let start_by = self.clock.boot_moment().after(start_within);
        let intent = StoredIntent {
            digest,
            owner: operation.owner,
            place,
            incarnation,
            outcome: None,
            cancel_requested: false,
            effect: operation.effect,
            start_by: Some(start_by.clone()),
        };
        let new = NewIntent {
            id: operation.id,
            digest: intent.digest,
            owner: operation.owner,
            key: operation.key.clone(),
            epoch: operation.epoch,
            effect: intent.effect,
            place: intent.place.clone(),
            incarnation: intent.incarnation.clone(),
            start_by,
            deadline: self.clock.now().after(start_within),
        };
        match self.intents.place(new, &operation.request).await {
            Ok(()) => Ok((intent, link)),
            Err(PlaceError::StaleEpoch) => Err(Refusal::new(
                RefusalCode::StaleEpoch,
                "a newer holder of the session exists",
            )),
            Err(PlaceError::Conflict) => Err(conflict()),
            Err(PlaceError::OtherIncarnation) => Err(linked_anew(&intent.place.runner_name)),
            Err(PlaceError::Barred) => Err(removed(&intent.place.runner_name)),
            Err(PlaceError::Unavailable(error)) => Err(not_stored("store the operation", &error)),
        }
    }

    /// What is stored of the operation; where nothing is, it is placed. Also the link that its runner
    /// had just before that.
    async fn find_or_place(
        &self,
        operation: &Operation,
    ) -> Result<(StoredIntent, Option<Generation>), Refusal> {
        frame::fits_a_frame(&operation.request)?;
        let digest = operation.request.digest();
        let (intent, fresh) = match self.find(operation.id).await? {
            Some(stored) => (stored, None),
            None => match self.place(operation, digest).await {
                Ok((placed, link)) => (placed, Some(link)),
                // Another start of the same operation was first.
                Err(refusal) if refusal.code == RefusalCode::Conflict => {
                    let stored = self.find(operation.id).await?;
                    (stored.ok_or(refusal)?, None)
                }
                Err(refusal) => return Err(refusal),
            },
        };
        if intent.digest != digest {
            return Err(conflict());
        }
        if asks_for_all(&operation.request) {
            // Before anything is sent: whoever keeps the output of what the runner knows keeps all.
            let kept = self.intents.outputs().keep_all(operation.id).await;
            kept.map_err(|error| not_stored("make room for the output", &error))?;
        }
        Ok((intent, fresh))
    }

    /// Starts the operation, or attaches to it, as [`Sandbox::start`] does, for its collector: which is
    /// told nothing of what is kept already (so much of stdout and stderr), and of the end only once
    /// that is stored.
    pub(crate) async fn collect(
        &self,
        operation: Operation,
    ) -> Result<(Running, [u64; 2]), Refusal> {
        let found = self.find_or_place(&operation).await?;
        let connection = self.watch(found.0.place.runner).await;
        Ok(follow::collect(self.clone(), operation, found, connection).await)
    }

    /// Where the output of its operations is kept.
    pub(crate) fn outputs(&self) -> Arc<dyn Outputs> {
        self.intents.outputs()
    }

    /// How the runner is connected, once a link that is just being made carries operations.
    async fn settled_connection(&self, runner: RunnerId) -> Connection {
        let mut watch = self.watch(runner).await;
        let settled = timeout(LINKING_WITHIN, linked_or_not(&mut watch)).await;
        settled.unwrap_or(Connection::Linking)
    }

    /// A session's work goes to one runner, and does not ask for each operation anew where it is.
    async fn watch(&self, runner: RunnerId) -> Watch {
        let watched = || self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((same, watch)) = &*watched()
            && *same == runner
        {
            return watch.clone();
        }
        let watch = self.links.watch(runner).await;
        *watched() = Some((runner, watch.clone()));
        watch
    }

    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, Refusal> {
        let found = self.intents.find(id).await;
        found.map_err(|error| not_stored("read the operation", &error))
    }

    /// What is not told here is said by the next inventory's verdict.
    async fn forget_once_kept(self, runner: RunnerId, operation: OperationId) {
        if let Err(error) = self.intents.outputs().synced(operation).await {
            tracing::warn!(operation.id = %operation, %error, "output was not kept; asking its runner for it again");
            return self.settle_late(runner, operation).await;
        }
        if let Connection::Online(link) = self.settled_connection(runner).await {
            let _ = link.forget(operation).await;
        }
    }

    /// Nobody waits for it any more, and its outcome is not stored, or its output not kept.
    async fn settle_late(self, runner: RunnerId, operation: OperationId) {
        // What is offline now finds it when it links.
        if let Connection::Online(link) = linked_or_not(&mut self.watch(runner).await).await {
            self.links.settle_late(link, operation).await;
        }
    }
}

/// How the runner is connected, once a link that is just being made carries operations or is gone:
/// what was stored before this was asked, the link that comes next finds.
async fn linked_or_not(watch: &mut Watch) -> Connection {
    let settled = watch.wait_for(|now| !matches!(now, Connection::Linking));
    match settled.await {
        Ok(connection) => connection.clone(),
        Err(_) => Connection::Offline { since: None },
    }
}

/// What the protocol needs to know of a connection.
fn linked(connection: &Connection) -> server::Connection<Linked> {
    match connection {
        Connection::Offline { since } => server::Connection::Offline { since: *since },
        Connection::Linking => server::Connection::Linking,
        Connection::Online(link) => server::Connection::Online(link.linked().clone()),
        Connection::Revoked => server::Connection::Revoked,
    }
}

type Cancelled = Result<CancelAnswer, Refusal>;

#[async_trait]
impl Sandbox for RemoteSandbox {
    /// A second start of an operation takes its stream over: the earlier stream ends without an
    /// outcome. Dropping a stream leaves the operation running, and its outcome is stored.
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        let found = self.find_or_place(&operation).await?;
        let connection = self.watch(found.0.place.runner).await;
        Ok(follow::start(self.clone(), operation, found, connection))
    }

    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Cancelled {
        cancel::start(self.clone(), operation, epoch).await
    }

    async fn forget(&self, operation: OperationId) {
        let runner = match self.intents.find(operation).await {
            // An end that is not stored is nowhere else but with the runner.
            Ok(Some(intent)) if intent.outcome.is_some() => intent.place.runner,
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(operation.id = %operation, %error, "left to the next inventory");
                return;
            }
        };
        // Detached on purpose: a sync is bounded, and a turn does not wait for it.
        tokio::spawn(self.clone().forget_once_kept(runner, operation));
    }

    async fn leave(&self, operation: OperationId) {
        match self.intents.find(operation).await {
            Ok(Some(StoredIntent {
                outcome: None,
                place,
                ..
            })) => {
                // Detached on purpose: a turn does not wait for a runner.
                tokio::spawn(self.clone().settle_late(place.runner, operation));
            }
            // It has ended meanwhile, and whoever followed it leaves this to its caller.
            Ok(Some(StoredIntent { place, .. })) => {
                tokio::spawn(self.clone().forget_once_kept(place.runner, operation));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(operation.id = %operation, %error, "left to the next link");
            }
        }
    }
}

fn asks_for_all(request: &Request) -> bool {
    matches!(request, Request::Exec(exec) if exec.retention == Retention::All)
}

fn linked_anew(name: &str) -> Refusal {
    let message = format!("runner {name:?} has just linked anew");
    Refusal::new(RefusalCode::Unavailable, message).retry_after(RETRY_AFTER)
}

fn removed(name: &str) -> Refusal {
    let message = format!("runner {name:?} was removed; choose another for the next message");
    Refusal::new(RefusalCode::Unavailable, message)
}

fn conflict() -> Refusal {
    Refusal::new(
        RefusalCode::Conflict,
        "the same operation was asked for with another request",
    )
}

fn not_stored(what: &str, error: &PortError) -> Refusal {
    tracing::warn!(%error, "failed to {what}");
    Refusal::new(
        RefusalCode::Unavailable,
        format!("the server failed to {what}"),
    )
    .retry_after(RETRY_AFTER)
}
