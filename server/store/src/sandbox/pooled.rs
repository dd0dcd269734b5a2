//! Sandboxes of pools: one for each user who works on a runner that makes them. The server decides what each is to be;
//! its runner reports its state.
//!
//! The id follows from the runner and the user, so that making one twice makes it once.

use serde::{Deserialize, Serialize};
use shared_link::server::SandboxReport;
use shared_types::{
    ReplicaId, RunnerId, SandboxId, SandboxLimits, SandboxNetwork, SandboxPrivilege, SandboxSpec,
    SandboxState, TenantId, Timestamp, UserId, limits::MAX_PATH_BYTES,
};

use crate::{
    Store, StoreError,
    columns::{Columns as _, json},
    database::{FromRow, Row, page, query, query_as},
    error::bounded,
};

/// A sandbox of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledSandbox {
    /// Its id.
    pub id: SandboxId,
    /// The runner that makes it.
    pub runner: RunnerId,
    /// The name of that runner.
    pub runner_name: String,
    /// The user whose it is.
    pub owner: UserId,
    /// The name of that user.
    pub owner_name: String,
    /// The specification that it is to have.
    pub spec: SandboxSpec,
    /// The privilege that its commands may get, by its runner's last report.
    pub privilege: SandboxPrivilege,
    /// The state, by its runner's last report.
    pub state: SandboxState,
    /// The reason of the state; may be empty.
    pub reason: String,
    /// The time since it is in that state.
    pub since: Timestamp,
}

/// A change of a sandbox that its runner reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxChange {
    /// The time of the report.
    pub at: Timestamp,
    /// The state then.
    pub state: SandboxState,
    /// The reason of the state; may be empty.
    pub reason: String,
}

/// Changes that are kept of one sandbox.
const CHANGES_KEPT: usize = 50;

/// The most sandboxes that one search for forbidden ones returns.
const FORBIDDEN_AT_ONCE: i64 = 1000;

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It is stored.
    Stored,
    /// That sandbox is not wanted any more.
    NotWanted,
    /// This database knows no such sandbox of that runner: it may be an older copy.
    Unknown,
}

macro_rules! select_pooled {
    ($rest:literal) => {
        concat!(
            "SELECT sandboxes.id AS id, sandboxes.runner_id AS runner_id, runners.name AS runner_name,
                 sandboxes.owner_id AS owner_id, users.name AS owner_name, spec, privilege, state,
                 state_reason,
                 state_since
             FROM sandboxes
             JOIN runners ON runners.tenant_id = sandboxes.tenant_id AND runners.id = sandboxes.runner_id
             JOIN users ON users.tenant_id = sandboxes.tenant_id AND users.id = sandboxes.owner_id
             WHERE sandboxes.tenant_id = $1 AND wanted = 1 AND revoked_at IS NULL ",
            $rest
        )
    };
}

impl Store {
    /// The user's sandbox on the runner, which is a pool. It is wanted from now on. A new one has the pool's first
    /// template and the usual limits.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner; [`StoreError::Conflict`] if it makes none.
    pub async fn want_sandbox(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        user: UserId,
        now: Timestamp,
    ) -> Result<SandboxId, StoreError> {
        let mut tx = self.write(tenant).await?;
        let row: Row = query(
            "SELECT pool_templates FROM runners WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(&mut tx)
        .await?;
        let templates: Vec<String> = match row.maybe_text("pool_templates")? {
            Some(_) => row.json("pool_templates")?,
            None => Vec::new(),
        };
        let template = templates.into_iter().next();
        let template = template.ok_or(StoreError::Conflict("the runner makes no sandboxes"))?;
        let spec = SandboxSpec {
            name: user.to_string(),
            template,
            limits: SandboxLimits::default(),
            network: SandboxNetwork::None,
            // Policy decides it each time.
            may_sudo: false,
        };
        let id = SandboxId::derive(runner, &spec.name);
        query(
            "INSERT INTO sandboxes
                 (tenant_id, id, runner_id, name, root, isolation, generation, updated_at, owner_id,
                  spec, wanted, state, state_since)
             VALUES ($1, $2, $3, $4, '/workspace', 'none', 0, $5, $4, $6, 1, 'wanted', $5)
             ON CONFLICT (tenant_id, id) DO UPDATE SET wanted = 1, updated_at = excluded.updated_at,
                 spec = CASE WHEN sandboxes.wanted = 1 THEN sandboxes.spec ELSE excluded.spec END,
                 state = CASE WHEN sandboxes.wanted = 1 THEN sandboxes.state ELSE 'wanted' END,
                 state_since = CASE WHEN sandboxes.wanted = 1 THEN sandboxes.state_since
                     ELSE excluded.state_since END",
        )
        .bind(tenant.to_string())
        .bind(id.to_string())
        .bind(runner.to_string())
        .bind(user.to_string())
        .bind(now.as_micros())
        .bind(json(&spec))
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(id)
    }

    /// The specification of a sandbox; none if it is a workspace or not wanted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn sandbox_spec(
        &self,
        tenant: TenantId,
        sandbox: SandboxId,
    ) -> Result<Option<SandboxSpec>, StoreError> {
        let row = query(
            "SELECT spec FROM sandboxes
             WHERE tenant_id = $1 AND id = $2 AND owner_id IS NOT NULL AND wanted = 1",
        )
        .bind(tenant.to_string())
        .bind(sandbox.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        Ok(row.map(|row| row.json("spec")).transpose()?)
    }

    /// Tells if the tenant lets the commands of its sandboxes be root there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn may_sudo(&self, tenant: TenantId) -> Result<bool, StoreError> {
        let row = query(
            "SELECT value FROM settings
             WHERE tenant_id = $1 AND subject = $1 AND settings.name = 'sudo'",
        )
        .bind(tenant.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        let value = row.map(|row| row.text("value")).transpose()?;
        Ok(value.is_none_or(|value| value == "allow"))
    }

    /// Sandboxes whose commands may be root, which run on runners that are linked to this replica, and whose tenant
    /// forbids root. With `of_all` the tenant's policy does not matter. Only some of them if there are many. Without a
    /// tenant: the operator's policy is about all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn forbidden_sandboxes(
        &self,
        replica: ReplicaId,
        of_all: bool,
    ) -> Result<Vec<(RunnerId, SandboxId, SandboxSpec)>, StoreError> {
        let rows = query(
            "SELECT sandboxes.id AS id, sandboxes.runner_id AS runner_id, spec FROM sandboxes
             JOIN runners ON runners.tenant_id = sandboxes.tenant_id AND runners.id = sandboxes.runner_id
             WHERE replica_id = $1 AND revoked_at IS NULL AND wanted = 1 AND state = 'running'
                 AND privilege = 'sudo'
                 AND ($2 = 1 OR EXISTS (SELECT 1 FROM settings WHERE settings.tenant_id = sandboxes.tenant_id
                     AND subject = sandboxes.tenant_id AND settings.name = 'sudo' AND value <> 'allow'))
             ORDER BY sandboxes.id LIMIT $3",
        )
        .bind(replica.to_string())
        .bind(i64::from(of_all))
        .bind(FORBIDDEN_AT_ONCE)
        .fetch_all(&mut self.read_any("policy is about all tenants").await?)
        .await?;
        let one = |row: Row| {
            Ok((
                row.parsed("runner_id")?,
                row.parsed("id")?,
                row.json("spec")?,
            ))
        };
        rows.into_iter().map(one).collect()
    }

    /// Stores the state of a sandbox that its runner reports.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a long reason; [`StoreError::Unavailable`].
    pub async fn sandbox_reported(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        report: &SandboxReport,
        now: Timestamp,
    ) -> Result<Reported, StoreError> {
        let SandboxReport {
            sandbox,
            state,
            ref reason,
            privilege,
            ..
        } = *report;
        bounded("why a sandbox is as it is", reason, MAX_PATH_BYTES)?;
        // A runner may report any number of sandboxes that the server does not know: none of them costs a write.
        if !self.is_pooled(tenant, runner, sandbox).await? {
            return Ok(Reported::Unknown);
        }
        let mut tx = self.write(tenant).await?;
        let before = query(
            "SELECT state, state_reason, changes FROM sandboxes
             WHERE tenant_id = $1 AND id = $2 AND runner_id = $3 AND owner_id IS NOT NULL",
        )
        .bind(tenant.to_string())
        .bind(sandbox.to_string())
        .bind(runner.to_string())
        .fetch_optional(&mut tx)
        .await?;
        let Some(before) = before else {
            return Ok(Reported::Unknown);
        };
        let mut changes: Vec<SandboxChange> = before.json("changes")?;
        if before.text("state")? != state.name() || before.text("state_reason")? != *reason {
            changes.push(SandboxChange {
                at: now,
                state,
                reason: reason.clone(),
            });
            let older = changes.len().saturating_sub(CHANGES_KEPT);
            changes.drain(..older);
        }
        let row = query(
            "UPDATE sandboxes SET
                 state_since = CASE WHEN state = $4 THEN state_since ELSE $6 END,
                 state = $4, state_reason = $5, changes = $7, privilege = $8
             WHERE tenant_id = $1 AND id = $2 AND runner_id = $3 AND owner_id IS NOT NULL
             RETURNING wanted",
        )
        .bind(tenant.to_string())
        .bind(sandbox.to_string())
        .bind(runner.to_string())
        .bind(state.name())
        .bind(reason)
        .bind(now.as_micros())
        .bind(json(&changes))
        .bind(privilege.name())
        .fetch_optional(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(match row {
            None => Reported::Unknown,
            Some(row) if row.count("wanted")? == 1 || state == SandboxState::Removed => {
                Reported::Stored
            }
            Some(_) => Reported::NotWanted,
        })
    }

    /// Tells if this is a sandbox of the runner's pool.
    async fn is_pooled(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        sandbox: SandboxId,
    ) -> Result<bool, StoreError> {
        let row = query(
            "SELECT id FROM sandboxes
             WHERE tenant_id = $1 AND id = $2 AND runner_id = $3 AND owner_id IS NOT NULL",
        )
        .bind(tenant.to_string())
        .bind(sandbox.to_string())
        .bind(runner.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        Ok(row.is_some())
    }

    /// The sandboxes of one user, or of all, by id, after that id (empty: from the start).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn pooled_sandboxes(
        &self,
        tenant: TenantId,
        owner: Option<UserId>,
        after: &str,
        at_most: u32,
    ) -> Result<Vec<PooledSandbox>, StoreError> {
        let owner = owner.map(|owner| owner.to_string()).unwrap_or_default();
        Ok(query_as(select_pooled!(
            "AND (sandboxes.owner_id = $2 OR $2 = '') AND sandboxes.id > $3
             ORDER BY sandboxes.id LIMIT $4"
        ))
        .bind(tenant.to_string())
        .bind(owner)
        .bind(after)
        .bind(page(at_most))
        .fetch_all(&mut self.read(tenant).await?)
        .await?)
    }

    /// A sandbox of a pool that is wanted.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn pooled_sandbox(
        &self,
        tenant: TenantId,
        id: SandboxId,
    ) -> Result<PooledSandbox, StoreError> {
        Ok(query_as(select_pooled!("AND sandboxes.id = $2"))
            .bind(tenant.to_string())
            .bind(id.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?)
    }

    /// The latest changes of a sandbox, the newest last: 50 at most.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn sandbox_changes(
        &self,
        tenant: TenantId,
        id: SandboxId,
    ) -> Result<Vec<SandboxChange>, StoreError> {
        let row: Row = query(
            "SELECT changes FROM sandboxes WHERE tenant_id = $1 AND id = $2 AND owner_id IS NOT NULL",
        )
        .bind(tenant.to_string())
        .bind(id.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(row.json("changes")?)
    }

    /// Changes the specification that a sandbox has from its next start on.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn set_sandbox_spec(
        &self,
        tenant: TenantId,
        id: SandboxId,
        spec: &SandboxSpec,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let changed = query(
            "UPDATE sandboxes SET spec = $3, updated_at = $4
             WHERE tenant_id = $1 AND id = $2 AND owner_id IS NOT NULL AND wanted = 1",
        )
        .bind(tenant.to_string())
        .bind(id.to_string())
        .bind(json(spec))
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        match changed {
            0 => Err(StoreError::NotFound),
            _ => Ok(()),
        }
    }

    /// Records that a sandbox is not wanted any more: its runner removes it with its files.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn unwant_sandbox(
        &self,
        tenant: TenantId,
        id: SandboxId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let changed = query(
            "UPDATE sandboxes SET wanted = 0, updated_at = $3
             WHERE tenant_id = $1 AND id = $2 AND owner_id IS NOT NULL AND wanted = 1",
        )
        .bind(tenant.to_string())
        .bind(id.to_string())
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        match changed {
            0 => Err(StoreError::NotFound),
            _ => Ok(()),
        }
    }
}

impl FromRow for PooledSandbox {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            runner: row.parsed("runner_id")?,
            runner_name: row.text("runner_name")?,
            owner: row.parsed("owner_id")?,
            owner_name: row.text("owner_name")?,
            spec: row.json("spec")?,
            privilege: row.parsed("privilege")?,
            state: row.parsed("state")?,
            reason: row.text("state_reason")?,
            since: row.time("state_since")?,
        })
    }
}
