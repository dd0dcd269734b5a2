//! The operations of one tenant that are placed.

use std::sync::Arc;

use async_trait::async_trait;
use server_records::{Operations, PortError};
use shared_link::server::{RunnerState, Settlement, StoredIntent};
use shared_sandbox::Outcome;
use shared_types::{Epoch, OperationId, RunnerId, SandboxId, SandboxSpec, TenantId, event::Place};

use super::Ports;
use crate::{OperationRow, StoreError};

/// See the module.
pub(super) struct TenantOperations {
    pub(super) ports: Ports,
    pub(super) tenant: TenantId,
}

#[async_trait]
impl Operations for TenantOperations {
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError> {
        match self.ports.store.placed_operation(self.tenant, id).await {
            Ok(placed) => Ok(Some(stored(placed)?)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        match self.ports.store.runner(self.tenant, runner).await {
            Ok(row) => Ok(row.state()),
            Err(StoreError::NotFound) => Ok(RunnerState::Revoked),
            Err(error) => Err(error.into()),
        }
    }

    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError> {
        let Ports { store, clock, .. } = &self.ports;
        store.cancel_operation(self.tenant, id, clock.now()).await?;
        Ok(())
    }

    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settlement, PortError> {
        let Ports { store, clock, .. } = &self.ports;
        let settled = store.settle_operation(self.tenant, id, outcome, clock.now());
        Ok(settled.await?)
    }

    async fn sandbox_spec(&self, sandbox: SandboxId) -> Result<Option<SandboxSpec>, PortError> {
        let Ports {
            store,
            forbids_sudo,
            ..
        } = &self.ports;
        let spec = store.sandbox_spec(self.tenant, sandbox).await;
        let Some(spec) = spec.map_err(PortError::new)? else {
            return Ok(None);
        };
        let tenant_may = store.may_sudo(self.tenant).await.map_err(PortError::new)?;
        Ok(Some(SandboxSpec {
            may_sudo: tenant_may && !forbids_sudo,
            ..spec
        }))
    }

    fn outputs(&self) -> Arc<dyn server_records::Outputs> {
        Arc::new(self.ports.outputs(self.tenant))
    }
}

fn stored((row, place, epoch): (OperationRow, Place, Epoch)) -> Result<StoredIntent, StoreError> {
    Ok(StoredIntent {
        digest: row.digest,
        owner: row.owner(),
        epoch,
        place,
        incarnation: row.incarnation,
        outcome: row.outcome.map(|stored| stored.decode()).transpose()?,
        cancel_requested: row.cancel_requested_at.is_some(),
        closed: row.closed_at.is_some(),
        effect: row.effect,
        start_by: row.start_by,
        trace: row.trace,
    })
}
