//! The removal of runners: a person revokes them; ephemeral ones also leave by themselves, or stay away for too long.

use std::time::Duration;

use serde_json::json;
use shared_types::{OperationId, RunnerId, SessionId, TenantId, Timestamp};

use super::{entry, micros};
use crate::{
    Actor, AuditEntry, By, Store, StoreError, audit,
    columns::Columns as _,
    database::{Connection, Row, locking, query, retried},
    operation::{self, StoredEnd},
};

/// Operations that were lost after their call had ended, and their sessions, whose logs have grown.
pub type Late = Vec<(OperationId, SessionId)>;

/// Runners that one sweep removes at most; the next one takes the rest.
const SWEPT_AT_MOST: u32 = 100;

impl Store {
    /// Ends a runner for good: it links no more, and its name is free. Its open operations are lost.
    /// The caller has to end its link.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if it is revoked already.
    pub async fn revoke_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        by: impl Into<By>,
        now: Timestamp,
    ) -> Result<Late, StoreError> {
        let by = by.into();
        retried!({
            let mut tx = self.write(tenant).await?;
            let entry = AuditEntry {
                origin: by.origin,
                ..entry(by.actor(), "runner.revoked", runner, json!({}))
            };
            let revoked = revoke(&mut tx, tenant, runner, &entry, now).await?;
            let ended = revoked.ok_or(StoreError::NotFound)?;
            tx.commit().await?;
            self.link_changed(runner);
            Ok(self.operations_ended(ended).await)
        })
    }

    /// Ends an ephemeral runner that reported that it leaves for good, as [`Store::revoke_runner`] does, in the
    /// runner's own name. Returns none if it was not ended: a runner with another link by now stays.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn runner_left(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        now: Timestamp,
    ) -> Result<Option<Late>, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let ephemeral = query(locking!(
                "SELECT id FROM runners
             WHERE tenant_id = $1 AND id = $2 AND ephemeral = 1 AND replica_id IS NULL",
                "FOR NO KEY UPDATE"
            ))
            .bind(tenant.to_string())
            .bind(runner.to_string())
            .fetch_optional(&mut tx)
            .await?;
            let entry = entry(Actor::Runner(runner), "runner.left", runner, json!({}));
            let left = match ephemeral {
                Some(_) => revoke(&mut tx, tenant, runner, &entry, now).await?,
                None => None,
            };
            tx.commit().await?;
            Ok(match left {
                Some(ended) => Some(self.operations_ended(ended).await),
                None => None,
            })
        })
    }

    /// Ends the ephemeral runners whose counted silence ([`Store::count_silence`]) was at least this long, 100 at most.
    /// Returns them. Without a tenant: silence grows in all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_silent_runners(
        &self,
        silent_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<(RunnerId, Late)>, StoreError> {
        retried!({
            let mut tx = self.write_any("it is about time").await?;
            let rows: Vec<Row> = query(locking!(
                "SELECT tenant_id, id, COALESCE(last_seen_at, enrolled_at) AS heard_at FROM runners
             WHERE ephemeral = 1 AND revoked_at IS NULL AND replica_id IS NULL
                 AND silent_generation = generation AND silent_us >= $1
             ORDER BY heard_at LIMIT $2",
                "FOR NO KEY UPDATE"
            ))
            .bind(micros(silent_for))
            .bind(i64::from(SWEPT_AT_MOST))
            .fetch_all(&mut tx)
            .await?;
            let mut removed = Vec::with_capacity(rows.len());
            for row in rows {
                let (runner, heard_at) = (row.parsed("id")?, row.time("heard_at")?);
                let detail = json!({ "silent_since": heard_at });
                let entry = entry(Actor::System, "runner.stayed_away", runner, detail);
                let tenant = row.parsed("tenant_id")?;
                if let Some(lost) = revoke(&mut tx, tenant, runner, &entry, now).await? {
                    removed.push((runner, lost));
                }
            }
            tx.commit().await?;
            let mut runners = Vec::with_capacity(removed.len());
            for (runner, ended) in removed {
                self.link_changed(runner);
                runners.push((runner, self.operations_ended(ended).await));
            }
            Ok(runners)
        })
    }
}

/// Ends the runner and its open operations, and records that in the tenant's log. Returns none if it was ended before.
async fn revoke(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    entry: &AuditEntry,
    now: Timestamp,
) -> Result<Option<Vec<StoredEnd>>, StoreError> {
    let revoked = query(
        "UPDATE runners SET revoked_at = $1
         WHERE tenant_id = $2 AND id = $3 AND revoked_at IS NULL",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(runner.to_string())
    .execute(&mut *tx)
    .await?;
    if revoked == 0 {
        return Ok(None);
    }
    audit::record(tx, tenant, entry, now).await?;
    let ended = operation::lose_all(tx, tenant, runner, now).await?;
    Ok(Some(ended))
}
