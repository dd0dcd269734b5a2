//! The ports of the router and of the engine ([`server_records`]) over the database and the output of operations.

use std::sync::Arc;

use server_records::{
    Intents, LinkRows, LogRows, Operations, PortError, SessionError, SessionKey, SilentRunners,
    TurnRows,
};
use shared_types::{Clock, ReplicaId, SessionId, TenantId};

use crate::{Outputs, Store, StoreError};

mod hints;
mod intents;
mod links;
mod logs;
mod operations;
mod outputs;
mod silence;
mod turns;

use intents::SessionIntents;
pub use intents::{CallerIntents, IntentsOf};
use links::Rows;
use logs::SessionLogRows;
use operations::TenantOperations;
pub use outputs::TenantOutputs;
use silence::Silence;
use turns::AllTurns;

/// Makes the ports.
#[derive(Clone)]
pub struct Ports {
    /// The database.
    pub store: Store,
    /// The output of operations.
    pub outputs: Outputs,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// True if the operator forbids all commands to be root in their sandbox.
    pub forbids_sudo: bool,
}

impl Ports {
    /// The rows of the runners that link to this replica.
    pub fn links(self, replica: ReplicaId) -> Arc<dyn LinkRows> {
        Arc::new(Rows {
            ports: self,
            replica,
        })
    }

    /// The rows of silent runners, to which this replica adds the time that passes.
    pub fn silent_runners(self, replica: ReplicaId) -> Arc<dyn SilentRunners> {
        Arc::new(Silence {
            ports: self,
            replica,
        })
    }

    /// The log of a session.
    pub fn log(&self, of: SessionKey) -> Arc<dyn LogRows> {
        let store = self.store.clone();
        Arc::new(SessionLogRows { store, of })
    }

    /// The turns of all sessions.
    pub fn turns(&self) -> Arc<dyn TurnRows> {
        let store = self.store.clone();
        Arc::new(AllTurns { store })
    }

    /// The operations of a tenant.
    pub fn operations(&self, tenant: TenantId) -> Arc<dyn Operations> {
        Arc::new(TenantOperations {
            ports: self.clone(),
            tenant,
        })
    }

    /// The output of a tenant's operations.
    pub fn outputs(&self, tenant: TenantId) -> TenantOutputs {
        self.outputs.of(tenant)
    }

    /// Places the operations of a session's calls.
    pub fn session_intents(&self, tenant: TenantId, session: SessionId) -> Arc<dyn Intents> {
        Arc::new(SessionIntents {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            tenant,
            session,
        })
    }

    /// Places the operation of a caller.
    pub fn caller_intents(&self, of: IntentsOf) -> Arc<CallerIntents> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        Arc::new(CallerIntents::new(store, clock, of))
    }
}

/// The store's answer, where it is none that was wanted.
impl From<StoreError> for PortError {
    fn from(error: StoreError) -> Self {
        match error.is_passing() {
            true => Self::new(error),
            false => Self::lasting(error),
        }
    }
}

/// The store's answer about a session, where it is none that was wanted.
impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            StoreError::StaleEpoch { .. } => Self::StaleEpoch,
            StoreError::UntakenSteers => Self::UntakenSteers,
            StoreError::Full(full) => Self::Full(full.to_string()),
            other => Self::Store(other.into()),
        }
    }
}
