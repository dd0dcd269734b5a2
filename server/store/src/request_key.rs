//! Requests with an idempotency key: carried out once, and answered alike for a day.
//!
//! The key is taken before the request is carried out, and the answer stored after it, each in a transaction of its
//! own. A server that dies in between leaves a key without an answer: the request may have been carried out, and is not
//! carried out again under this key.

use std::time::Duration;

use shared_types::{Digest, TenantId, Timestamp, UserId};

use crate::{
    Full, Store, StoreError,
    columns::Columns as _,
    database::{Connection, FromRow, Row, lock_user, query, query_as, retried},
    error::bounded,
};

/// The time for which a key is known.
pub const REQUEST_KEYS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Most keys of a user that are known at once.
pub const REQUEST_KEYS_OF_USER_AT_MOST: u64 = 10_000;

/// Largest answer that is stored, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A key that a user sends with a request.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// The user.
    pub user: UserId,
    /// The user's name for the request.
    pub key: String,
    /// The digest of the request.
    pub digest: Digest,
}

/// The state of a request under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownRequest {
    /// Nothing: the key is taken now, and the request is to be carried out.
    New,
    /// Another request was sent under the key.
    Other,
    /// It was begun then, and no answer is stored.
    Begun(Timestamp),
    /// It was answered.
    Answered(RequestAnswer),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The id of the thing that was made.
    pub made: Option<String>,
    /// The text of the answer; absent where it is not kept.
    pub text: Option<String>,
}

impl Store {
    /// Takes a key for a request, or returns what is known of the key. Keys of the tenant that are older than
    /// [`REQUEST_KEYS_KEPT_FOR`] are forgotten.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the user has [`REQUEST_KEYS_OF_USER_AT_MOST`] keys;
    /// [`StoreError::NotFound`] if the user is not in this tenant.
    pub async fn take_request_key(
        &self,
        tenant: TenantId,
        request: &RequestKey,
        now: Timestamp,
    ) -> Result<KnownRequest, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, request.user).await?;
            let kept = i64::try_from(REQUEST_KEYS_KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
            query("DELETE FROM request_keys WHERE tenant_id = $1 AND begun_at < $2")
                .bind(tenant.to_string())
                .bind(now.as_micros().saturating_sub(kept))
                .execute(&mut tx)
                .await?;
            let known = find(&mut tx, tenant, request).await?;
            if let Some(known) = known {
                tx.commit().await?;
                return Ok(known.seen_by(request));
            }
            require_room(&mut tx, tenant, request.user).await?;
            query(
                "INSERT INTO request_keys (tenant_id, user_id, request_key, digest, begun_at)
                 VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(tenant.to_string())
            .bind(request.user.to_string())
            .bind(&request.key)
            .bind(request.digest.to_string())
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            tx.commit().await?;
            Ok(KnownRequest::New)
        })
    }

    /// Stores the answer to a request whose key was taken.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for more than [`MAX_ANSWER_BYTES`]; [`StoreError::NotFound`] if the key is
    /// not known, or has an answer.
    pub async fn answer_request(
        &self,
        tenant: TenantId,
        request: &RequestKey,
        answer: &RequestAnswer,
    ) -> Result<(), StoreError> {
        let text = answer.text.as_deref().unwrap_or_default();
        bounded("the answer", text, MAX_ANSWER_BYTES)?;
        let mut tx = self.write(tenant).await?;
        let stored = query(
            "UPDATE request_keys SET status = $4, made_id = $5, answer = $6
             WHERE tenant_id = $1 AND user_id = $2 AND request_key = $3 AND status IS NULL",
        )
        .bind(tenant.to_string())
        .bind(request.user.to_string())
        .bind(&request.key)
        .bind(i64::from(answer.status))
        .bind(answer.made.as_deref())
        .bind(answer.text.as_deref())
        .execute(&mut tx)
        .await?;
        match stored {
            0 => Err(StoreError::NotFound),
            _ => tx.commit().await,
        }
    }

    /// Gives back a key whose request came to nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn forget_request_key(
        &self,
        tenant: TenantId,
        request: &RequestKey,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "DELETE FROM request_keys
             WHERE tenant_id = $1 AND user_id = $2 AND request_key = $3 AND status IS NULL",
        )
        .bind(tenant.to_string())
        .bind(request.user.to_string())
        .bind(&request.key)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}

/// Forgets the answers about a thing that is deleted. The keys stay known.
pub(crate) async fn forget_answers(
    tx: &mut Connection,
    tenant: TenantId,
    made: &str,
) -> Result<(), StoreError> {
    query("UPDATE request_keys SET answer = NULL WHERE tenant_id = $1 AND made_id = $2")
        .bind(tenant.to_string())
        .bind(made)
        .execute(tx)
        .await?;
    Ok(())
}

struct RequestRow {
    digest: String,
    begun_at: Timestamp,
    answer: Option<RequestAnswer>,
}

impl RequestRow {
    fn seen_by(self, request: &RequestKey) -> KnownRequest {
        match self.answer {
            _ if self.digest != request.digest.to_string() => KnownRequest::Other,
            Some(answer) => KnownRequest::Answered(answer),
            None => KnownRequest::Begun(self.begun_at),
        }
    }
}

async fn find(
    tx: &mut Connection,
    tenant: TenantId,
    request: &RequestKey,
) -> Result<Option<RequestRow>, StoreError> {
    let row = query_as(
        "SELECT digest, begun_at, status, made_id, answer FROM request_keys
         WHERE tenant_id = $1 AND user_id = $2 AND request_key = $3",
    )
    .bind(tenant.to_string())
    .bind(request.user.to_string())
    .bind(&request.key)
    .fetch_optional(tx)
    .await?;
    Ok(row)
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    let row: Row =
        query("SELECT COUNT(*) AS known FROM request_keys WHERE tenant_id = $1 AND user_id = $2")
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_one(tx)
            .await?;
    match row.count("known")? {
        used if used < REQUEST_KEYS_OF_USER_AT_MOST => Ok(()),
        used => Err(Full {
            has: "you have",
            used,
            at_most: REQUEST_KEYS_OF_USER_AT_MOST,
            what: "idempotency keys of the last 24 hours",
            remedy: "send fewer, or the request without one",
        }
        .into()),
    }
}

impl FromRow for RequestRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let status = row.maybe_integer("status")?;
        let (made, text) = (row.maybe_text("made_id")?, row.maybe_text("answer")?);
        let answer = status.map(|status| RequestAnswer {
            status: u16::try_from(status).unwrap_or_default(),
            made,
            text,
        });
        Ok(Self {
            digest: row.text("digest")?,
            begun_at: row.time("begun_at")?,
            answer,
        })
    }
}
