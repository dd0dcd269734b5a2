//! Turns that wait without a worker (docs/internals/contracts.md#c5).
//!
//! The rows alone decide if such a wait is over. They have the events that calls wait for, the request to cancel and the
//! end of the wait. So a wake-up that is lost costs time only, and a restart finds all of them again.

use serde_json::json;
use server_records::{NextTurn, TurnState, UnfinishedTurn, WaitingTurn, WaitsOver};
use shared_types::{CallWait, Epoch, SessionId, TenantId, Timestamp, TurnId, WaitsFor};

use crate::{
    Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, FromRow, Row, page, query, query_as},
};

/// The reason why the turns of all tenants are read.
const WHY: &str = "a server finds the turns whose wait is over";

/// The condition under which the wait of a row of `turns` is over: at the moment $1, or $3 if another replica than $2
/// has parked it; once a user asks to stop the turn; or once one of its calls has nothing more to wait for.
macro_rules! wait_is_over {
    () => {
        concat!(
            "(turns.waits_until <= CASE WHEN turns.claimed_by = $2 THEN $1 ELSE $3 END
                 OR turns.cancel_requested_at IS NOT NULL
                 OR EXISTS (SELECT 1 FROM turn_waits AS wait
                     WHERE wait.tenant_id = turns.tenant_id AND wait.turn_id = turns.id AND ",
            happened!(),
            "))"
        )
    };
}

/// The condition under which the event of a row of `wait` has happened: one question for each kind of
/// [`shared_types::WaitsFor`].
///
/// - A wait for a runner lasts until the runner is linked to the replica $2: a replica that the runner is linked to
///   continues the turn itself.
/// - A turn that is deleted has ended.
macro_rules! happened {
    () => {
        "CASE wait.awaits
             WHEN 'command' THEN EXISTS (SELECT 1 FROM operations
                 WHERE operations.tenant_id = wait.tenant_id AND operations.id = wait.operation_id
                     AND operations.outcome_at IS NOT NULL)
             WHEN 'runner' THEN EXISTS (SELECT 1 FROM operations
                 JOIN runners ON runners.tenant_id = operations.tenant_id
                     AND runners.id = operations.runner_id
                 WHERE operations.tenant_id = wait.tenant_id AND operations.id = wait.operation_id
                     AND (operations.outcome_at IS NOT NULL OR runners.replica_id = $2))
             WHEN 'turn' THEN NOT EXISTS (SELECT 1 FROM turns AS awaited
                 WHERE awaited.tenant_id = wait.tenant_id AND awaited.id = wait.subject
                     AND awaited.state <> 'ended')
             WHEN 'person' THEN NOT EXISTS (SELECT 1 FROM approvals
                 WHERE approvals.tenant_id = wait.tenant_id AND approvals.id = wait.subject
                     AND approvals.answer IS NULL)
             WHEN 'time' THEN FALSE END"
    };
}

impl Store {
    /// Parks a turn that has nothing to do but to wait for these calls, until the first of them waits no longer. From
    /// then on no worker has it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] if the turn does not run, or waits for
    /// nothing; [`StoreError::StaleEpoch`] if another worker took the session since.
    pub async fn park_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
        held: Epoch,
        calls: &[CallWait],
    ) -> Result<(), StoreError> {
        let Some(until) = calls.iter().map(|call| call.until).min() else {
            return Err(StoreError::Conflict("the turn waits for nothing"));
        };
        let mut tx = self.write(tenant).await?;
        let parked = query(
            "UPDATE turns SET waits_until = $1
             WHERE tenant_id = $2 AND id = $3 AND state = 'running' AND waits_until IS NULL
                 AND claimed_epoch = $4",
        )
        .bind(until.as_micros())
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .bind(integer(held.0))
        .execute(&mut tx)
        .await?;
        if parked == 0 {
            return Err(match super::find(&mut tx, tenant, turn).await?.state {
                TurnState::Running { epoch: newest, .. } => StoreError::StaleEpoch { held, newest },
                _ => StoreError::Conflict("the turn does not run"),
            });
        }
        for call in calls {
            insert(&mut tx, tenant, turn, call).await?;
        }
        tx.commit().await?;
        // The end of its wait may be the next one.
        self.waits_changed();
        Ok(())
    }

    /// The next step for the session's turns. Only reads, so that no writer waits.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn next_turn(
        &self,
        tenant: TenantId,
        session: SessionId,
        over: WaitsOver,
    ) -> Result<NextTurn, StoreError> {
        let mut connection = self.read(tenant).await?;
        let next: Option<Row> = query(
            "SELECT waits_until, caller_session_id FROM turns
             WHERE tenant_id = $1 AND session_id = $2 AND state <> 'ended'
             ORDER BY input_seq LIMIT 1",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_optional(&mut connection)
        .await?;
        let Some(next) = next else {
            return Ok(NextTurn::Nothing);
        };
        let for_call = next.maybe_text("caller_session_id")?.is_some();
        if next.maybe_time("waits_until")?.is_none() {
            return Ok(NextTurn::Claim { for_call });
        }
        let rows: Vec<WaitRow> = query_as(concat!(
            "SELECT turn_waits.turn_id, step, ordinal, awaits,
                 COALESCE(subject, operation_id) AS subject, turn_waits.waits_until, listens_until
             FROM turns
             JOIN turn_waits ON turn_waits.tenant_id = turns.tenant_id
                 AND turn_waits.turn_id = turns.id
             WHERE turns.tenant_id = $4 AND session_id = $5 AND turns.waits_until IS NOT NULL
                 AND NOT ",
            wait_is_over!(),
            " ORDER BY step, ordinal"
        ))
        .bind(over.at.as_micros())
        .bind(over.replica.to_string())
        .bind(over.of_others_at.as_micros())
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_all(&mut connection)
        .await?;
        Ok(match rows.first() {
            None => NextTurn::Claim { for_call },
            Some(first) => NextTurn::Wait(WaitingTurn {
                turn: first.turn,
                calls: rows.into_iter().map(|row| row.call).collect(),
            }),
        })
    }

    /// Turns whose wait is over, by id, after that one, `limit` at most. Without a tenant: a server finds its work with
    /// it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn turns_to_wake(
        &self,
        over: WaitsOver,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, StoreError> {
        let rows = query_as(concat!(
            "SELECT tenant_id, session_id, id, state FROM turns
             WHERE waits_until IS NOT NULL AND id > $4 AND ",
            wait_is_over!(),
            " ORDER BY id LIMIT $5"
        ))
        .bind(over.at.as_micros())
        .bind(over.replica.to_string())
        .bind(over.of_others_at.as_micros())
        .bind(after.map_or_else(String::new, |turn| turn.to_string()))
        .bind(page(limit))
        .fetch_all(&mut self.read_any(WHY).await?)
        .await?;
        Ok(rows)
    }

    /// The time when the next wait is over, of those that are not over at this moment. Without a tenant, for the reason
    /// of [`Store::turns_to_wake`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn next_wait_over_at(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let row: Row = query(
            "SELECT MIN(waits_until) AS waits_until FROM turns
             WHERE waits_until IS NOT NULL AND waits_until > $1",
        )
        .bind(now.as_micros())
        .fetch_one(&mut self.read_any(WHY).await?)
        .await?;
        Ok(row.maybe_time("waits_until")?)
    }
}

/// The calls that the turn waited for until now; they are forgotten with that.
pub(super) async fn take(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
) -> Result<Vec<CallWait>, StoreError> {
    let rows: Vec<WaitRow> = query_as(
        "DELETE FROM turn_waits WHERE tenant_id = $1 AND turn_id = $2
         RETURNING turn_id, step, ordinal, awaits, COALESCE(subject, operation_id) AS subject,
             waits_until, listens_until",
    )
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .fetch_all(tx)
    .await?;
    Ok(rows.into_iter().map(|row| row.call).collect())
}

async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    call: &CallWait,
) -> Result<(), StoreError> {
    let waits_for = json!(call.waits_for);
    // The previous release finds the operation in its own column (migrations/*/0031).
    query(
        "INSERT INTO turn_waits (tenant_id, turn_id, step, ordinal, awaits, subject, operation_id,
             waits_until, listens_until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .bind(i64::from(call.step))
    .bind(i64::from(call.ordinal))
    .bind(waits_for["kind"].as_str())
    .bind(waits_for["subject"].as_str())
    .bind(call.waits_for.operation().map(|id| id.to_string()))
    .bind(call.until.as_micros())
    .bind(call.listens_until.map(Timestamp::as_micros))
    .execute(tx)
    .await?;
    Ok(())
}

struct WaitRow {
    turn: TurnId,
    call: CallWait,
}

impl FromRow for WaitRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            turn: row.parsed("turn_id")?,
            call: CallWait {
                step: row.small("step")?,
                ordinal: row.small("ordinal")?,
                waits_for: waits_for(row)?,
                until: row.time("waits_until")?,
                listens_until: row.maybe_time("listens_until")?,
            },
        })
    }
}

fn waits_for(row: &Row) -> Result<WaitsFor, sqlx::Error> {
    let stored = json!({ "kind": row.text("awaits")?, "subject": row.maybe_text("subject")? });
    serde_json::from_value(stored).map_err(|error| damaged("awaits", error))
}
