//! Sessions: durable conversations, each with an epoch that fences its workers and a log whose
//! newest number it keeps.

use shared_types::{
    Epoch, Event, RunnerId, SessionId, TenantId, Timestamp, TurnId, UserId,
    limits::MAX_MESSAGE_BYTES,
};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, FromRow, Row, lock_user, page, query, query_as, retried},
    error::bounded,
    event,
};

macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, title, created_at, updated_at, last_seq, epoch, pinned_runner_id,
                 (SELECT runners.name FROM runners WHERE runners.tenant_id = sessions.tenant_id
                     AND runners.id = sessions.pinned_runner_id) AS pinned_runner_name,
                 (SELECT turns.id FROM turns WHERE turns.tenant_id = sessions.tenant_id
                     AND turns.session_id = sessions.id AND turns.state = 'running') AS running_turn
             FROM sessions ",
            $rest
        )
    };
}

/// A session to be made.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// What lists show; empty for the beginning of the first message.
    pub title: String,
    /// The name of the model, as people see it.
    pub model: String,
    /// The runner on which it works, whatever its user chooses.
    pub pin: Option<RunnerId>,
}

/// The runner on which a session works, whatever its user chooses. It may have been revoked since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The runner.
    pub runner: RunnerId,
    /// Its name.
    pub name: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// What lists show.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// The number of the newest event.
    pub last_seq: u64,
    /// How often a worker took it.
    pub epoch: Epoch,
    /// The turn that is under way.
    pub running_turn: Option<TurnId>,
    /// The runner to which it is pinned.
    pub pin: Option<Pin>,
}

impl Store {
    /// Begins a session, with its first event, unless the user has `at_most` already.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user or the pinned runner is not in this tenant;
    /// [`StoreError::TooLarge`] for a title of more bytes than a message; [`StoreError::Full`].
    pub async fn create_session(
        &self,
        tenant: TenantId,
        session: &NewSession,
        at_most: u64,
        now: Timestamp,
    ) -> Result<SessionRow, StoreError> {
        bounded("the title", &session.title, MAX_MESSAGE_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, session.user).await?;
            require_room(&mut tx, tenant, session.user, at_most).await?;
            query(
                "INSERT INTO sessions
                 (tenant_id, id, user_id, title, created_at, updated_at, last_seq, epoch)
             VALUES ($1, $2, $3, $4, $5, $5, 0, 0)",
            )
            .bind(tenant.to_string())
            .bind(session.id.to_string())
            .bind(session.user.to_string())
            .bind(&session.title)
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            let created = Event::SessionCreated {
                title: session.title.clone(),
                model: session.model.clone(),
            };
            let place = next(&mut tx, tenant, session.id, 1, now).await?;
            event::insert(&mut tx, tenant, session.id, place.seq, &created, now).await?;
            let pin = pin(&mut tx, tenant, session.id, session.pin).await?;
            tx.commit().await?;
            Ok(SessionRow {
                id: session.id,
                user: session.user,
                title: session.title.clone(),
                created_at: now,
                updated_at: now,
                last_seq: place.seq,
                epoch: place.epoch,
                running_turn: None,
                pin,
            })
        })
    }

    /// Pins the session to a runner, or to none: its turns that were not claimed yet work there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the tenant has no such session, or no such runner that is not
    /// revoked.
    pub async fn pin_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        runner: Option<RunnerId>,
    ) -> Result<Option<Pin>, StoreError> {
        let mut tx = self.write(tenant).await?;
        let pin = pin(&mut tx, tenant, session, runner).await?;
        tx.commit().await?;
        Ok(pin)
    }

    /// One session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<SessionRow, StoreError> {
        let row = query_as(select_sessions!("WHERE tenant_id = $1 AND id = $2"))
            .bind(tenant.to_string())
            .bind(session.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(row)
    }

    /// The user's sessions, the most recently used first, `limit` at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list_sessions(
        &self,
        tenant: TenantId,
        user: UserId,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let rows = query_as(select_sessions!(
            "WHERE tenant_id = $1 AND user_id = $2 ORDER BY updated_at DESC, id DESC LIMIT $3"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The user's sessions whose ids begin so, by id, `limit` at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn sessions_beginning(
        &self,
        tenant: TenantId,
        user: UserId,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let rows = query_as(select_sessions!(
            "WHERE tenant_id = $1 AND user_id = $2 AND id >= $3 AND id < $4 ORDER BY id LIMIT $5"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(beginning)
        .bind(past(beginning))
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

/// A text behind every id that begins so: no id has a tilde, and every letter of one is before it.
pub(crate) fn past(beginning: &str) -> String {
    format!("{beginning}~")
}

async fn pin(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    runner: Option<RunnerId>,
) -> Result<Option<Pin>, StoreError> {
    let pin = match runner {
        Some(runner) => {
            let row: Row = query(
                "SELECT name FROM runners
                 WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
            )
            .bind(tenant.to_string())
            .bind(runner.to_string())
            .fetch_one(&mut *tx)
            .await?;
            let name = row.text("name")?;
            Some(Pin { runner, name })
        }
        None => None,
    };
    let set = query("UPDATE sessions SET pinned_runner_id = $1 WHERE tenant_id = $2 AND id = $3")
        .bind(runner.map(|id| id.to_string()))
        .bind(tenant.to_string())
        .bind(session.to_string())
        .execute(tx)
        .await?;
    match set {
        0 => Err(StoreError::NotFound),
        _ => Ok(pin),
    }
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    at_most: u64,
) -> Result<(), StoreError> {
    let row: Row =
        query("SELECT COUNT(*) AS begun FROM sessions WHERE tenant_id = $1 AND user_id = $2")
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_one(tx)
            .await?;
    match row.count("begun")? < at_most {
        true => Ok(()),
        false => Err(StoreError::Full(
            "this user has as many sessions as one may have; go on with one of them, or have the operator raise sessions_at_most under [limits] in gantry.toml",
        )),
    }
}

/// Where the next events of a session go, and under which epoch they are written.
pub(crate) struct Next {
    /// The number of the first of them.
    pub(crate) seq: u64,
    pub(crate) epoch: Epoch,
}

/// Takes a session's next $1 numbers at the time $2, of the tenant $3 and the session $4, and returns
/// the last of them, the epoch, and what else is asked for. It is the first statement of every
/// transaction on a session, because it takes the row's lock: whoever comes second waits here, and
/// sees the rest. Others may follow it in one call: each call is a round trip between threads, which
/// takes longer than the statement.
macro_rules! take_next {
    ($also:literal) => {
        concat!(
            "UPDATE sessions SET last_seq = last_seq + $1, updated_at = $2
             WHERE tenant_id = $3 AND id = $4 RETURNING last_seq, epoch",
            $also
        )
    };
}
pub(crate) use take_next;

/// Takes the session's next `count` numbers.
pub(crate) async fn next(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    count: usize,
    now: Timestamp,
) -> Result<Next, StoreError> {
    let row: Row = query(take_next!(""))
        .bind(integer(count as u64))
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(tx)
        .await?;
    Ok(Next {
        seq: row.count("last_seq")? + 1 - count as u64,
        epoch: Epoch(row.count("epoch")?),
    })
}

/// Takes the session's next number for a worker, unless its epoch is not the session's.
pub(crate) async fn next_under(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    held: Epoch,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let next = next(tx, tenant, session, 1, now).await?;
    match next.epoch == held {
        true => Ok(next.seq),
        false => Err(StoreError::StaleEpoch {
            held,
            newest: next.epoch,
        }),
    }
}

/// The number that a worker has taken with [`take_next`], refused unless its epoch is the session's.
pub(crate) fn taken_under(held: Epoch, row: &Row) -> Result<u64, StoreError> {
    let newest = Epoch(row.count("epoch")?);
    match newest == held {
        true => Ok(row.count("last_seq")?),
        false => Err(StoreError::StaleEpoch { held, newest }),
    }
}

impl FromRow for SessionRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            user: row.parsed("user_id")?,
            title: row.text("title")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            last_seq: row.count("last_seq")?,
            epoch: Epoch(row.count("epoch")?),
            running_turn: row.maybe_parsed("running_turn")?,
            pin: pinned(row)?,
        })
    }
}

fn pinned(row: &Row) -> Result<Option<Pin>, sqlx::Error> {
    Ok(match row.maybe_parsed("pinned_runner_id")? {
        Some(runner) => Some(Pin {
            runner,
            name: row.text("pinned_runner_name")?,
        }),
        None => None,
    })
}
