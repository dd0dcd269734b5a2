//! The state of this server, as admins see it.

use std::time::Duration;

use server_llm::Health;
use server_store::{ReplicaRow, Store, TenantCounts};
use shared_types::{ReplicaId, Timestamp};
use tokio::time::Instant;

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    models::{ModelAccounts, ModelState},
    rights::Action,
};

/// The use cases of this file.
#[derive(Clone)]
pub struct Status {
    store: Store,
    gate: Gate,
    models: ModelAccounts,
    replica: ReplicaId,
    started_at: Timestamp,
}

/// The state of the server, and of what the tenant has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// When this server started.
    pub started_at: Timestamp,
    /// This server.
    pub replica: ReplicaId,
    /// All servers that use the database.
    pub replicas: Vec<ReplicaRow>,
    /// True if the database is a PostgreSQL; false for a file.
    pub is_shared: bool,
    /// The number of the database's schema.
    pub schema: i64,
    /// The time in which the database answered just now.
    pub answered_in: Duration,
    /// Runners and operations of the tenant.
    pub counts: TenantCounts,
    /// The models that the user may use, but for the practice model.
    pub models: ModelCounts,
}

/// Models by their last known state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelCounts {
    /// Those that answer, or were not asked yet.
    pub ready: u64,
    /// Those that are left alone for a while.
    pub cooling_down: u64,
    /// Those whose provider refuses the account.
    pub refused: u64,
    /// Those of a runner that is away.
    pub away: u64,
}

impl Status {
    pub(crate) fn of(parts: &Parts, gate: &Gate, models: &ModelAccounts) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            models: models.clone(),
            replica: parts.replica,
            started_at: parts.clock.now(),
        }
    }

    /// The state now.
    ///
    /// # Errors
    /// If the user may not see it, or the database does not answer.
    pub async fn read(&self, ctx: &OpContext) -> Result<ServerStatus, AppError> {
        self.gate.own(ctx, Action::SeeStatus)?;
        let asked = Instant::now();
        self.store.check().await?;
        let answered_in = asked.elapsed();
        let mut models = ModelCounts::default();
        for model in self.models.list(ctx).await? {
            match model.state {
                _ if model.practice => {}
                ModelState::Vendor(Health::Ready) => models.ready += 1,
                ModelState::Vendor(Health::CoolingDown(..)) => models.cooling_down += 1,
                ModelState::Vendor(Health::Refused(_)) => models.refused += 1,
                ModelState::Away(_) => models.away += 1,
            }
        }
        Ok(ServerStatus {
            started_at: self.started_at,
            replica: self.replica,
            replicas: self.store.replicas().await?,
            is_shared: self.store.is_shared(),
            schema: self.store.schema_in_use().await?,
            answered_in,
            counts: self.store.counts_of_tenant(ctx.tenant).await?,
            models,
        })
    }
}
