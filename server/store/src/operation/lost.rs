//! Operations that end without their runner's report. The effects of some will never be known
//! (docs/internals/contracts.md#a3, #a15); others never came to the runner (A15, A17).
//!
//! Two kinds are settled in the transaction that claims a link or revokes a runner: those that a linking runner has
//! forgotten, and the open ones of a revoked runner. So no later link, for instance of an older journal that returns,
//! finds an intent that could be sent a second time. And nothing waits for a runner that never comes back.

use std::{collections::HashSet, time::Duration};

use shared_link::server::{
    HelloFacts, forgotten, lost_to_restoration, lost_to_revocation, lost_to_silence, never_started,
};
use shared_sandbox::Outcome;
use shared_types::{Generation, Refusal, RunnerId, TenantId, Timestamp};

use super::{OperationEnding, OperationRow, StoredEnd, settle};
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Connection, MAX_PAGE, Row, locking, page, query, query_as, retried},
    runner::{self, Late, RunnerRow},
};

impl Store {
    /// Settles open operations of runners whose counted silence ([`Store::count_silence`]) was at least this long, a
    /// bounded number of them, by id. Returns how many there were, and the sessions whose logs have grown. Call it
    /// again if there were any. Without a tenant: silence grows in all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn lose_silent(
        &self,
        silent_for: Duration,
        now: Timestamp,
    ) -> Result<(usize, Late), StoreError> {
        retried!({
            let mut tx = self.write_any("it is about time").await?;
            let open: Vec<Row> = query(locking!(
                "SELECT operations.tenant_id, operations.id FROM operations JOIN runners
                 ON runners.tenant_id = operations.tenant_id AND runners.id = operations.runner_id
             WHERE operations.outcome IS NULL AND runners.replica_id IS NULL
                 AND runners.silent_generation = runners.generation AND runners.silent_us >= $1
             ORDER BY operations.id LIMIT $2",
                "FOR SHARE OF runners"
            ))
            .bind(runner::micros(silent_for))
            .bind(page(MAX_PAGE))
            .fetch_all(&mut tx)
            .await?;
            let lost = Outcome::Refused(lost_to_silence());
            let ending = OperationEnding::of(&lost)?;
            let mut ended = Vec::new();
            for row in &open {
                let (tenant, id) = (row.parsed("tenant_id")?, row.parsed("id")?);
                let settled = settle(&mut tx, tenant, id, &ending, now).await?;
                ended.extend(settled.ok());
            }
            tx.commit().await?;
            Ok((open.len(), self.operations_ended(ended).await))
        })
    }

    /// Settles the operations that the runner of this link never had, and that no server will send any more. These are
    /// its open operations that it does not list, and whose call ended or whose stop was requested. An operation that
    /// it does not list can come to it over this link or a later one only. A server that sends over one of those reads
    /// first that the outcome is stored, so call this before any operation is sent over the link. Changes nothing if
    /// there is a newer link. Returns the same as [`LinkClaimed::late`].
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the runner is not in this tenant.
    ///
    /// [`LinkClaimed::late`]: crate::LinkClaimed::late
    pub async fn settle_unheard(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        link: Generation,
        hello: &HelloFacts,
        now: Timestamp,
    ) -> Result<Late, StoreError> {
        // Most links find nothing, and none of them should wait for the writers.
        let any = query(
            "SELECT 1 FROM operations WHERE tenant_id = $1 AND runner_id = $2 AND outcome IS NULL
                 AND (closed_at IS NOT NULL OR cancel_requested_at IS NOT NULL) LIMIT 1",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        if any.is_none() {
            return Ok(Vec::new());
        }
        retried!({
            let mut tx = self.write(tenant).await?;
            if runner::lock(&mut tx, tenant, runner).await?.generation != link {
                return Ok(Vec::new());
            }
            let remembered: HashSet<_> = hello.inventory.iter().map(|one| one.operation).collect();
            let unheard = |row: &OperationRow| {
                let given_up = row.closed_at.is_some() || row.cancel_requested_at.is_some();
                given_up && !remembered.contains(&row.id)
            };
            let settled = lose(&mut tx, tenant, runner, never_started(), unheard, now).await?;
            tx.commit().await?;
            Ok(self.operations_ended(settled).await)
        })
    }
}

/// Settles every open operation of the runner that was placed under another incarnation than the claiming one, and
/// which the runner does not list. If the database is an older copy, the incarnation does not matter. An operation that
/// looks open there may have run and been forgotten since, and must never be sent again.
pub(crate) async fn lose_forgotten(
    tx: &mut Connection,
    runner: &RunnerRow,
    hello: &HelloFacts,
    now: Timestamp,
) -> Result<Vec<StoredEnd>, StoreError> {
    let remembered: HashSet<_> = hello.inventory.iter().map(|one| one.operation).collect();
    let may_be_lost = |row: &OperationRow| {
        let may_be_unknown = runner.loses_unlisted || row.incarnation != hello.incarnation;
        may_be_unknown && !remembered.contains(&row.id)
    };
    let lost = match runner.loses_unlisted {
        true => lost_to_restoration(),
        false => forgotten(),
    };
    lose(tx, runner.tenant, runner.id, lost, may_be_lost, now).await
}

/// Settles every open operation of the runner.
pub(crate) async fn lose_all(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    now: Timestamp,
) -> Result<Vec<StoredEnd>, StoreError> {
    lose(tx, tenant, runner, lost_to_revocation(), |_| true, now).await
}

async fn lose(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    why: Refusal,
    is_lost: impl Fn(&OperationRow) -> bool,
    now: Timestamp,
) -> Result<Vec<StoredEnd>, StoreError> {
    let outcome = Outcome::Refused(why);
    let ending = OperationEnding::of(&outcome)?;
    let mut lost = Vec::new();
    let mut after = String::new();
    loop {
        let open: Vec<OperationRow> = query_as(select_operations!(
            "WHERE tenant_id = $1 AND runner_id = $2 AND outcome IS NULL AND id > $3
             ORDER BY id LIMIT $4"
        ))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(&after)
        .bind(page(MAX_PAGE))
        .fetch_all(&mut *tx)
        .await?;
        let Some(last) = open.last() else {
            return Ok(lost);
        };
        after = last.id.to_string();
        for row in open.iter().filter(|row| is_lost(row)) {
            let settled = settle(tx, tenant, row.id, &ending, now).await?;
            lost.extend(settled.ok());
        }
    }
}
