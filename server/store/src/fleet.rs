//! What placement looks at: the runner that a turn works on, and what the tenant demands of it.

use shared_types::{
    Epoch, Incarnation, Isolation, RunnerId, SandboxId, TenantId, Timestamp, TurnId, event::Choice,
};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, query},
    turn,
};

/// Where a turn's calls may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRow {
    /// What a sandbox must be proved to keep apart.
    pub demanded: Isolation,
    /// The choice that was recorded when the turn was claimed.
    pub choice: Choice,
    /// The runner that was chosen, as it is now.
    pub chosen: Option<ChosenRunner>,
}

/// The runner that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenRunner {
    /// Its id.
    pub id: RunnerId,
    /// Its name.
    pub name: String,
    /// Whether it was revoked.
    pub revoked: bool,
    /// Whether it is locked, because its folder was copied.
    pub locked: bool,
    /// Whether a replica holds its link.
    pub online: bool,
    /// When it was last heard of; absent before its first link.
    pub last_seen_at: Option<Timestamp>,
    /// What its memory of operations was worth at its newest link.
    pub incarnation: Option<Incarnation>,
    /// The first by name of its sandboxes, and what that is proved to keep apart.
    pub sandbox: Option<(SandboxId, Isolation)>,
}

impl Store {
    /// Where a turn's calls may go, in one statement: it is read before every operation.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such turn, or it was not claimed.
    pub async fn fleet(&self, tenant: TenantId, turn: TurnId) -> Result<FleetRow, StoreError> {
        let row: Row = query(
            "SELECT demanded_isolation, chosen_by, runners.id AS chosen_runner_id,
                 runners.name AS chosen_runner_name, revoked_at, locked_at, replica_id, last_seen_at, journal_id, boot_id,
                 sandboxes.id AS sandbox_id, isolation
             FROM turns JOIN tenants ON tenants.id = turns.tenant_id
             LEFT JOIN runners
                 ON runners.tenant_id = turns.tenant_id AND runners.id = chosen_runner_id
             LEFT JOIN sandboxes
                 ON sandboxes.tenant_id = runners.tenant_id AND sandboxes.runner_id = runners.id
                     AND sandboxes.generation = runners.generation
             WHERE turns.tenant_id = $1 AND turns.id = $2 AND chosen_by IS NOT NULL
             ORDER BY sandboxes.name LIMIT 1",
        )
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        let chosen = match row.maybe_parsed("chosen_runner_id")? {
            Some(id) => Some(chosen(id, &row)?),
            None => None,
        };
        Ok(FleetRow {
            demanded: row.parsed("demanded_isolation")?,
            choice: turn::choice(&row)?,
            chosen,
        })
    }
}

/// Where a caller's operation may go: one runner, and the epoch of its sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerPlace {
    /// What a sandbox must be proved to keep apart.
    pub demanded: Isolation,
    /// The runner, as it is now.
    pub runner: ChosenRunner,
    /// Under which epoch its sandbox's operations are sent; absent where it has no sandbox.
    pub epoch: Option<Epoch>,
}

impl Store {
    /// Where an operation may go that a caller wants on this runner, in one statement.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, revoked or not.
    pub async fn caller_place(
        &self,
        tenant: TenantId,
        runner: RunnerId,
    ) -> Result<CallerPlace, StoreError> {
        let row: Row = query(
            "SELECT demanded_isolation, runners.name AS chosen_runner_name, revoked_at, locked_at,
                 replica_id, last_seen_at, journal_id, boot_id, sandboxes.id AS sandbox_id,
                 isolation, epoch
             FROM runners JOIN tenants ON tenants.id = runners.tenant_id
             LEFT JOIN sandboxes
                 ON sandboxes.tenant_id = runners.tenant_id AND sandboxes.runner_id = runners.id
                     AND sandboxes.generation = runners.generation
             WHERE runners.tenant_id = $1 AND runners.id = $2
             ORDER BY sandboxes.name LIMIT 1",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        let epoch = row.maybe_integer("epoch")?;
        Ok(CallerPlace {
            demanded: row.parsed("demanded_isolation")?,
            runner: chosen(runner, &row)?,
            epoch: epoch.and_then(|epoch| u64::try_from(epoch).ok().map(Epoch)),
        })
    }
}

fn chosen(id: RunnerId, row: &Row) -> Result<ChosenRunner, sqlx::Error> {
    let journal = row.maybe_parsed("journal_id")?;
    let sandbox = row.maybe_parsed("sandbox_id")?;
    Ok(ChosenRunner {
        id,
        name: row.text("chosen_runner_name")?,
        revoked: row.maybe_time("revoked_at")?.is_some(),
        locked: row.maybe_time("locked_at")?.is_some(),
        online: row.maybe_text("replica_id")?.is_some(),
        last_seen_at: row.maybe_time("last_seen_at")?,
        incarnation: journal
            .zip(row.maybe_text("boot_id")?)
            .map(|(journal, boot)| Incarnation { journal, boot }),
        sandbox: sandbox.zip(row.maybe_parsed("isolation")?),
    })
}
