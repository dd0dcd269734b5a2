//! Turns: the work that one input starts. A turn is queued, runs under an epoch, and ends once.
//! Of one session at most one turn runs; the others wait in the order of their inputs.

use server_records::{TurnRow, TurnState, UnfinishedTurn};
use shared_types::{
    CredentialId, Event, SessionEvent, SessionId, TenantId, Timestamp, TraceContext, TurnId,
    UserId, WhileWorking,
    event::{Part, Parts, StopReason, Terms, TurnOutcome},
    limits::{MAX_CLIENT_ID_BYTES, MAX_MESSAGE_BYTES},
};

use crate::{
    Full, Store, StoreError,
    columns::{Columns as _, integer, word},
    credential::credential_until,
    database::{Connection, Row, Transaction, page, query, query_as, retried},
    error::bounded,
    event, session,
};

mod claim;
mod failures;
mod held;
mod let_go;
mod rewind;
mod row;
mod steer;
mod waiting;

pub use held::HeldTurn;
use let_go::NO_REPLICA;
pub(crate) use row::choice;
pub use steer::UNTAKEN_STEERS_AT_MOST;
pub(crate) use steer::{mark_taken, start_over};

/// Most turns of a session that wait or run.
pub const QUEUED_TURNS_AT_MOST: u64 = 64;

/// Most turns of a user that wait or run, in all sessions.
pub const QUEUED_TURNS_OF_USER_AT_MOST: u64 = 256;

/// Letters of the first message that become a session's title.
const TITLE_LETTERS: usize = 60;

macro_rules! select_turns {
    ($rest:literal) => {
        concat!(
            "SELECT id, session_id, client_id, input_seq, state, created_at, claimed_at, claimed_by,
                 claimed_epoch, waits_until, cancel_requested_at, ended_at, outcome, reason, chosen_by,
                 chosen_runner_id, settings, traceparent, credential_id, caller_session_id,
                 (SELECT ",
            credential_until!(),
            " FROM credentials WHERE credentials.tenant_id = turns.tenant_id
                     AND credentials.id = turns.credential_id) AS credential_until,
                 (SELECT runners.name FROM runners WHERE runners.tenant_id = turns.tenant_id
                     AND runners.id = turns.chosen_runner_id) AS chosen_runner_name,
                 (SELECT sandboxes.name FROM sandboxes WHERE sandboxes.tenant_id = turns.tenant_id
                     AND sandboxes.runner_id = turns.chosen_runner_id
                     AND sandboxes.id = turns.chosen_sandbox_id) AS chosen_workspace
             FROM turns ",
            $rest
        )
    };
}

/// A message that a user sends.
#[derive(Debug, Clone)]
pub struct Input {
    /// The id of the turn that it starts, unless it is a repetition.
    pub turn: TurnId,
    /// The user who sends it.
    pub by: UserId,
    /// The credential with which it is sent: the turn ends with that one.
    pub credential: Option<CredentialId>,
    /// The client's idempotency key.
    pub client_id: Option<String>,
    /// The message.
    pub text: String,
    /// The images behind it, which the session has.
    pub images: Vec<Part>,
    /// Present if it asks to compact the conversation: what matters most in it.
    pub compacts: Option<String>,
    /// Its terms for its turn.
    pub terms: Terms,
    /// The effect on a turn that works already. A wish to compact waits for the end of that, unless it interrupts it.
    pub while_working: WhileWorking,
    /// The span of the request, where traces are collected.
    pub trace: Option<TraceContext>,
}

impl Input {
    /// The whole message.
    fn parts(&self) -> Parts {
        let mut parts = Parts::text(self.text.clone());
        parts.0.extend(self.images.iter().cloned());
        parts
    }
}

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The turn that it started, or joined.
    pub turn: TurnId,
    /// True if it joined a turn that worked already.
    pub steered: bool,
    /// The number of its event.
    pub seq: u64,
    /// The event; `None` if the session had the client's id already, so that nothing was written.
    pub event: Option<SessionEvent>,
}

/// The answer to a request to stop a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Cancel {
    /// It was recorded, with this event.
    Requested(Box<SessionEvent>),
    /// It had been recorded before; nothing was written.
    Repeated,
    /// The turn is over; nothing was written.
    Ended,
}

impl Store {
    /// True if a message of the session has this client id.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn is_sent(
        &self,
        tenant: TenantId,
        session: SessionId,
        client_id: &str,
    ) -> Result<bool, StoreError> {
        let mut read = self.read(tenant).await?;
        let queue = QueueAhead::read(&mut read, tenant, session, Some(client_id)).await?;
        Ok(queue.sent_before.is_some())
    }

    /// Accepts a message: stores a queued turn and its event, and a title if the session has none. An archived session
    /// is back in the list. The same client id again writes nothing and returns the first answer.
    ///
    /// A message that steers joins the turn that works, unless that turn is to stop. A message that interrupts stops
    /// that turn. A turn works from its first claim to its end, also while it waits without a worker. No message joins
    /// a turn that compacts the conversation.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::TooLarge`] for a long message or client id;
    /// [`StoreError::Full`] if [`QUEUED_TURNS_AT_MOST`] turns of the session wait, or
    /// [`QUEUED_TURNS_OF_USER_AT_MOST`] of the user's, or as many steers as a turn may have untaken.
    pub async fn send_input(
        &self,
        tenant: TenantId,
        session: SessionId,
        input: &Input,
        now: Timestamp,
    ) -> Result<Sent, StoreError> {
        bounded("the message", &input.text, MAX_MESSAGE_BYTES)?;
        let client_id = input.client_id.as_deref();
        bounded(
            "the client id",
            client_id.unwrap_or_default(),
            MAX_CLIENT_ID_BYTES,
        )?;
        retried!({
            let mut tx = self.write(tenant).await?;
            let seq = open(&mut tx, tenant, session, &title(&input.text), now).await?;
            let queue = QueueAhead::read(&mut tx, tenant, session, client_id).await?;
            if let Some(before) = queue.sent_before {
                return Ok(before);
            }
            let working = steer::working(&mut tx, tenant, session, input).await?;
            if let Some(turn) = working.as_ref().filter(|_| steer::is_steer(input)) {
                let event = steer::join(&mut tx, tenant, turn, seq, input, now).await?;
                return self
                    .committed(tx, tenant, session, turn.id, true, vec![event])
                    .await;
            }
            queue.require_room()?;
            insert(&mut tx, tenant, session, input, seq, now).await?;
            let accepted = Event::InputAccepted {
                turn: input.turn,
                by: input.by,
                client_id: input.client_id.clone(),
                parts: input.parts(),
                compacts: input.compacts.clone(),
                terms: input.terms.clone(),
            };
            let mut events =
                vec![event::insert(&mut tx, tenant, session, seq, &accepted, now).await?];
            if let Some(turn) = working {
                let next = session::next(&mut tx, tenant, session, 1, now).await?;
                let (by, why) = (Some(input.by), Some(StopReason::InterruptedByMessage));
                events.push(stop(&mut tx, tenant, &turn, next.seq, by, why, now).await?);
            }
            self.committed(tx, tenant, session, input.turn, false, events)
                .await
        })
    }

    /// Commits a message, and tells of its events: the first is its own.
    async fn committed(
        &self,
        tx: Transaction,
        tenant: TenantId,
        session: SessionId,
        turn: TurnId,
        steered: bool,
        events: Vec<SessionEvent>,
    ) -> Result<Sent, StoreError> {
        tx.commit().await?;
        self.appended(tenant, session, &events).await;
        let event = events.into_iter().next();
        Ok(Sent {
            turn,
            steered,
            seq: event.as_ref().map_or(0, |event| event.seq),
            event,
        })
    }

    /// Records once that the turn is to stop, with the reason if no user asked for it. An inbox write: it needs no
    /// epoch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn request_cancel(
        &self,
        tenant: TenantId,
        session: SessionId,
        turn: TurnId,
        (by, why): (UserId, Option<StopReason>),
        now: Timestamp,
    ) -> Result<Cancel, StoreError> {
        let mut tx = self.write(tenant).await?;
        let seq = session::next(&mut tx, tenant, session, 1, now).await?.seq;
        let row = find(&mut tx, tenant, turn).await?;
        if row.session != session {
            return Err(StoreError::NotFound);
        }
        if matches!(row.state, TurnState::Ended { .. }) {
            return Ok(Cancel::Ended);
        }
        if row.cancel_requested_at.is_some() {
            return Ok(Cancel::Repeated);
        }
        let event = stop(&mut tx, tenant, &row, seq, Some(by), why, now).await?;
        tx.commit().await?;
        self.appended(tenant, session, std::slice::from_ref(&event))
            .await;
        Ok(Cancel::Requested(Box::new(event)))
    }

    /// One turn.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn turn(&self, tenant: TenantId, turn: TurnId) -> Result<TurnRow, StoreError> {
        let mut connection = self.read(tenant).await?;
        find(&mut connection, tenant, turn).await
    }

    /// The session's turn that runs, else the oldest that waits.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unfinished_turn(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<Option<TurnRow>, StoreError> {
        let mut connection = self.read(tenant).await?;
        oldest_unfinished(&mut connection, tenant, session).await
    }

    /// Turns that have not ended, the oldest first, after that one, `limit` at most. Without a tenant: a server that
    /// starts finds its work with it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unfinished_turns(
        &self,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, StoreError> {
        let rows = query_as(
            "SELECT tenant_id, session_id, id, state FROM turns
             WHERE state <> 'ended' AND id > $1 ORDER BY id LIMIT $2",
        )
        .bind(after.map_or_else(String::new, |turn| turn.to_string()))
        .bind(page(limit))
        .fetch_all(
            &mut self
                .read_any("a server that starts finds what is to be done")
                .await?,
        )
        .await?;
        Ok(rows)
    }

    /// Turns that are queued since before this moment, and those that were let go of, by id, after that one, `limit` at most. Without a tenant: a
    /// server finds turns whose wake-up it missed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn queued_turns(
        &self,
        since: Timestamp,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, StoreError> {
        let rows = query_as(
            "SELECT tenant_id, session_id, id, state FROM turns
             WHERE state <> 'ended' AND id > $2
                 AND (state = 'queued' AND created_at < $1 OR state = 'running' AND claimed_by = $4)
             ORDER BY id LIMIT $3",
        )
        .bind(since.as_micros())
        .bind(after.map_or_else(String::new, |turn| turn.to_string()))
        .bind(page(limit))
        .bind(NO_REPLICA.to_string())
        .fetch_all(
            &mut self
                .read_any("a server finds turns that it was not told of")
                .await?,
        )
        .await?;
        Ok(rows)
    }
}

/// Refuses a turn that does not run, or not in this session.
pub(crate) async fn require_running(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    turn: TurnId,
) -> Result<(), StoreError> {
    let row: Row =
        query("SELECT state FROM turns WHERE tenant_id = $1 AND id = $2 AND session_id = $3")
            .bind(tenant.to_string())
            .bind(turn.to_string())
            .bind(session.to_string())
            .fetch_one(tx)
            .await?;
    must_run(row.maybe_text("state")?.as_deref())
}

/// Refuses a turn in this stored state, or none.
pub(crate) fn must_run(state: Option<&str>) -> Result<(), StoreError> {
    match state {
        Some("running") => Ok(()),
        Some("queued") => Err(StoreError::Conflict("the turn was not claimed")),
        Some(_) => Err(StoreError::Conflict("the turn has ended")),
        None => Err(StoreError::NotFound),
    }
}

/// Ends a turn that runs. Returns how many others of its session are unfinished.
///
/// # Errors
/// [`StoreError::UntakenSteers`] for a turn that ends as completed, and has messages that its model was not sent: it
/// and the end cannot miss each other, because both take the session's lock.
pub(crate) async fn end(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    outcome: TurnOutcome,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<u64, StoreError> {
    bounded("the reason", reason.unwrap_or_default(), MAX_MESSAGE_BYTES)?;
    let row: Row = query(
        "UPDATE turns SET state = 'ended', outcome = $1, reason = $2, ended_at = $3
         WHERE tenant_id = $4 AND id = $5
         RETURNING (SELECT COUNT(*) FROM turns AS others WHERE others.tenant_id = turns.tenant_id
             AND others.session_id = turns.session_id AND others.state <> 'ended'
             AND others.id <> turns.id) AS turns_left, steers - steers_taken AS untaken",
    )
    .bind(word(&outcome))
    .bind(reason)
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .fetch_one(tx)
    .await?;
    if outcome == TurnOutcome::Completed && row.count("untaken")? > 0 {
        return Err(StoreError::UntakenSteers);
    }
    Ok(row.count("turns_left")?)
}

/// Records that the turn is to stop, and its event with this number. Without a user, the end of its credential stops
/// it: the event then names the user who ended that, or else the sender of the message.
async fn stop(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
    seq: u64,
    by: Option<UserId>,
    why: Option<StopReason>,
    now: Timestamp,
) -> Result<SessionEvent, StoreError> {
    let row: Row = query(
        "UPDATE turns SET cancel_requested_at = $1 WHERE tenant_id = $2 AND id = $3
         RETURNING COALESCE((SELECT COALESCE(revoked_by, user_id) FROM credentials
             WHERE credentials.tenant_id = turns.tenant_id AND credentials.id = credential_id),
             (SELECT user_id FROM sessions WHERE sessions.tenant_id = turns.tenant_id
                 AND sessions.id = session_id)) AS ended_by",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(turn.id.to_string())
    .fetch_one(&mut *tx)
    .await?;
    let requested = Event::CancelRequested {
        turn: turn.id,
        by: match by {
            Some(by) => by,
            None => row.parsed("ended_by")?,
        },
        why,
    };
    event::insert(tx, tenant, turn.session, seq, &requested, now).await
}

async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
) -> Result<TurnRow, StoreError> {
    let row = query_as(select_turns!("WHERE tenant_id = $1 AND id = $2"))
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .fetch_one(connection)
        .await?;
    Ok(row)
}

async fn oldest_unfinished(
    connection: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<Option<TurnRow>, StoreError> {
    let row = query_as(select_turns!(
        "WHERE tenant_id = $1 AND session_id = $2 AND state <> 'ended'
         ORDER BY input_seq LIMIT 1"
    ))
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_optional(connection)
    .await?;
    Ok(row)
}

/// Takes the session's next number for a message, as [`session::next`] does. The session is back in the list,
/// and has a title from now on.
async fn open(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    title: &str,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let row: Row = query(
        "UPDATE sessions SET last_seq = last_seq + 1, updated_at = $1, archived_at = NULL,
             title = CASE title WHEN '' THEN $2 ELSE title END
         WHERE tenant_id = $3 AND id = $4 AND deleted_at IS NULL RETURNING last_seq",
    )
    .bind(now.as_micros())
    .bind(title)
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row.count("last_seq")?)
}

/// The turns before one that a message starts.
struct QueueAhead {
    /// The first answer, if it is a repetition.
    sent_before: Option<Sent>,
    of_session: u64,
    of_user: u64,
}

impl QueueAhead {
    async fn read(
        tx: &mut Connection,
        tenant: TenantId,
        session: SessionId,
        client_id: Option<&str>,
    ) -> Result<Self, StoreError> {
        let row: Row = query(
            "SELECT COALESCE(before.id, steered.turn_id) AS before_id,
                 COALESCE(before.input_seq, steered.seq) AS before_seq,
                 steered.turn_id AS steered_id, of_user, of_session
             FROM (SELECT COUNT(*) AS of_user,
                     COUNT(CASE WHEN turns.session_id = $2 THEN 1 END) AS of_session
                 FROM turns JOIN sessions
                     ON sessions.tenant_id = turns.tenant_id AND sessions.id = turns.session_id
                 WHERE turns.tenant_id = $1 AND turns.state <> 'ended' AND sessions.user_id =
                     (SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2)) AS waiting
             LEFT JOIN turns AS before ON before.tenant_id = $1 AND before.session_id = $2
                 AND before.client_id = $3
             LEFT JOIN steers AS steered ON steered.tenant_id = $1 AND steered.session_id = $2
                 AND steered.client_id = $3",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(client_id)
        .fetch_one(tx)
        .await?;
        let sent_before = match row.maybe_parsed("before_id")? {
            Some(turn) => Some(Sent {
                turn,
                steered: row.maybe_text("steered_id")?.is_some(),
                seq: row.count("before_seq")?,
                event: None,
            }),
            None => None,
        };
        Ok(Self {
            sent_before,
            of_session: row.count("of_session")?,
            of_user: row.count("of_user")?,
        })
    }

    fn require_room(&self) -> Result<(), StoreError> {
        if self.of_session >= QUEUED_TURNS_AT_MOST {
            return Err(Full {
                has: "this session has",
                used: self.of_session,
                at_most: QUEUED_TURNS_AT_MOST,
                what: "messages that wait",
                remedy: "send more when some are answered",
            }
            .into());
        }
        if self.of_user >= QUEUED_TURNS_OF_USER_AT_MOST {
            return Err(Full {
                has: "you have",
                used: self.of_user,
                at_most: QUEUED_TURNS_OF_USER_AT_MOST,
                what: "messages that wait in all sessions",
                remedy: "send more when some are answered, or cancel some: gantry cancel SESSION",
            }
            .into());
        }
        Ok(())
    }
}

/// Refuses a turn for which this session or its user has no room.
pub(crate) async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<(), StoreError> {
    let queue = QueueAhead::read(tx, tenant, session, None).await?;
    queue.require_room()
}

/// Refuses a turn for which the user of this session has no room.
pub(crate) async fn require_room_of_user(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<(), StoreError> {
    let queue = QueueAhead::read(tx, tenant, session, None).await?;
    let of_session = 0;
    QueueAhead {
        of_session,
        ..queue
    }
    .require_room()
}

async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    input: &Input,
    seq: u64,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO turns (tenant_id, id, session_id, client_id, input_seq, state, created_at,
             traceparent, credential_id)
         VALUES ($1, $2, $3, $4, $5, 'queued', $6, $7, $8)",
    )
    .bind(tenant.to_string())
    .bind(input.turn.to_string())
    .bind(session.to_string())
    .bind(input.client_id.as_deref())
    .bind(integer(seq))
    .bind(now.as_micros())
    .bind(input.trace.map(|trace| trace.to_string()))
    .bind(input.credential.map(|credential| credential.to_string()))
    .execute(tx)
    .await?;
    Ok(())
}

/// A message on one line; of a long one the beginning, and an ellipsis as its last letter.
fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= TITLE_LETTERS {
        return line;
    }
    let beginning = line.chars().take(TITLE_LETTERS - 1);
    beginning.chain(['…']).collect()
}
