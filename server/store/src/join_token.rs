//! Tokens with which a runner enrols: once, or a bounded number of times for a fleet. Only the hash of a token is
//! stored. [`Store::enrol`] spends it.

use std::collections::BTreeMap;

use serde_json::json;
use shared_types::{
    AddressRange, CredentialId, JoinTokenId, TenantId, Timestamp, UserId, limits::MAX_NAME_BYTES,
    token::TokenHash,
};

use crate::{
    Actor, AuditEntry, AuditOrigin, By, EnrolRefusal, Full, Page, Store, StoreError, audit,
    columns::{Columns as _, json},
    credential,
    database::{self, Connection, FromRow, Row, Sql, lock_user, locking, query, query_as, retried},
    error::bounded,
    runner::bounded_labels,
};

/// Most join tokens of a user with which runners may still enrol.
pub const JOIN_TOKENS_OF_USER_AT_MOST: u64 = 200;

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT tenant_id, id, owner_id, name, labels, hash, created_at, expires_at,
                 uses, used, ephemeral, address_range
             FROM join_tokens WHERE ",
            $where
        )
    };
}

macro_rules! by_hash {
    () => {
        select!("hash = $1")
    };
}

/// A join token to be made.
#[derive(Debug, Clone)]
pub struct NewJoinToken {
    /// Its id.
    pub id: JoinTokenId,
    /// The user who will own the runner.
    pub owner: UserId,
    /// The runner's name; empty lets the runner choose.
    pub name: String,
    /// Labels that the runner will have, whatever it reports itself.
    pub labels: BTreeMap<String, String>,
    /// The hash of the token.
    pub hash: TokenHash,
    /// The time until which it can be used.
    pub expires_at: Timestamp,
    /// The number of runners that may enrol with it; at least 1.
    pub uses: u32,
    /// True if those runners are removed when they leave for good or stay away.
    pub ephemeral: bool,
    /// The addresses from which they may enrol; absent for any.
    pub from: Option<AddressRange>,
    /// The origin of the request that makes it.
    pub origin: AuditOrigin,
}

/// A join token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinTokenRow {
    /// The tenant that the runner will belong to.
    pub tenant: TenantId,
    /// Its id.
    pub id: JoinTokenId,
    /// The user who will own the runner.
    pub owner: UserId,
    /// The runner's name; empty lets the runner choose.
    pub name: String,
    /// Labels that the runner will have, whatever it reports itself.
    pub labels: BTreeMap<String, String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The time until which it can be used.
    pub expires_at: Timestamp,
    /// The number of runners that may enrol with it.
    pub uses: u32,
    /// The number of runners that have enrolled with it.
    pub used: u32,
    /// True if those runners are removed when they leave for good or stay away.
    pub ephemeral: bool,
    /// The addresses from which they may enrol; absent for any.
    pub from: Option<AddressRange>,
}

impl JoinTokenRow {
    /// Checks that a runner can enrol with it at `now`.
    ///
    /// # Errors
    /// [`EnrolRefusal::Spent`] if it was used up; [`EnrolRefusal::Expired`] if its time is over.
    pub fn is_good(&self, now: Timestamp) -> Result<(), EnrolRefusal> {
        if self.used >= self.uses {
            return Err(EnrolRefusal::Spent);
        }
        if self.expires_at <= now {
            return Err(EnrolRefusal::Expired);
        }
        Ok(())
    }
}

impl Store {
    /// Makes a join token.
    ///
    /// [`StoreError::NotFound`] if the owner is not in this tenant; [`StoreError::TooLarge`] for long names and labels;
    /// [`StoreError::Full`] if [`JOIN_TOKENS_OF_USER_AT_MOST`] of the owner's are still good; [`StoreError::Conflict`]
    /// if the credential that makes it was revoked.
    pub async fn create_join_token(
        &self,
        tenant: TenantId,
        token: &NewJoinToken,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        bounded("the runner's name", &token.name, MAX_NAME_BYTES)?;
        bounded_labels(&token.labels)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, token.owner).await?;
            if let Some(maker) = token.origin.credential {
                credential::require_maker(&mut tx, tenant, maker).await?;
            }
            require_room(&mut tx, tenant, token.owner, now).await?;
            query(
                "INSERT INTO join_tokens
                     (tenant_id, id, owner_id, name, labels, hash, created_at, expires_at, uses,
                      ephemeral, address_range, made_by)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            )
            .bind(tenant.to_string())
            .bind(token.id.to_string())
            .bind(token.owner.to_string())
            .bind(&token.name)
            .bind(json(&token.labels))
            .bind(token.hash.to_string())
            .bind(now.as_micros())
            .bind(token.expires_at.as_micros())
            .bind(i64::from(token.uses))
            .bind(i64::from(token.ephemeral))
            .bind(token.from.map(|range| range.to_string()))
            .bind(token.origin.credential.map(|maker| maker.to_string()))
            .execute(&mut tx)
            .await?;
            let made = AuditEntry {
                actor: Actor::User(token.owner),
                kind: "join_token.created",
                subject: token.id.to_string(),
                detail: json!({
                    "name": token.name,
                    "labels": token.labels,
                    "from": token.from.map(|range| range.to_string()),
                    "expires_at": token.expires_at,
                    "uses": token.uses,
                }),
                origin: token.origin,
            };
            audit::record(&mut tx, tenant, &made, now).await?;
            tx.commit().await
        })
    }

    /// The user's tokens with which runners can enrol at `now`, the newest first. A place in the list is when a
    /// token was made, and its id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list_join_tokens(
        &self,
        tenant: TenantId,
        owner: UserId,
        page: impl Into<Page<(Timestamp, JoinTokenId)>>,
        now: Timestamp,
    ) -> Result<Vec<JoinTokenRow>, StoreError> {
        let Page { after, limit } = page.into();
        let (before, id) = after.unzip();
        let rows = query_as(select!(
            "tenant_id = $1 AND owner_id = $2 AND expires_at > $3 AND used < uses
                 AND (created_at, id) < ($4, $5)
             ORDER BY created_at DESC, id DESC LIMIT $6"
        ))
        .bind(tenant.to_string())
        .bind(owner.to_string())
        .bind(now.as_micros())
        .bind(before.map_or(i64::MAX, |before| before.as_micros()))
        .bind(id.map_or(String::new(), |id| id.to_string()))
        .bind(database::page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// Ends a token of the user's: no runner enrols with it any more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if no runner could enrol with it before.
    pub async fn end_join_token(
        &self,
        tenant: TenantId,
        token: JoinTokenId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let ended = query(
                "UPDATE join_tokens SET expires_at = $1
                 WHERE tenant_id = $2 AND id = $3 AND owner_id = $4 AND expires_at > $1 AND used < uses",
            )
            .bind(now.as_micros())
            .bind(tenant.to_string())
            .bind(token.to_string())
            .bind(by.user.to_string())
            .execute(&mut tx)
            .await?;
            if ended == 0 {
                return Err(StoreError::NotFound);
            }
            let entry = by.entry("join_token.ended", token, json!({}));
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }

    /// The token with this hash, whether or not it can still be used. Without a tenant: it yields
    /// the tenant. To use it, call [`Store::enrol`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn join_token_by_hash(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<JoinTokenRow>, StoreError> {
        let mut connection = self.read_any("a join token yields its tenant").await?;
        find(&mut connection, by_hash!(), hash).await
    }
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    owner: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS good FROM join_tokens
         WHERE tenant_id = $1 AND owner_id = $2 AND expires_at > $3 AND used < uses",
    )
    .bind(tenant.to_string())
    .bind(owner.to_string())
    .bind(now.as_micros())
    .fetch_one(tx)
    .await?;
    match row.count("good")? {
        used if used < JOIN_TOKENS_OF_USER_AT_MOST => Ok(()),
        used => Err(Full {
            has: "you have",
            used,
            at_most: JOIN_TOKENS_OF_USER_AT_MOST,
            what: "join tokens that can still be used",
            remedy: "end some with: gantry runners tokens remove ID",
        }
        .into()),
    }
}

/// Ends the tokens that a key has made and that can still be used: no runner enrols with them any more.
pub(crate) async fn end_with(
    tx: &mut Connection,
    tenant: TenantId,
    key: CredentialId,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "UPDATE join_tokens SET expires_at = $1
         WHERE tenant_id = $2 AND made_by = $3 AND expires_at > $1",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(key.to_string())
    .execute(tx)
    .await?;
    Ok(())
}

/// The token with this hash, locked so that only this transaction can spend it.
pub(crate) async fn lock_by_hash(
    tx: &mut Connection,
    hash: &TokenHash,
) -> Result<Option<JoinTokenRow>, StoreError> {
    find(tx, locking!(by_hash!(), "FOR UPDATE"), hash).await
}

async fn find(
    connection: &mut Connection,
    sql: impl Into<Sql>,
    hash: &TokenHash,
) -> Result<Option<JoinTokenRow>, StoreError> {
    let row: Option<Row> = query(sql)
        .bind(hash.to_string())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    // The index found it; this comparison takes the same time for every hash.
    let same = TokenHash::from_hex(&row.text("hash")?).as_ref() == Some(hash);
    Ok(same.then(|| JoinTokenRow::from_row(&row)).transpose()?)
}

impl FromRow for JoinTokenRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            id: row.parsed("id")?,
            owner: row.parsed("owner_id")?,
            name: row.text("name")?,
            labels: row.json("labels")?,
            created_at: row.time("created_at")?,
            expires_at: row.time("expires_at")?,
            uses: row.small("uses")?,
            used: row.small("used")?,
            ephemeral: row.count("ephemeral")? == 1,
            from: row.maybe_parsed("address_range")?,
        })
    }
}
