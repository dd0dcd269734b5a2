//! Places on a runner where operations run: workspaces, as the runner reported them at its newest link, and the
//! sandboxes of pools ([`pooled`]).

mod pooled;

use shared_link::server::SandboxFacts;
use shared_types::{
    Generation, Isolation, RunnerId, SandboxId, TenantId, Timestamp,
    limits::{MAX_NAME_BYTES, MAX_PATH_BYTES},
};

pub use pooled::{PooledSandbox, Reported, SandboxChange};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, FromRow, MAX_PAGE, Row, page, query, query_as},
    error::bounded,
};

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    /// Its id.
    pub id: SandboxId,
    /// The runner that it is on.
    pub runner: RunnerId,
    /// The runner's name for it.
    pub name: String,
    /// Its file root, for people.
    pub root: String,
    /// The isolation that it is proved to have.
    pub isolation: Isolation,
    /// The reason why no operation can run there; empty if one can.
    pub problem: String,
    /// When the runner last reported it.
    pub updated_at: Timestamp,
}

impl Store {
    /// The sandboxes that the runner reported at its newest link, the first one first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn sandboxes_of_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let rows = query_as(
            "SELECT sandboxes.id, runner_id, sandboxes.name, root, isolation, problem,
                 updated_at
             FROM sandboxes JOIN runners
                 ON runners.tenant_id = sandboxes.tenant_id AND runners.id = runner_id
             WHERE sandboxes.tenant_id = $1 AND runner_id = $2
                 AND sandboxes.generation = runners.generation
             ORDER BY position, sandboxes.name LIMIT $3",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

impl Store {
    /// The runner's name for a sandbox, also if the runner reports it no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the tenant never had it.
    pub async fn sandbox_name(
        &self,
        tenant: TenantId,
        sandbox: SandboxId,
    ) -> Result<String, StoreError> {
        let row: Row = query("SELECT name FROM sandboxes WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.to_string())
            .bind(sandbox.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(row.text("name")?)
    }
}

/// Stores the sandboxes that a runner reports with a new link.
pub(crate) async fn upsert(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    generation: Generation,
    position: usize,
    sandbox: &SandboxFacts,
    now: Timestamp,
) -> Result<(), StoreError> {
    bounded("the sandbox's name", &sandbox.name, MAX_NAME_BYTES)?;
    bounded("the sandbox's root", &sandbox.root, MAX_PATH_BYTES)?;
    bounded("the sandbox's problem", &sandbox.problem, MAX_PATH_BYTES)?;
    query(
        "INSERT INTO sandboxes
             (tenant_id, id, runner_id, name, root, isolation, generation, updated_at, position, problem)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (tenant_id, id) DO UPDATE SET root = excluded.root,
             isolation = excluded.isolation, generation = excluded.generation,
             updated_at = excluded.updated_at, position = excluded.position,
             problem = excluded.problem",
    )
    .bind(tenant.to_string())
    .bind(SandboxId::derive(runner, &sandbox.name).to_string())
    .bind(runner.to_string())
    .bind(&sandbox.name)
    .bind(&sandbox.root)
    .bind(sandbox.isolation.to_string())
    .bind(integer(generation.0))
    .bind(now.as_micros())
    .bind(integer(position as u64))
    .bind(&sandbox.problem)
    .execute(tx)
    .await?;
    Ok(())
}

impl FromRow for SandboxRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            runner: row.parsed("runner_id")?,
            name: row.text("name")?,
            root: row.text("root")?,
            isolation: row.parsed("isolation")?,
            problem: row.text("problem")?,
            updated_at: row.time("updated_at")?,
        })
    }
}
