//! Messages that steer a turn: they join one that works already (docs/internals/contracts.md#c10).
//!
//! The row of the turn counts them, and those of them that its model was sent. A message that joins and the end of the
//! turn take the session's lock first, so the later one sees the earlier: no message joins a turn that has ended, and no
//! turn completes without its messages. Where it fails, those that it did not take become the message of a turn of
//! their own. Where a person stopped it, the next turn finds them in the conversation.

use server_records::{StoredEvent, TurnRow, TurnState};
use shared_types::{
    CredentialId, Event, SessionEvent, SessionId, TenantId, Timestamp, TurnId, UserId,
    WhileWorking,
    event::{EventBody, Parts, Terms},
    limits::MAX_MESSAGE_BYTES,
};

use super::{Input, oldest_unfinished};
use crate::{
    Full, Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, FromRow as _, Row, query, query_as},
    event, session,
};

/// Most messages that may have joined a turn before its model is sent them. Their texts together have no more bytes than
/// one message may have.
pub const UNTAKEN_STEERS_AT_MOST: u64 = 32;

impl Store {
    /// The events of the messages that joined the turn, without so many of the first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn steers(
        &self,
        tenant: TenantId,
        turn: TurnId,
        after: u32,
    ) -> Result<Vec<SessionEvent>, StoreError> {
        let rows: Vec<StoredEvent> = query_as(
            "SELECT events.seq, at, body FROM steers
             JOIN events ON events.tenant_id = steers.tenant_id
                 AND events.session_id = steers.session_id AND events.seq = steers.seq
             WHERE steers.tenant_id = $1 AND turn_id = $2 AND number > $3 ORDER BY number",
        )
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .bind(i64::from(after))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows.into_iter().map(|row| row.event).collect())
    }
}

/// True if the message joins a turn that works. A wish to compact never does.
pub(super) fn is_steer(input: &Input) -> bool {
    let Terms {
        mode, allow, steps, ..
    } = &input.terms;
    // Terms count for a turn from its beginning on.
    let sets_terms = mode.is_some() || steps.is_some() || !allow.is_empty();
    input.while_working == WhileWorking::Steer && input.compacts.is_none() && !sets_terms
}

/// The turn that works and that the message joins or interrupts; `None` if it only starts one of its own.
pub(super) async fn working(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    input: &Input,
) -> Result<Option<TurnRow>, StoreError> {
    if !is_steer(input) && input.while_working != WhileWorking::Interrupt {
        return Ok(None);
    }
    let turn = oldest_unfinished(tx, tenant, session).await?;
    let working = turn.filter(|turn| {
        let is_claimed = !matches!(turn.state, TurnState::Queued);
        is_claimed && turn.cancel_requested_at.is_none()
    });
    match working {
        Some(turn) if is_steer(input) && compacts(tx, tenant, &turn).await? => Ok(None),
        working => Ok(working),
    }
}

/// True if the turn only compacts the conversation: it asks no model that could be sent anything.
async fn compacts(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
) -> Result<bool, StoreError> {
    let row: Row =
        query("SELECT body FROM events WHERE tenant_id = $1 AND session_id = $2 AND seq = $3")
            .bind(tenant.to_string())
            .bind(turn.session.to_string())
            .bind(integer(turn.input_seq))
            .fetch_one(tx)
            .await?;
    let body: EventBody = row
        .text("body")?
        .parse()
        .map_err(|error| damaged("body", error))?;
    Ok(match body {
        EventBody::Known(Event::InputAccepted { compacts, .. }) => compacts.is_some(),
        // What it is asked for is not known here.
        _ => true,
    })
}

/// Has the message join the turn, and writes its event with this number.
pub(super) async fn join(
    tx: &mut Connection,
    tenant: TenantId,
    turn: &TurnRow,
    seq: u64,
    input: &Input,
    now: Timestamp,
) -> Result<SessionEvent, StoreError> {
    require_room(tx, tenant, turn.id, input.text.len()).await?;
    let row: Row = query(
        "UPDATE turns SET steers = steers + 1 WHERE tenant_id = $1 AND id = $2 RETURNING steers",
    )
    .bind(tenant.to_string())
    .bind(turn.id.to_string())
    .fetch_one(&mut *tx)
    .await?;
    let number = row.small("steers")?;
    query(
        "INSERT INTO steers (tenant_id, turn_id, number, session_id, seq, client_id, credential_id,
             next_turn_id, bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(tenant.to_string())
    .bind(turn.id.to_string())
    .bind(i64::from(number))
    .bind(turn.session.to_string())
    .bind(integer(seq))
    .bind(input.client_id.as_deref())
    .bind(input.credential.map(|credential| credential.to_string()))
    .bind(input.turn.to_string())
    .bind(integer(input.text.len() as u64))
    .execute(&mut *tx)
    .await?;
    let steered = Event::InputSteered {
        turn: turn.id,
        number,
        by: input.by,
        client_id: input.client_id.clone(),
        parts: input.parts(),
    };
    event::insert(tx, tenant, turn.session, seq, &steered, now).await
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    bytes: usize,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT COUNT(*) AS untaken, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS untaken_bytes
         FROM steers JOIN turns ON turns.tenant_id = steers.tenant_id AND turns.id = steers.turn_id
         WHERE steers.tenant_id = $1 AND turn_id = $2 AND number > steers_taken",
    )
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .fetch_one(tx)
    .await?;
    let full = |used, at_most, what| Full {
        has: "this turn has",
        used,
        at_most,
        what,
        remedy: "send more once the agent has read some, or have this one wait for the turn's end",
    };
    let untaken = row.count("untaken")?;
    if untaken >= UNTAKEN_STEERS_AT_MOST {
        let what = "messages that the agent has not read yet";
        return Err(full(untaken, UNTAKEN_STEERS_AT_MOST, what).into());
    }
    let (used, at_most) = (row.count("untaken_bytes")?, MAX_MESSAGE_BYTES as u64);
    if used + bytes as u64 > at_most {
        let what = "bytes of messages that the agent has not read yet";
        return Err(full(used, at_most, what).into());
    }
    Ok(())
}

/// Records that the model is sent the turn's steers up to this one.
///
/// # Errors
/// [`StoreError::Conflict`] if the turn has fewer.
pub(crate) async fn mark_taken(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    through: u32,
) -> Result<(), StoreError> {
    let marked = query(
        "UPDATE turns SET steers_taken = $1
         WHERE tenant_id = $2 AND id = $3 AND steers >= $1 AND steers_taken <= $1",
    )
    .bind(i64::from(through))
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .execute(tx)
    .await?;
    match marked {
        0 => Err(StoreError::Conflict("the turn has no such steer to take")),
        _ => Ok(()),
    }
}

/// Starts a turn with the messages that this one, which failed, did not take. Returns the events of it; none if it had
/// taken all.
pub(crate) async fn start_over(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    failed: TurnId,
    now: Timestamp,
) -> Result<Vec<SessionEvent>, StoreError> {
    let Some(untaken) = Untaken::read(tx, tenant, failed).await? else {
        return Ok(Vec::new());
    };
    let seq = session::next(tx, tenant, session, 2, now).await?.seq;
    query(
        "INSERT INTO turns (tenant_id, id, session_id, input_seq, state, created_at, credential_id)
         VALUES ($1, $2, $3, $4, 'queued', $5, $6)",
    )
    .bind(tenant.to_string())
    .bind(untaken.starts.to_string())
    .bind(session.to_string())
    .bind(integer(seq))
    .bind(now.as_micros())
    .bind(untaken.credential.map(|credential| credential.to_string()))
    .execute(&mut *tx)
    .await?;
    mark_taken(tx, tenant, failed, untaken.through).await?;
    let accepted = Event::InputAccepted {
        turn: untaken.starts,
        by: untaken.by,
        client_id: None,
        parts: untaken.parts,
        compacts: None,
        terms: terms_of(tx, tenant, failed).await?,
    };
    let taken = Event::SteersTaken {
        turn: failed,
        step: 0,
        through: untaken.through,
        into: Some(untaken.starts),
    };
    Ok(vec![
        event::insert(tx, tenant, session, seq, &accepted, now).await?,
        event::insert(tx, tenant, session, seq + 1, &taken, now).await?,
    ])
}

/// The terms of the message that started this turn: what joins it gets no others.
async fn terms_of(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
) -> Result<Terms, StoreError> {
    let row: Row = query(
        "SELECT events.seq, at, body FROM turns
         JOIN events ON events.tenant_id = turns.tenant_id
             AND events.session_id = turns.session_id AND events.seq = turns.input_seq
         WHERE turns.tenant_id = $1 AND turns.id = $2",
    )
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .fetch_one(tx)
    .await?;
    match StoredEvent::from_row(&row)?.event.body {
        EventBody::Known(Event::InputAccepted { terms, .. }) => Ok(terms),
        _ => Err(StoreError::Conflict(
            "the message that started the turn cannot be read",
        )),
    }
}

/// The messages that a turn did not take, as one.
struct Untaken {
    /// The number of the last of them.
    through: u32,
    /// The sender of that one, with its credential, and the turn that it starts.
    by: UserId,
    credential: Option<CredentialId>,
    starts: TurnId,
    parts: Parts,
}

impl Untaken {
    async fn read(
        tx: &mut Connection,
        tenant: TenantId,
        turn: TurnId,
    ) -> Result<Option<Self>, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT steers.credential_id, next_turn_id, events.seq, at, body FROM steers
             JOIN turns ON turns.tenant_id = steers.tenant_id AND turns.id = steers.turn_id
             JOIN events ON events.tenant_id = steers.tenant_id
                 AND events.session_id = steers.session_id AND events.seq = steers.seq
             WHERE steers.tenant_id = $1 AND steers.turn_id = $2 AND number > steers_taken
             ORDER BY number",
        )
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .fetch_all(tx)
        .await?;
        let mut untaken: Option<Self> = None;
        for row in &rows {
            let StoredEvent { event, .. } = StoredEvent::from_row(row)?;
            let EventBody::Known(Event::InputSteered {
                number, by, parts, ..
            }) = event.body
            else {
                continue;
            };
            let mut all = untaken.map_or_else(Parts::default, |before| before.parts);
            all.0.extend(parts.0);
            untaken = Some(Self {
                through: number,
                by,
                credential: row.maybe_parsed("credential_id")?,
                starts: row.parsed("next_turn_id")?,
                parts: all,
            });
        }
        Ok(untaken)
    }
}
