//! One-time codes with which a person signs in. Only the hash of a code is stored.

use serde_json::json;
use shared_types::{Digest, TenantId, Timestamp, UserId, token::TokenHash};

use crate::{
    Actor, AuditEntry, AuditOrigin, CredentialRow, NewCredential, Store, StoreError, UserRow,
    audit,
    columns::Columns as _,
    credential,
    database::{Connection, Row, lock_user, query, retried},
    user,
};

/// A code to be made.
#[derive(Debug, Clone)]
pub struct NewSignInCode {
    /// The digest of the code.
    pub hash: Digest,
    /// The time until which it can be used.
    pub expires_at: Timestamp,
}

/// The reason why a code is refused.
#[derive(Debug, thiserror::Error)]
pub enum RedeemRefusal {
    /// There is no such code, or a newer one has taken its place.
    #[error("sign in: this code is wrong or was replaced by a newer one")]
    Unknown,
    /// It was used before.
    #[error("sign in: this code was used already, ask for a new one")]
    Spent,
    /// Its time is over.
    #[error("sign in: this code has expired, ask for a new one")]
    Expired,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for RedeemRefusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Store {
    /// Gives the user a code; an earlier one stops working.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user is not in this tenant.
    pub async fn issue_sign_in_code(
        &self,
        tenant: TenantId,
        user: UserId,
        code: &NewSignInCode,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        put(&mut tx, tenant, user, code, now).await?;
        let issued = AuditEntry {
            actor: Actor::System,
            kind: "sign_in_code.issued",
            subject: user.to_string(),
            detail: json!({ "expires_at": code.expires_at }),
            origin: AuditOrigin::default(),
        };
        audit::record(&mut tx, tenant, &issued, now).await?;
        tx.commit().await
    }

    /// Exchanges a code for a credential of its user: both happen, exactly once, or neither.
    /// Without a tenant: the code yields it.
    ///
    /// # Errors
    /// [`RedeemRefusal`] if the code cannot be used.
    pub async fn redeem_sign_in_code(
        &self,
        hash: &Digest,
        credential: &NewCredential,
        now: Timestamp,
    ) -> Result<(UserRow, CredentialRow), RedeemRefusal> {
        // Wrong codes of every kind cost the same reads, and wait for no writer.
        let mut connection = self.read_any("a code yields its tenant").await?;
        let (tenant, _) = usable(&mut connection, hash, now).await?;
        drop(connection);
        retried!({
            let mut tx = self.write(tenant).await?;
            let (_, user) = usable(&mut tx, hash, now).await?;
            // A later invitation sees that the person has joined; if one came before, the code was replaced.
            lock_user(&mut tx, tenant, user).await?;
            let used = query(
                "UPDATE sign_in_codes SET used_at = $1
             WHERE tenant_id = $2 AND user_id = $3 AND hash = $4 AND used_at IS NULL",
            )
            .bind(now.as_micros())
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(hash.to_string())
            .execute(&mut tx)
            .await?;
            if used == 0 {
                return Err(RedeemRefusal::Spent);
            }
            let user = user::find(&mut tx, tenant, user).await?;
            let credential = credential::insert(&mut tx, tenant, user.id, credential, now).await?;
            tx.commit().await?;
            Ok((user, credential))
        })
    }
}

/// Gives the user this code in place of any earlier one.
pub(crate) async fn put(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    code: &NewSignInCode,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO sign_in_codes (tenant_id, user_id, hash, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant_id, user_id) DO UPDATE SET hash = excluded.hash,
             created_at = excluded.created_at, expires_at = excluded.expires_at, used_at = NULL",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(code.hash.to_string())
    .bind(now.as_micros())
    .bind(code.expires_at.as_micros())
    .execute(tx)
    .await?;
    Ok(())
}

/// The user of a code that can be used now, with the tenant.
async fn usable(
    connection: &mut Connection,
    hash: &Digest,
    now: Timestamp,
) -> Result<(TenantId, UserId), RedeemRefusal> {
    let code: Option<Row> = query(
        "SELECT tenant_id, user_id, hash, expires_at, used_at FROM sign_in_codes WHERE hash = $1",
    )
    .bind(hash.to_string())
    .fetch_optional(connection)
    .await?;
    let code = code.ok_or(RedeemRefusal::Unknown)?;
    // The index found it; this comparison takes the same time for every hash.
    let (stored, given) = (code.text("hash")?, hash.to_string());
    if TokenHash::from_hex(&stored) != TokenHash::from_hex(&given) {
        return Err(RedeemRefusal::Unknown);
    }
    if code.maybe_time("used_at")?.is_some() {
        return Err(RedeemRefusal::Spent);
    }
    if code.time("expires_at")? <= now {
        return Err(RedeemRefusal::Expired);
    }
    Ok((code.parsed("tenant_id")?, code.parsed("user_id")?))
}
