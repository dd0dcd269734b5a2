//! Failed attempts to get in, kept over restarts so that guessing does not begin anew with each.
//!
//! Without a tenant: who tries has not said who they are. Each record is a synced write, so refuse
//! an address that is over its limit before recording the next attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shared_types::{Timestamp, limits::MAX_NAME_BYTES};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer, word},
    error::bounded,
};

/// For how long an attempt is remembered.
pub const ATTEMPTS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How many attempts are remembered; the oldest are forgotten first.
pub const ATTEMPTS_KEPT_AT_MOST: u64 = 10_000;

/// What somebody tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    /// To sign in with a code.
    SignIn,
    /// To enrol a runner with a join token.
    Enrol,
}

impl Store {
    /// Remembers a failed attempt from a network address, and forgets what is old or too much.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for an address of more than 63 bytes.
    pub async fn record_attempt(
        &self,
        kind: AttemptKind,
        address: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        bounded("the address", address, MAX_NAME_BYTES)?;
        let kept_for = i64::try_from(ATTEMPTS_KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
        let mut tx = self.write().await?;
        let row = sqlx::query(
            "INSERT INTO attempts (kind, address, at) VALUES ($1, $2, $3) RETURNING id",
        )
        .bind(word(&kind))
        .bind(address)
        .bind(now.as_micros())
        .fetch_one(&mut *tx)
        .await?;
        let newest = row.count("id")?;
        sqlx::query("DELETE FROM attempts WHERE at < $1 OR id <= $2")
            .bind(now.as_micros().saturating_sub(kept_for))
            .bind(integer(newest.saturating_sub(ATTEMPTS_KEPT_AT_MOST)))
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    /// How many attempts of this kind came from the address at or after `since`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn count_attempts(
        &self,
        kind: AttemptKind,
        address: &str,
        since: Timestamp,
    ) -> Result<u64, StoreError> {
        let row = sqlx::query(
            "SELECT COUNT(*) AS attempts FROM attempts
             WHERE kind = $1 AND address = $2 AND at >= $3",
        )
        .bind(word(&kind))
        .bind(address)
        .bind(since.as_micros())
        .fetch_one(self.readers())
        .await?;
        Ok(row.count("attempts")?)
    }
}
