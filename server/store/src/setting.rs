//! Settings: the values that the tenant, a user or a session has set. The narrowest layer counts: session, user,
//! tenant, and below them the default that the caller gives.
//!
//! The runner of a user or a session stays in the row of that user or session. Every other value is a row of
//! `settings`. Each change makes the tenant's generation grow, in the same transaction.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use shared_types::{
    RunnerId, SandboxId, SessionId, TenantId, Timestamp, UserId, event::TurnSettings,
};

use crate::{
    AuditEntry, By, Store, StoreError, audit,
    columns::{Columns as _, word},
    database::{Connection, Row, lock_runner, locking, query, retried},
    error::bounded,
};

/// Longest value, in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// The name of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingName {
    /// The runner on which turns work; the value is its id.
    Runner,
    /// The model that answers, by its name.
    Model,
    /// The language of the answers.
    Language,
    /// The most model calls in a turn.
    Steps,
    /// The isolation that a place must be proved to have before anything runs there; the tenant's alone.
    Isolation,
    /// The permission of commands to be root in their sandbox; the tenant's alone.
    Sudo,
}

/// The layer that has set a value. A later one goes before an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingLayer {
    /// The tenant, for all of its people.
    Tenant,
    /// A user, for all of its sessions.
    User,
    /// A session, for itself.
    Session,
}

/// The owner of the settings that are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsOf {
    /// The tenant's.
    Tenant,
    /// This user's.
    User(UserId),
    /// This session's.
    Session(SessionId),
}

/// One value that is to be set, or not to be set any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The setting.
    pub name: SettingName,
    /// The new value; none if the wider layers are to count.
    pub value: Option<String>,
}

/// A value that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The setting.
    pub name: SettingName,
    /// The value.
    pub value: String,
    /// The layer that has set it.
    pub layer: SettingLayer,
    /// The name of the person who set it.
    pub by: String,
    /// The time since it is set; absent where an earlier release recorded it.
    pub at: Option<Timestamp>,
}

/// The settings that count for one user, or for one of the user's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSettings {
    /// The number of changes to the tenant's settings: the values are of this generation or a newer one.
    pub generation: u64,
    /// Every value that is set.
    pub rows: Vec<SettingRow>,
}

impl StoredSettings {
    /// The value that counts, if one is set.
    pub fn in_effect(&self, name: SettingName) -> Option<&SettingRow> {
        let set = self.rows.iter().filter(|row| row.name == name);
        set.max_by_key(|row| row.layer)
    }
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsChanged {
    /// All of it was done.
    Changed {
        /// The generation now.
        generation: u64,
    },
    /// Every value was set already; nothing was written.
    Unchanged {
        /// The generation.
        generation: u64,
    },
    /// Another change came first; nothing was written.
    Stale {
        /// The generation.
        generation: u64,
    },
}

/// The runner on which a user's sessions work, unless they are pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunnerInUse {
    /// The runner. It may have been revoked since.
    pub id: RunnerId,
    /// The sandbox that was chosen with it; absent for the runner's first one.
    pub sandbox: Option<SandboxId>,
    /// True if it is the tenant's default, because the user has chosen none.
    pub is_default: bool,
}

impl SettingName {
    /// Every setting, in the order in which lists show them.
    pub const ALL: [Self; 6] = [
        Self::Runner,
        Self::Model,
        Self::Language,
        Self::Steps,
        Self::Isolation,
        Self::Sudo,
    ];

    /// The setting with this stored name, if this program knows it.
    fn of_word(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| word(known) == name)
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self))
    }
}

impl SettingsOf {
    fn subject(self, tenant: TenantId) -> String {
        match self {
            Self::Tenant => tenant.to_string(),
            Self::User(user) => user.to_string(),
            Self::Session(session) => session.to_string(),
        }
    }
}

impl Store {
    /// The settings of a user, and of one of the user's sessions.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant.
    pub async fn settings(
        &self,
        tenant: TenantId,
        user: UserId,
        session: Option<SessionId>,
    ) -> Result<StoredSettings, StoreError> {
        let mut connection = self.read(tenant).await?;
        let session = session.map(|id| id.to_string());
        let own: Row = query(
            "SELECT settings_generation, users.name AS user_name, active_runner_id, active_runner_at,
                 pinned_runner_id, pinned_runner_at,
                 (SELECT sandboxes.id FROM sandboxes WHERE sandboxes.tenant_id = users.tenant_id
                     AND sandboxes.runner_id = active_runner_id
                     AND sandboxes.id = active_sandbox_id) AS active_sandbox_id,
                 (SELECT sandboxes.id FROM sandboxes WHERE sandboxes.tenant_id = users.tenant_id
                     AND sandboxes.runner_id = pinned_runner_id
                     AND sandboxes.id = pinned_sandbox_id) AS pinned_sandbox_id
             FROM users JOIN tenants ON tenants.id = users.tenant_id
             LEFT JOIN sessions ON sessions.tenant_id = users.tenant_id
                 AND sessions.user_id = users.id AND sessions.id = $3
             WHERE users.tenant_id = $1 AND users.id = $2",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(session.clone())
        .fetch_one(&mut connection)
        .await?;
        let mut rows = runners(&own)?;
        let set = query(
            "SELECT subject, settings.name AS name, value, set_at, users.name AS user_name
             FROM settings JOIN users ON users.tenant_id = settings.tenant_id AND users.id = set_by
             WHERE settings.tenant_id = $1 AND subject IN ($1, $2, $3) ORDER BY settings.name",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(session)
        .fetch_all(&mut connection)
        .await?;
        for row in &set {
            rows.extend(of_row(row, tenant, user)?);
        }
        Ok(StoredSettings {
            generation: own.count("settings_generation")?,
            rows,
        })
    }

    /// Sets and unsets values of one layer, all of them or none. With `expected`, nothing is done unless that is the
    /// tenant's generation.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user or session, or no such runner that is not
    /// revoked; [`StoreError::TooLarge`] for a value of more than 256 bytes.
    pub async fn change_settings(
        &self,
        tenant: TenantId,
        of: SettingsOf,
        changes: &[SettingChange],
        expected: Option<u64>,
        by: &By,
        now: Timestamp,
    ) -> Result<SettingsChanged, StoreError> {
        for change in changes {
            let value = change.value.as_deref().unwrap_or_default();
            bounded("the value", value, MAX_VALUE_BYTES)?;
        }
        retried!({
            let mut tx = self.write(tenant).await?;
            let generation = lock(&mut tx, tenant, of, changes).await?;
            if expected.is_some_and(|expected| expected != generation) {
                return Ok(SettingsChanged::Stale { generation });
            }
            let mut changed = Vec::new();
            for change in changes {
                let before = value(&mut tx, tenant, of, change.name).await?;
                if put(&mut tx, tenant, of, change, (by.user, now)).await? {
                    changed.push((change, before));
                }
            }
            if changed.is_empty() {
                return Ok(SettingsChanged::Unchanged { generation });
            }
            let generation = grow(&mut tx, tenant).await?;
            let entry = entry(by, of.subject(tenant), &changed, generation);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await?;
            Ok(SettingsChanged::Changed { generation })
        })
    }

    /// Chooses the runner that the user's work goes to without a request of the user's; for a request, use
    /// [`Store::change_settings`].
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant, or there is no such runner that is
    /// not revoked.
    pub async fn set_active_runner(
        &self,
        tenant: TenantId,
        user: UserId,
        runner: Option<RunnerId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let change = SettingChange {
            name: SettingName::Runner,
            value: runner.map(|id| id.to_string()),
        };
        let of = SettingsOf::User(user);
        retried!({
            let mut tx = self.write(tenant).await?;
            lock(&mut tx, tenant, of, std::slice::from_ref(&change)).await?;
            if put(&mut tx, tenant, of, &change, (user, now)).await? {
                grow(&mut tx, tenant).await?;
            }
            tx.commit().await
        })
    }

    /// The runner on which the user's sessions work, unless they are pinned: the user's own choice, else
    /// the tenant's.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant.
    pub async fn runner_in_use(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Option<RunnerInUse>, StoreError> {
        let row: Row = query(
            "SELECT active_runner_id, value AS default_runner_id, sandboxes.id AS sandbox_id FROM users
             LEFT JOIN sandboxes ON sandboxes.tenant_id = users.tenant_id
                 AND sandboxes.runner_id = active_runner_id AND sandboxes.id = active_sandbox_id
             LEFT JOIN settings ON settings.tenant_id = users.tenant_id
                 AND subject = users.tenant_id AND settings.name = 'runner'
             WHERE users.tenant_id = $1 AND users.id = $2",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        let own: Option<RunnerId> = row.maybe_parsed("active_runner_id")?;
        let default = row.maybe_parsed("default_runner_id")?;
        let is_default = own.is_none();
        let id = own.or(default);
        let sandbox = row.maybe_parsed("sandbox_id")?;
        Ok(id.map(|id| RunnerInUse {
            id,
            sandbox,
            is_default,
        }))
    }
}

/// The settings that a turn of the session runs with from now on; `default` for those that are not set.
pub(crate) async fn of_turn(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    default: &TurnSettings,
) -> Result<TurnSettings, StoreError> {
    // The widest layer first, so that a narrower one replaces it.
    let rows = query(
        "SELECT settings.name AS name, value FROM sessions
         JOIN settings ON settings.tenant_id = sessions.tenant_id
             AND subject IN (sessions.tenant_id, sessions.user_id, sessions.id)
         WHERE sessions.tenant_id = $1 AND sessions.id = $2
         ORDER BY CASE subject WHEN sessions.tenant_id THEN 0 WHEN sessions.user_id THEN 1 ELSE 2 END",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_all(tx)
    .await?;
    let mut settings = default.clone();
    for row in &rows {
        match SettingName::of_word(&row.text("name")?) {
            Some(SettingName::Model) => settings.model = row.text("value")?,
            Some(SettingName::Language) => settings.language = Some(row.text("value")?),
            Some(SettingName::Steps) => settings.steps = row.parsed("value")?,
            // A turn's runner is its choice, and isolation is checked before each operation.
            Some(SettingName::Runner | SettingName::Isolation | SettingName::Sudo) | None => {}
        }
    }
    Ok(settings)
}

/// The runners in the rows of a user and of a session.
fn runners(row: &Row) -> Result<Vec<SettingRow>, sqlx::Error> {
    let columns = [
        (
            SettingLayer::User,
            ["active_runner_id", "active_sandbox_id", "active_runner_at"],
        ),
        (
            SettingLayer::Session,
            ["pinned_runner_id", "pinned_sandbox_id", "pinned_runner_at"],
        ),
    ];
    let mut rows = Vec::new();
    for (layer, [runner, sandbox, at]) in columns {
        if let Some(runner) = row.maybe_text(runner)? {
            let sandbox = row.maybe_text(sandbox)?;
            rows.push(SettingRow {
                name: SettingName::Runner,
                value: place_value(&runner, sandbox.as_deref()),
                layer,
                by: row.text("user_name")?,
                at: row.maybe_time(at)?,
            });
        }
    }
    Ok(rows)
}

/// A row of `settings`; none if a newer program has written it.
fn of_row(row: &Row, tenant: TenantId, user: UserId) -> Result<Option<SettingRow>, sqlx::Error> {
    let Some(name) = SettingName::of_word(&row.text("name")?) else {
        return Ok(None);
    };
    let subject = row.text("subject")?;
    let layer = match () {
        () if subject == tenant.to_string() => SettingLayer::Tenant,
        () if subject == user.to_string() => SettingLayer::User,
        () => SettingLayer::Session,
    };
    Ok(Some(SettingRow {
        name,
        value: row.text("value")?,
        layer,
        by: row.text("user_name")?,
        at: row.maybe_time("set_at")?,
    }))
}

/// Locks the rows that a change decides by, in the order of `database/lock.rs`, and returns the generation.
async fn lock(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    changes: &[SettingChange],
) -> Result<u64, StoreError> {
    if let SettingsOf::User(user) = of {
        let user = user.to_string();
        let statement = locking!(
            "SELECT id FROM users WHERE tenant_id = $1 AND id = $2 AND removed_at IS NULL",
            "FOR NO KEY UPDATE"
        );
        let found = query(statement).bind(tenant.to_string()).bind(user);
        found.fetch_one(&mut *tx).await?;
    }
    for change in changes {
        if let (SettingName::Runner, Some(value)) = (change.name, &change.value) {
            require_runner(tx, tenant, value).await?;
        }
    }
    let statement = locking!(
        "SELECT settings_generation FROM tenants WHERE id = $1",
        "FOR NO KEY UPDATE"
    );
    let found = query(statement).bind(tenant.to_string());
    let generation = found.fetch_one(&mut *tx).await?;
    if let SettingsOf::Session(session) = of {
        let session = session.to_string();
        let statement = locking!(
            "SELECT id FROM sessions WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL",
            "FOR NO KEY UPDATE"
        );
        let found = query(statement).bind(tenant.to_string()).bind(session);
        found.fetch_one(tx).await?;
    }
    Ok(generation.count("settings_generation")?)
}

/// Refuses a runner that does not exist; it stays until the end of the transaction.
async fn require_runner(
    tx: &mut Connection,
    tenant: TenantId,
    value: &str,
) -> Result<(), StoreError> {
    let (runner, sandbox) = place_of(value)?;
    lock_runner(tx, tenant, runner).await?;
    query("SELECT id FROM runners WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL")
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(&mut *tx)
        .await?;
    if let Some(sandbox) = sandbox {
        query("SELECT id FROM sandboxes WHERE tenant_id = $1 AND runner_id = $2 AND id = $3")
            .bind(tenant.to_string())
            .bind(runner.to_string())
            .bind(sandbox.to_string())
            .fetch_one(tx)
            .await?;
    }
    Ok(())
}

/// The runner in the value of its setting, and the sandbox if one was chosen with it.
///
/// # Errors
/// [`StoreError::NotFound`] if the value names none.
pub fn place_of(value: &str) -> Result<(RunnerId, Option<SandboxId>), StoreError> {
    let (runner, sandbox) = match value.split_once('/') {
        Some((runner, sandbox)) => (runner, Some(sandbox)),
        None => (value, None),
    };
    let sandbox = sandbox.map(str::parse).transpose();
    let runner = runner.parse().map_err(|_| StoreError::NotFound)?;
    Ok((runner, sandbox.map_err(|_| StoreError::NotFound)?))
}

/// The value of the setting of a runner: its id, and behind a `/` the id of a sandbox that was chosen with
/// it.
pub fn place_value(
    runner: &(impl fmt::Display + ?Sized),
    sandbox: Option<impl fmt::Display>,
) -> String {
    match sandbox {
        Some(sandbox) => format!("{runner}/{sandbox}"),
        None => runner.to_string(),
    }
}

/// The value that is stored in a layer; none if a wider one counts.
async fn value(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    name: SettingName,
) -> Result<Option<String>, StoreError> {
    let chosen = match (name, of) {
        (SettingName::Runner, SettingsOf::User(_)) => Some(
            "SELECT active_runner_id AS runner_id, active_sandbox_id AS sandbox_id FROM users
             WHERE tenant_id = $1 AND id = $2",
        ),
        (SettingName::Runner, SettingsOf::Session(_)) => Some(
            "SELECT pinned_runner_id AS runner_id, pinned_sandbox_id AS sandbox_id FROM sessions
             WHERE tenant_id = $1 AND id = $2",
        ),
        _ => None,
    };
    let (tenant, subject) = (tenant.to_string(), of.subject(tenant));
    if let Some(statement) = chosen {
        let row: Row = query(statement)
            .bind(tenant)
            .bind(subject)
            .fetch_one(tx)
            .await?;
        let sandbox = row.maybe_text("sandbox_id")?;
        let runner = row.maybe_text("runner_id")?;
        return Ok(runner.map(|runner| place_value(&runner, sandbox)));
    }
    let row: Option<Row> =
        query("SELECT value FROM settings WHERE tenant_id = $1 AND subject = $2 AND name = $3")
            .bind(tenant)
            .bind(subject)
            .bind(word(&name))
            .fetch_optional(tx)
            .await?;
    Ok(row.map(|row| row.text("value")).transpose()?)
}

/// Sets or unsets one value; returns true if that changed anything.
async fn put(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    change: &SettingChange,
    (by, now): (UserId, Timestamp),
) -> Result<bool, StoreError> {
    let runner_of = match (change.name, of) {
        (SettingName::Runner, SettingsOf::User(_)) => Some(
            "UPDATE users SET active_runner_id = $3, active_runner_at = $4, active_sandbox_id = $5
             WHERE tenant_id = $1 AND id = $2
                 AND (COALESCE(active_runner_id, '') <> COALESCE($3, '')
                     OR COALESCE(active_sandbox_id, '') <> COALESCE($5, ''))",
        ),
        (SettingName::Runner, SettingsOf::Session(_)) => Some(
            "UPDATE sessions SET pinned_runner_id = $3, pinned_runner_at = $4, pinned_sandbox_id = $5
             WHERE tenant_id = $1 AND id = $2
                 AND (COALESCE(pinned_runner_id, '') <> COALESCE($3, '')
                     OR COALESCE(pinned_sandbox_id, '') <> COALESCE($5, ''))",
        ),
        _ => None,
    };
    let (tenant, subject) = (tenant.to_string(), of.subject(tenant));
    let statement = match (runner_of, &change.value) {
        (Some(statement), value) => {
            let place = value.as_deref().map(place_of).transpose()?;
            let sandbox = place.and_then(|(_, sandbox)| sandbox);
            query(statement)
                .bind(tenant)
                .bind(subject)
                .bind(place.map(|(runner, _)| runner.to_string()))
                .bind(place.map(|_| now.as_micros()))
                .bind(sandbox.map(|id| id.to_string()))
        }
        (None, Some(value)) => query(
            "INSERT INTO settings (tenant_id, subject, name, value, set_by, set_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (tenant_id, subject, name) DO UPDATE
                 SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at
                 WHERE settings.value <> excluded.value",
        )
        .bind(tenant)
        .bind(subject)
        .bind(word(&change.name))
        .bind(value)
        .bind(by.to_string())
        .bind(now.as_micros()),
        (None, None) => {
            query("DELETE FROM settings WHERE tenant_id = $1 AND subject = $2 AND name = $3")
                .bind(tenant)
                .bind(subject)
                .bind(word(&change.name))
        }
    };
    Ok(statement.execute(tx).await? > 0)
}

async fn grow(tx: &mut Connection, tenant: TenantId) -> Result<u64, StoreError> {
    let row: Row = query(
        "UPDATE tenants SET settings_generation = settings_generation + 1
         WHERE id = $1 RETURNING settings_generation",
    )
    .bind(tenant.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row.count("settings_generation")?)
}

fn entry(
    by: &By,
    subject: String,
    changed: &[(&SettingChange, Option<String>)],
    generation: u64,
) -> AuditEntry {
    let (mut values, mut before) = (serde_json::Map::new(), serde_json::Map::new());
    for (change, was) in changed {
        values.insert(word(&change.name), json!(change.value));
        before.insert(word(&change.name), json!(was));
    }
    AuditEntry {
        actor: by.actor(),
        kind: "settings.changed",
        subject,
        detail: json!({ "values": values, "before": before, "generation": generation }),
        origin: by.origin,
    }
}
