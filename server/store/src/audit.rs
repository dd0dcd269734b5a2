//! The tenant's own log of all that users, runners and the server made, used, refused or revoked.
//! Entries are numbered from 1 and never edited.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use serde_json::Value;
use shared_types::{CredentialId, RunnerId, TenantId, Timestamp, UserId};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, FromRow, Row, page, query, query_as},
};

/// The user, runner or server that did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// A person or service account.
    User(UserId),
    /// An enrolled runner.
    Runner(RunnerId),
    /// The server itself, or a client that it does not know.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => id.fmt(f),
            Self::Runner(id) => id.fmt(f),
            Self::System => f.write_str("system"),
        }
    }
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuditOrigin {
    /// The credential that is used.
    pub credential: Option<CredentialId>,
    /// The address from which the request came.
    pub address: Option<IpAddr>,
}

/// A person or service account that does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct By {
    /// The user.
    pub user: UserId,
    /// The origin of the request.
    pub origin: AuditOrigin,
}

impl By {
    pub(crate) fn actor(&self) -> Actor {
        Actor::User(self.user)
    }

    /// The entry that they did this to the subject. The detail has no secret.
    pub(crate) fn entry(
        &self,
        kind: &'static str,
        subject: impl fmt::Display,
        detail: Value,
    ) -> AuditEntry {
        AuditEntry {
            actor: self.actor(),
            kind,
            subject: subject.to_string(),
            detail,
            origin: self.origin,
        }
    }
}

impl From<UserId> for By {
    fn from(user: UserId) -> Self {
        let origin = AuditOrigin::default();
        Self { user, origin }
    }
}

/// An entry to be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The actor.
    pub actor: Actor,
    /// The kind of action, such as `runner.enrolled`.
    pub kind: &'static str,
    /// The id of the thing that was changed.
    pub subject: String,
    /// More about it; never a secret.
    pub detail: Value,
    /// The known part of the request's origin.
    pub origin: AuditOrigin,
}

/// An entry that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Its place in the tenant's log, from 1, without gaps.
    pub seq: u64,
    /// When it was done.
    pub at: Timestamp,
    /// The actor in text form: a later version may know other actors.
    pub actor: String,
    /// The kind of action.
    pub kind: String,
    /// The id of the thing that was changed.
    pub subject: String,
    /// More about it.
    pub detail: Value,
    /// The address from which it was done, where that is known.
    pub address: Option<String>,
    /// The credential with which it was done, where that is known.
    pub credential: Option<CredentialId>,
    /// The name of the person or runner who did it; a removed person's ends with `@` and the id.
    pub actor_name: Option<String>,
    /// The name of the person, runner or key that it was done to.
    pub subject_name: Option<String>,
}

/// A choice of entries to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries behind this number, the oldest first; without it, the newest of all.
    pub after: Option<u64>,
    /// Only entries before this number.
    pub before: Option<u64>,
    /// Only actions of this actor, in text form; empty for all actors.
    pub actor: String,
    /// Only kinds of actions that begin with this; empty for all kinds.
    pub kind: String,
    /// Only actions at this time or later.
    pub since: Option<Timestamp>,
}

macro_rules! select_audit {
    ($rest:literal) => {
        concat!(
            "SELECT seq, at, actor, audit.kind AS kind, subject, detail, address, credential_id,
                 COALESCE(actors.name, acting.name) AS actor_name,
                 COALESCE(people.name, machines.name, keys.name) AS subject_name
             FROM audit
             LEFT JOIN users AS actors ON actors.tenant_id = audit.tenant_id AND actors.id = actor
             LEFT JOIN runners AS acting ON acting.tenant_id = audit.tenant_id AND acting.id = actor
             LEFT JOIN users AS people ON people.tenant_id = audit.tenant_id AND people.id = subject
             LEFT JOIN runners AS machines
                 ON machines.tenant_id = audit.tenant_id AND machines.id = subject
             LEFT JOIN credentials AS keys
                 ON keys.tenant_id = audit.tenant_id AND keys.id = subject
             WHERE audit.tenant_id = $1 AND seq > $2 AND at >= $3 AND ($4 = '' OR actor = $4)
                 AND seq < $6 AND substr(audit.kind, 1, length($7)) = $7 ",
            $rest
        )
    };
}

impl Store {
    /// Records an action that has no row of its own. An action with a row is recorded by the method
    /// that writes the row. Returns the entry's place in the log.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such tenant.
    pub async fn record_audit(
        &self,
        tenant: TenantId,
        entry: AuditEntry,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut tx = self.write(tenant).await?;
        let seq = record(&mut tx, tenant, &entry, now).await?;
        tx.commit().await?;
        Ok(seq)
    }

    /// The log after that entry, in order, `limit` entries at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn audit_after(
        &self,
        tenant: TenantId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let filter = AuditFilter {
            after: Some(after),
            ..AuditFilter::default()
        };
        self.audit_page(tenant, &filter, limit).await
    }

    /// A page of the log, in order, `limit` entries at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn audit_page(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let statement = match filter.after {
            Some(_) => query_as(select_audit!("ORDER BY seq LIMIT $5")),
            None => query_as(select_audit!("ORDER BY seq DESC LIMIT $5")),
        };
        let mut rows: Vec<AuditRow> = statement
            .bind(tenant.to_string())
            .bind(integer(filter.after.unwrap_or_default()))
            .bind(filter.since.map_or(i64::MIN, |since| since.as_micros()))
            .bind(&filter.actor)
            .bind(page(limit))
            .bind(filter.before.map_or(i64::MAX, integer))
            .bind(&filter.kind)
            .fetch_all(&mut self.read(tenant).await?)
            .await?;
        rows.sort_by_key(|row| row.seq);
        Ok(rows)
    }

    /// The names of these ids; an id without a name is left out. A session has the name of its
    /// person, because its title quotes its content.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn names_of(
        &self,
        tenant: TenantId,
        ids: BTreeSet<String>,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut connection = self.read(tenant).await?;
        let mut names = BTreeMap::new();
        for id in ids {
            let row: Option<Row> = query(
                "SELECT name FROM users WHERE tenant_id = $1 AND id = $2
                 UNION ALL SELECT name FROM runners WHERE tenant_id = $1 AND id = $2
                 UNION ALL SELECT name FROM credentials WHERE tenant_id = $1 AND id = $2
                 UNION ALL SELECT name FROM join_tokens
                     WHERE tenant_id = $1 AND id = $2 AND name <> ''
                 UNION ALL SELECT CASE WHEN sandboxes.owner_id IS NULL THEN sandboxes.name
                         ELSE 'sandbox on ' || runners.name END
                     FROM sandboxes JOIN runners
                         ON runners.tenant_id = sandboxes.tenant_id AND runners.id = runner_id
                     WHERE sandboxes.tenant_id = $1 AND sandboxes.id = $2
                 UNION ALL SELECT 'session of ' || users.name FROM sessions JOIN users
                         ON users.tenant_id = sessions.tenant_id AND users.id = user_id
                     WHERE sessions.tenant_id = $1 AND sessions.id = $2
                 UNION ALL SELECT 'all of ' || name FROM tenants WHERE id = $1 AND id = $2",
            )
            .bind(tenant.to_string())
            .bind(&id)
            .fetch_optional(&mut connection)
            .await?;
            if let Some(row) = row {
                names.insert(id, row.text("name")?);
            }
        }
        Ok(names)
    }
}

/// Locks the tenant's log before the later locks of a transaction that will record; see
/// `database/lock.rs`.
pub(crate) async fn lock(tx: &mut Connection, tenant: TenantId) -> Result<(), StoreError> {
    if tx.is_shared() {
        query("SELECT 1 FROM tenants WHERE id = $1 FOR NO KEY UPDATE")
            .bind(tenant.to_string())
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Records the entry together with the other writes of the transaction.
pub(crate) async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    entry: &AuditEntry,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let row: Row =
        query("UPDATE tenants SET audit_seq = audit_seq + 1 WHERE id = $1 RETURNING audit_seq")
            .bind(tenant.to_string())
            .fetch_one(&mut *tx)
            .await?;
    let seq = row.count("audit_seq")?;
    query(
        "INSERT INTO audit
             (tenant_id, seq, at, actor, kind, subject, detail, address, credential_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(tenant.to_string())
    .bind(integer(seq))
    .bind(now.as_micros())
    .bind(entry.actor.to_string())
    .bind(entry.kind)
    .bind(&entry.subject)
    .bind(entry.detail.to_string())
    .bind(entry.origin.address.map(|address| address.to_string()))
    .bind(entry.origin.credential.map(|id| id.to_string()))
    .execute(tx)
    .await?;
    Ok(seq)
}

impl FromRow for AuditRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seq: row.count("seq")?,
            at: row.time("at")?,
            actor: row.text("actor")?,
            kind: row.text("kind")?,
            subject: row.text("subject")?,
            detail: row.json("detail")?,
            address: row.maybe_text("address")?,
            credential: row.maybe_parsed("credential_id")?,
            actor_name: row.maybe_text("actor_name")?,
            subject_name: row.maybe_text("subject_name")?,
        })
    }
}
