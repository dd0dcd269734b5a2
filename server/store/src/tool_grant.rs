//! Sign-ins to tool servers of the web: the tokens of people, and the sign-ins under way. The tokens are a secret
//! ([`SealedSecret`]), which is stored, replaced and removed together with its row.

use serde_json::json;
use shared_types::{Digest, SecretId, TenantId, Timestamp, UserId};

use crate::{
    By, SealedSecret, Store, StoreError, audit,
    columns::Columns as _,
    database::{Connection, FromRow, Row, lock_user, query, query_as, retried},
    secret,
};

/// Most tool servers with tokens of one user, or that want a sign-in of that user.
const GRANTS_AT_MOST: u64 = 500;

/// Most sign-ins of a user that are under way; the oldest ends for another one.
const SIGN_INS_AT_MOST: usize = 10;

/// The tokens of a user for a tool server, or the sign-in that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrantRow {
    /// The address of the tool server.
    pub url: String,
    /// The secret with the tokens, if the user has signed in.
    pub secret: Option<SecretId>,
    /// The authorization server that gave them; may be empty.
    pub issuer: String,
    /// The scopes of the tokens, parted by spaces.
    pub scopes: String,
    /// The scopes for which the server refused a request; absent if it wants no sign-in.
    pub wanted: Option<String>,
    /// The end of the token that is sent, if it is known.
    pub ends_at: Option<Timestamp>,
    /// The time of the last change.
    pub changed_at: Timestamp,
}

/// Tokens that are to be stored.
#[derive(Debug, Clone, Copy)]
pub struct NewToolGrant<'a> {
    /// The address of the tool server.
    pub url: &'a str,
    /// The tokens.
    pub secret: &'a SealedSecret,
    /// The authorization server that gave them.
    pub issuer: &'a str,
    /// The scopes of the tokens, parted by spaces.
    pub scopes: &'a str,
    /// The end of the token that is sent, if it is known.
    pub ends_at: Option<Timestamp>,
}

/// A sign-in that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewToolSignIn<'a> {
    /// The digest of the word by which the answer is known.
    pub state: Digest,
    /// The address of the tool server.
    pub url: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The sealed parts of the sign-in with which the answer is checked.
    pub secret: &'a SealedSecret,
    /// An answer after this time is refused.
    pub ends_at: Timestamp,
}

/// A sign-in whose answer came. No other answer finds it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenToolSignIn {
    /// The address of the tool server.
    pub url: String,
    /// Its name.
    pub name: String,
    /// The sealed parts of the sign-in with which the answer is checked.
    pub secret: SealedSecret,
}

macro_rules! select_grants {
    ($rest:literal) => {
        concat!(
            "SELECT url, secret_id, issuer, scopes, wanted, ends_at, changed_at FROM tool_grants
             WHERE tenant_id = $1 AND user_id = $2 ",
            $rest
        )
    };
}

impl Store {
    /// Stores a sign-in that waits for its answer. Those of the user that ended are removed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user.
    pub async fn begin_tool_sign_in(
        &self,
        tenant: TenantId,
        user: UserId,
        new: NewToolSignIn<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            let old: Vec<Row> = query(
                "SELECT state, ends_at FROM tool_sign_ins WHERE tenant_id = $1 AND user_id = $2
                 ORDER BY ends_at DESC, state",
            )
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_all(&mut tx)
            .await?;
            for (place, row) in old.iter().enumerate() {
                if place + 1 >= SIGN_INS_AT_MOST || row.time("ends_at")? <= now {
                    remove_sign_in(&mut tx, tenant, &row.text("state")?).await?;
                }
            }
            secret::put(&mut tx, tenant, new.secret, now).await?;
            query(
                "INSERT INTO tool_sign_ins (tenant_id, state, user_id, url, name, secret_id, ends_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(tenant.to_string())
            .bind(new.state.to_string())
            .bind(user.to_string())
            .bind(new.url)
            .bind(new.name)
            .bind(new.secret.id.to_string())
            .bind(new.ends_at.as_micros())
            .execute(&mut tx)
            .await?;
            tx.commit().await
        })
    }

    /// Takes the sign-in of this user with this state. It is gone afterwards.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is none, it has ended, or it is another user's.
    pub async fn take_tool_sign_in(
        &self,
        tenant: TenantId,
        user: UserId,
        state: Digest,
        now: Timestamp,
    ) -> Result<TakenToolSignIn, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let row: Row = query(
                "DELETE FROM tool_sign_ins
                 WHERE tenant_id = $1 AND user_id = $2 AND state = $3 AND ends_at > $4
                 RETURNING url, name, secret_id",
            )
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(state.to_string())
            .bind(now.as_micros())
            .fetch_one(&mut tx)
            .await?;
            let id = row.parsed("secret_id")?;
            let taken = TakenToolSignIn {
                url: row.text("url")?,
                name: row.text("name")?,
                secret: secret::one(&mut tx, tenant, id).await?,
            };
            secret::remove(&mut tx, tenant, id).await?;
            tx.commit().await?;
            Ok(taken)
        })
    }

    /// The tokens of a user and the sign-ins that are wanted, by address.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn tool_grants(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<ToolGrantRow>, StoreError> {
        let rows = query_as(select_grants!("ORDER BY url"))
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_all(&mut self.read(tenant).await?)
            .await?;
        Ok(rows)
    }

    /// The tokens of a user for the server at this address, with the secret; or the sign-in that it wants.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is neither.
    pub async fn tool_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        url: &str,
    ) -> Result<(ToolGrantRow, Option<SealedSecret>), StoreError> {
        let mut connection = self.read(tenant).await?;
        let row = one(&mut connection, tenant, user, url).await?;
        let Some(id) = row.secret else {
            return Ok((row, None));
        };
        match secret::one(&mut connection, tenant, id).await {
            Ok(secret) => Ok((row, Some(secret))),
            // Another sign-in has taken its place in between.
            Err(StoreError::NotFound) => Err(StoreError::Conflict("try again")),
            Err(error) => Err(error),
        }
    }

    /// Stores the tokens of a sign-in, in place of those before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user.
    pub async fn put_tool_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        new: NewToolGrant<'_>,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            remove(&mut tx, tenant, user, new.url).await?;
            secret::put(&mut tx, tenant, new.secret, now).await?;
            query(
                "INSERT INTO tool_grants
                     (tenant_id, user_id, url, secret_id, issuer, scopes, wanted, ends_at, renewing_until, changed_at)
                 VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, NULL, $8)",
            )
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(new.url)
            .bind(new.secret.id.to_string())
            .bind(new.issuer)
            .bind(new.scopes)
            .bind(new.ends_at.map(Timestamp::as_micros))
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            let entry = by.entry(
                "tool_server.signed_in",
                user,
                json!({ "url": new.url, "issuer": new.issuer, "scopes": new.scopes }),
            );
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }

    /// Notes that the server at this address wants a sign-in of the user with these scopes. Above 500 servers it is not
    /// noted.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such user.
    pub async fn want_tool_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        url: &str,
        scopes: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            let row: Row = query(
                "SELECT COUNT(*) AS grants FROM tool_grants
                 WHERE tenant_id = $1 AND user_id = $2 AND url <> $3",
            )
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(url)
            .fetch_one(&mut tx)
            .await?;
            if row.count("grants")? >= GRANTS_AT_MOST {
                return Ok(());
            }
            query(
                "INSERT INTO tool_grants (tenant_id, user_id, url, issuer, scopes, wanted, changed_at)
                 VALUES ($1, $2, $3, '', '', $4, $5)
                 ON CONFLICT (tenant_id, user_id, url) DO UPDATE SET wanted = excluded.wanted",
            )
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(url)
            .bind(scopes)
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            tx.commit().await
        })
    }

    /// Takes the renewal of these tokens until this time. Returns false if another replica has it, or the tokens are
    /// others by now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn take_tool_renewal(
        &self,
        tenant: TenantId,
        user: UserId,
        (url, tokens): (&str, &SealedSecret),
        until: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(tenant).await?;
        let taken = query(
            "UPDATE tool_grants SET renewing_until = $6
             WHERE tenant_id = $1 AND user_id = $2 AND url = $3 AND secret_id = $4
                 AND (renewing_until IS NULL OR renewing_until <= $7)
                 AND EXISTS (SELECT 1 FROM secrets
                     WHERE secrets.tenant_id = $1 AND secrets.id = $4 AND secrets.version = $5)",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(url)
        .bind(tokens.id.to_string())
        .bind(i64::from(tokens.version))
        .bind(until.as_micros())
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(taken > 0)
    }

    /// Stores the tokens that a renewal brought: the next version of their secret.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if they were changed in the meantime; [`StoreError::NotFound`] if they are gone.
    pub async fn renew_tool_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        new: NewToolGrant<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let renewed = query(
            "UPDATE tool_grants SET scopes = $5, ends_at = $6, renewing_until = NULL, changed_at = $7
             WHERE tenant_id = $1 AND user_id = $2 AND url = $3 AND secret_id = $4",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(new.url)
        .bind(new.secret.id.to_string())
        .bind(new.scopes)
        .bind(new.ends_at.map(Timestamp::as_micros))
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        if renewed == 0 {
            return Err(StoreError::NotFound);
        }
        secret::put(&mut tx, tenant, new.secret, now).await?;
        tx.commit().await
    }

    /// Gives up a renewal that brought nothing. With `ends`, the tokens are of no use any more: they are removed, and the
    /// server wants a sign-in.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn drop_tool_renewal(
        &self,
        tenant: TenantId,
        user: UserId,
        (url, tokens): (&str, &SealedSecret),
        ends: bool,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let statement = match ends {
                true => {
                    "UPDATE tool_grants SET secret_id = NULL, wanted = scopes, ends_at = NULL, renewing_until = NULL
                     WHERE tenant_id = $1 AND user_id = $2 AND url = $3 AND secret_id = $4
                       AND EXISTS (SELECT 1 FROM secrets WHERE tenant_id = $1 AND id = $4 AND version = $5)"
                }
                false => {
                    "UPDATE tool_grants SET renewing_until = NULL
                     WHERE tenant_id = $1 AND user_id = $2 AND url = $3 AND secret_id = $4
                       AND EXISTS (SELECT 1 FROM secrets WHERE tenant_id = $1 AND id = $4 AND version = $5)"
                }
            };
            let changed = query(statement)
                .bind(tenant.to_string())
                .bind(user.to_string())
                .bind(url)
                .bind(tokens.id.to_string())
                .bind(i64::from(tokens.version))
                .execute(&mut tx)
                .await?;
            if ends && changed > 0 {
                secret::remove(&mut tx, tenant, tokens.id).await?;
            }
            tx.commit().await
        })
    }

    /// Removes the tokens of a user for the server at this address, and the sign-ins to it that are under way. Returns the
    /// tokens, if there were any.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn end_tool_grant(
        &self,
        tenant: TenantId,
        user: UserId,
        url: &str,
        by: &By,
        now: Timestamp,
    ) -> Result<Option<SealedSecret>, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            remove_sign_ins(&mut tx, tenant, Some(user), Some(url)).await?;
            let gone = remove(&mut tx, tenant, user, url).await?;
            if gone.is_some() {
                let entry = by.entry("tool_server.signed_out", user, json!({ "url": url }));
                audit::record(&mut tx, tenant, &entry, now).await?;
            }
            tx.commit().await?;
            Ok(gone)
        })
    }
}

/// Removes all tokens for the server at this address: of this user, or of all people of the tenant.
pub(crate) async fn remove_of_url(
    tx: &mut Connection,
    tenant: TenantId,
    user: Option<UserId>,
    url: &str,
) -> Result<(), StoreError> {
    remove_sign_ins(tx, tenant, user, Some(url)).await?;
    remove_where(tx, tenant, user, Some(url)).await.map(drop)
}

/// Removes all tokens of a user who leaves the tenant.
pub(crate) async fn remove_of_user(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    remove_sign_ins(tx, tenant, Some(user), None).await?;
    remove_where(tx, tenant, Some(user), None).await.map(drop)
}

async fn remove(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    url: &str,
) -> Result<Option<SealedSecret>, StoreError> {
    let mut removed = remove_where(tx, tenant, Some(user), Some(url)).await?;
    Ok(removed.pop())
}

async fn remove_where(
    tx: &mut Connection,
    tenant: TenantId,
    user: Option<UserId>,
    url: Option<&str>,
) -> Result<Vec<SealedSecret>, StoreError> {
    let rows: Vec<Row> = query(
        "DELETE FROM tool_grants WHERE tenant_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR url = $3)
         RETURNING secret_id",
    )
    .bind(tenant.to_string())
    .bind(user.map_or_else(String::new, |user| user.to_string()))
    .bind(url.unwrap_or_default())
    .fetch_all(&mut *tx)
    .await?;
    let mut removed = Vec::new();
    for row in rows {
        if let Some(id) = row.maybe_parsed("secret_id")? {
            removed.push(secret::one(tx, tenant, id).await?);
            secret::remove(tx, tenant, id).await?;
        }
    }
    Ok(removed)
}

async fn remove_sign_ins(
    tx: &mut Connection,
    tenant: TenantId,
    user: Option<UserId>,
    url: Option<&str>,
) -> Result<(), StoreError> {
    let rows: Vec<Row> = query(
        "SELECT state FROM tool_sign_ins
         WHERE tenant_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR url = $3)",
    )
    .bind(tenant.to_string())
    .bind(user.map_or_else(String::new, |user| user.to_string()))
    .bind(url.unwrap_or_default())
    .fetch_all(&mut *tx)
    .await?;
    for row in rows {
        remove_sign_in(tx, tenant, &row.text("state")?).await?;
    }
    Ok(())
}

async fn remove_sign_in(
    tx: &mut Connection,
    tenant: TenantId,
    state: &str,
) -> Result<(), StoreError> {
    let gone: Option<Row> =
        query("DELETE FROM tool_sign_ins WHERE tenant_id = $1 AND state = $2 RETURNING secret_id")
            .bind(tenant.to_string())
            .bind(state)
            .fetch_optional(&mut *tx)
            .await?;
    match gone {
        Some(row) => secret::remove(tx, tenant, row.parsed("secret_id")?).await,
        None => Ok(()),
    }
}

async fn one(
    connection: &mut Connection,
    tenant: TenantId,
    user: UserId,
    url: &str,
) -> Result<ToolGrantRow, StoreError> {
    let row = query_as(select_grants!("AND url = $3"))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(url)
        .fetch_one(connection)
        .await?;
    Ok(row)
}

impl FromRow for ToolGrantRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            url: row.text("url")?,
            secret: row.maybe_parsed("secret_id")?,
            issuer: row.text("issuer")?,
            scopes: row.text("scopes")?,
            wanted: row.maybe_text("wanted")?,
            ends_at: row.maybe_time("ends_at")?,
            changed_at: row.time("changed_at")?,
        })
    }
}
