//! Settings: the values that the tenant, a user or a session has set. The narrowest layer counts: session, user,
//! tenant, and below them the default that the caller gives.
//!
//! [`StoredSettings::in_effect`] is the one place with that rule. A value is a row of `settings`, except the runner that a
//! user or a session has chosen (`setting/runner_choice.rs`). Each change makes the tenant's generation grow, in the same
//! transaction.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use shared_types::{
    RunnerChoice, RunnerId, SessionId, TenantId, Timestamp, UserId, event::TurnSettings,
};

use self::runner_choice::runner_choices;
use crate::{
    AuditEntry, By, Store, StoreError, audit,
    columns::{Columns as _, damaged, word},
    database::{Connection, Row, lock_runner, locking, query, retried},
    error::bounded,
};

mod runner_choice;

pub use runner_choice::Pin;
pub(crate) use runner_choice::{pin_columns, pinned};

/// Longest value, in bytes.
pub(crate) const MAX_VALUE_BYTES: usize = 256;

/// The name of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingName {
    /// The runner on which turns work; the value is a [`RunnerChoice`].
    Runner,
    /// The model that answers, by its name.
    Model,
    /// The language of the answers.
    Language,
    /// The most model calls in a turn.
    Steps,
    /// The mode of agents.
    Mode,
    /// The most freedom of agents; the tenant's alone.
    MaxMode,
    /// The isolation that a place must be proved to have before anything runs there; the tenant's alone.
    Isolation,
    /// The permission of commands to be root in their sandbox; the tenant's alone.
    Sudo,
}

/// The layer that has set a value. A later one goes before an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
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

impl SettingChange {
    /// The change to this runner.
    pub fn runner(choice: Option<RunnerChoice>) -> Self {
        Self {
            name: SettingName::Runner,
            value: choice.map(|choice| choice.to_string()),
        }
    }
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

    /// The runner that counts, if one is chosen.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the value is damaged.
    pub fn runner_in_use(&self) -> Result<Option<RunnerInUse>, StoreError> {
        let Some(row) = self.in_effect(SettingName::Runner) else {
            return Ok(None);
        };
        let choice = row.value.parse().map_err(|error| damaged("value", error))?;
        Ok(Some(RunnerInUse {
            choice,
            chosen_by: row.layer,
        }))
    }

    /// The settings of a turn; `default` for those that are not set.
    pub(crate) fn of_turn(&self, default: &TurnSettings) -> Result<TurnSettings, StoreError> {
        let mut settings = default.clone();
        // A turn's runner is its choice, and isolation and sudo are checked before each operation.
        if let Some(row) = self.in_effect(SettingName::Model) {
            settings.model.clone_from(&row.value);
        }
        if let Some(row) = self.in_effect(SettingName::Language) {
            settings.language = Some(row.value.clone());
        }
        if let Some(row) = self.in_effect(SettingName::Steps) {
            settings.steps = row.value.parse().map_err(|error| damaged("value", error))?;
        }
        let mode = |name| {
            let row = self.in_effect(name).map(|row| row.value.parse());
            row.transpose().map_err(|error| damaged("value", error))
        };
        settings.mode = mode(SettingName::Mode)?.or(settings.mode);
        let ceilings = settings
            .ceiling
            .into_iter()
            .chain(mode(SettingName::MaxMode)?);
        settings.ceiling = ceilings.min();
        Ok(settings)
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

/// The runner that counts, and the layer that has chosen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunnerInUse {
    /// The runner, and the sandbox that was chosen with it.
    pub choice: RunnerChoice,
    /// The layer; the tenant if the user has chosen none.
    pub chosen_by: SettingLayer,
}

/// Every value that is set by the tenant $1, the user $2 and the session $3, as rows of `settings`.
macro_rules! set_values {
    () => {
        concat!(
            "(",
            runner_choices!(),
            " UNION ALL
             SELECT subject, name, value, set_by, set_at FROM settings
             WHERE tenant_id = $1 AND subject IN ($1, $2, $3)) AS set_values"
        )
    };
}

impl SettingName {
    /// Every setting, in the order in which lists show them.
    pub const ALL: [Self; 8] = [
        Self::Runner,
        Self::Model,
        Self::Language,
        Self::Steps,
        Self::Mode,
        Self::MaxMode,
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
        of_user(&mut self.read(tenant).await?, tenant, user, session).await
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
                if put(&mut tx, tenant, of, change, by.user, now).await? {
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

    /// Makes this the user's runner, if the user has chosen none, without a request of the user's.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant, or there is no such runner that is
    /// not revoked.
    pub async fn choose_first_runner(
        &self,
        tenant: TenantId,
        user: UserId,
        runner: RunnerId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let change = SettingChange::runner(Some(runner.into()));
        let of = SettingsOf::User(user);
        retried!({
            let mut tx = self.write(tenant).await?;
            lock(&mut tx, tenant, of, std::slice::from_ref(&change)).await?;
            let before = value(&mut tx, tenant, of, SettingName::Runner).await?;
            if before.is_none() {
                put(&mut tx, tenant, of, &change, user, now).await?;
                grow(&mut tx, tenant).await?;
            }
            tx.commit().await
        })
    }
}

/// The settings of a user, and of one of the user's sessions.
pub(crate) async fn of_user(
    connection: &mut Connection,
    tenant: TenantId,
    user: UserId,
    session: Option<SessionId>,
) -> Result<StoredSettings, StoreError> {
    let generation: Row = query(
        "SELECT settings_generation FROM users JOIN tenants ON tenants.id = users.tenant_id
         WHERE users.tenant_id = $1 AND users.id = $2",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .fetch_one(&mut *connection)
    .await?;
    let set = query(concat!(
        "SELECT subject, set_values.name AS name, value, set_at, users.name AS user_name FROM ",
        set_values!(),
        " JOIN users ON users.tenant_id = $1 AND users.id = set_by ORDER BY set_values.name"
    ))
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(session.map(|id| id.to_string()))
    .fetch_all(connection)
    .await?;
    let mut rows = Vec::with_capacity(set.len());
    for row in &set {
        rows.extend(of_row(row, tenant, user)?);
    }
    Ok(StoredSettings {
        generation: generation.count("settings_generation")?,
        rows,
    })
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
            let choice = value.parse().map_err(|_| StoreError::NotFound)?;
            require_runner(tx, tenant, choice).await?;
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
pub(crate) async fn require_runner(
    tx: &mut Connection,
    tenant: TenantId,
    RunnerChoice { runner, sandbox }: RunnerChoice,
) -> Result<(), StoreError> {
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

/// The value that is stored in a layer; none if a wider one counts.
async fn value(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    name: SettingName,
) -> Result<Option<String>, StoreError> {
    let subject = of.subject(tenant);
    let row: Option<Row> = query(concat!(
        "SELECT value FROM ",
        set_values!(),
        " WHERE subject = $2 AND name = $4"
    ))
    .bind(tenant.to_string())
    .bind(subject.clone())
    .bind(subject)
    .bind(word(&name))
    .fetch_optional(tx)
    .await?;
    Ok(row.map(|row| row.text("value")).transpose()?)
}

/// Sets or unsets one value; returns true if that changed anything.
pub(crate) async fn put(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    change: &SettingChange,
    by: UserId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let columns = match change.name {
        SettingName::Runner => runner_choice::update(of),
        _ => None,
    };
    let (tenant, subject) = (tenant.to_string(), of.subject(tenant));
    let statement = match (columns, &change.value) {
        (Some(update), value) => {
            let choice = value.as_deref().map(str::parse::<RunnerChoice>).transpose();
            let choice = choice.map_err(|_| StoreError::NotFound)?;
            let sandbox = choice.and_then(|choice| choice.sandbox);
            query(update)
                .bind(tenant)
                .bind(subject)
                .bind(choice.map(|choice| choice.runner.to_string()))
                .bind(choice.map(|_| now.as_micros()))
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

/// Sets a value of a session in the middle of another change.
pub(crate) async fn set(
    tx: &mut Connection,
    tenant: TenantId,
    of: SettingsOf,
    change: &SettingChange,
    by: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    lock(tx, tenant, of, std::slice::from_ref(change)).await?;
    if put(tx, tenant, of, change, by, now).await? {
        grow(tx, tenant).await?;
    }
    Ok(())
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
    by.entry(
        "settings.changed",
        subject,
        json!({ "values": values, "before": before, "generation": generation }),
    )
}
