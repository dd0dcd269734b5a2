//! The sandbox contract over the links: an operation is placed once, committed, sent, collected
//! over every reconnect ([`crate::collect`]), and settled once. The rules are in
//! [`shared_link::server`].

mod cancel;
mod reach;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use shared_sandbox::{CancelAnswer, Operation, Running, Sandbox};
use shared_types::{
    Clock, Digest, Epoch, Generation, OperationId, Refusal, RefusalCode, RunnerId, human::duration,
};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::{
    Collected, OperationReader,
    bounds::{LINKING_WITHIN, PLACE_AGAIN_AFTER_AT_MOST, PLACE_ATTEMPTS, RETRY_AFTER},
    collect::{self, PlacedOperation, Ports, asks_for_all, conflict, stale},
    frame,
    links::{ConnectionWatch, Links, RunnerConnection, linked_or_not},
    placement::Placement,
};
use server_records::{
    Fleet, Intents, NewIntent, Operations, PlaceError, PortError, is_kept_nowhere,
};
use shared_link::server::StoredIntent;

/// The sandbox of a session or a caller: it routes each operation to the runner that was chosen for it.
#[derive(Clone)]
pub struct SandboxRouter {
    links: Links,
    fleet: Arc<dyn Fleet>,
    intents: Arc<dyn Intents>,
    operations: Arc<dyn Operations>,
    clock: Arc<dyn Clock>,
    /// The connection of the runner that was asked for last.
    watched: Arc<Mutex<Option<(RunnerId, ConnectionWatch)>>>,
    waiting: Arc<reach::WaitingCalls>,
}

impl std::fmt::Debug for SandboxRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxRouter").finish_non_exhaustive()
    }
}

impl SandboxRouter {
    /// A sandbox whose operations are placed in `fleet`, with their intents in `intents`, and then found in
    /// `operations`.
    pub fn new(
        links: Links,
        fleet: Arc<dyn Fleet>,
        intents: Arc<dyn Intents>,
        operations: Arc<dyn Operations>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            links,
            fleet,
            intents,
            operations,
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
        let (Placement { place, incarnation }, link) = self.reach(&operation.request).await?;
        let start_within = operation.limits.start_within;
        let start_by = self.clock.boot_moment().after(start_within);
        let intent = StoredIntent {
            digest,
            owner: operation.owner,
            epoch: operation.epoch,
            place,
            incarnation,
            outcome: None,
            cancel_requested: false,
            closed: false,
            effect: operation.effect,
            start_by: Some(start_by.clone()),
            trace: operation.trace,
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
            trace: intent.trace,
        };
        match self.intents.place(new, &operation.request).await {
            Ok(()) => Ok((intent, link)),
            Err(PlaceError::StaleEpoch) => Err(stale()),
            Err(PlaceError::Conflict) => Err(conflict()),
            Err(PlaceError::OtherIncarnation) => Err(linked_anew(&intent.place.runner_name)),
            Err(PlaceError::Barred) => Err(removed(&intent.place.runner_name)),
            Err(PlaceError::Draining) => Err(draining(&intent.place.runner_name)),
            Err(PlaceError::NotAllowed) => Err(not_allowed(&intent.place.runner_name)),
            Err(PlaceError::Unavailable(error)) => Err(not_stored("store the operation", &error)),
        }
    }

    /// The stored operation; it is placed if there is none. Also returns the link that its runner had just before that.
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
        if intent.epoch > operation.epoch {
            return Err(stale());
        }
        if asks_for_all(&operation.request) {
            // Before anything is sent: any collector of a known operation then keeps all of its output.
            let kept = self.operations.outputs().keep_all(operation.id).await;
            kept.map_err(|error| not_stored("make room for the output", &error))?;
        }
        Ok((intent, fresh))
    }

    /// Places the operation; tries again while it is refused for now.
    async fn placed(&self, operation: &Operation) -> Result<PlacedOperation, Refusal> {
        let until = Instant::now() + operation.limits.start_within;
        let mut attempts = 1..PLACE_ATTEMPTS;
        let (intent, fresh) = loop {
            let refusal = match self.find_or_place(operation).await {
                Ok(found) => break found,
                Err(refusal) => refusal,
            };
            let pause = refusal.retry_after_ms.map(Duration::from_millis);
            match pause {
                Some(pause)
                    if pause <= PLACE_AGAIN_AFTER_AT_MOST
                        && Instant::now() + pause < until
                        && attempts.next().is_some() =>
                {
                    let again = format!("{refusal}; trying again in {}", duration(pause));
                    self.fleet.tell(again);
                    sleep(pause).await;
                }
                _ => return Err(refusal),
            }
        };
        let connection = self.watch(intent.place.runner).await;
        Ok(PlacedOperation {
            intent,
            fresh,
            connection,
        })
    }

    /// Starts the operation, or continues a stored one, unless that is done already. Its output is to be kept.
    ///
    /// # Errors
    /// A refusal: then nothing was started, here or anywhere, by this call.
    pub async fn collect(&self, operation: Operation) -> Result<Collected, Refusal> {
        let (collected, _) = self.collected(Arc::new(operation)).await?;
        Ok(collected)
    }

    /// Also returns the first reader that may store the end.
    async fn collected(
        &self,
        operation: Arc<Operation>,
    ) -> Result<(Collected, Option<OperationReader>), Refusal> {
        let collectors = self.links.collectors();
        let place = |operation: Arc<Operation>| async move { self.placed(&operation).await };
        collectors.collect(&self.ports(), operation, place).await
    }

    /// Tells the runner that it may drop an operation that has ended and whose output is kept nowhere else. If it does
    /// not arrive, the verdict on the next inventory repeats it.
    pub async fn forget(&self, operation: OperationId) {
        let runner = match self.operations.find(operation).await {
            // An end that is not stored is only with the runner.
            Ok(Some(intent)) if intent.outcome.is_some() => intent.place.runner,
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(operation.id = %operation, %error, "left to the next inventory");
                return;
            }
        };
        if let RunnerConnection::Online(link) = self.settled_connection(runner).await {
            let _ = link.forget(operation).await;
        }
    }

    fn ports(&self) -> Ports {
        Ports {
            links: self.links.clone(),
            operations: Arc::clone(&self.operations),
            clock: Arc::clone(&self.clock),
            fleet: Some(Arc::clone(&self.fleet)),
        }
    }

    /// The connection of the runner, once a link that is just being made carries operations.
    async fn settled_connection(&self, runner: RunnerId) -> RunnerConnection {
        let mut watch = self.watch(runner).await;
        let settled = timeout(LINKING_WITHIN, linked_or_not(&mut watch)).await;
        settled.unwrap_or(RunnerConnection::Linking)
    }

    /// Follows the connection of the runner. A session's work goes to one runner, so its place is not looked up again
    /// for each operation.
    async fn watch(&self, runner: RunnerId) -> ConnectionWatch {
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
        let found = self.operations.find(id).await;
        found.map_err(|error| not_stored("read the operation", &error))
    }
}

type Cancelled = Result<CancelAnswer, Refusal>;

#[async_trait]
impl Sandbox for SandboxRouter {
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        let operation = Arc::new(operation);
        if is_kept_nowhere(&operation.request) {
            let placed = self.placed(&operation).await?;
            return Ok(collect::alone(&self.ports(), operation, placed));
        }
        let epoch = operation.epoch;
        let (collected, claimed) = self.collected(operation).await?;
        let reading = claimed.unwrap_or_else(|| collected.claim(epoch));
        Ok(collected.running(reading))
    }

    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal> {
        // Also if it is being collected: it must be one of this sandbox's operations.
        let found = match self.find(operation).await? {
            Some(_) => self.links.collectors().read(&self.ports(), operation).await,
            None => Ok(None),
        };
        match found.map_err(|error| not_stored("read the operation", &error))? {
            Some(collected) => Ok(collected.running(collected.read(from))),
            None => Err(Refusal::new(
                RefusalCode::NotFound,
                "there is no such operation",
            )),
        }
    }

    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Cancelled {
        cancel::start(self.clone(), operation, epoch).await
    }

    async fn leave(&self, operation: OperationId) {
        let sandbox = self.clone();
        // Detached on purpose: a turn does not wait for a runner.
        tokio::spawn(async move {
            let (collectors, ports) = (sandbox.links.collectors(), sandbox.ports());
            // A collector that was there already may have read the operation before its call ended. It does
            // not fence it, so another one has to.
            for _ in 0..2 {
                match collectors.attach_in_the_end(&ports, operation).await {
                    Ok(Some(collected)) if !collected.settled().await => {}
                    Ok(_) => return,
                    Err(error) => {
                        tracing::error!(operation.id = %operation, %error, "an operation cannot be collected: its row cannot be read");
                        return;
                    }
                }
            }
        });
    }
}

fn linked_anew(name: &str) -> Refusal {
    let message = format!("runner {name:?} has just linked anew");
    Refusal::new(RefusalCode::Unavailable, message).retry_after(RETRY_AFTER)
}

fn removed(name: &str) -> Refusal {
    let message = format!("runner {name:?} was removed; choose another for the next message");
    Refusal::new(RefusalCode::Unavailable, message)
}

/// The refusal where a runner began to drain after its place was found.
fn draining(name: &str) -> Refusal {
    let message = format!(
        "runner {name:?} takes no new work: it drains now, and what runs there goes on; choose another for the next \
         message, or have it take work again: gantry runners undrain {name}"
    );
    Refusal::new(RefusalCode::Unavailable, message)
}

/// The refusal for a user who lost the right to use the runner, before the operation was placed or while it ran.
pub fn not_allowed(runner: &str) -> Refusal {
    let message = format!(
        "runner {runner} is not shared with you any more, or your role is too small to use it; ask its owner \
         (gantry runners share {runner}) or an admin, or choose another: gantry runners use NAME"
    );
    Refusal::new(RefusalCode::Unavailable, message)
}

fn not_stored(what: &str, error: &PortError) -> Refusal {
    tracing::warn!(%error, "failed to {what}");
    Refusal::new(
        RefusalCode::Unavailable,
        format!("the server failed to {what}"),
    )
    .retry_after(RETRY_AFTER)
}
