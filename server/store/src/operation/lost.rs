//! Operations that end without their runner's report. The effects of some will never be known
//! (docs/internals/contracts.md#a3, #a15); others never came to the runner (A15, A17).
//!
//! Two kinds are settled in the transaction that claims a link or revokes a runner: those that a linking runner has
//! forgotten, and the open ones of a revoked runner. So no later link, for instance of an older journal that returns,
//! finds an intent that could be sent a second time. And nothing waits for a runner that never comes back.

use std::{collections::HashSet, time::Duration};

use shared_telemetry::server::{OPERATIONS_ENDED, OPERATIONS_LOST};
use shared_types::{Generation, OperationId, RunnerId, SessionId, TenantId, Timestamp};

use super::{Ending, OperationRow, Ran, Settled, settle};
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Connection, MAX_PAGE, Row, locking, page, query, query_as, retried},
    runner::{self, LinkClaim, LostOutcome, RunnerRow},
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
        lost: &LostOutcome,
        now: Timestamp,
    ) -> Result<(usize, Vec<SessionId>), StoreError> {
        retried!({
            let mut ended = Ended::default();
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
            let mut late = Vec::new();
            for row in &open {
                let (tenant, id) = (row.parsed("tenant_id")?, row.parsed("id")?);
                let ending = Ending::from((lost.outcome.as_str(), lost.summary.as_str()));
                let settled = settle(&mut tx, tenant, id, ending, now).await?;
                late.extend(ended.note(settled, now));
            }
            tx.commit().await?;
            ended.are_lost();
            Ok((open.len(), late))
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
        (runner, link): (RunnerId, Generation),
        remembered: &[OperationId],
        never_started: &LostOutcome,
        now: Timestamp,
    ) -> Result<Vec<(OperationId, SessionId)>, StoreError> {
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
            let remembered: HashSet<OperationId> = remembered.iter().copied().collect();
            let unheard = |row: &OperationRow| {
                let given_up = row.closed_at.is_some() || row.cancel_requested_at.is_some();
                given_up && !remembered.contains(&row.id)
            };
            let lost = lose(&mut tx, tenant, runner, never_started, unheard, now).await?;
            tx.commit().await?;
            lost.ended.never_started();
            Ok(lost.late)
        })
    }
}

/// Operations that are settled in a transaction.
#[derive(Debug, Default)]
#[must_use = "they are to be counted once the transaction is committed"]
pub(crate) struct Lost {
    /// The operations whose call had ended, with their sessions.
    late: Vec<(OperationId, SessionId)>,
    /// All of them, to be counted once the transaction is committed.
    ended: Ended,
}

impl Lost {
    /// Counts them, once the transaction is committed. Returns those whose call had ended.
    pub(crate) fn counted(self) -> Vec<(OperationId, SessionId)> {
        self.ended.are_lost();
        self.late
    }
}

/// Operations that ended without their runner's report, and the time when that was stored.
#[derive(Debug, Default)]
struct Ended(Vec<(Ran, Timestamp)>);

impl Ended {
    /// Returns the session of a call that had ended.
    fn note(&mut self, settled: Settled, now: Timestamp) -> Option<SessionId> {
        let Settled::First { ran, late } = settled else {
            return None;
        };
        self.0.push((ran, now));
        late.map(|late| late.0)
    }

    /// Counts them as lost.
    fn are_lost(self) {
        OPERATIONS_LOST.add(&[], self.0.len() as u64);
        self.count("lost");
    }

    /// Counts them as refused.
    fn never_started(self) {
        self.count("refused");
    }

    fn count(self, cause: &str) {
        for (ran, at) in self.0 {
            OPERATIONS_ENDED.add(&[&ran.kind, cause], 1);
            ran.trace_end(at, cause, None);
        }
    }
}

/// Settles every open operation of the runner that was placed under another incarnation than the claiming one, and
/// which the claim does not list. If the database is an older copy, the incarnation does not matter. An operation that
/// looks open there may have run and been forgotten since, and must never be sent again.
pub(crate) async fn lose_forgotten(
    tx: &mut Connection,
    runner: &RunnerRow,
    claim: &LinkClaim,
    now: Timestamp,
) -> Result<Lost, StoreError> {
    let remembered: HashSet<OperationId> = claim.remembered.iter().copied().collect();
    let forgotten = |row: &OperationRow| {
        let may_be_unknown = runner.loses_unlisted || row.incarnation != claim.incarnation;
        may_be_unknown && !remembered.contains(&row.id)
    };
    let lost = match runner.loses_unlisted {
        true => &claim.lost_to_restoration,
        false => &claim.lost,
    };
    lose(tx, runner.tenant, runner.id, lost, forgotten, now).await
}

/// Settles every open operation of the runner.
pub(crate) async fn lose_all(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    lost: &LostOutcome,
    now: Timestamp,
) -> Result<Lost, StoreError> {
    lose(tx, tenant, runner, lost, |_| true, now).await
}

async fn lose(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    lost: &LostOutcome,
    is_lost: impl Fn(&OperationRow) -> bool,
    now: Timestamp,
) -> Result<Lost, StoreError> {
    let ending = Ending::from((lost.outcome.as_str(), lost.summary.as_str()));
    let mut lost = Lost::default();
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
            let settled = settle(tx, tenant, row.id, ending, now).await?;
            let late = lost.ended.note(settled, now);
            lost.late.extend(late.map(|session| (row.id, session)));
        }
    }
}
