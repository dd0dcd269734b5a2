//! Operations: the intent, which is written before the operation is sent to a sandbox, and its outcome.
//!
//! The intent is never changed; a stored intent is never placed a second time. Three things happen to it later, each
//! once: a user or the server asks to stop it, its outcome arrives, its call ends.

use shared_link::server::Settlement;
use shared_sandbox::Outcome;
use shared_telemetry::server::DUPLICATE_EFFECTS;
use shared_types::{
    Digest, Effect, Epoch, Event, Incarnation, OperationId, Owner, RunnerId, SessionEvent,
    SessionId, TenantId, Timestamp, TraceContext, TurnId, UserId,
    clock::BootMoment,
    event::{EventBody, Place, StopReason},
    limits::MAX_NAME_BYTES,
};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer, json, word},
    database::{Connection, FromRow, Query, Row, lock_runner, query, query_as, retried},
    error::bounded,
    event, runner, session, turn,
};

/// Largest outcome in bytes of JSON: a whole frame of a link as an array of numbers.
pub const MAX_OUTCOME_BYTES: usize = 16 * 1024 * 1024;

macro_rules! select_operations {
    ($rest:literal) => {
        select_operations!("", $rest)
    };
    ($also:literal, $rest:literal) => {
        concat!(
            "SELECT id, session_id, turn_id, step, ordinal, attempt, digest, epoch, runner_id,
                 sandbox_id, journal_id, boot_id, effect, start_by_boot, start_by_us, deadline_at,
                 placed_at, cancel_requested_at, access_ended_at, outcome, outcome_at, closed_at, user_id, request_key,
                 traceparent, stop_reason, (SELECT name FROM users WHERE users.tenant_id = operations.tenant_id
                     AND users.id = stopped_by AND removed_at IS NULL) AS stopped_by_name",
            $also,
            " FROM operations ",
            $rest
        )
    };
}

/// Writes an intent ([`intent`]) and returns its id. It does so only if its turn runs, its runner has this incarnation
/// and is not barred and does not drain, and the session's user may use the runner.
macro_rules! insert_intent {
    () => {
        concat!(
            "INSERT INTO operations (tenant_id, id, owner, epoch, session_id, turn_id, step, ordinal,
             attempt, digest, runner_id, sandbox_id, journal_id, boot_id, effect, deadline_at,
             placed_at, start_by_boot, start_by_us, kind, title, traceparent)
         SELECT $3, $8, $9, $10, $4, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $2,
             $22, $23, $24, $25, $26
         WHERE EXISTS (SELECT 1 FROM turns
                 WHERE tenant_id = $3 AND session_id = $4 AND id = $11 AND state = 'running')
             AND EXISTS (SELECT 1 FROM runners
                 WHERE tenant_id = $3 AND id = $16 AND journal_id = $18 AND boot_id = $19
                     AND revoked_at IS NULL AND locked_at IS NULL AND drained_at IS NULL)
             AND ",
            access::may_use!(
                "$3",
                "(SELECT user_id FROM sessions WHERE tenant_id = $3 AND id = $4)",
                "$16"
            ),
            " ON CONFLICT (tenant_id, id) DO NOTHING RETURNING id"
        )
    };
}

pub(crate) mod access;
mod caller;
mod end;
mod list;
mod lost;
mod ran;
mod row;
mod to_stop;

pub use access::OperationAccess;
pub(crate) use access::end_access;
pub use caller::{MAX_REQUEST_KEY_BYTES, NewCallerOperation, OpenCallerOperation};
pub(crate) use end::{OperationEnding, StoredEnd, lock as lock_log};
pub use list::{ListedOperation, OperationFilter};
pub(crate) use lost::{lose_all, lose_forgotten};
pub(crate) use ran::Ran;
use ran::ran;
use row::state;
pub use row::{AskedBy, CallOf, OperationRow, OperationState, StopCause, StoredOutcome};

/// An operation of a tool call, about to be sent.
#[derive(Debug, Clone)]
pub struct NewOperation {
    /// Its id, derived from the session and the call.
    pub id: OperationId,
    /// The session that owns it.
    pub session: SessionId,
    /// The turn that asked.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// 0, or more where a pure operation is run again after it was lost.
    pub attempt: u32,
    /// The digest of the canonical request.
    pub digest: Digest,
    /// The place where it runs.
    pub place: Place,
    /// The runner's incarnation that it is sent to.
    pub incarnation: Incarnation,
    /// The effect that a second run would have.
    pub effect: Effect,
    /// The moment by which it must have started; later it does not start at all.
    pub start_by: BootMoment,
    /// About the same moment, for people and for earlier releases.
    pub deadline_at: Timestamp,
    /// The request in brief, for lists.
    pub label: Label,
    /// The span that it is part of.
    pub trace: Option<TraceContext>,
}

/// The request of an operation in brief, for lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// The kind of request, such as `exec`.
    pub kind: String,
    /// A line for people, such as the command.
    pub title: String,
}

/// The answer to a new intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Placed {
    /// It is stored, with this event; now it may be sent.
    New {
        /// The event that tells of it, if a tool call asked.
        event: Option<Box<SessionEvent>>,
    },
    /// It was stored before: ask for its outcome. Nothing was written.
    Known(Box<OperationRow>),
    /// Its runner has another incarnation by now than the intent's, so the operation could never start. Nothing was
    /// written.
    OtherIncarnation,
    /// Its runner is revoked or locked. Nothing was written.
    Barred,
    /// Its runner drains. Nothing was written.
    Draining,
    /// Its user may not use the runner any more. Nothing was written.
    NotAllowed,
}

impl Store {
    /// Stores the intent and the event that tells of it under the worker's epoch, before the
    /// operation is sent.
    ///
    /// # Errors
    /// [`StoreError::StaleEpoch`]; [`StoreError::Conflict`] if the id has another digest or the
    /// turn does not run; [`StoreError::NotFound`] if session, turn, runner or sandbox is not in
    /// this tenant.
    pub async fn place_operation(
        &self,
        tenant: TenantId,
        epoch: Epoch,
        operation: &NewOperation,
        now: Timestamp,
    ) -> Result<Placed, StoreError> {
        bounded("the boot id", &operation.incarnation.boot, MAX_NAME_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            match insert(&mut tx, tenant, epoch, operation, now).await? {
                Some(event) => {
                    tx.commit().await?;
                    self.appended(tenant, operation.session, std::slice::from_ref(&event))
                        .await;
                    Ok(Placed::New {
                        event: Some(Box::new(event)),
                    })
                }
                None => why_not_placed(&mut tx, tenant, operation).await,
            }
        })
    }

    /// Stores the outcome of an operation once; the first outcome stays. If its call ended before,
    /// [`Event::OperationSettled`] with a summary of it goes into the session's log.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::TooLarge`] for an outcome of more than
    /// [`MAX_OUTCOME_BYTES`].
    pub async fn settle_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
        outcome: &Outcome,
        now: Timestamp,
    ) -> Result<Settlement, StoreError> {
        let ending = OperationEnding::of(outcome)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            match settle(&mut tx, tenant, operation, &ending, now).await? {
                Ok(ended) => {
                    tx.commit().await?;
                    self.operations_ended(vec![ended]).await;
                    Ok(Settlement::First)
                }
                Err(before) => {
                    let before = before.decode()?;
                    ended_twice(&before, outcome);
                    Ok(Settlement::Already(before))
                }
            }
        })
    }

    /// Records once that the operation is to stop; without effect if its outcome is stored. Returns its
    /// state now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn cancel_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
        now: Timestamp,
    ) -> Result<OperationState, StoreError> {
        let mut tx = self.write(tenant).await?;
        let requested = query(
            "UPDATE operations SET cancel_requested_at = $1
             WHERE tenant_id = $2 AND id = $3 AND cancel_requested_at IS NULL AND outcome IS NULL",
        )
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .execute(&mut tx)
        .await?;
        let row = find(&mut tx, tenant, operation).await?;
        tx.commit().await?;
        if requested == 1 {
            self.cancel_requested();
        }
        Ok(row.state())
    }

    /// Records once why an operation that has not ended has to stop, and the user who caused that. An operation whose
    /// user may not use its runner any more is marked as well.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn operation_has_to_stop(
        &self,
        tenant: TenantId,
        operation: OperationId,
        why: StopReason,
        by: UserId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let access_ended_at = (why == StopReason::AccessEnded).then_some(now.as_micros());
        let mut tx = self.write(tenant).await?;
        query(
            "UPDATE operations SET stop_reason = COALESCE(stop_reason, $1),
                 stopped_by = COALESCE(stopped_by, $2), access_ended_at = COALESCE(access_ended_at, $5)
             WHERE tenant_id = $3 AND id = $4 AND outcome IS NULL",
        )
        .bind(word(&why))
        .bind(by.to_string())
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .bind(access_ended_at)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// One operation.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
    ) -> Result<OperationRow, StoreError> {
        let mut connection = self.read(tenant).await?;
        find(&mut connection, tenant, operation).await
    }

    /// One operation, the place where it runs and the epoch of its owner now. It is one statement, because it runs over
    /// every link of the runner. The isolation is the one that the sandbox is proved to have now; none if its runner
    /// reports it no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn placed_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
    ) -> Result<(OperationRow, Place, Epoch), StoreError> {
        let row: Row = query(select_operations!(
            ", COALESCE(
                 (SELECT epoch FROM sessions
                     WHERE sessions.tenant_id = operations.tenant_id AND sessions.id = session_id),
                 (SELECT epoch FROM sandboxes
                     WHERE sandboxes.tenant_id = operations.tenant_id AND sandboxes.id = sandbox_id))
                 AS epoch_now,
             (SELECT name FROM runners
                 WHERE runners.tenant_id = operations.tenant_id AND runners.id = runner_id)
                 AS runner_name,
             (SELECT isolation FROM sandboxes JOIN runners
                     ON runners.tenant_id = sandboxes.tenant_id
                         AND runners.id = sandboxes.runner_id
                 WHERE sandboxes.tenant_id = operations.tenant_id AND sandboxes.id = sandbox_id
                     AND sandboxes.generation = runners.generation)
                 AS isolation",
            "WHERE tenant_id = $1 AND id = $2"
        ))
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        let operation = OperationRow::from_row(&row)?;
        let place = Place {
            runner: operation.runner,
            runner_name: row.text("runner_name")?,
            sandbox: operation.sandbox,
            isolation: row.maybe_parsed("isolation")?.unwrap_or_default(),
        };
        Ok((operation, place, Epoch(row.count("epoch_now")?)))
    }

    /// The operations of a turn in the order of its calls, settled or not.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn operations_of_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
    ) -> Result<Vec<OperationRow>, StoreError> {
        let rows = query_as(select_operations!(
            "WHERE tenant_id = $1 AND turn_id = $2 ORDER BY step, ordinal, attempt"
        ))
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The state of each operation that the runner remembers, in the order of `ids`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn operation_states(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        ids: &[OperationId],
    ) -> Result<Vec<(OperationId, OperationState)>, StoreError> {
        let mut connection = self.read(tenant).await?;
        let mut states = Vec::with_capacity(ids.len());
        for id in ids {
            let row: Option<Row> = query(
                "SELECT outcome_at, cancel_requested_at, closed_at FROM operations
                 WHERE tenant_id = $1 AND id = $2 AND runner_id = $3",
            )
            .bind(tenant.to_string())
            .bind(id.to_string())
            .bind(runner.to_string())
            .fetch_optional(&mut connection)
            .await?;
            let state = match row {
                None => OperationState::Unknown,
                Some(row) => state(
                    row.maybe_time("outcome_at")?,
                    row.maybe_time("cancel_requested_at")?,
                    row.maybe_time("closed_at")?,
                ),
            };
            states.push((*id, state));
        }
        Ok(states)
    }
}

/// The number of a call in its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallNumber {
    step: u32,
    ordinal: u32,
}

impl CallNumber {
    pub(crate) const fn new(step: u32, ordinal: u32) -> Self {
        Self { step, ordinal }
    }
}

/// Tells if the end is stored of the operation that was placed last for a call.
pub(crate) async fn has_ended(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    call: CallNumber,
) -> Result<bool, StoreError> {
    let row: Option<Row> = query(
        "SELECT outcome_at FROM operations
         WHERE tenant_id = $1 AND turn_id = $2 AND step = $3 AND ordinal = $4
         ORDER BY attempt DESC LIMIT 1",
    )
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .bind(i64::from(call.step))
    .bind(i64::from(call.ordinal))
    .fetch_optional(tx)
    .await?;
    let ended = row.map(|row| row.maybe_time("outcome_at")).transpose()?;
    Ok(ended.flatten().is_some())
}

/// Marks the operations of a call that ended.
pub(crate) async fn close(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    call: CallNumber,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "UPDATE operations SET closed_at = $1
         WHERE tenant_id = $2 AND turn_id = $3 AND step = $4 AND ordinal = $5
             AND closed_at IS NULL",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .bind(i64::from(call.step))
    .bind(i64::from(call.ordinal))
    .execute(tx)
    .await?;
    Ok(())
}

/// Stores the outcome of an operation of the session. The caller holds the session's lock and, if the log tells of the
/// end, took the log's lock before it ([`lock_log`]). Returns the operation and the time when its call ended, or the
/// outcome that was stored before.
pub(crate) async fn set_outcome(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    operation: OperationId,
    is_told: bool,
    ending: &OperationEnding<'_>,
    now: Timestamp,
) -> Result<Result<(Ran, Option<Timestamp>), StoredOutcome>, StoreError> {
    let set: Option<Row> = query(concat!(
        "UPDATE operations SET outcome = $1, outcome_at = $2
             WHERE tenant_id = $3 AND id = $4 AND session_id = $5 AND outcome IS NULL
             RETURNING closed_at, ",
        ran!()
    ))
    .bind(&ending.json)
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(operation.to_string())
    .bind(session.to_string())
    .fetch_optional(&mut *tx)
    .await?;
    match set {
        Some(row) => {
            if is_told {
                end::record(tx, tenant, operation, ending, now).await?;
            }
            Ok(Ok((Ran::from_row(&row)?, row.maybe_time("closed_at")?)))
        }
        None => {
            let row = find(tx, tenant, operation).await?;
            Ok(Err(row.outcome.ok_or(StoreError::NotFound)?))
        }
    }
}

/// Stores the outcome and, where the call had ended, the event with the summary.
pub(crate) async fn settle(
    tx: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
    ending: &OperationEnding<'_>,
    now: Timestamp,
) -> Result<Result<StoredEnd, StoredOutcome>, StoreError> {
    let is_told = lock_log(tx, tenant, operation).await?;
    let CallOf { session, .. } = match find(tx, tenant, operation).await?.asked_by {
        AskedBy::Call(call) => call,
        AskedBy::Caller { .. } => {
            return caller::settle(tx, tenant, operation, is_told, ending, now).await;
        }
    };
    // The session's lock comes first, so that the call cannot end between the two statements.
    session::next(tx, tenant, session, 0, now).await?;
    let (ran, closed) =
        match set_outcome(tx, tenant, session, operation, is_told, ending, now).await? {
            Ok(set) => set,
            Err(before) => return Ok(Err(before)),
        };
    let mut late = None;
    if closed.is_some() {
        let told = Event::OperationSettled {
            operation,
            summary: ending.summary(),
        };
        let seq = session::next(tx, tenant, session, 1, now).await?.seq;
        let event = event::insert(tx, tenant, session, seq, &told, now).await?;
        late = Some(Box::new((session, event)));
    }
    let figures = ending.figures();
    Ok(Ok(StoredEnd {
        tenant,
        ran,
        figures,
        at: now,
        late,
    }))
}

/// An operation came to this end, and had the other one already.
fn ended_twice(stored: &Outcome, told: &Outcome) {
    let has_changed = stored.tells_of_a_change() && told.tells_of_a_change();
    if has_changed && stored != told {
        DUPLICATE_EFFECTS.add(&[], 1);
        tracing::error!(
            ?stored,
            ?told,
            "an operation that has ended was told to have ended otherwise: it may have had an effect twice"
        );
    }
}

async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
) -> Result<OperationRow, StoreError> {
    let row = query_as(select_operations!("WHERE tenant_id = $1 AND id = $2"))
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .fetch_one(connection)
        .await?;
    Ok(row)
}

/// Writes the intent and its event. Writes nothing if the id is known, the turn does not run, or the runner has another
/// incarnation. A link that was claimed since has settled the operations that the runner forgot, and would miss a later
/// intent.
async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    epoch: Epoch,
    operation: &NewOperation,
    now: Timestamp,
) -> Result<Option<SessionEvent>, StoreError> {
    let placed = Event::CallPlaced {
        turn: operation.turn,
        step: operation.step,
        ordinal: operation.ordinal,
        operation: operation.id,
        place: operation.place.clone(),
    };
    let statement = |sql: &'static str, body: &EventBody| {
        intent(query(sql), tenant, epoch, operation, &placed, body, now)
    };
    let body = EventBody::Known(placed.clone());
    if tx.is_shared() {
        // The runner before the session; see `lock`.
        lock_runner(tx, tenant, operation.place.runner).await?;
        let seq = session::next_under(tx, tenant, operation.session, epoch, 1, now).await?;
        let inserted = statement(insert_intent!(), &body).fetch_optional(&mut *tx);
        if inserted.await?.is_none() {
            return Ok(None);
        }
        let event = event::insert(tx, tenant, operation.session, seq, &placed, now);
        return event.await.map(Some);
    }
    let joined = concat!(
        session::take_next!(""),
        "; ",
        insert_intent!(),
        "; ",
        event::insert_last!()
    );
    let rows: Vec<Row> = statement(joined, &body).fetch_all(tx).await?;
    let mut rows = rows.iter();
    let seq = session::taken_under(epoch, rows.next().ok_or(StoreError::NotFound)?)?;
    let event = SessionEvent { seq, at: now, body };
    Ok(rows.next().map(|_| event))
}

/// Binds the parameters of [`session::take_next`], [`insert_intent`] and [`event::insert_last`].
fn intent<'q>(
    query: Query<'q>,
    tenant: TenantId,
    epoch: Epoch,
    operation: &'q NewOperation,
    placed: &Event,
    body: &EventBody,
    now: Timestamp,
) -> Query<'q> {
    query
        .bind(1_i64)
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(operation.session.to_string())
        .bind(placed.kind())
        .bind(i64::from(placed.version()))
        .bind(json(body))
        .bind(operation.id.to_string())
        .bind(Owner::Session(operation.session).to_string())
        .bind(integer(epoch.0))
        .bind(operation.turn.to_string())
        .bind(i64::from(operation.step))
        .bind(i64::from(operation.ordinal))
        .bind(i64::from(operation.attempt))
        .bind(operation.digest.to_string())
        .bind(operation.place.runner.to_string())
        .bind(operation.place.sandbox.to_string())
        .bind(operation.incarnation.journal.to_string())
        .bind(&operation.incarnation.boot)
        .bind(word(&operation.effect))
        .bind(operation.deadline_at.as_micros())
        .bind(&operation.start_by.boot)
        .bind(micros(&operation.start_by))
        .bind(&operation.label.kind)
        .bind(&operation.label.title)
        .bind(operation.trace.map(|trace| trace.to_string()))
}

/// Microseconds since the boot.
fn micros(moment: &BootMoment) -> i64 {
    integer(u64::try_from(moment.at.as_micros()).unwrap_or(u64::MAX))
}

async fn why_not_placed(
    tx: &mut Connection,
    tenant: TenantId,
    operation: &NewOperation,
) -> Result<Placed, StoreError> {
    let known: Option<OperationRow> =
        query_as(select_operations!("WHERE tenant_id = $1 AND id = $2"))
            .bind(tenant.to_string())
            .bind(operation.id.to_string())
            .fetch_optional(&mut *tx)
            .await?;
    match known {
        Some(known) if known.digest == operation.digest => Ok(Placed::Known(Box::new(known))),
        Some(_) => Err(StoreError::Conflict("the operation has another request")),
        None => {
            turn::require_running(tx, tenant, operation.session, operation.turn).await?;
            let user = session_user(tx, tenant, operation.session).await?;
            why_not_there(tx, tenant, user, operation.place.runner).await
        }
    }
}

async fn session_user(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<UserId, StoreError> {
    let row: Row = query("SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2")
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(tx)
        .await?;
    Ok(row.parsed("user_id")?)
}

/// The reason against a new operation on this runner.
async fn why_not_there(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    runner: RunnerId,
) -> Result<Placed, StoreError> {
    let row = runner::find(tx, tenant, runner).await?;
    if row.is_barred() {
        return Ok(Placed::Barred);
    }
    if row.drained.is_some() {
        return Ok(Placed::Draining);
    }
    Ok(match access::is_allowed(tx, tenant, user, runner).await? {
        true => Placed::OtherIncarnation,
        false => Placed::NotAllowed,
    })
}
