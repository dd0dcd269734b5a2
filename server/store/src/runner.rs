//! Enrolled runners: how they enrol, their identity, and how they are removed. Their links are in `runner/link.rs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared_link::server::{MODELS_FEATURE, ModelsReport, PoolFacts, RunnerState};
use shared_types::{
    Generation, Incarnation, Mode, ReplicaId, RunnerId, TenantId, Timestamp, UserId,
    limits::MAX_NAME_BYTES, token::TokenHash,
};

use crate::{
    Actor, AuditEntry, AuditOrigin, Full, JoinTokenRow, Store, StoreError, audit,
    columns::{Columns as _, json},
    database::{Connection, FromRow, Row, locking, page, query, query_as, retried},
    error::bounded,
    join_token,
};

/// Most labels of a runner.
const MAX_LABELS: usize = 32;

/// Longest key or value of a label in bytes.
const MAX_LABEL_BYTES: usize = MAX_NAME_BYTES;

/// Longest text that a runner reports about its host or itself, in bytes: a host's name (RFC 1035).
const MAX_HOST_BYTES: usize = 255;

macro_rules! select_runners {
    ($rest:literal) => {
        concat!(
            "SELECT tenant_id, id, owner_id, name, labels, public_key, hostname, os, architecture,
                 version, features, enrolled_at, revoked_at, generation, replica_id, connected_at,
                 last_seen_at, journal_id, boot_id, journal_sequence, accepted_sequence, locked_at,
                 ephemeral, join_state, went_back_at, loses_unlisted, pool_backend, pool_templates,
                 pool_isolation, pool_problem, pool_sudo_templates, trusted_by, trusted_at, models,
                 models_problem, ceiling, drained_by, drained_at, refused_version
             FROM runners ",
            $rest
        )
    };
}

mod change;
mod join_state;
mod leave;
mod link; // below the macro, so that it can use it
mod models;
mod share;
mod silence;

pub use change::RunnerChange;
pub use join_state::{ChallengeNumber, JoinState, ShownState};
pub use leave::Late;
pub use link::{LinkClaim, LinkClaimed};
pub use share::{RunnerAccess, RunnerShares, SharedWith};
pub(crate) use silence::micros;

/// A runner that wants to enrol.
#[derive(Debug, Clone)]
pub struct NewRunner {
    /// The id that it will have.
    pub id: RunnerId,
    /// The name that it wants; the token's goes before it.
    pub name: String,
    /// Its own labels; the token's labels go before these.
    pub labels: BTreeMap<String, String>,
    /// Its Ed25519 public key.
    pub public_key: [u8; 32],
    /// Its host's name.
    pub hostname: String,
    /// The version of its software.
    pub version: String,
}

/// A runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerRow {
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// Its id.
    pub id: RunnerId,
    /// The user who owns it.
    pub owner: UserId,
    /// Its name, unique among the tenant's runners that are not revoked.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its Ed25519 public key: 32 bytes.
    pub public_key: Vec<u8>,
    /// Its host's name.
    pub hostname: String,
    /// Its host's system; empty before its first link.
    pub os: String,
    /// Its host's processor; empty before its first link.
    pub architecture: String,
    /// The version of its software.
    pub version: String,
    /// Requests beyond the first protocol version that it serves.
    pub features: Vec<String>,
    /// True if it is removed when it leaves for good or stays away.
    pub ephemeral: bool,
    /// When it enrolled.
    pub enrolled_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Its newest link, or zero before the first.
    pub generation: Generation,
    /// The link that is held now; absent while it is offline.
    pub link: Option<LinkRow>,
    /// The time when it was last heard of; absent before its first link.
    pub last_seen_at: Option<Timestamp>,
    /// The incarnation that it had at its newest link.
    pub incarnation: Option<Incarnation>,
    /// Operations that its journal had accepted at its newest link.
    pub journal_sequence: u64,
    /// Operations that it has reported as accepted since, over that link.
    pub accepted_sequence: u64,
    /// The time when a copy of its folder was noticed; it links no more.
    pub locked_at: Option<Timestamp>,
    /// The join state that its newest link has used.
    pub join_state: u64,
    /// When it showed that the database is an older copy.
    pub went_back_at: Option<Timestamp>,
    /// True if the next claim of its link loses all operations that it does not remember, for that reason.
    pub loses_unlisted: bool,
    /// The backend and templates of its sandboxes, if it is a pool.
    pub pool: Option<PoolFacts>,
    /// The user who has granted that its reported isolation counts, and the time.
    pub trusted: Option<(UserId, Timestamp)>,
    /// The models of its own model server, by its last report, if it has one.
    pub models: Option<ModelsReport>,
    /// The most freedom of an agent by its machine's own policy, if the machine has one.
    pub ceiling: Option<Mode>,
    /// The user who lets it drain, and since when: it is given no new operation.
    pub drained: Option<(UserId, Timestamp)>,
    /// The version of the link protocol for which its last link was refused.
    pub refused_version: Option<u32>,
}

impl RunnerRow {
    /// Its state of connection.
    pub fn state(&self) -> RunnerState {
        match (self.revoked_at, self.link) {
            (Some(_), _) => RunnerState::Revoked,
            (None, Some(_)) => RunnerState::Online,
            (None, None) => RunnerState::Offline {
                since: self.last_seen_at,
            },
        }
    }
}

/// A link that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRow {
    /// The replica that holds it.
    pub replica: ReplicaId,
    /// The time since it is held.
    pub connected_at: Timestamp,
}

/// The reason why a runner is not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolRefusal {
    /// There is no such token.
    #[error("enrol: the server does not know this join token, make a new one")]
    Unknown,
    /// It was used before.
    #[error("enrol: this join token was used already, make a new one")]
    Spent,
    /// Its time is over.
    #[error("enrol: this join token has expired, make a new one")]
    Expired,
    /// A runner has this key: the request came twice. The token stays good.
    #[error("enrol: a runner with this key is enrolled already")]
    KeyTaken,
    /// Another runner has the name. The token stays good.
    #[error("enrol: another runner is called {0:?}, choose another name or revoke that runner")]
    NameTaken(String),
    /// It could not be done.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for EnrolRefusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Store {
    /// Spends a join token and makes the runner known: both happen, exactly once, or neither. The use is audited.
    /// Refusals are left to the caller to record, because strangers can make many. Without a tenant: the token yields
    /// it.
    ///
    /// # Errors
    /// [`EnrolRefusal`] if the token cannot be used, the key or the name is taken, or the store fails.
    pub async fn enrol(
        &self,
        hash: &TokenHash,
        runner: &NewRunner,
        now: Timestamp,
    ) -> Result<RunnerRow, EnrolRefusal> {
        let found = self.join_token_by_hash(hash).await?;
        let tenant = found.ok_or(EnrolRefusal::Unknown)?.tenant;
        retried!({
            let mut tx = self.write(tenant).await?;
            let token = join_token::lock_by_hash(&mut tx, hash).await?;
            let token = token.ok_or(EnrolRefusal::Unknown)?;
            insert(&mut tx, &token, runner, now).await?;
            spend(&mut tx, &token, runner.id, now).await?;
            let row = by_id(&mut tx, runner.id).await?;
            tx.commit().await?;
            Ok(row.ok_or(StoreError::NotFound)?)
        })
    }

    /// The runner with this key that was enrolled with this token, unless it is revoked.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn enrolled_with(
        &self,
        token: &JoinTokenRow,
        public_key: &[u8],
    ) -> Result<Option<RunnerRow>, StoreError> {
        let row = query_as(select_runners!(
            "WHERE tenant_id = $1 AND public_key = $2 AND join_token_id = $3 AND revoked_at IS NULL"
        ))
        .bind(token.tenant.to_string())
        .bind(public_key.to_vec())
        .bind(token.id.to_string())
        .fetch_optional(&mut self.read(token.tenant).await?)
        .await?;
        Ok(row)
    }

    /// A runner by its id, also a revoked one. Without a tenant: a runner that connects gets its tenant from it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn runner_for_authentication(
        &self,
        runner: RunnerId,
    ) -> Result<Option<RunnerRow>, StoreError> {
        let mut connection = self
            .read_any("a runner that shows up is told whose it is")
            .await?;
        by_id(&mut connection, runner).await
    }

    /// A runner by its id, also a revoked one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
    ) -> Result<RunnerRow, StoreError> {
        let mut connection = self.read(tenant).await?;
        find(&mut connection, tenant, runner).await
    }

    /// A runner that is not revoked, by its id or its name; a name that is
    /// another runner's id does not hide that runner.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn find_runner(
        &self,
        tenant: TenantId,
        name_or_id: &str,
    ) -> Result<RunnerRow, StoreError> {
        let row = query_as(select_runners!(
            "WHERE tenant_id = $1 AND (name = $2 OR id = $2) AND revoked_at IS NULL
             ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1"
        ))
        .bind(tenant.to_string())
        .bind(name_or_id)
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(row)
    }

    /// The tenant's runners that are not revoked, by name, after that name (empty: from the
    /// start), `limit` at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list_runners(
        &self,
        tenant: TenantId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<RunnerRow>, StoreError> {
        let rows = query_as(select_runners!(
            "WHERE tenant_id = $1 AND name > $2 AND revoked_at IS NULL ORDER BY name LIMIT $3"
        ))
        .bind(tenant.to_string())
        .bind(after)
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

/// See [`Store::runner`].
pub(crate) async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
) -> Result<RunnerRow, StoreError> {
    let row = query_as(select_runners!("WHERE tenant_id = $1 AND id = $2"))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(connection)
        .await?;
    Ok(row)
}

/// Does the same as [`find`], and locks the row, for a transaction that changes the runner.
pub(crate) async fn lock(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
) -> Result<RunnerRow, StoreError> {
    let sql = locking!(
        select_runners!("WHERE tenant_id = $1 AND id = $2"),
        "FOR NO KEY UPDATE"
    );
    let row = query_as(sql)
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(tx)
        .await?;
    Ok(row)
}

/// Refuses labels that are too many or too long.
pub(crate) fn bounded_labels(labels: &BTreeMap<String, String>) -> Result<(), StoreError> {
    if labels.len() > MAX_LABELS {
        return Err(Full {
            has: "there are",
            used: labels.len() as u64,
            at_most: MAX_LABELS as u64,
            what: "labels",
            remedy: "leave some out",
        }
        .into());
    }
    for text in labels.iter().flat_map(|(key, value)| [key, value]) {
        bounded("the label", text, MAX_LABEL_BYTES)?;
    }
    Ok(())
}

/// Inserts the runner if the token is good for it; writes nothing if it is not.
async fn insert(
    tx: &mut Connection,
    token: &JoinTokenRow,
    runner: &NewRunner,
    now: Timestamp,
) -> Result<(), EnrolRefusal> {
    token.is_good(now)?;
    let name = [&token.name, &runner.name]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or(&runner.hostname);
    let mut labels = runner.labels.clone();
    labels.extend(token.labels.clone());
    bounded_labels(&labels)?;
    bounded("the runner's name", name, MAX_NAME_BYTES)?;
    bounded("the host's name", &runner.hostname, MAX_HOST_BYTES)?;
    bounded("the runner's version", &runner.version, MAX_HOST_BYTES)?;
    let same_key = query("SELECT 1 FROM runners WHERE tenant_id = $1 AND public_key = $2 LIMIT 1")
        .bind(token.tenant.to_string())
        .bind(runner.public_key.to_vec())
        .fetch_optional(&mut *tx)
        .await?;
    if same_key.is_some() {
        return Err(EnrolRefusal::KeyTaken);
    }
    let inserted = query(
        "INSERT INTO runners (tenant_id, id, owner_id, name, labels, public_key, hostname, os,
             architecture, version, features, enrolled_at, ephemeral, join_token_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, '', '', $8, '[]', $9, $10, $11)
         ON CONFLICT (tenant_id, name) WHERE revoked_at IS NULL DO NOTHING",
    )
    .bind(token.tenant.to_string())
    .bind(runner.id.to_string())
    .bind(token.owner.to_string())
    .bind(name)
    .bind(json(&labels))
    .bind(runner.public_key.to_vec())
    .bind(&runner.hostname)
    .bind(&runner.version)
    .bind(now.as_micros())
    .bind(i64::from(token.ephemeral))
    .bind(token.id.to_string())
    .execute(tx)
    .await?;
    if inserted == 0 {
        return Err(EnrolRefusal::NameTaken(name.clone()));
    }
    Ok(())
}

async fn spend(
    tx: &mut Connection,
    token: &JoinTokenRow,
    runner: RunnerId,
    now: Timestamp,
) -> Result<(), EnrolRefusal> {
    let spent = query(
        "UPDATE join_tokens SET used = used + 1
         WHERE tenant_id = $1 AND id = $2 AND used < uses",
    )
    .bind(token.tenant.to_string())
    .bind(token.id.to_string())
    .execute(&mut *tx)
    .await?;
    if spent == 0 {
        return Err(EnrolRefusal::Spent);
    }
    let detail = json!({ "join_token": token.id, "owner": token.owner });
    let entry = entry(Actor::Runner(runner), "runner.enrolled", runner, detail);
    audit::record(tx, token.tenant, &entry, now).await?;
    Ok(())
}

async fn by_id(
    connection: &mut Connection,
    runner: RunnerId,
) -> Result<Option<RunnerRow>, StoreError> {
    let row = query_as(select_runners!("WHERE id = $1"))
        .bind(runner.to_string())
        .fetch_optional(connection)
        .await?;
    Ok(row)
}

fn entry(
    actor: Actor,
    kind: &'static str,
    subject: impl std::fmt::Display,
    detail: Value,
) -> AuditEntry {
    AuditEntry {
        actor,
        kind,
        subject: subject.to_string(),
        detail,
        origin: AuditOrigin::default(),
    }
}

impl RunnerRow {
    /// True if it may neither link nor be given any operation: it is revoked or locked.
    pub fn is_barred(&self) -> bool {
        self.revoked_at.is_some() || self.locked_at.is_some()
    }
}

/// The backend and templates of the runner's sandboxes, if it is a pool.
fn pool(row: &Row) -> Result<Option<PoolFacts>, sqlx::Error> {
    let Some(backend) = row.maybe_text("pool_backend")? else {
        return Ok(None);
    };
    Ok(Some(PoolFacts {
        backend,
        templates: row.json("pool_templates")?,
        sudo_templates: row.json("pool_sudo_templates")?,
        isolation: row.parsed("pool_isolation")?,
        problem: row.text("pool_problem")?,
    }))
}

/// The runner's last report of its models, if it has a model server.
fn models(row: &Row) -> Result<Option<ModelsReport>, sqlx::Error> {
    let features: Vec<String> = row.json("features")?;
    if !features.iter().any(|feature| feature == MODELS_FEATURE) {
        return Ok(None);
    }
    Ok(Some(ModelsReport {
        models: row.json("models")?,
        problem: row.text("models_problem")?,
    }))
}

impl FromRow for RunnerRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let link = row
            .maybe_parsed("replica_id")?
            .zip(row.maybe_time("connected_at")?)
            .map(|(replica, connected_at)| LinkRow {
                replica,
                connected_at,
            });
        let incarnation = row
            .maybe_parsed("journal_id")?
            .zip(row.maybe_text("boot_id")?)
            .map(|(journal, boot)| Incarnation { journal, boot });
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            id: row.parsed("id")?,
            owner: row.parsed("owner_id")?,
            name: row.text("name")?,
            labels: row.json("labels")?,
            public_key: row.bytes("public_key")?,
            hostname: row.text("hostname")?,
            os: row.text("os")?,
            architecture: row.text("architecture")?,
            version: row.text("version")?,
            features: row.json("features")?,
            ephemeral: row.count("ephemeral")? == 1,
            enrolled_at: row.time("enrolled_at")?,
            revoked_at: row.maybe_time("revoked_at")?,
            generation: Generation(row.count("generation")?),
            link,
            last_seen_at: row.maybe_time("last_seen_at")?,
            incarnation,
            journal_sequence: row.count("journal_sequence")?,
            accepted_sequence: row.count("accepted_sequence")?,
            locked_at: row.maybe_time("locked_at")?,
            join_state: row.count("join_state")?,
            went_back_at: row.maybe_time("went_back_at")?,
            loses_unlisted: row.count("loses_unlisted")? == 1,
            pool: pool(row)?,
            trusted: row
                .maybe_parsed("trusted_by")?
                .zip(row.maybe_time("trusted_at")?),
            models: models(row)?,
            ceiling: row.maybe_parsed("ceiling")?,
            refused_version: row
                .maybe_integer("refused_version")?
                .and_then(|version| version.try_into().ok()),
            drained: row
                .maybe_parsed("drained_by")?
                .zip(row.maybe_time("drained_at")?),
        })
    }
}
