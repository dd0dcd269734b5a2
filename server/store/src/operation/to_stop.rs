//! Wishes to stop operations, for the replica that can send them.

use shared_types::{OperationId, ReplicaId, TenantId};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{MAX_PAGE, Row, page, query},
};

impl Store {
    /// The operations that are to stop and have not ended, on runners whose link this replica has: a bounded number of
    /// them. Another replica may have stored the wish. Without a tenant: a replica has links of all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn to_stop_over_links(
        &self,
        replica: ReplicaId,
    ) -> Result<Vec<(TenantId, OperationId)>, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT operations.tenant_id, operations.id FROM operations
             JOIN runners ON runners.tenant_id = operations.tenant_id AND runners.id = runner_id
             WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL AND runners.replica_id = $1
             ORDER BY operations.id LIMIT $2",
        )
        .bind(replica.to_string())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read_any("links are of all tenants").await?)
        .await?;
        let found = rows
            .iter()
            .map(|row| Ok((row.parsed("tenant_id")?, row.parsed("id")?)));
        let found: Result<_, sqlx::Error> = found.collect();
        Ok(found?)
    }
}
