//! The event log of a session. An event and the row that it describes are written in one transaction. An event that
//! begins something is written by the method that makes its row. An event that the engine reports is written by
//! [`Store::append`], with its effects on rows.

use server_records::{Appended, CallEnd, ModelCall, StoredEvent};
use shared_types::{
    Epoch, Event, SessionEvent, SessionId, TenantId, Timestamp,
    event::{EventBody, HookEnd, TurnOutcome, WorktreeState},
    limits::{MAX_EVENTS_PAGE, WORKTREE_ORDINALS},
};

use crate::{
    Store, StoreError,
    agent::{self, ToldElsewhere},
    approval, chat_text,
    columns::{Columns as _, damaged, integer, json},
    database::{Connection, FromRow, Row, query, query_as, retried},
    model_call,
    operation::{self, CallNumber, OperationEnding},
    session, todo, trusted_file, turn,
};

/// Bytes of events in one answer to a client.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Events of such a page that are read at once.
const PAGE_READ_AT_ONCE: usize = 32;

impl Store {
    /// Appends an event that the engine reports under its epoch, all or nothing, and returns the events at their
    /// places. [`Event::CallEnded`] closes the call's operations, [`Event::TurnEnded`] ends the turn. Where that failed
    /// with messages that it did not take, they start the next one, and the events of that come last.
    ///
    /// # Errors
    /// [`StoreError::UntakenSteers`] if the turn would end as completed with messages that it did not take;
    /// [`StoreError::StaleEpoch`] if another worker took the session since;
    /// [`StoreError::Conflict`] if the turn of an event does not run, or if the event has a row
    /// that another method writes; [`StoreError::NotFound`].
    pub async fn append(
        &self,
        tenant: TenantId,
        session: SessionId,
        epoch: Epoch,
        events: &[Event],
        now: Timestamp,
    ) -> Result<Appended, StoreError> {
        self.append_paid(tenant, session, epoch, events, &[], now)
            .await
    }

    /// Appends events like [`Store::append`], and records the calls of models that led to them in the same transaction.
    ///
    /// # Errors
    /// The errors of [`Store::append`]; [`StoreError::TooLarge`] for a name of a model above its bound.
    pub async fn append_paid(
        &self,
        tenant: TenantId,
        session: SessionId,
        epoch: Epoch,
        events: &[Event],
        calls: &[ModelCall],
        now: Timestamp,
    ) -> Result<Appended, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let (appended, told) = match events {
                [] => {
                    let nothing = Appended {
                        events: Vec::new(),
                        turns_left: None,
                    };
                    (nothing, Vec::new())
                }
                events => report(&mut tx, tenant, session, epoch, events, now).await?,
            };
            model_call::record(&mut tx, tenant, session, calls, now).await?;
            tx.commit().await?;
            self.appended(tenant, session, &appended.events).await;
            if !told.is_empty() {
                self.waits_changed();
            }
            for (above, event) in told {
                self.appended(tenant, above, &[event]).await;
            }
            Ok(appended)
        })
    }

    /// Appends the end of a call like [`Store::append`], and stores the outcome of its operation in the same
    /// transaction.
    ///
    /// # Errors
    /// The errors of [`Store::append`]; [`StoreError::Conflict`] if another outcome is stored; [`StoreError::TooLarge`] for an outcome of more than [`MAX_OUTCOME_BYTES`].
    pub async fn append_end(
        &self,
        tenant: TenantId,
        session: SessionId,
        epoch: Epoch,
        end: &CallEnd<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let CallEnd {
            event: ended,
            operation,
            outcome,
        } = *end;
        let ending = OperationEnding::of(outcome)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            let is_told = operation::lock_log(&mut tx, tenant, operation).await?;
            let events = std::slice::from_ref(ended);
            let (appended, _) = report(&mut tx, tenant, session, epoch, events, now).await?;
            let event = appended.events.into_iter().next();
            let event = event.ok_or(StoreError::NotFound)?;
            let set =
                operation::set_outcome(&mut tx, tenant, session, operation, is_told, &ending, now);
            let ran = match set.await? {
                Ok((ran, _)) => Some(ran),
                // In other words, too, if another version of this program has stored it.
                Err(before) if before.decode().is_ok_and(|before| before == *outcome) => None,
                Err(_) => {
                    return Err(StoreError::Conflict("the operation has another end by now"));
                }
            };
            tx.commit().await?;
            if let Some(ran) = ran {
                ran.ended(ending.figures(), now);
            }
            self.appended(tenant, session, &[event]).await;
            Ok(())
        })
    }

    /// The events that [`Store::events_after`] returns, but no more than about 4 MiB of them, and one event at least.
    /// It is for answers to clients, because each event may have the size of a message.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub async fn page_of_events(
        &self,
        tenant: TenantId,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let (mut page, mut bytes, mut after) = (Vec::new(), 0, after);
        let limit = limit.min(MAX_EVENTS_PAGE) as usize;
        loop {
            let wanted = PAGE_READ_AT_ONCE.min(limit - page.len());
            let rows = self.event_rows(tenant, session, after, wanted).await?;
            let is_last = rows.len() < wanted;
            for StoredEvent {
                event,
                bytes: of_one,
            } in rows
            {
                bytes += of_one;
                if bytes > PAGE_BYTES && !page.is_empty() {
                    return Ok(page);
                }
                after = event.seq;
                page.push(event);
            }
            if is_last || page.len() >= limit {
                return Ok(page);
            }
        }
    }

    /// The events of a session after that number, in order, `limit` and
    /// [`MAX_EVENTS_PAGE`] at most. Events of a kind or version that this program does not know are kept.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub async fn events_after(
        &self,
        tenant: TenantId,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let limit = limit.min(MAX_EVENTS_PAGE) as usize;
        let rows = self.event_rows(tenant, session, after, limit).await?;
        Ok(rows.into_iter().map(|row| row.event).collect())
    }

    /// The whole log of a session from that number on, in order.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub async fn log_from(
        &self,
        tenant: TenantId,
        session: SessionId,
        from: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut log = Vec::new();
        let (limit, mut after) = (MAX_EVENTS_PAGE as usize, from.saturating_sub(1));
        loop {
            let mut rows = self.event_rows(tenant, session, after, limit).await?;
            let is_last = rows.len() < limit;
            after = rows.last().map_or(after, |row| row.event.seq);
            log.append(&mut rows);
            if is_last {
                return Ok(log);
            }
        }
    }

    /// The last event of this kind in a session's log; nothing without one, or if this release cannot read it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn last_event(
        &self,
        tenant: TenantId,
        session: SessionId,
        kind: &str,
    ) -> Result<Option<Event>, StoreError> {
        let row: Option<StoredEvent> = query_as(
            "SELECT seq, at, body FROM events
             WHERE tenant_id = $1 AND session_id = $2 AND kind = $3 ORDER BY seq DESC LIMIT 1",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(kind)
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        Ok(row.and_then(|row| row.event.known().cloned()))
    }

    async fn event_rows(
        &self,
        tenant: TenantId,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let rows: Vec<StoredEvent> = query_as(
            "SELECT seq, at, body FROM events
             WHERE tenant_id = $1 AND session_id = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(integer(after))
        .bind(integer(limit as u64))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        if rows.is_empty() {
            self.session(tenant, session).await?;
        }
        Ok(rows)
    }
}

/// Writes the event at its place.
pub(crate) async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    seq: u64,
    event: &Event,
    now: Timestamp,
) -> Result<SessionEvent, StoreError> {
    let body = EventBody::Known(event.clone());
    query(
        "INSERT INTO events (tenant_id, session_id, seq, at, kind, version, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(integer(seq))
    .bind(now.as_micros())
    .bind(event.kind())
    .bind(i64::from(event.version()))
    .bind(json(&body))
    .execute(&mut *tx)
    .await?;
    let event = SessionEvent { seq, at: now, body };
    chat_text::keep(tx, tenant, session, &event).await?;
    Ok(event)
}

/// Writes the event $5, $6, $7 to where [`session::take_next`] has just moved the log.
macro_rules! insert_last {
    () => {
        "INSERT INTO events (tenant_id, session_id, seq, at, kind, version, body)
         SELECT $3, $4, last_seq, $2, $5, $6, $7 FROM sessions WHERE tenant_id = $3 AND id = $4"
    };
}
pub(crate) use insert_last;

/// Writes the engine's report about a turn that runs, and its effects on rows; also the events by which the sessions above
/// an agent are told of its questions and its end.
async fn report(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    held: Epoch,
    events: &[Event],
    now: Timestamp,
) -> Result<(Appended, Vec<ToldElsewhere>), StoreError> {
    let mut reserved = match tx.is_shared() {
        true => Some(session::next_under(tx, tenant, session, held, events.len(), now).await?),
        false => None,
    };
    let mut appended = Appended {
        events: Vec::with_capacity(events.len()),
        turns_left: None,
    };
    for event in events {
        let (event_at, turn_state) = match &mut reserved {
            Some(seq) => {
                let at = *seq;
                *seq += 1;
                write_at(tx, tenant, session, at, event, now).await?
            }
            None => write_in_one(tx, tenant, session, held, event, now).await?,
        };
        let turns_left =
            take_effect(tx, tenant, session, event, turn_state.as_deref(), now).await?;
        chat_text::keep(tx, tenant, session, &event_at).await?;
        appended.turns_left = turns_left.or(appended.turns_left);
        appended.events.push(event_at);
    }
    let mut told = agent::tell_of_questions(tx, tenant, session, events, now).await?;
    for event in events {
        let Event::TurnEnded {
            turn,
            outcome,
            reason,
        } = event
        else {
            continue;
        };
        let end = (*outcome, reason.as_deref());
        told.extend(agent::tell_caller(tx, tenant, session, *turn, end, now).await?);
        if *outcome != TurnOutcome::Failed {
            continue;
        }
        let started = turn::start_over(tx, tenant, session, *turn, now).await?;
        if !started.is_empty() {
            appended.turns_left = appended.turns_left.map(|left| left + 1);
            appended.events.extend(started);
        }
    }
    Ok((appended, told))
}

/// Writes the event, and returns the state of its turn. For SQLite; see [`session::take_next`].
async fn write_in_one(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    held: Epoch,
    event: &Event,
    now: Timestamp,
) -> Result<(SessionEvent, Option<String>), StoreError> {
    let body = EventBody::Known(event.clone());
    let rows: Vec<Row> = query(concat!(
        session::take_next!(
            ", (SELECT state FROM turns
                WHERE tenant_id = $3 AND session_id = $4 AND id = $8) AS turn_state"
        ),
        "; ",
        insert_last!()
    ))
    .bind(1_i64)
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(event.kind())
    .bind(i64::from(event.version()))
    .bind(json(&body))
    .bind(event.turn().map(|turn| turn.to_string()))
    .fetch_all(tx)
    .await?;
    let row = rows.first().ok_or(StoreError::NotFound)?;
    let seq = session::taken_under(held, row)?;
    let event = SessionEvent { seq, at: now, body };
    Ok((event, row.maybe_text("turn_state")?))
}

/// Does the same as [`write_in_one`], for PostgreSQL, at a number that was taken before. This statement sees the rows
/// that were committed while that one waited for the session.
async fn write_at(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    seq: u64,
    event: &Event,
    now: Timestamp,
) -> Result<(SessionEvent, Option<String>), StoreError> {
    let body = EventBody::Known(event.clone());
    let row = query(
        "WITH written AS (
             INSERT INTO events (tenant_id, session_id, seq, at, kind, version, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7))
         SELECT (SELECT state FROM turns WHERE tenant_id = $1 AND session_id = $2 AND id = $8)
             AS turn_state",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(integer(seq))
    .bind(now.as_micros())
    .bind(event.kind())
    .bind(i64::from(event.version()))
    .bind(json(&body))
    .bind(event.turn().map(|turn| turn.to_string()))
    .fetch_one(tx)
    .await?;
    let event = SessionEvent { seq, at: now, body };
    Ok((event, row.maybe_text("turn_state")?))
}

/// The operation that looks at a turn's place.
const SURVEY: CallNumber = CallNumber::new(0, 0);

/// Applies the effect of an event on rows. Refuses an event of a turn that does not run, or one that has a row of its
/// own. For the end of a turn, returns how many others of the session are unfinished.
async fn take_effect(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    event: &Event,
    turn_state: Option<&str>,
    now: Timestamp,
) -> Result<Option<u64>, StoreError> {
    match event {
        Event::AnswerRecorded { .. }
        | Event::ResultsLeftOut { .. }
        | Event::PromptChanged { .. }
        | Event::ExtensionsFound { .. }
        | Event::ToolsOffered { .. }
        | Event::CallSent { .. }
        | Event::HookSent { .. }
        | Event::ResultsMasked { .. }
        | Event::ContextEdited { .. }
        | Event::ContextCompacted { .. } => {
            turn::must_run(turn_state)?;
            Ok(None)
        }
        Event::TodoChanged {
            place,
            items,
            found,
            ..
        } => {
            turn::must_run(turn_state)?;
            if !found && !place.is_empty() {
                todo::keep(tx, tenant, session, place, items, now).await?;
            }
            Ok(None)
        }
        Event::ApprovalAsked { .. } => {
            turn::must_run(turn_state)?;
            approval::ask(tx, tenant, session, event, now).await?;
            Ok(None)
        }
        Event::ApprovalAnswered {
            approval, answer, ..
        } => {
            turn::must_run(turn_state)?;
            approval::close(tx, tenant, *approval, answer, now).await?;
            Ok(None)
        }
        Event::SteersTaken { turn, through, .. } => {
            turn::must_run(turn_state)?;
            turn::mark_taken(tx, tenant, *turn, *through).await?;
            Ok(None)
        }
        Event::PlaceSurveyed {
            turn,
            place,
            project,
            ..
        } => {
            turn::must_run(turn_state)?;
            if let Some(place) = place {
                let (sandbox, found) = (place.sandbox, project.as_deref());
                trusted_file::looked_for(tx, tenant, session, sandbox, found).await?;
            }
            operation::close(tx, tenant, *turn, SURVEY, now).await?;
            Ok(None)
        }
        Event::CallEnded {
            turn,
            step,
            ordinal,
            task,
            ..
        } => {
            turn::must_run(turn_state)?;
            let call = CallNumber::new(*step, *ordinal);
            if task.is_some() && operation::has_ended(tx, tenant, *turn, call).await? {
                return Err(StoreError::Conflict(
                    "the call's operation has ended, and does not go on in the background",
                ));
            }
            operation::close(tx, tenant, *turn, call, now).await?;
            Ok(None)
        }
        Event::HookEnded { turn, end } => {
            turn::must_run(turn_state)?;
            let ordinal = HookEnd::operation_ordinal(end.on, end.ordinal, end.number);
            operation::close(tx, tenant, *turn, CallNumber::new(end.step, ordinal), now).await?;
            Ok(None)
        }
        Event::WorktreeChanged {
            turn, step, state, ..
        } => {
            turn::must_run(turn_state)?;
            let [made, settled] = WORKTREE_ORDINALS;
            let ordinal = match state {
                WorktreeState::Made => made,
                WorktreeState::Removed | WorktreeState::Kept => settled,
            };
            operation::close(tx, tenant, *turn, CallNumber::new(*step, ordinal), now).await?;
            Ok(None)
        }
        Event::TurnEnded {
            turn,
            outcome,
            reason,
        } => {
            turn::must_run(turn_state)?;
            // A look at the turn's place that did not end in time is not waited for any more.
            operation::close(tx, tenant, *turn, SURVEY, now).await?;
            approval::close_of_turn(tx, tenant, *turn, now).await?;
            let left = turn::end(tx, tenant, *turn, *outcome, reason.as_deref(), now).await?;
            Ok(Some(left))
        }
        Event::SessionCreated { .. }
        | Event::InputAccepted { .. }
        | Event::InputSteered { .. }
        | Event::TurnClaimed { .. }
        | Event::CallPlaced { .. }
        | Event::CancelRequested { .. }
        | Event::ConversationRewound { .. }
        | Event::OperationSettled { .. }
        | Event::AgentBriefed { .. }
        | Event::AgentStarted { .. }
        | Event::AgentAsks { .. }
        | Event::AgentEnded { .. }
        | Event::ChatStarted { .. }
        | Event::ChatOrigin { .. } => Err(StoreError::Conflict(
            "this event is written by the method that writes its row",
        )),
    }
}

impl FromRow for StoredEvent {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let body = row.text("body")?;
        Ok(Self {
            event: SessionEvent {
                seq: row.count("seq")?,
                at: row.time("at")?,
                body: body.parse().map_err(|error| damaged("body", error))?,
            },
            bytes: body.len(),
        })
    }
}
