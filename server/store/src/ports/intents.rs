//! The places of operations, committed before they are sent.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use server_records::{Intents, NewIntent, PlaceError, PortError, is_kept_nowhere};
use shared_sandbox::Request;
use shared_types::{Clock, CredentialId, OperationKey, SessionId, TenantId, UserId};

use crate::{Label, NewCallerOperation, NewOperation, Placed, Store, StoreError};

/// The places of the operations of one session.
pub(super) struct SessionIntents {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
}

#[async_trait]
impl Intents for SessionIntents {
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError> {
        let OperationKey::Call {
            turn,
            step,
            ordinal,
            attempt,
        } = intent.key
        else {
            return Err(PortError::lasting("a session's operations are its calls'").into());
        };
        let operation = NewOperation {
            id: intent.id,
            session: self.session,
            turn,
            step,
            ordinal,
            attempt,
            digest: intent.digest,
            place: intent.place,
            incarnation: intent.incarnation,
            effect: intent.effect,
            start_by: intent.start_by,
            deadline_at: intent.deadline,
            label: label(request),
            trace: intent.trace,
        };
        let (tenant, now) = (self.tenant, self.clock.now());
        let placed = self
            .store
            .place_operation(tenant, intent.epoch, &operation, now);
        is_placed(placed.await)
    }
}

/// The request of a caller that an operation carries out.
#[derive(Debug, Clone)]
pub struct IntentsOf {
    /// The caller's tenant.
    pub tenant: TenantId,
    /// The user.
    pub user: UserId,
    /// The credential of the request: the operation ends with it.
    pub credential: Option<CredentialId>,
    /// The caller's name for the operation.
    pub key: String,
}

/// The place of the operation with one key of a caller.
pub struct CallerIntents {
    store: Store,
    clock: Arc<dyn Clock>,
    of: IntentsOf,
    placed: AtomicBool,
}

impl CallerIntents {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>, of: IntentsOf) -> Self {
        Self {
            store,
            clock,
            of,
            placed: AtomicBool::new(false),
        }
    }

    /// True once this has placed the operation, and not an earlier request with the same key.
    pub fn has_placed(&self) -> bool {
        self.placed.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Intents for CallerIntents {
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError> {
        let of = &self.of;
        let operation = NewCallerOperation {
            id: intent.id,
            user: of.user,
            credential: of.credential,
            key: of.key.clone(),
            request: serde_json::to_string(request).map_err(PortError::lasting)?,
            kept: !is_kept_nowhere(request),
            digest: intent.digest,
            place: intent.place,
            incarnation: intent.incarnation,
            effect: intent.effect,
            start_by: intent.start_by,
            deadline_at: intent.deadline,
            label: label(request),
            trace: intent.trace,
        };
        let now = self.clock.now();
        let placed = self
            .store
            .place_caller_operation(of.tenant, intent.epoch, &operation, now);
        is_placed(placed.await)?;
        self.placed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The request in brief, for lists.
fn label(request: &Request) -> Label {
    Label {
        kind: request.kind().to_owned(),
        title: request.title(),
    }
}

fn is_placed(placed: Result<Placed, StoreError>) -> Result<(), PlaceError> {
    match placed {
        Ok(Placed::New { .. }) => Ok(()),
        Ok(Placed::Known(_)) | Err(StoreError::Conflict(_)) => Err(PlaceError::Conflict),
        Ok(Placed::Barred) => Err(PlaceError::Barred),
        Ok(Placed::Draining) => Err(PlaceError::Draining),
        Ok(Placed::NotAllowed) => Err(PlaceError::NotAllowed),
        Ok(Placed::OtherIncarnation) => Err(PlaceError::OtherIncarnation),
        Err(StoreError::StaleEpoch { .. }) => Err(PlaceError::StaleEpoch),
        Err(error) => Err(PortError::new(error).into()),
    }
}
