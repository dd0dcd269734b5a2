//! Failed attempts to get in. They are kept over restarts, so that guessing does not start again
//! after each restart.
//!
//! Without a tenant: a client that fails to get in is not known yet. Each record is a synced write,
//! so an attempt beyond the limit is refused and not recorded. To count and to record is one
//! transaction: attempts that are made at once cannot pass the limit together.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shared_types::{Timestamp, limits::MAX_NAME_BYTES};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer, word},
    database::{Connection, Row, lock_table, query},
    error::bounded,
};

/// The time for which an attempt is remembered.
pub const ATTEMPTS_KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The most attempts that are remembered; the oldest are forgotten first.
pub const ATTEMPTS_KEPT_AT_MOST: u64 = 10_000;

/// The reason why these statements have no tenant.
const NO_TENANT: &str = "who tries has not said who they are";

/// Other transactions can still read the table.
const LOCK: &str = "LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE";

/// The kind of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    /// To sign in with a code; counted by network address.
    SignIn,
    /// To sign in with a code; counted by the code, wherever it is tried.
    SignInCode,
    /// To enrol a runner with a join token.
    Enrol,
}

impl Store {
    /// Remembers a failed attempt from a network address, and forgets old and surplus ones.
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
        let mut tx = self.write_any(NO_TENANT).await?;
        record(&mut tx, kind, address, now).await?;
        tx.commit().await
    }

    /// Remembers a failed attempt like [`Store::record_attempt`], unless `at_most` came from the
    /// address at or after `since`. Returns true if it did. Attempts at the same time cannot pass
    /// that bound together.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for an address of more than 63 bytes.
    pub async fn record_attempt_within(
        &self,
        kind: AttemptKind,
        address: &str,
        since: Timestamp,
        at_most: u64,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let counted = [(kind, address)];
        self.record_attempts_within(&counted, since, at_most, now)
            .await
    }

    /// Remembers one failed attempt that is counted in several places, such as the address and the
    /// code, unless one of them had `at_most` at or after `since`. Returns true if it did. Nothing
    /// is remembered of a refused attempt.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a place of more than 63 bytes.
    pub async fn record_attempts_within(
        &self,
        counted: &[(AttemptKind, &str)],
        since: Timestamp,
        at_most: u64,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        for (_, place) in counted {
            bounded("the address", place, MAX_NAME_BYTES)?;
        }
        // Refused attempts of a flood write nothing, and wait for no writer.
        let mut connection = self.read_any(NO_TENANT).await?;
        if !all_within(&mut connection, counted, since, at_most).await? {
            return Ok(false);
        }
        drop(connection);
        let mut tx = self.write_any(NO_TENANT).await?;
        lock_table(&mut tx, LOCK).await?;
        if !all_within(&mut tx, counted, since, at_most).await? {
            return Ok(false);
        }
        for (kind, place) in counted {
            record(&mut tx, *kind, place, now).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Counts the attempts of this kind from the address at or after `since`. For tests only: to
    /// decide by this count and then to record is a race.
    #[cfg(test)]
    pub(crate) async fn count_attempts(
        &self,
        kind: AttemptKind,
        address: &str,
        since: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut connection = self.read_any(NO_TENANT).await?;
        count(&mut connection, kind, address, since).await
    }
}

async fn all_within(
    connection: &mut Connection,
    counted: &[(AttemptKind, &str)],
    since: Timestamp,
    at_most: u64,
) -> Result<bool, StoreError> {
    for (kind, place) in counted {
        if count(connection, *kind, place, since).await? >= at_most {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn record(
    tx: &mut Connection,
    kind: AttemptKind,
    address: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let kept_for = i64::try_from(ATTEMPTS_KEPT_FOR.as_micros()).unwrap_or(i64::MAX);
    let row: Row =
        query("INSERT INTO attempts (kind, address, at) VALUES ($1, $2, $3) RETURNING id")
            .bind(word(&kind))
            .bind(address)
            .bind(now.as_micros())
            .fetch_one(&mut *tx)
            .await?;
    let newest = row.count("id")?;
    query("DELETE FROM attempts WHERE at < $1 OR id <= $2")
        .bind(now.as_micros().saturating_sub(kept_for))
        .bind(integer(newest.saturating_sub(ATTEMPTS_KEPT_AT_MOST)))
        .execute(tx)
        .await?;
    Ok(())
}

async fn count(
    connection: &mut Connection,
    kind: AttemptKind,
    address: &str,
    since: Timestamp,
) -> Result<u64, StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS attempts FROM attempts
         WHERE kind = $1 AND address = $2 AND at >= $3",
    )
    .bind(word(&kind))
    .bind(address)
    .bind(since.as_micros())
    .fetch_one(connection)
    .await?;
    Ok(row.count("attempts")?)
}
