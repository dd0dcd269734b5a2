//! A worker takes the next turn of a session.

use server_records::{ClaimedTurn, IfRunning, TurnRow, TurnState};
use shared_types::{
    Epoch, Event, Mode, ReplicaId, SandboxId, SessionId, TenantId, Timestamp, UserId,
    event::{Choice, TurnSettings},
};

use super::{oldest_unfinished, row, stop, waiting};
use crate::{
    Full, Store, StoreError,
    columns::{Columns as _, integer, json, word},
    credential,
    database::{Connection, Row, lock_tenant, query, retried},
    event, replica, session,
    setting::{self, RunnerInUse},
};

impl Store {
    /// Takes the session's next turn: the one that runs without a worker, else the oldest in the queue. Raises the
    /// session's epoch, so that an earlier worker's writes fail. `None` if there is nothing to do; then nothing is
    /// written.
    ///
    /// - The first claim records the place of the turn's calls and its settings, with `default` for those that are not
    ///   set. Later claims keep both.
    /// - A parked turn is taken before or after the end of its wait, except with [`IfRunning::Leave`]. There is no
    ///   event of it: it was not interrupted.
    /// - If the turn's credential has ended, the claim records that the turn is to be stopped.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; with [`IfRunning::Refuse`], [`StoreError::Conflict`] if a turn runs; with
    /// [`IfRunning::TakeOverWithin`], [`StoreError::Full`] if as many turns of agents run.
    pub async fn claim_turn(
        &self,
        tenant: TenantId,
        session: SessionId,
        replica: ReplicaId,
        if_running: IfRunning,
        default: &TurnSettings,
        now: Timestamp,
    ) -> Result<Option<ClaimedTurn>, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            if let IfRunning::TakeOverWithin(_) = if_running {
                lock_tenant(&mut tx, tenant).await?;
            }
            let next = session::next(&mut tx, tenant, session, 0, now).await?;
            let Some(mut turn) = oldest_unfinished(&mut tx, tenant, session).await? else {
                return Ok(None);
            };
            let is_left = turn.state != TurnState::Queued || turn.for_call;
            if is_left && if_running == IfRunning::Leave {
                return Ok(None);
            }
            let interrupted = match turn.state {
                TurnState::Running { epoch, .. } => Some(epoch),
                _ => None,
            };
            if interrupted.is_some() && if_running == IfRunning::Refuse {
                return Err(StoreError::Conflict("a turn of the session runs already"));
            }
            if let TurnState::Running { replica: of, .. } = turn.state
                && of != replica
                && replica::lives(&mut tx, of).await?
            {
                return Ok(None);
            }
            if let IfRunning::TakeOverWithin(at_most) = if_running
                && turn.for_call
            {
                require_place(&mut tx, tenant, &turn, replica, at_most).await?;
            }
            let epoch = Epoch(next.epoch.0 + 1);
            let had_settings = turn.settings.is_some();
            let (choice, settings) = of_turn(&mut tx, tenant, &turn, next.user, default).await?;
            turn.choice = Some(choice.clone());
            turn.settings = Some(settings.clone());
            let waits = matches!(turn.state, TurnState::Waiting { .. });
            // A turn that an earlier release parked gets its settings now, and an event records them.
            let is_told = !waits || !had_settings;
            let ended = credential::ended(turn.credential_until, now);
            let ended = ended.filter(|_| turn.cancel_requested_at.is_none());
            let told = usize::from(is_told) + usize::from(ended.is_some());
            raise(&mut tx, tenant, &turn, replica, epoch, told, now).await?;
            let (mut waited, mut events) = (Vec::new(), Vec::new());
            let mut seq = next.seq;
            if let Some(why) = ended {
                let cancel = stop(&mut tx, tenant, &turn, seq, None, Some(why), now);
                events.push(cancel.await?);
                turn.cancel_requested_at = Some(now);
                seq += 1;
            }
            if is_told {
                let claimed = Event::TurnClaimed {
                    turn: turn.id,
                    epoch,
                    replica,
                    choice: Some(choice),
                    settings: Some(settings),
                };
                let event = event::insert(&mut tx, tenant, session, seq, &claimed, now);
                events.push(event.await?);
            }
            if waits {
                waited = waiting::take(&mut tx, tenant, turn.id).await?;
            }
            tx.commit().await?;
            self.appended(tenant, session, &events).await;
            turn.state = TurnState::Running {
                replica,
                epoch,
                since: now,
            };
            Ok(Some(ClaimedTurn {
                turn,
                epoch,
                waited,
                interrupted,
                events,
            }))
        })
    }
}

/// Counts the turns of the tenant's agents that this replica and other live ones carry, but for this turn.
async fn require_place(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
    replica: ReplicaId,
    at_most: u32,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS at_work FROM turns
         WHERE tenant_id = $1 AND state = 'running' AND caller_session_id IS NOT NULL AND id <> $2
             AND (claimed_by = $3 OR EXISTS (SELECT 1 FROM replicas WHERE replicas.id = turns.claimed_by))",
    )
    .bind(tenant.to_string())
    .bind(turn.id.to_string())
    .bind(replica.to_string())
    .fetch_one(tx)
    .await?;
    match row.count("at_work")? {
        used if used < u64::from(at_most) => Ok(()),
        used => Err(Full {
            has: "the tenant has",
            used,
            at_most: at_most.into(),
            what: "agents at work",
            remedy: "the others wait for one to end; agents_at_once under [turns] in gantry.toml is the number",
        }
        .into()),
    }
}

/// The choice and the settings of the turn: those that an earlier claim recorded, or those that count now.
async fn of_turn(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
    user: UserId,
    default: &TurnSettings,
) -> Result<(Choice, TurnSettings), StoreError> {
    if let (Some(choice), Some(settings)) = (&turn.choice, &turn.settings) {
        return Ok((choice.clone(), settings.clone()));
    }
    let stored = setting::of_user(tx, tenant, user, Some(turn.session)).await?;
    let chosen = match &turn.choice {
        Some(kept) => Chosen {
            choice: kept.clone(),
            ..Chosen::default()
        },
        None => chosen_now(tx, tenant, user, stored.runner_in_use()?).await?,
    };
    let settings = TurnSettings {
        machine: chosen.machine,
        own_runner: chosen.is_own,
        machine_ceiling: chosen.ceiling,
        ..stored.of_turn(default)?
    };
    Ok((chosen.choice, settings))
}

/// The runner of a turn.
#[derive(Default)]
struct Chosen {
    choice: Choice,
    /// The kind of machine that the runner reported.
    machine: Option<String>,
    /// True if it is the user's own.
    is_own: bool,
    /// The most freedom that its machine leaves to agents.
    ceiling: Option<Mode>,
}

/// The runner that counts now.
async fn chosen_now(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    in_use: Option<RunnerInUse>,
) -> Result<Chosen, StoreError> {
    let Some(RunnerInUse { choice, chosen_by }) = in_use else {
        return Ok(Chosen::default());
    };
    let row: Row = query(
        "SELECT CAST($4 AS TEXT) AS chosen_by, runners.id AS chosen_runner_id,
             runners.name AS chosen_runner_name, sandboxes.name AS chosen_workspace,
             os, architecture, pool_backend, ceiling, runners.owner_id AS runner_owner_id
         FROM runners LEFT JOIN sandboxes ON sandboxes.tenant_id = runners.tenant_id
             AND sandboxes.runner_id = runners.id AND sandboxes.id = $3
         WHERE runners.tenant_id = $1 AND runners.id = $2",
    )
    .bind(tenant.to_string())
    .bind(choice.runner.to_string())
    .bind(choice.sandbox.map(|id| id.to_string()))
    .bind(word(&chosen_by))
    .fetch_one(tx)
    .await?;
    let is_own = row.maybe_text("pool_backend")?.is_some()
        || row.maybe_text("runner_owner_id")? == Some(user.to_string());
    Ok(Chosen {
        choice: row::choice(&row)?,
        machine: machine(&row)?,
        is_own,
        ceiling: row.maybe_parsed("ceiling")?,
    })
}

/// The kind of machine of the runner in this row; none before its first link.
fn machine(row: &Row) -> Result<Option<String>, sqlx::Error> {
    let os = row.maybe_text("os")?.filter(|os| !os.is_empty());
    let host = os.zip(row.maybe_text("architecture")?);
    let host = host.map(|(os, architecture)| format!("{os}/{architecture}"));
    let pooled = row.maybe_text("pool_backend")?.is_some();
    Ok(host.map(|host| match pooled {
        true => format!("a container on {host}"),
        false => host,
    }))
}

/// Gives the turn to the worker, with its choice and its settings, and makes its epoch the session's. `told` events of
/// the turn take the session's next numbers.
async fn raise(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
    replica: ReplicaId,
    epoch: Epoch,
    told: usize,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "UPDATE sessions SET epoch = $1, last_seq = last_seq + $2 WHERE tenant_id = $3 AND id = $4",
    )
    .bind(integer(epoch.0))
    .bind(integer(told as u64))
    .bind(tenant.to_string())
    .bind(turn.session.to_string())
    .execute(&mut *tx)
    .await?;
    let runner = turn.choice.as_ref().and_then(Choice::runner);
    let workspace = turn.choice.as_ref().and_then(Choice::workspace);
    let sandbox = runner.zip(workspace);
    let sandbox = sandbox.map(|((id, _), workspace)| SandboxId::derive(id, workspace).to_string());
    query(
        "UPDATE turns SET state = 'running', claimed_at = $1, claimed_by = $2, claimed_epoch = $3,
             chosen_by = $4, chosen_runner_id = $5, settings = $6, chosen_sandbox_id = $7,
             waits_until = NULL
         WHERE tenant_id = $8 AND id = $9",
    )
    .bind(now.as_micros())
    .bind(replica.to_string())
    .bind(integer(epoch.0))
    .bind(turn.choice.as_ref().map(row::chosen_by))
    .bind(runner.map(|(id, _)| id.to_string()))
    .bind(turn.settings.as_ref().map(json))
    .bind(sandbox)
    .bind(tenant.to_string())
    .bind(turn.id.to_string())
    .execute(tx)
    .await?;
    Ok(())
}
