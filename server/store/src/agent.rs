//! Agents: sessions that work for a call of another session.
//!
//! The session of an agent, its first turn and the event of the call that begins it are written in one transaction, under
//! the epoch of the call's worker. The ids are derived from the call, so no call begins two agents. The end of the turn
//! and the event that tells the calling session of it are one transaction too. Where a transaction takes the locks of
//! several sessions, it takes that of the agent before that of its caller, except for an agent that it makes.

use server_records::NewAgent;
use shared_types::{
    Event, SessionEvent, SessionId, TenantId, Timestamp, TurnId,
    event::{CallOfSession, EventBody, Parts, StopReason, TurnOutcome, Worktree, WorktreeState},
    limits::{MAX_MESSAGE_BYTES, MAX_NAME_BYTES},
};

use crate::{
    Cancel, Full, SettingChange, SettingName, SettingsOf, Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, Row, query, retried},
    error::bounded,
    event, session, setting, turn,
};

/// Most agents below one session of a person, at every depth, that exist at once.
const AGENTS_OF_SESSION_AT_MOST: u64 = 1000;

/// Longest answer of an agent to its caller, in bytes; a longer one loses its end.
const ANSWER_BYTES: usize = 64 * 1024;

/// An event of another session that a transaction has written beside its own.
pub(crate) type ToldElsewhere = (SessionId, SessionEvent);

impl Store {
    /// Begins an agent for a call: makes its session and its first turn, at the place of the calling turn and under its
    /// credential. An agent that was begun before gets a further turn. Returns [`Event::AgentStarted`] at its place in the caller's log.
    ///
    /// # Errors
    /// [`StoreError::StaleEpoch`] if another worker took the session since; [`StoreError::Conflict`] if the turn does not
    /// run, or the call has an agent; [`StoreError::Full`] for more than [`AGENTS_OF_SESSION_AT_MOST`] or as many turns
    /// as a user may have waiting; [`StoreError::TooLarge`]; [`StoreError::NotFound`], also if the session was deleted.
    pub async fn start_agent(
        &self,
        tenant: TenantId,
        caller: SessionId,
        held: shared_types::Epoch,
        new: &NewAgent,
        now: Timestamp,
    ) -> Result<SessionEvent, StoreError> {
        bounded("the prompt", &new.prompt, MAX_MESSAGE_BYTES)?;
        bounded("the description", &new.description, MAX_MESSAGE_BYTES)?;
        bounded("the name", &new.name, MAX_NAME_BYTES)?;
        let model = new.model.as_deref().unwrap_or_default();
        bounded("the choice of models", model, setting::MAX_VALUE_BYTES)?;
        let of_call = || SessionId::of_agent(new.turn, new.step, new.ordinal);
        let agent = new.session.unwrap_or_else(of_call);
        let agent_turn = TurnId::of_agent(new.turn, new.step, new.ordinal);
        retried!({
            let mut tx = self.write(tenant).await?;
            // The lock of an agent that is there comes before that of its caller.
            let first = match new.session {
                Some(agent) => next_of(&mut tx, tenant, (caller, agent), now).await?,
                None => 1,
            };
            let seq = session::next_under(&mut tx, tenant, caller, held, 1, now).await?;
            let calling = Calling::read(&mut tx, tenant, caller, new.turn).await?;
            let events = match new.session {
                Some(agent) => {
                    turn::require_room(&mut tx, tenant, agent).await?;
                    vec![accepted(&calling, agent_turn, new)]
                }
                None => {
                    require_room(&mut tx, tenant, caller, &calling).await?;
                    insert(&mut tx, tenant, (caller, agent), &calling, new, now).await?;
                    begun(&calling, caller, agent_turn, new).into()
                }
            };
            let input = first + events.len() as u64 - 1;
            insert_turn(
                &mut tx,
                tenant,
                (caller, agent),
                (agent_turn, input),
                new,
                now,
            )
            .await?;
            let mut of_agent = Vec::with_capacity(events.len());
            for (seq, event) in (first..).zip(&events) {
                of_agent.push(event::insert(&mut tx, tenant, agent, seq, event, now).await?);
            }
            if new.model.is_some() && new.session.is_none() {
                let (name, value) = (SettingName::Model, new.model.clone());
                let (of, change) = (SettingsOf::Session(agent), SettingChange { name, value });
                setting::put(&mut tx, tenant, of, &change, calling.user, now).await?;
            }
            let started = Event::AgentStarted {
                turn: new.turn,
                step: new.step,
                ordinal: new.ordinal,
                session: agent,
                agent_turn,
                name: new.name.clone(),
                role: new.role.name.clone(),
                description: new.description.clone(),
                background: new.background,
                tokens: new.tokens,
            };
            let started = event::insert(&mut tx, tenant, caller, seq, &started, now).await?;
            tx.commit().await?;
            self.appended(tenant, agent, &of_agent).await;
            self.appended(tenant, caller, std::slice::from_ref(&started))
                .await;
            Ok(started)
        })
    }

    /// Records that the turn of an agent is to stop, because the call for which it works was stopped. Nothing where it has
    /// ended, or its session is gone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn stop_agent(
        &self,
        tenant: TenantId,
        agent: SessionId,
        turn: TurnId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let user = match self.session_owner(tenant, agent).await {
            Ok(user) => user,
            Err(StoreError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let why = (user, Some(StopReason::CallerStopped));
        match self.request_cancel(tenant, agent, turn, why, now).await {
            Ok(Cancel::Requested(_) | Cancel::Repeated | Cancel::Ended)
            | Err(StoreError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The calling turn, as far as an agent takes it over.
pub(crate) struct Calling {
    pub(crate) user: shared_types::UserId,
    root: SessionId,
    pub(crate) directory: String,
    /// The name of the model, as people see it.
    pub(crate) model: String,
}

impl Calling {
    pub(crate) async fn read(
        tx: &mut Connection,
        tenant: TenantId,
        caller: SessionId,
        turn: TurnId,
    ) -> Result<Self, StoreError> {
        let row: Row = query(
            "SELECT turns.state, sessions.user_id, sessions.directory,
                 COALESCE(sessions.root_session_id, sessions.id) AS root_id,
                 (SELECT body FROM events WHERE events.tenant_id = $1 AND events.session_id = $2
                     AND events.seq = 1) AS created
             FROM turns JOIN sessions
                 ON sessions.tenant_id = turns.tenant_id AND sessions.id = turns.session_id
             WHERE turns.tenant_id = $1 AND turns.session_id = $2 AND turns.id = $3
                 AND sessions.deleted_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(caller.to_string())
        .bind(turn.to_string())
        .fetch_one(tx)
        .await?;
        turn::must_run(row.maybe_text("state")?.as_deref())?;
        let created = row.maybe_text("created")?;
        let created = created.map(|body| body.parse::<EventBody>()).transpose();
        let created = created.map_err(|error| damaged("body", error))?;
        Ok(Self {
            user: row.parsed("user_id")?,
            root: row.parsed("root_id")?,
            directory: row.text("directory")?,
            model: match created {
                Some(EventBody::Known(Event::SessionCreated { model, .. })) => model,
                _ => String::new(),
            },
        })
    }
}

/// The events with which the log of an agent begins.
fn begun(calling: &Calling, caller: SessionId, agent_turn: TurnId, new: &NewAgent) -> [Event; 3] {
    let created = Event::SessionCreated {
        title: new.description.clone(),
        model: new.model.clone().unwrap_or_else(|| calling.model.clone()),
        directory: directory(calling, new).to_owned(),
    };
    let briefed = Event::AgentBriefed {
        parent: CallOfSession {
            session: caller,
            turn: new.turn,
            step: new.step,
            ordinal: new.ordinal,
        },
        depth: new.depth,
        name: new.name.clone(),
        description: new.description.clone(),
        role: Box::new(new.role.clone()),
        worktree: new.worktree.clone(),
    };
    [created, briefed, accepted(calling, agent_turn, new)]
}

/// The directory in which an agent works: that of its caller, or its worktree.
fn directory<'n>(calling: &'n Calling, new: &'n NewAgent) -> &'n str {
    (new.worktree.as_ref()).map_or(&calling.directory, |worktree| &worktree.path)
}

fn accepted(calling: &Calling, agent_turn: TurnId, new: &NewAgent) -> Event {
    Event::InputAccepted {
        turn: agent_turn,
        by: calling.user,
        client_id: None,
        parts: Parts::text(new.prompt.clone()),
        compacts: None,
        terms: new.terms.clone(),
    }
}

/// Takes the next number of an agent that this caller has begun.
async fn next_of(
    tx: &mut Connection,
    tenant: TenantId,
    (caller, agent): (SessionId, SessionId),
    now: Timestamp,
) -> Result<u64, StoreError> {
    let row: Row = query(
        "UPDATE sessions SET last_seq = last_seq + 1, updated_at = $1
         WHERE tenant_id = $2 AND id = $3 AND parent_session_id = $4 AND deleted_at IS NULL
         RETURNING last_seq",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(agent.to_string())
    .bind(caller.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row.count("last_seq")?)
}

/// Counts under the lock of the session above all agents.
async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    caller: SessionId,
    calling: &Calling,
) -> Result<(), StoreError> {
    if calling.root != caller {
        session::lock(tx, tenant, calling.root).await?;
    }
    let row: Row = query(
        "SELECT COUNT(*) AS agents FROM sessions
         WHERE tenant_id = $1 AND root_session_id = $2 AND deleted_at IS NULL",
    )
    .bind(tenant.to_string())
    .bind(calling.root.to_string())
    .fetch_one(&mut *tx)
    .await?;
    let used = row.count("agents")?;
    if used >= AGENTS_OF_SESSION_AT_MOST {
        return Err(Full {
            has: "this conversation has",
            used,
            at_most: AGENTS_OF_SESSION_AT_MOST,
            what: "agents",
            remedy: "do the work without another one, or go on in a new conversation",
        }
        .into());
    }
    turn::require_room_of_user(tx, tenant, caller).await
}

async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    (caller, agent): (SessionId, SessionId),
    calling: &Calling,
    new: &NewAgent,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO sessions (tenant_id, id, user_id, title, directory, created_at, updated_at, last_seq,
             epoch, parent_session_id, root_session_id, agent_depth, agent_name, agent_role,
             pinned_runner_id, pinned_runner_at, pinned_sandbox_id)
         SELECT $1, $2, $3, $4, $5, $6, $6, 3, 0, $7, $8, $9, $10, $11,
             chosen_runner_id, CASE WHEN chosen_runner_id IS NULL THEN NULL ELSE $6 END, chosen_sandbox_id
         FROM turns WHERE tenant_id = $1 AND id = $12",
    )
    .bind(tenant.to_string())
    .bind(agent.to_string())
    .bind(calling.user.to_string())
    .bind(&new.description)
    .bind(directory(calling, new))
    .bind(now.as_micros())
    .bind(caller.to_string())
    .bind(calling.root.to_string())
    .bind(i64::from(new.depth))
    .bind(&new.name)
    .bind(&new.role.name)
    .bind(new.turn.to_string())
    .execute(tx)
    .await?;
    Ok(())
}

/// Its turn has the credential and the span of the calling turn.
async fn insert_turn(
    tx: &mut Connection,
    tenant: TenantId,
    (caller, agent): (SessionId, SessionId),
    (agent_turn, input): (TurnId, u64),
    new: &NewAgent,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO turns (tenant_id, id, session_id, input_seq, state, created_at, traceparent,
             credential_id, caller_session_id, caller_turn_id, caller_step, caller_ordinal)
         SELECT $1, $2, $3, $9, 'queued', $4, traceparent, credential_id, $5, $6, $7, $8
         FROM turns WHERE tenant_id = $1 AND id = $6",
    )
    .bind(tenant.to_string())
    .bind(agent_turn.to_string())
    .bind(agent.to_string())
    .bind(now.as_micros())
    .bind(caller.to_string())
    .bind(new.turn.to_string())
    .bind(i64::from(new.step))
    .bind(i64::from(new.ordinal))
    .bind(integer(input))
    .execute(tx)
    .await?;
    Ok(())
}

/// Tells the sessions above an agent of its questions that people can answer. Nothing for a person's session.
pub(crate) async fn tell_of_questions(
    tx: &mut Connection,
    tenant: TenantId,
    agent: SessionId,
    events: &[Event],
    now: Timestamp,
) -> Result<Vec<ToldElsewhere>, StoreError> {
    let mut told = Vec::new();
    let asked = events.iter().filter_map(|event| match event {
        Event::ApprovalAsked { approval, .. } => Some(*approval),
        _ => None,
    });
    let is_answered = |id| {
        let mut events = events.iter();
        events.any(
            |event| matches!(event, Event::ApprovalAnswered { approval, .. } if *approval == id),
        )
    };
    for approval in asked.filter(|id| !is_answered(*id)) {
        let (mut name, mut below) = (None, agent);
        while let Some((above, of)) = above(tx, tenant, below).await? {
            let asks = Event::AgentAsks {
                session: agent,
                name: name.get_or_insert(of).clone(),
                approval,
            };
            let Some(seq) = next_if_there(tx, tenant, above, now).await? else {
                break;
            };
            let event = event::insert(tx, tenant, above, seq, &asks, now).await?;
            told.push((above, event));
            below = above;
        }
    }
    Ok(told)
}

/// The session above an agent, and the name of the agent; none above a person's session.
async fn above(
    tx: &mut Connection,
    tenant: TenantId,
    agent: SessionId,
) -> Result<Option<(SessionId, String)>, StoreError> {
    let row: Row = query(
        "SELECT parent_session_id, agent_name FROM sessions WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant.to_string())
    .bind(agent.to_string())
    .fetch_one(tx)
    .await?;
    Ok(match row.maybe_parsed("parent_session_id")? {
        Some(above) => Some((above, row.text("agent_name")?)),
        None => None,
    })
}

/// Takes the next number of a session; none if it was deleted.
async fn next_if_there(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    now: Timestamp,
) -> Result<Option<u64>, StoreError> {
    let next: Option<Row> = query(
        "UPDATE sessions SET last_seq = last_seq + 1, updated_at = $1
         WHERE tenant_id = $2 AND id = $3 AND deleted_at IS NULL RETURNING last_seq",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_optional(tx)
    .await?;
    Ok(next.map(|next| next.count("last_seq")).transpose()?)
}

/// Tells the session whose call this turn works for of the turn's end. Nothing for a person's turn, or where the calling
/// session is gone. To be asked once all events of the turn are written.
pub(crate) async fn tell_caller(
    tx: &mut Connection,
    tenant: TenantId,
    agent: SessionId,
    agent_turn: TurnId,
    (outcome, reason): (TurnOutcome, Option<&str>),
    now: Timestamp,
) -> Result<Option<ToldElsewhere>, StoreError> {
    let row: Row = query(
        "SELECT caller_session_id, caller_turn_id, caller_step, caller_ordinal, input_seq, agent_name
         FROM turns JOIN sessions
             ON sessions.tenant_id = turns.tenant_id AND sessions.id = turns.session_id
         WHERE turns.tenant_id = $1 AND turns.id = $2",
    )
    .bind(tenant.to_string())
    .bind(agent_turn.to_string())
    .fetch_one(&mut *tx)
    .await?;
    let Some(caller) = row.maybe_parsed::<SessionId>("caller_session_id")? else {
        return Ok(None);
    };
    let Some(seq) = next_if_there(tx, tenant, caller, now).await? else {
        return Ok(None);
    };
    let work = Work::read(tx, tenant, agent, agent_turn, row.count("input_seq")?).await?;
    let ended = Event::AgentEnded {
        turn: row.parsed("caller_turn_id")?,
        step: row.small("caller_step")?,
        ordinal: row.small("caller_ordinal")?,
        session: agent,
        agent_turn,
        name: row.maybe_text("agent_name")?.unwrap_or_default(),
        outcome,
        reason: reason.map(str::to_owned),
        answer: work.answer,
        steps: work.steps,
        tokens: work.tokens,
        worktree: work.worktree,
    };
    let event = event::insert(tx, tenant, caller, seq, &ended, now).await?;
    Ok(Some((caller, event)))
}

/// The work of an agent in one turn.
#[derive(Default)]
struct Work {
    answer: String,
    steps: u32,
    tokens: u64,
    worktree: Option<Worktree>,
}

impl Work {
    async fn read(
        tx: &mut Connection,
        tenant: TenantId,
        agent: SessionId,
        agent_turn: TurnId,
        from: u64,
    ) -> Result<Self, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT body FROM events WHERE tenant_id = $1 AND session_id = $2 AND seq > $3
                 AND kind IN ('answer.recorded', 'agent.ended', 'worktree.changed') ORDER BY seq",
        )
        .bind(tenant.to_string())
        .bind(agent.to_string())
        .bind(integer(from))
        .fetch_all(tx)
        .await?;
        let mut work = Self::default();
        for row in rows {
            let body: EventBody = (row.text("body")?)
                .parse()
                .map_err(|error| damaged("body", error))?;
            match body {
                EventBody::Known(Event::AnswerRecorded {
                    turn, parts, usage, ..
                }) if turn == agent_turn => {
                    work.steps += 1;
                    work.tokens = (work.tokens)
                        .saturating_add(usage.input)
                        .saturating_add(usage.output);
                    work.answer = parts.words().into_owned();
                }
                EventBody::Known(Event::WorktreeChanged {
                    turn,
                    worktree,
                    state,
                    ..
                }) if turn == agent_turn => {
                    work.worktree = (state == WorktreeState::Kept).then_some(worktree);
                }
                // What the agents below it used is a part of what it used.
                EventBody::Known(Event::AgentEnded { turn, tokens, .. }) if turn == agent_turn => {
                    work.tokens = work.tokens.saturating_add(tokens);
                }
                _ => {}
            }
        }
        let end = work.answer.floor_char_boundary(ANSWER_BYTES);
        if end < work.answer.len() {
            work.answer.truncate(end);
            work.answer
                .push_str("\n[… the rest of this answer is in the agent's own session]");
        }
        Ok(work)
    }
}

/// The agents below a session, at every depth, the deepest first.
pub(crate) async fn below(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<Vec<SessionId>, StoreError> {
    let rows: Vec<Row> = query(
        "SELECT id, parent_session_id FROM sessions
         WHERE tenant_id = $1 AND root_session_id = (
             SELECT COALESCE(root_session_id, id) FROM sessions WHERE tenant_id = $1 AND id = $2)
         ORDER BY agent_depth",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_all(tx)
    .await?;
    let mut found = vec![session];
    for row in rows {
        if found.contains(&row.parsed("parent_session_id")?) {
            found.push(row.parsed("id")?);
        }
    }
    found.remove(0);
    found.reverse();
    Ok(found)
}
