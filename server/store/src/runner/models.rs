//! The models of runners' own model servers.

use shared_link::server::ModelsReport;
use shared_types::{Generation, RunnerId, TenantId, UserId};

use super::RunnerRow;
use crate::{
    Store, StoreError,
    columns::{integer, json},
    database::{page, query, query_as},
};

impl Store {
    /// Stores a runner's report of its models, which came over the link of this generation. That of an older link
    /// changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn models_reported(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        link: Generation,
        report: &ModelsReport,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "UPDATE runners SET models = $4, models_problem = $5
             WHERE tenant_id = $1 AND id = $2 AND generation = $3",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(integer(link.0))
        .bind(json(&report.models))
        .bind(&report.problem)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// The runners that are not revoked and have reported models, by name, `limit` at most: those of a user and those
    /// shared with the user, or, where no user is named, the tenant's.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn runners_with_models(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<RunnerRow>, StoreError> {
        let user = user.map_or_else(String::new, |user| user.to_string());
        let rows: Vec<RunnerRow> = query_as(select_runners!(
            "WHERE tenant_id = $1 AND models <> '[]' AND revoked_at IS NULL AND ($3 = '' OR owner_id = $3
                 OR shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = $3))
             ORDER BY name LIMIT $2"
        ))
        .bind(tenant.to_string())
        .bind(page(limit))
        .bind(user)
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows
            .into_iter()
            .filter(|row| row.models.is_some())
            .collect())
    }
}
