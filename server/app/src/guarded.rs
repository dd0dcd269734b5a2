//! A user is shown the output of an operation as long as that user may use its runner.
//!
//! Each event is held back until the store has said, after the event came, that the right stands. So nothing is passed
//! on that was written after the right had ended, whichever server ended it. Events that came together share one look
//! at the store.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use server_router::not_allowed;
use server_store::{Store, StoreError};
use shared_sandbox::{CancelAnswer, EndToken, Events, Operation, OperationEvent, Running, Sandbox};
use shared_types::{Epoch, OperationId, Refusal, RefusalCode, TenantId};

use crate::AppError;

/// Events that share one look at most; each may hold a piece of output of up to 64 KiB.
const HELD_AT_MOST: usize = 8;

/// The pause before the store is asked again where it does not answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The right of an operation's user to be shown what it writes.
#[derive(Debug, Clone)]
pub(crate) struct Right {
    pub(crate) store: Store,
    pub(crate) tenant: TenantId,
    pub(crate) operation: OperationId,
}

impl Right {
    /// Asks the store. The inner error says why the right stands no more.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn look(&self) -> Result<Result<(), Refusal>, StoreError> {
        let access = self.store.operation_access(self.tenant, self.operation);
        let access = access.await?;
        Ok(match access.holds {
            true => Ok(()),
            false => Err(not_allowed(&access.runner_name)),
        })
    }

    /// # Errors
    /// If it stands no more, or the store does not answer.
    pub(crate) async fn require(&self) -> Result<(), AppError> {
        let looked = self.look().await?;
        looked.map_err(|refusal| AppError::Forbidden(refusal.message.into()))
    }
}

/// Events that came, and those of them that may be passed on.
#[derive(Debug)]
pub(crate) struct HeldEvents {
    right: Right,
    came: VecDeque<OperationEvent>,
    passed: VecDeque<OperationEvent>,
}

impl HeldEvents {
    pub(crate) fn new(right: Right) -> Self {
        Self {
            right,
            came: VecDeque::new(),
            passed: VecDeque::new(),
        }
    }

    /// The next event of this source that may be passed on; nothing where the source has no more. Waits for a
    /// store that does not answer. Cancel-safe.
    ///
    /// # Errors
    /// If nothing may be passed on any more.
    pub(crate) async fn next(
        &mut self,
        source: &mut dyn Events,
    ) -> Result<Option<OperationEvent>, Refusal> {
        loop {
            if let Some(event) = self.passed.pop_front() {
                return Ok(Some(event));
            }
            if self.came.is_empty() {
                match source.recv().await {
                    Some(event) => self.came.push_back(event),
                    None => return Ok(None),
                }
            }
            while self.came.len() < HELD_AT_MOST
                && let Some(Some(event)) = source.recv().now_or_never()
            {
                self.came.push_back(event);
            }
            if self.came.iter().any(tells_what_happened) {
                self.until_it_stands().await?;
            }
            self.passed.append(&mut self.came);
        }
    }

    async fn until_it_stands(&self) -> Result<(), Refusal> {
        loop {
            match self.right.look().await {
                Ok(looked) => return looked,
                // Its session was deleted, or this version cannot read its row.
                Err(error) if !error.is_passing() => {
                    let message = "there is no such operation";
                    return Err(Refusal::new(RefusalCode::NotFound, message));
                }
                Err(error) => {
                    tracing::warn!(operation.id = %self.right.operation, %error, "output is held back until the store says whose it is");
                    tokio::time::sleep(ASK_AGAIN_AFTER).await;
                }
            }
        }
    }
}

/// True of an event that carries output, or the end.
fn tells_what_happened(event: &OperationEvent) -> bool {
    match event {
        OperationEvent::Output { .. } | OperationEvent::Gap { .. } | OperationEvent::Ended(_) => {
            true
        }
        OperationEvent::Accepted
        | OperationEvent::Unreachable { .. }
        | OperationEvent::Reachable
        | OperationEvent::InputTaken(_) => false,
    }
}

/// A sandbox that tells of an operation as long as its user may use its runner.
pub(crate) struct Guarded<S> {
    sandbox: S,
    store: Store,
    tenant: TenantId,
    ended: EndedRights,
}

/// Operations whose right has ended. A caller that asks for one again is refused with its reason.
type EndedRights = Arc<Mutex<Vec<(OperationId, Refusal)>>>;

impl<S> Guarded<S> {
    pub(crate) fn new(sandbox: S, store: Store, tenant: TenantId) -> Self {
        Self {
            sandbox,
            store,
            tenant,
            ended: EndedRights::default(),
        }
    }

    fn require(&self, operation: OperationId) -> Result<(), Refusal> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let why = ended.iter().find(|(ended, _)| *ended == operation);
        why.map_or(Ok(()), |(_, why)| Err(why.clone()))
    }

    fn guarded(&self, operation: OperationId, running: Running) -> Running {
        let right = Right {
            store: self.store.clone(),
            tenant: self.tenant,
            operation,
        };
        Running {
            events: Box::new(GuardedEvents {
                events: running.events,
                held: HeldEvents::new(right),
                ended: Arc::clone(&self.ended),
            }),
            ..running
        }
    }
}

#[async_trait]
impl<S: Sandbox> Sandbox for Guarded<S> {
    async fn start(&self, operation: Operation) -> Result<Running, Refusal> {
        let id = operation.id;
        self.require(id)?;
        Ok(self.guarded(id, self.sandbox.start(operation).await?))
    }

    async fn cancel(&self, operation: OperationId, epoch: Epoch) -> Result<CancelAnswer, Refusal> {
        self.sandbox.cancel(operation, epoch).await
    }

    async fn read(&self, operation: OperationId, from: [u64; 2]) -> Result<Running, Refusal> {
        self.require(operation)?;
        Ok(self.guarded(operation, self.sandbox.read(operation, from).await?))
    }

    async fn leave(&self, operation: OperationId) {
        self.sandbox.leave(operation).await;
    }
}

/// The events of one operation. They break off where the right has ended; a caller that asks for the operation again is
/// refused with the reason.
#[derive(Debug)]
struct GuardedEvents {
    events: Box<dyn Events>,
    held: HeldEvents,
    ended: EndedRights,
}

#[async_trait]
impl Events for GuardedEvents {
    async fn recv(&mut self) -> Option<OperationEvent> {
        match self.held.next(&mut *self.events).await {
            Ok(event) => event,
            Err(why) => {
                let operation = self.held.right.operation;
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.push((operation, why));
                None
            }
        }
    }

    fn came(&self) -> [u64; 2] {
        self.events.came()
    }

    fn end_token(&mut self) -> Option<EndToken> {
        self.events.end_token()
    }
}
