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
    replicas::Standing,
    rights::Action,
};

/// The use cases of this file.
#[derive(Clone)]
pub struct Status {
    store: Store,
    gate: Gate,
    models: ModelAccounts,
    replica: ReplicaId,
    standing: Standing,
    started_at: Timestamp,
}

/// A server of the database, as this one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOfDatabase {
    /// Its row, with its links and turns.
    pub row: ReplicaRow,
    /// True for this server.
    pub is_this: bool,
    /// The time since it was last seen to renew its lease, on this server's clock. Absent where this server has not seen
    /// it yet, and where the database is a file.
    pub renewal_age: Option<Duration>,
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
    pub(crate) fn of(
        parts: &Parts,
        gate: &Gate,
        models: &ModelAccounts,
        standing: &Standing,
    ) -> Self {
        Self {
            standing: standing.clone(),
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

    /// The servers that use the database, the oldest first. Their links and turns are those of all tenants.
    ///
    /// # Errors
    /// If the user may not see the server's status, or is not of the operator's tenant, or the database does not answer.
    pub async fn replicas(&self, ctx: &OpContext) -> Result<Vec<ServerOfDatabase>, AppError> {
        self.gate.own(ctx, Action::SeeStatus)?;
        let first = self.store.first_owner().await?;
        if first.is_none_or(|(operator, _)| operator != ctx.tenant) {
            return Err(AppError::Forbidden(
                "the list of servers tells of the work of all tenants, and is for the operator's tenant: ask the operator"
                    .into(),
            ));
        }
        let rows = self.store.replicas().await?.into_iter();
        let replicas = rows.map(|row| {
            let is_this = row.id == self.replica;
            let renewal_age = match is_this {
                true => self.standing.renewal_age(),
                false => self.standing.renewal_age_of(row.id),
            };
            ServerOfDatabase {
                row,
                is_this,
                renewal_age,
            }
        });
        Ok(replicas.collect())
    }
}
