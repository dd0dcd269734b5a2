//! The cookies of browsers. A cookie has two secrets; only their hashes are stored. The first one finds its credential,
//! and the second one is replaced from time to time.
//!
//! A replaced cookie still holds until its successor was seen, because the answer with the successor may never have
//! reached the browser. Each request with it gets the same successor again, which is made of the cookie and the salt.

use serde_json::json;
use shared_types::{CredentialId, Digest, TenantId, Timestamp, token::TokenHash};

use crate::{
    Actor, AuditEntry, AuditOrigin, Store, StoreError, audit,
    columns::Columns as _,
    database::{Row, query, retried},
};

/// The state of a browser's cookie, beside the hash of its first secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieRow {
    /// The hash of the newest second secret.
    pub second: TokenHash,
    /// When the newest one was made.
    pub made_at: Timestamp,
    /// When the newest one was first seen.
    pub taken_up_at: Option<Timestamp>,
    /// The one before it, if there was one.
    pub replaced: Option<Replaced>,
}

/// A second secret that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Its hash.
    pub second: TokenHash,
    /// The salt that its successor was made with.
    pub salt: Digest,
}

impl CookieRow {
    pub(crate) fn of(row: &Row) -> Result<Option<Self>, sqlx::Error> {
        let hash = |name| -> Result<Option<TokenHash>, sqlx::Error> {
            let text = row.maybe_text(name)?;
            Ok(text.as_deref().and_then(TokenHash::from_hex))
        };
        let Some(second) = hash("second_hash")? else {
            return Ok(None);
        };
        let replaced = match hash("replaced_hash")? {
            None => None,
            Some(second) => Some(Replaced {
                second,
                salt: row.digest("salt")?,
            }),
        };
        Ok(Some(Self {
            second,
            made_at: row.time("replaced_at")?,
            taken_up_at: row.maybe_time("taken_up_at")?,
            replaced,
        }))
    }
}

impl Store {
    /// Replaces the newest second secret of a cookie, once that one was seen. False where another request
    /// has done so, or the credential was revoked.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn replace_cookie(
        &self,
        tenant: TenantId,
        credential: CredentialId,
        old: &TokenHash,
        new: &TokenHash,
        salt: &Digest,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(tenant).await?;
        let replaced = query(
            "UPDATE credentials SET second_hash = $4, replaced_hash = $3, salt = $5, replaced_at = $6,
                 taken_up_at = NULL
             WHERE tenant_id = $1 AND id = $2 AND second_hash = $3 AND taken_up_at IS NOT NULL
                 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(credential.to_string())
        .bind(old.to_string())
        .bind(new.to_string())
        .bind(salt.to_string())
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(replaced == 1)
    }

    /// Records that the newest second secret of a cookie was seen: from here on the one before it is not
    /// good for long.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn cookie_taken_up(
        &self,
        tenant: TenantId,
        credential: CredentialId,
        second: &TokenHash,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "UPDATE credentials SET taken_up_at = $4
             WHERE tenant_id = $1 AND id = $2 AND second_hash = $3 AND taken_up_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(credential.to_string())
        .bind(second.to_string())
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// Ends the credential of a cookie whose old second secret was shown: two browsers have the cookie.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn end_copied_cookie(
        &self,
        tenant: TenantId,
        credential: CredentialId,
        origin: AuditOrigin,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let ended = query(
                "UPDATE credentials SET revoked_at = $3
                 WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
            )
            .bind(tenant.to_string())
            .bind(credential.to_string())
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            if ended == 0 {
                return Ok(());
            }
            let entry = AuditEntry {
                actor: Actor::System,
                kind: "credential.revoked",
                subject: credential.to_string(),
                detail: json!({ "why": "a cookie that was replaced was used again" }),
                origin,
            };
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }
}
