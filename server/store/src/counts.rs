//! Counts of turns, operations and runners: of all tenants, for metrics, and of one, for its admins.

use shared_types::{TenantId, Timestamp};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, query},
};

/// The counts at one moment, of all tenants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Turns that wait for a worker: those behind another turn of their session do not.
    pub turns_queued: u64,
    /// The time when the message of the oldest of them was accepted.
    pub oldest_queued: Option<Timestamp>,
    /// Operations without an end.
    pub operations_open: u64,
    /// Those of them whose runner has no link.
    pub operations_unknown: u64,
    /// Runners with a link, of those that were neither removed nor locked.
    pub runners_online: u64,
    /// Runners without a link, of the same.
    pub runners_offline: u64,
    /// Runners that are locked.
    pub runners_locked: u64,
    /// Runners with a link that have the given version.
    pub runners_of_version: u64,
}

/// The counts at one moment, of one tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantCounts {
    /// Runners with a link.
    pub runners_online: u64,
    /// Runners without a link, also those that are locked.
    pub runners_away: u64,
    /// Operations without an end.
    pub operations_open: u64,
}

impl Store {
    /// Counts what the tenant has now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn counts_of_tenant(&self, tenant: TenantId) -> Result<TenantCounts, StoreError> {
        let row: Row = query(
            "SELECT COUNT(CASE WHEN replica_id IS NOT NULL THEN 1 END) AS runners_online,
                 COUNT(CASE WHEN replica_id IS NULL THEN 1 END) AS runners_away,
                 (SELECT COUNT(*) FROM operations WHERE operations.tenant_id = $1 AND outcome IS NULL)
                     AS operations_open
             FROM runners WHERE tenant_id = $1 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(TenantCounts {
            runners_online: row.count("runners_online")?,
            runners_away: row.count("runners_away")?,
            operations_open: row.count("operations_open")?,
        })
    }

    /// The number of the database's schema.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn schema_in_use(&self) -> Result<i64, StoreError> {
        let row: Row = query("SELECT MAX(version) AS newest FROM _sqlx_migrations")
            .fetch_one(&mut self.read_any("the schema has no tenant").await?)
            .await?;
        Ok(row.get_integer("newest")?.unwrap_or_default())
    }

    /// Counts the present counts, in one statement over the indexes of open turns, open operations and runners. Runners
    /// with `version` are counted apart. Without a tenant: it counts all of them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn counts(&self, version: &str) -> Result<StoreCounts, StoreError> {
        let row: Row = query(
            "SELECT turns_queued, oldest_queued, operations_open, operations_unknown,
                 runners_online, runners_offline, runners_locked, runners_of_version
             FROM (SELECT COUNT(*) AS turns_queued, MIN(created_at) AS oldest_queued FROM turns
                 WHERE state <> 'ended' AND state = 'queued' AND NOT EXISTS (SELECT 1 FROM turns AS before
                     WHERE before.tenant_id = turns.tenant_id
                         AND before.session_id = turns.session_id AND before.state = 'running')) AS t,
             (SELECT COUNT(*) AS operations_open,
                     COUNT(CASE WHEN replica_id IS NULL THEN 1 END) AS operations_unknown
                 FROM operations JOIN runners ON runners.tenant_id = operations.tenant_id
                     AND runners.id = operations.runner_id
                 WHERE outcome IS NULL) AS o,
             (SELECT COUNT(CASE WHEN locked_at IS NULL AND replica_id IS NOT NULL THEN 1 END) AS runners_online,
                     COUNT(CASE WHEN locked_at IS NULL AND replica_id IS NULL THEN 1 END) AS runners_offline,
                     COUNT(locked_at) AS runners_locked,
                     COUNT(CASE WHEN locked_at IS NULL AND replica_id IS NOT NULL AND version = $1 THEN 1 END)
                         AS runners_of_version
                 FROM runners WHERE revoked_at IS NULL) AS r",
        )
        .bind(version)
        .fetch_one(&mut self.read_any("it is about all tenants").await?)
        .await?;
        Ok(StoreCounts {
            turns_queued: row.count("turns_queued")?,
            oldest_queued: row.maybe_time("oldest_queued")?,
            operations_open: row.count("operations_open")?,
            operations_unknown: row.count("operations_unknown")?,
            runners_online: row.count("runners_online")?,
            runners_offline: row.count("runners_offline")?,
            runners_locked: row.count("runners_locked")?,
            runners_of_version: row.count("runners_of_version")?,
        })
    }
}
