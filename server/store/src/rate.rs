//! The rates of users, counted over all replicas. What a replica allows is added here a little later: so no request waits
//! for it, and what several replicas allow at once is made up for by a longer pause.

use shared_types::{TenantId, Timestamp, UserId};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, query, retried},
};

/// An amount of one kind that was allowed to a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenRate {
    /// The user's tenant.
    pub tenant: TenantId,
    /// The user.
    pub user: UserId,
    /// The kind.
    pub kind: &'static str,
    /// Its share of the time for which the limit is, in microseconds; below zero where more was given back.
    pub takes_us: i64,
}

impl Store {
    /// Adds these amounts, and returns for each, in the same order, from when on the user may do all that the limit
    /// allows. Without a tenant: they are of several.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; nothing was added.
    pub async fn take_rates(
        &self,
        taken: &[TakenRate],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, StoreError> {
        retried!({
            let mut tx = self
                .write_any("replicas count users of all tenants")
                .await?;
            let mut free_at = Vec::with_capacity(taken.len());
            for one in taken {
                let row: Row = query(
                    "INSERT INTO rates (tenant_id, user_id, kind, free_at) VALUES ($1, $2, $3, $4 + $5)
                     ON CONFLICT (tenant_id, user_id, kind) DO UPDATE SET free_at = $5 +
                         CASE WHEN rates.free_at > $4 THEN rates.free_at ELSE $4 END
                     RETURNING free_at",
                )
                .bind(one.tenant.to_string())
                .bind(one.user.to_string())
                .bind(one.kind)
                .bind(now.as_micros())
                .bind(one.takes_us)
                .fetch_one(&mut tx)
                .await?;
                free_at.push(row.time("free_at")?);
            }
            tx.commit().await?;
            Ok(free_at)
        })
    }
}
