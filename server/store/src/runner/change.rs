//! The changes that a person makes to a runner: its name, and if it drains.

use serde_json::json;
use shared_types::{RunnerId, TenantId, Timestamp, limits::MAX_NAME_BYTES};

use super::{RunnerRow, entry, find, lock};
use crate::{
    AuditEntry, By, Store, StoreError, audit,
    database::{query, retried},
    error::bounded,
};

/// The changes of a runner; absent values stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunnerChange {
    /// Its name.
    pub name: Option<String>,
    /// True to let it drain, false to give it work again.
    pub draining: Option<bool>,
}

impl Store {
    /// Changes a runner. What is so already stays as it is, and the audit log tells nothing of it.
    ///
    /// Once this has returned, nothing new is placed on a runner that drains: placing takes the lock of its row.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, or it is revoked; [`StoreError::Conflict`] if another runner
    /// has the name; [`StoreError::TooLarge`].
    pub async fn change_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        change: &RunnerChange,
        by: &By,
        now: Timestamp,
    ) -> Result<RunnerRow, StoreError> {
        let name = change.name.as_deref().unwrap_or_default();
        bounded("the runner's name", name, MAX_NAME_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            let before = lock(&mut tx, tenant, runner).await?;
            if before.revoked_at.is_some() {
                return Err(StoreError::NotFound);
            }
            let mut told = Vec::new();
            if let Some(name) = change.name.as_ref().filter(|name| **name != before.name) {
                query("UPDATE runners SET name = $3 WHERE tenant_id = $1 AND id = $2")
                    .bind(tenant.to_string())
                    .bind(runner.to_string())
                    .bind(name)
                    .execute(&mut tx)
                    .await?;
                told.push(("runner.renamed", json!({ "from": before.name, "to": name })));
            }
            let is_draining = before.drained.is_some();
            if let Some(drains) = change.draining.filter(|drains| *drains != is_draining) {
                query(
                    "UPDATE runners SET drained_by = $3, drained_at = $4
                     WHERE tenant_id = $1 AND id = $2",
                )
                .bind(tenant.to_string())
                .bind(runner.to_string())
                .bind(drains.then(|| by.user.to_string()))
                .bind(drains.then(|| now.as_micros()))
                .execute(&mut tx)
                .await?;
                let kind = match drains {
                    true => "runner.drained",
                    false => "runner.undrained",
                };
                told.push((kind, json!({})));
            }
            for (kind, detail) in told {
                let entry = AuditEntry {
                    origin: by.origin,
                    ..entry(by.actor(), kind, runner, detail)
                };
                audit::record(&mut tx, tenant, &entry, now).await?;
            }
            let after = find(&mut tx, tenant, runner).await?;
            tx.commit().await?;
            Ok(after)
        })
    }
}
