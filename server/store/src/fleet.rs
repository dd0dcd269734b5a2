//! The facts that placement decides by: the runner that a turn works on, and the isolation that the tenant demands.

use server_records::{FleetRunner, FleetSandbox};
use shared_link::server::RunnerState;
use shared_types::{
    Epoch, Incarnation, Isolation, RunnerId, SandboxPrivilege, SandboxSpec, SandboxState, TenantId,
    Timestamp, TurnId, UserId, event::Choice,
};

use crate::{
    Role, RunnerAccess, Store, StoreError,
    columns::Columns as _,
    credential::{self, credential_until},
    database::{MAX_PAGE, Row, page, query},
    turn,
};

/// The place where a turn's calls may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRow {
    /// The isolation that a sandbox must be proved to have.
    pub demanded: Isolation,
    /// True if the tenant lets commands be root in their sandbox.
    pub may_sudo: bool,
    /// The choice that was recorded when the turn was claimed.
    pub choice: Choice,
    /// The runner that was chosen, as it is now.
    pub chosen: Option<FleetRunner>,
    /// The right of the turn's user to use that runner.
    pub access: Option<RunnerAccess>,
    /// The user whose turn it is.
    pub user: UserId,
    /// The role that the user has now; none where the user was removed.
    pub role: Option<Role>,
    credential_until: Option<Timestamp>,
}

impl FleetRow {
    /// True if the credential under which the turn was queued has ended.
    pub fn credential_ended(&self, now: Timestamp) -> bool {
        credential::ended(self.credential_until, now).is_some()
    }
}

/// Selects a runner, its sandboxes that this user may use, and the policy of the tenant: one row a sandbox, $3 at most.
macro_rules! select_place {
    ($also:expr, from: $from:literal, user: $user:literal, where: $where:literal) => {
        concat!(
            "SELECT (SELECT value FROM settings WHERE settings.tenant_id = tenants.id AND subject = tenants.id
                 AND settings.name = 'isolation') AS demanded_isolation,
             (SELECT value FROM settings WHERE settings.tenant_id = tenants.id AND subject = tenants.id
                 AND settings.name = 'sudo') AS sudo_policy,
             trusted_at, runners.id AS chosen_runner_id, runners.name AS chosen_runner_name, revoked_at, locked_at,
             drained_at, (SELECT users.name FROM users WHERE users.tenant_id = runners.tenant_id
                 AND users.id = drained_by) AS drained_by_name, replica_id, last_seen_at, journal_id, boot_id, pool_backend, pool_isolation, pool_problem,
             pool_sudo_templates, sandboxes.owner_id AS sandbox_owner_id, sandboxes.id AS sandbox_id,
             sandboxes.name AS sandbox_name, isolation, problem, sandboxes.epoch AS epoch,
             sandboxes.spec AS sandbox_spec, sandboxes.state AS sandbox_state, privilege",
            $also,
            " FROM ",
            $from,
            " LEFT JOIN sandboxes
                 ON sandboxes.tenant_id = runners.tenant_id AND sandboxes.runner_id = runners.id
                     AND (sandboxes.owner_id IS NULL AND sandboxes.generation = runners.generation
                         OR pool_backend IS NOT NULL AND wanted = 1 AND sandboxes.owner_id = ",
            $user,
            ") WHERE ",
            $where,
            " ORDER BY position, sandboxes.name LIMIT $3"
        )
    };
}

impl Store {
    /// The place where a turn's calls may go, in one statement: it is read before every operation.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such turn, or it was not claimed.
    pub async fn fleet(&self, tenant: TenantId, turn: TurnId) -> Result<FleetRow, StoreError> {
        let rows = query(select_place!(
            concat!(", (SELECT ", credential_until!(), " FROM credentials
                     WHERE credentials.tenant_id = turns.tenant_id AND credentials.id = turns.credential_id)
                     AS credential_until,
                 chosen_by, runners.owner_id AS runner_owner_id, sessions.user_id AS user_id, role,
                 removed_at AS user_removed_at,
                 CAST(CASE WHEN shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = sessions.user_id)
                 THEN 1 ELSE 0 END AS BIGINT) AS shared,
                 (SELECT name FROM sandboxes AS wanted WHERE wanted.tenant_id = turns.tenant_id
                     AND wanted.runner_id = chosen_runner_id AND wanted.id = chosen_sandbox_id) AS chosen_workspace"),
            from: "turns JOIN tenants ON tenants.id = turns.tenant_id
                 JOIN sessions ON sessions.tenant_id = turns.tenant_id AND sessions.id = turns.session_id
                 JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
                 LEFT JOIN runners ON runners.tenant_id = turns.tenant_id AND runners.id = chosen_runner_id",
            user: "sessions.user_id",
            where: "turns.tenant_id = $1 AND turns.id = $2 AND chosen_by IS NOT NULL"
        ))
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        let row = rows.first().ok_or(StoreError::NotFound)?;
        let (chosen, access) = match row.maybe_parsed("chosen_runner_id")? {
            Some(id) => {
                let chosen = chosen(id, row, &rows)?;
                let access = RunnerAccess {
                    name: chosen.name.clone(),
                    owner: row.parsed("runner_owner_id")?,
                    shared: row.count("shared")? == 1,
                    revoked: chosen.state == RunnerState::Revoked,
                };
                (Some(chosen), Some(access))
            }
            None => (None, None),
        };
        let is_removed = row.maybe_time("user_removed_at")?.is_some();
        Ok(FleetRow {
            demanded: row.maybe_parsed("demanded_isolation")?.unwrap_or_default(),
            may_sudo: may_sudo(row)?,
            choice: turn::choice(row)?,
            chosen,
            access,
            user: row.parsed("user_id")?,
            role: match is_removed {
                true => None,
                false => Some(row.word("role")?),
            },
            credential_until: row.maybe_time("credential_until")?,
        })
    }
}

/// The place where a caller's operation may go: the sandboxes of one runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerPlace {
    /// The isolation that a sandbox must be proved to have.
    pub demanded: Isolation,
    /// True if the tenant lets commands be root in their sandbox.
    pub may_sudo: bool,
    /// The runner, as it is now.
    pub runner: FleetRunner,
}

impl Store {
    /// The place where this user's operation on this runner may go, in one statement.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, revoked or not.
    pub async fn caller_place(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        user: UserId,
    ) -> Result<CallerPlace, StoreError> {
        let rows = query(select_place!(
            "",
            from: "runners JOIN tenants ON tenants.id = runners.tenant_id",
            user: "$4",
            where: "runners.tenant_id = $1 AND runners.id = $2"
        ))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(page(MAX_PAGE))
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        let row = rows.first().ok_or(StoreError::NotFound)?;
        Ok(CallerPlace {
            demanded: row.maybe_parsed("demanded_isolation")?.unwrap_or_default(),
            may_sudo: may_sudo(row)?,
            runner: chosen(runner, row, &rows)?,
        })
    }
}

/// Tells if the tenant's policy allows root; a word that this program does not know forbids it.
fn may_sudo(row: &Row) -> Result<bool, sqlx::Error> {
    let policy = row.maybe_text("sudo_policy")?;
    Ok(policy.is_none_or(|policy| policy == "allow"))
}

/// Tells if the commands of the sandbox in this row may be root there.
fn has_sudo(row: &Row) -> Result<bool, sqlx::Error> {
    if row.maybe_text("sandbox_owner_id")?.is_none() {
        return Ok(false);
    }
    let spec: SandboxSpec = row.json("sandbox_spec")?;
    let templates: Vec<String> = row.json("pool_sudo_templates")?;
    let runs = row.text("sandbox_state")? == SandboxState::Running.name();
    let runs_with_it = runs && row.text("privilege")? == SandboxPrivilege::Sudo.name();
    Ok(runs_with_it || templates.contains(&spec.template))
}

/// The runner in the first of these rows, with the sandboxes in all of them.
fn chosen(id: RunnerId, row: &Row, rows: &[Row]) -> Result<FleetRunner, sqlx::Error> {
    let journal = row.maybe_parsed("journal_id")?;
    let mut sandboxes = Vec::with_capacity(rows.len());
    for row in rows {
        // A runner that has reported no sandbox has one row without any.
        if let Some(id) = row.maybe_parsed("sandbox_id")? {
            // A runner with a pool reports its isolation and its problem for all sandboxes at once.
            let (isolation, problem) = match row.maybe_text("sandbox_owner_id")? {
                Some(_) => ("pool_isolation", "pool_problem"),
                None => ("isolation", "problem"),
            };
            let problem = row.text(problem)?;
            sandboxes.push(FleetSandbox {
                id,
                name: row.text("sandbox_name")?,
                isolation: row.parsed(isolation)?,
                problem: (!problem.is_empty()).then_some(problem),
                has_sudo: has_sudo(row)?,
                epoch: Epoch(row.count("epoch")?),
            });
        }
    }
    Ok(FleetRunner {
        id,
        name: row.text("chosen_runner_name")?,
        state: match (row.maybe_time("revoked_at")?, row.maybe_text("replica_id")?) {
            (Some(_), _) => RunnerState::Revoked,
            (None, Some(_)) => RunnerState::Online,
            (None, None) => RunnerState::Offline {
                since: row.maybe_time("last_seen_at")?,
            },
        },
        locked: row.maybe_time("locked_at")?.is_some(),
        drained_by: match (row.maybe_time("revoked_at")?, row.maybe_time("drained_at")?) {
            (None, Some(_)) => Some(row.text("drained_by_name")?),
            (Some(_), _) | (None, None) => None,
        },
        incarnation: journal
            .zip(row.maybe_text("boot_id")?)
            .map(|(journal, boot)| Incarnation { journal, boot }),
        believed: row.maybe_time("trusted_at")?.is_some(),
        pool: row.maybe_text("pool_backend")?.is_some(),
        sandboxes,
    })
}
