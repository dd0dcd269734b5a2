//! What a runner that links has forgotten: it is settled in the transaction that claims the link,
//! so that no later link, of an older journal that returns for instance, finds an intent that could
//! be sent a second time (contract A3, A15).

use std::collections::HashSet;

use shared_types::{OperationId, RunnerId, SessionId, TenantId, Timestamp};

use super::{OperationRow, Settled, settle};
use crate::{
    StoreError,
    database::{Connection, MAX_PAGE, page},
    runner::LinkClaim,
};

/// Settles every open operation of the runner that was placed under another incarnation than the
/// claiming one, and which the claim does not list. Returns those whose call had ended, with their
/// sessions.
pub(crate) async fn lose_forgotten(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    claim: &LinkClaim,
    now: Timestamp,
) -> Result<Vec<(OperationId, SessionId)>, StoreError> {
    let remembered: HashSet<OperationId> = claim.remembered.iter().copied().collect();
    let lost = (claim.lost.outcome.as_str(), claim.lost.summary.as_str());
    let mut late = Vec::new();
    let mut after = String::new();
    loop {
        let open: Vec<OperationRow> = sqlx::query_as(select_operations!(
            "WHERE tenant_id = $1 AND runner_id = $2 AND outcome IS NULL AND id > $3
                 AND (journal_id <> $4 OR boot_id <> $5)
             ORDER BY id LIMIT $6"
        ))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(&after)
        .bind(claim.incarnation.journal.to_string())
        .bind(&claim.incarnation.boot)
        .bind(page(MAX_PAGE))
        .fetch_all(&mut *tx)
        .await?;
        let Some(last) = open.last() else {
            return Ok(late);
        };
        after = last.id.to_string();
        for row in open.iter().filter(|row| !remembered.contains(&row.id)) {
            if let Settled::First { late: Some(_) } = settle(tx, tenant, row.id, lost, now).await? {
                late.push((row.id, row.session));
            }
        }
    }
}
