//! Who may use a runner beside its owner.

use shared_types::{RunnerId, TenantId, UserId};

use super::RunnerRow;
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, page, query, query_as},
};

/// A runner, and how it stands to one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerAccess {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: UserId,
    /// Whether it is shared with that user.
    pub shared: bool,
    /// Whether it was revoked.
    pub revoked: bool,
}

impl Store {
    /// How a runner stands to a user.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, revoked or not.
    pub async fn runner_access(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        user: UserId,
    ) -> Result<RunnerAccess, StoreError> {
        let row: Row = query(
            "SELECT name, owner_id, revoked_at,
                 CASE WHEN shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = $3)
                 THEN 1 ELSE 0 END AS shared
             FROM runners WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(user.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(RunnerAccess {
            name: row.text("name")?,
            owner: row.parsed("owner_id")?,
            shared: row.count("shared")? == 1,
            revoked: row.maybe_time("revoked_at")?.is_some(),
        })
    }

    /// The runners that are not revoked and are the user's or shared with the user, by name, `limit`
    /// at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn runners_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
        limit: u32,
    ) -> Result<Vec<RunnerRow>, StoreError> {
        let rows = query_as(select_runners!(
            "WHERE tenant_id = $1 AND revoked_at IS NULL AND (owner_id = $3
                 OR shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = $3))
             ORDER BY name LIMIT $2"
        ))
        .bind(tenant.to_string())
        .bind(page(limit))
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}
