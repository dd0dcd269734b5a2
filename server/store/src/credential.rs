//! API keys, and sign-ins of terminals and browsers. Only the hash of a secret is stored.
//!
//! A key that another key made ends with that key: to remove a key takes back all access that its holder could have
//! made from it. Credentials that a sign-in made stay: a person signs out of a terminal, and the programs that got
//! their keys there keep them. Work that is running or queued under a credential ends with it as well. The exception is
//! a person who signs out with that very credential: the work continues then.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Display,
    net::IpAddr,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use shared_types::{
    AddressRange, CredentialId, TenantId, Timestamp, UserId, event::StopReason,
    limits::MAX_NAME_BYTES, token::TokenHash,
};

use crate::{
    Actor, AuditEntry, AuditOrigin, By, Full, Scopes, Store, StoreError, audit,
    columns::{Columns as _, json, word},
    database::{
        self, Connection, FromRow, Page, Row, lock_user, locking, query, query_as, retried,
    },
    error::bounded,
    join_token, subject,
};

/// Most API keys of a user that hold at once.
pub const KEYS_OF_USER_AT_MOST: u64 = 100;

/// The time until which work that was begun under a row of `credentials` may continue: without an end where the person
/// signed out with it, [`REVOKED`] where it was revoked. The end of a browser's sign-in counts as a sign-out.
macro_rules! credential_until {
    () => {
        "CASE WHEN signed_out_at IS NOT NULL THEN NULL
             WHEN credentials.revoked_at IS NOT NULL THEN 0
             WHEN credentials.kind = 'api_key' THEN credentials.expires_at END"
    };
}
pub(crate) use credential_until;

/// Before every moment.
const REVOKED: Timestamp = Timestamp::from_micros(0);

/// The purpose of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// A program.
    ApiKey,
    /// A person's terminal.
    SignIn,
    /// A person's browser, which has the secret in a cookie.
    Browser,
}

/// A credential to be made.
#[derive(Debug, Clone)]
pub struct NewCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its purpose.
    pub kind: CredentialKind,
    /// Its name in lists.
    pub name: String,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The credential with which it is made; it must still hold.
    pub made_by: Option<CredentialId>,
    /// Its scopes; absent for all that its user may do.
    pub scopes: Option<Scopes>,
    /// Until when it can be used.
    pub expires_at: Option<Timestamp>,
    /// From where it can be used; from anywhere, if absent.
    pub from: Option<AddressRange>,
    /// From where it is made.
    pub origin: AuditOrigin,
    /// The user who makes it, where that is another than its own user.
    pub maker: Option<UserId>,
    /// The hash of the second secret; a browser's has one.
    pub second_hash: Option<TokenHash>,
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRow {
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// Its id.
    pub id: CredentialId,
    /// The user that it acts for.
    pub user: UserId,
    /// Its purpose.
    pub kind: CredentialKind,
    /// Its name in lists.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, as far as that was recorded.
    pub last_used_at: Option<Timestamp>,
    /// The credential with which it was made, where that is known.
    pub made_by: Option<CredentialId>,
    /// Its scopes.
    pub scopes: Scopes,
    /// Until when it can be used.
    pub expires_at: Option<Timestamp>,
    /// From where it can be used; from anywhere, if absent.
    pub from: Option<AddressRange>,
    /// The address from which it was last used, as far as that was recorded.
    pub last_address: Option<IpAddr>,
}

impl Store {
    /// Makes a credential of a user.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant; [`StoreError::TooLarge`] for a name of more than 63
    /// bytes; [`StoreError::Conflict`] if the secret exists, or the credential that makes it was revoked;
    /// [`StoreError::Full`] if the user has [`KEYS_OF_USER_AT_MOST`] keys.
    pub async fn insert_credential(
        &self,
        tenant: TenantId,
        user: UserId,
        credential: &NewCredential,
        now: Timestamp,
    ) -> Result<CredentialRow, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            // The maker's rights must not end between this check and the insert.
            let users: BTreeSet<_> = [user].into_iter().chain(credential.maker).collect();
            for user in users {
                lock_user(&mut tx, tenant, user).await?;
            }
            if let Some(maker) = credential.made_by {
                require_maker(&mut tx, tenant, maker).await?;
            }
            if credential.kind == CredentialKind::ApiKey {
                require_room(&mut tx, tenant, user, now).await?;
            }
            let row = insert(&mut tx, tenant, user, credential, now).await?;
            tx.commit().await?;
            Ok(row)
        })
    }

    /// One credential, unless it is revoked.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn credential(
        &self,
        tenant: TenantId,
        credential: CredentialId,
    ) -> Result<CredentialRow, StoreError> {
        let row = query_as(
            "SELECT tenant_id, id, user_id, kind, name, created_at, last_used_at, made_by, scopes,
                 expires_at, address_range, last_address
             FROM credentials WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(credential.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(row)
    }

    /// The user's credentials that are not revoked, the newest first. A place in the list is when a
    /// credential was made, and its id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list_credentials(
        &self,
        tenant: TenantId,
        user: UserId,
        page: impl Into<Page<(Timestamp, CredentialId)>>,
    ) -> Result<Vec<CredentialRow>, StoreError> {
        let Page { after, limit } = page.into();
        let (before, id) = after.unzip();
        let rows = query_as(
            "SELECT tenant_id, id, user_id, kind, name, created_at, last_used_at, made_by, scopes,
                 expires_at, address_range, last_address
             FROM credentials WHERE tenant_id = $1 AND user_id = $2 AND revoked_at IS NULL
                 AND (created_at, id) < ($3, $4)
             ORDER BY created_at DESC, id DESC LIMIT $5",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(before.map_or(i64::MAX, |before| before.as_micros()))
        .bind(id.map_or(String::new(), |id| id.to_string()))
        .bind(database::page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// Records that it was used. A synced write: call it now and then, not on every request.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn credential_used(
        &self,
        tenant: TenantId,
        credential: CredentialId,
        address: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let used = query(
            "UPDATE credentials SET last_used_at = $1, last_address = $4
             WHERE tenant_id = $2 AND id = $3",
        )
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(credential.to_string())
        .bind(address.map(|address| address.to_string()))
        .execute(&mut tx)
        .await?;
        if used == 0 {
            return Err(StoreError::NotFound);
        }
        tx.commit().await
    }

    /// Ends a credential, and with a key the keys and join tokens that it made. The keys are not found by their
    /// hashes any more, and the tokens have expired.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also where it is revoked already.
    pub async fn revoke_credential(
        &self,
        tenant: TenantId,
        credential: CredentialId,
        by: impl Into<By>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let user = self.credential(tenant, credential).await?.user;
        let by = by.into();
        retried!({
            let mut tx = self.write(tenant).await?;
            // No ending key can make another key until this transaction ends.
            lock_user(&mut tx, tenant, user).await?;
            let ended = end(&mut tx, tenant, credential, by.user, now).await?;
            if ended.is_empty() {
                return Err(StoreError::NotFound);
            }
            if by.origin.credential == Some(credential) {
                sign_out(&mut tx, tenant, credential).await?;
            }
            for (revoked, of) in ended {
                let with = (revoked != credential).then(|| credential.to_string());
                record_end(&mut tx, tenant, &by, revoked, of, with, now).await?;
            }
            tx.commit().await
        })
    }
}

/// Ends a credential, or all of a user's, and with each key the keys and join tokens that it made. Returns the
/// credentials that ended, each with its user.
pub(crate) async fn end(
    tx: &mut Connection,
    tenant: TenantId,
    credential_or_user: impl Display,
    by: UserId,
    now: Timestamp,
) -> Result<Vec<(CredentialId, UserId)>, StoreError> {
    let ended: Vec<Row> = query(
        "UPDATE credentials SET revoked_at = $3, revoked_by = $4
         WHERE tenant_id = $1 AND (id = $2 OR user_id = $2) AND revoked_at IS NULL
         RETURNING id, user_id, kind",
    )
    .bind(tenant.to_string())
    .bind(credential_or_user.to_string())
    .bind(now.as_micros())
    .bind(by.to_string())
    .fetch_all(&mut *tx)
    .await?;
    // A key that one of them made during this was committed before its maker ended here, or is refused
    // (`require_maker`). So a statement of its own looks for it.
    let (mut all, mut ended) = (Vec::new(), VecDeque::from(ended));
    while let Some(row) = ended.pop_front() {
        let id = row.parsed("id")?;
        if row.text("kind")? == word(&CredentialKind::ApiKey) {
            join_token::end_with(tx, tenant, id, now).await?;
            let made: Vec<Row> = query(
                "UPDATE credentials SET revoked_at = $3, revoked_by = $4
                 WHERE tenant_id = $1 AND made_by = $2 AND revoked_at IS NULL
                 RETURNING id, user_id, kind",
            )
            .bind(tenant.to_string())
            .bind(id.to_string())
            .bind(now.as_micros())
            .bind(by.to_string())
            .fetch_all(&mut *tx)
            .await?;
            ended.extend(made);
        }
        all.push((id, row.parsed("user_id")?));
    }
    Ok(all)
}

/// Records that the person signed out with it: the person's running work continues. A key that ends itself ends its
/// work as well.
async fn sign_out(
    tx: &mut Connection,
    tenant: TenantId,
    credential: CredentialId,
) -> Result<(), StoreError> {
    query(
        "UPDATE credentials SET signed_out_at = revoked_at
         WHERE tenant_id = $1 AND id = $2 AND kind <> $3",
    )
    .bind(tenant.to_string())
    .bind(credential.to_string())
    .bind(word(&CredentialKind::ApiKey))
    .execute(tx)
    .await
    .map(drop)?;
    Ok(())
}

/// The reason to stop work of a credential whose work may continue `until` then; none if it may still continue at
/// `now`.
pub(crate) fn ended(until: Option<Timestamp>, now: Timestamp) -> Option<StopReason> {
    match until {
        Some(REVOKED) => Some(StopReason::CredentialRevoked),
        Some(until) if until <= now => Some(StopReason::CredentialExpired),
        _ => None,
    }
}

/// Records in the audit log that a credential ended and what ended with it; also its user, if that is not the actor.
pub(crate) async fn record_end(
    tx: &mut Connection,
    tenant: TenantId,
    by: &By,
    revoked: CredentialId,
    of: UserId,
    with: Option<String>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let actor = by.actor();
    let of = (actor != Actor::User(of)).then_some(of);
    let mut detail = Map::new();
    detail.extend(with.map(|with| ("with".to_owned(), json!(with))));
    detail.extend(of.map(|of| ("user".to_owned(), json!(of))));
    let entry = AuditEntry {
        actor,
        origin: by.origin,
        kind: "credential.revoked",
        subject: revoked.to_string(),
        detail: detail.into(),
    };
    audit::record(tx, tenant, &entry, now).await.map(drop)
}

/// Refuses a maker that was revoked. Otherwise a key could outlive its maker by being made during the revocation.
pub(crate) async fn require_maker(
    tx: &mut Connection,
    tenant: TenantId,
    maker: CredentialId,
) -> Result<(), StoreError> {
    let holds: Option<Row> = query(locking!(
        "SELECT id FROM credentials WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        "FOR SHARE"
    ))
    .bind(tenant.to_string())
    .bind(maker.to_string())
    .fetch_optional(tx)
    .await?;
    match holds {
        Some(_) => Ok(()),
        None => Err(StoreError::Conflict(
            "the credential that makes it was revoked, sign in again",
        )),
    }
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS keys FROM credentials
         WHERE tenant_id = $1 AND user_id = $2 AND kind = $3 AND revoked_at IS NULL
           AND (expires_at IS NULL OR expires_at > $4)",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(word(&CredentialKind::ApiKey))
    .bind(now.as_micros())
    .fetch_one(tx)
    .await?;
    match row.count("keys")? {
        used if used < KEYS_OF_USER_AT_MOST => Ok(()),
        used => Err(Full {
            has: "you have",
            used,
            at_most: KEYS_OF_USER_AT_MOST,
            what: "keys",
            remedy: "remove some: gantry keys remove ID",
        }
        .into()),
    }
}

pub(crate) async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    credential: &NewCredential,
    now: Timestamp,
) -> Result<CredentialRow, StoreError> {
    bounded("the credential's name", &credential.name, MAX_NAME_BYTES)?;
    let scopes = credential
        .scopes
        .map(|scopes| scopes.iter().collect::<Vec<_>>());
    let from = credential.from.map(|range| range.to_string());
    // A browser's cookie counts as replaced and seen when it is made.
    let second = credential.second_hash.as_ref();
    query(
        "INSERT INTO credentials (tenant_id, id, user_id, kind, name, hash, created_at, made_by,
             scopes, expires_at, address_range, second_hash, replaced_at, taken_up_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)",
    )
    .bind(tenant.to_string())
    .bind(credential.id.to_string())
    .bind(user.to_string())
    .bind(word(&credential.kind))
    .bind(&credential.name)
    .bind(credential.hash.to_string())
    .bind(now.as_micros())
    .bind(credential.made_by.map(|maker| maker.to_string()))
    .bind(scopes.as_ref().map(json))
    .bind(credential.expires_at.map(|at| at.as_micros()))
    .bind(from.clone())
    .bind(second.map(TokenHash::to_string))
    .bind(second.map(|_| now.as_micros()))
    .execute(&mut *tx)
    .await?;
    let maker = credential.maker.unwrap_or(user);
    let mut detail = json!({
        "name": credential.name,
        "kind": credential.kind,
        "scopes": scopes,
        "expires_at": credential.expires_at,
        "from": from,
    });
    if maker != user {
        detail["user"] = json!(user);
    }
    let made = AuditEntry {
        actor: Actor::User(maker),
        kind: "credential.created",
        subject: credential.id.to_string(),
        detail,
        origin: credential.origin,
    };
    audit::record(tx, tenant, &made, now).await?;
    Ok(CredentialRow {
        tenant,
        id: credential.id,
        user,
        kind: credential.kind,
        name: credential.name.clone(),
        created_at: now,
        last_used_at: None,
        made_by: credential.made_by,
        scopes: credential.scopes.unwrap_or(Scopes::ALL),
        expires_at: credential.expires_at,
        from: credential.from,
        last_address: None,
    })
}

impl FromRow for CredentialRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            id: row.parsed("id")?,
            user: row.parsed("user_id")?,
            kind: row.word("kind")?,
            name: row.text("name")?,
            created_at: row.time("created_at")?,
            last_used_at: row.maybe_time("last_used_at")?,
            made_by: row.maybe_parsed("made_by")?,
            scopes: subject::scopes(row)?,
            expires_at: row.maybe_time("expires_at")?,
            from: row.maybe_parsed("address_range")?,
            last_address: row.maybe_parsed("last_address")?,
        })
    }
}
