//! Counts of the failures of a turn's worker without progress.

use server_records::{TurnFailures, TurnState};
use shared_types::{Epoch, SessionId, TenantId, TurnId};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, Row, query},
};

impl Store {
    /// Counts a failure of the turn's worker. A phase of a turn lasts until the worker records its
    /// next event; the first failure of a phase is number 1.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] if the turn does not run;
    /// [`StoreError::StaleEpoch`] if another worker took the session since.
    pub async fn count_failure(
        &self,
        tenant: TenantId,
        session: SessionId,
        turn: TurnId,
        held: Epoch,
    ) -> Result<TurnFailures, StoreError> {
        let mut tx = self.write(tenant).await?;
        let row = super::find(&mut tx, tenant, turn).await?;
        match row.state {
            TurnState::Running { epoch, .. } if epoch == held => {}
            TurnState::Running { epoch, .. } => {
                let newest = epoch;
                return Err(StoreError::StaleEpoch { held, newest });
            }
            _ => return Err(StoreError::Conflict("the turn does not run")),
        }
        let last = last_recorded(&mut tx, tenant, session).await?;
        let updated: Row = query(
            "UPDATE turns
             SET failures = CASE WHEN failed_after = $1 THEN failures + 1 ELSE 1 END,
                 failed_after = $1
             WHERE tenant_id = $2 AND id = $3 RETURNING failures",
        )
        .bind(integer(last))
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .fetch_one(&mut tx)
        .await?;
        let count = updated.small("failures")?;
        tx.commit().await?;
        Ok(TurnFailures {
            count,
            cancel_requested: row.cancel_requested_at.is_some(),
        })
    }
}

/// The number of the newest event that a worker recorded, or 0. Claims, inputs and requests to
/// cancel are no progress of a turn.
async fn last_recorded(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<u64, StoreError> {
    let row: Option<Row> = query(
        "SELECT seq FROM events
         WHERE tenant_id = $1 AND session_id = $2
           AND kind IN ('answer.recorded', 'call.placed', 'call.ended', 'results.left_out',
                        'context.compacted', 'results.masked', 'context.edited', 'steers.taken')
         ORDER BY seq DESC LIMIT 1",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_optional(tx)
    .await?;
    Ok(row.map(|row| row.count("seq")).transpose()?.unwrap_or(0))
}
