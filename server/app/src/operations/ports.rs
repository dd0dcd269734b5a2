//! The router's ports for the operation of a caller: one runner, and one intent.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use server_records::{Fleet, FleetSnapshot, Intents, NewIntent, PlaceError, PortError};
use server_router::is_kept_nowhere;
use server_store::{CallerPlace, NewCallerOperation, Placed, Store, StoreError};
use shared_sandbox::Request;
use shared_types::{Clock, CredentialId, RunnerId, SandboxId, TenantId, UserId, event::Choice};
use tokio::time::{Duration, Instant};

use crate::{
    isolation::IsolationPolicy,
    ports::{Started, label, shown},
};

/// The time for which an operation is placed by an earlier read of its runner. It may have to wait for another
/// start under the same key, and the runner's rights can change in that time.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// The one runner that the caller named or had chosen.
pub(super) struct CallerFleet {
    pub(super) store: Store,
    pub(super) started: Started,
    pub(super) isolation: Arc<IsolationPolicy>,
    pub(super) tenant: TenantId,
    pub(super) user: UserId,
    pub(super) runner: RunnerId,
    pub(super) sandbox: SandboxId,
    /// The result and time of the first read.
    pub(super) known: Mutex<Option<(CallerPlace, Instant)>>,
}

#[async_trait]
impl Fleet for CallerFleet {
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError> {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let place = match known {
            Some((place, at)) if at.elapsed() < KNOWN_FOR => place,
            _ => self.read().await?,
        };
        let mut sandboxes = place.runner.sandboxes.iter();
        let meant = sandboxes.find(|sandbox| sandbox.id == self.sandbox);
        // One that is gone is named by its id, so that no other one is taken for it.
        let workspace = meant.map_or_else(|| self.sandbox.to_string(), |meant| meant.name.clone());
        Ok(FleetSnapshot {
            is_callers: true,
            choice: Choice::User {
                runner: self.runner,
                name: place.runner.name.clone(),
                workspace: Some(workspace),
            },
            demanded: place.demanded.and(&self.isolation.at_least),
            returns_until: self.started.returns(&place.runner),
            // Its sandbox was chosen before.
            lacks_sandbox: None,
            runners: vec![shown(place.runner, &self.isolation, place.may_sudo)],
        })
    }

    async fn want_sandbox(&self, _pool: RunnerId, _user: UserId) -> Result<(), PortError> {
        Ok(())
    }

    /// An operation of a caller has no watcher before it is placed.
    fn tell(&self, _words: String) {}
}

impl CallerFleet {
    async fn read(&self) -> Result<CallerPlace, PortError> {
        let whose = (self.runner, self.user);
        let place = self.store.caller_place(self.tenant, whose).await;
        place.map_err(PortError::new)
    }
}

/// The place of the operation with this key of a caller.
pub(super) struct CallerIntents {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tenant: TenantId,
    pub(super) user: UserId,
    pub(super) credential: Option<CredentialId>,
    pub(super) key: String,
    /// Set once this has placed it.
    pub(super) placed: Arc<AtomicBool>,
}

#[async_trait]
impl Intents for CallerIntents {
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError> {
        let operation = NewCallerOperation {
            id: intent.id,
            user: self.user,
            credential: self.credential,
            key: self.key.clone(),
            request: serde_json::to_string(request).map_err(PortError::new)?,
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
        let placed = self
            .store
            .place_caller_operation(self.tenant, intent.epoch, &operation, self.clock.now())
            .await;
        match placed {
            Ok(Placed::New { .. }) => {
                self.placed.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(Placed::Known(_)) | Err(StoreError::Conflict(_)) => Err(PlaceError::Conflict),
            Ok(Placed::Barred) => Err(PlaceError::Barred),
            Ok(Placed::NotAllowed) => Err(PlaceError::NotAllowed),
            Ok(Placed::OtherIncarnation) => Err(PlaceError::OtherIncarnation),
            Err(StoreError::StaleEpoch { .. }) => Err(PlaceError::StaleEpoch),
            Err(error) => Err(PortError::new(error).into()),
        }
    }
}
