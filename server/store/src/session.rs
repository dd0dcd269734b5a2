//! Sessions: durable conversations, each with an epoch that fences its workers and a log whose
//! newest number it keeps.

use shared_types::{
    Epoch, Event, RunnerChoice, SessionId, TenantId, Timestamp, TurnId, UserId,
    limits::{MAX_MESSAGE_BYTES, MAX_PATH_BYTES},
};

mod deletion;
mod last_events;
mod link;

pub use deletion::{DeletedSession, Unended};
pub use link::{LINKS_OF_SESSION_AT_MOST, NewSessionLink};

use crate::{
    Full, Pin, SettingChange, SettingName, SettingsOf, Store, StoreError,
    columns::{Columns as _, integer},
    database::{self, Connection, FromRow, Page, Row, lock_user, query, query_as, retried},
    error::bounded,
    event, setting,
};

macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, title, directory, created_at, updated_at, last_seq, epoch, archived_at,
                 deleted_at, parent_session_id, agent_name, agent_role,
                 (SELECT COUNT(*) FROM session_links WHERE session_links.tenant_id = sessions.tenant_id
                     AND session_links.session_id = sessions.id) AS links,
                 (SELECT COUNT(*) FROM approvals WHERE approvals.tenant_id = sessions.tenant_id
                     AND approvals.session_id = sessions.id AND answer IS NULL) AS waiting_approvals,
                 (SELECT turns.id FROM turns WHERE turns.tenant_id = sessions.tenant_id
                     AND turns.session_id = sessions.id AND turns.state = 'running') AS running_turn, ",
            setting::pin_columns!(),
            " FROM sessions ",
            $rest
        )
    };
}

/// A session to be made.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The user whose it is.
    pub user: UserId,
    /// Its title in lists; empty for the beginning of the first message.
    pub title: String,
    /// The name of the model, as people see it.
    pub model: String,
    /// The choice of models for this session, whichever its user prefers.
    pub chosen_model: Option<String>,
    /// The runner on which it works, whichever its user chooses.
    pub pin: Option<RunnerChoice>,
    /// The folder where its commands start and its paths begin, relative to the root; empty for the root itself.
    pub directory: String,
}

/// A choice of sessions for a list.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter<'a> {
    /// Those that are archived, in place of those that are not.
    pub archived: bool,
    /// Only those with this text in their titles, whatever the case of the letters A to Z.
    pub title: &'a str,
    /// The agents that calls of this session began, in place of the sessions of the user's own.
    pub agents_of: Option<SessionId>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The user whose it is.
    pub user: UserId,
    /// Its title in lists.
    pub title: String,
    /// The folder where its commands start and its paths begin, relative to the root; empty for the root itself.
    pub directory: String,
    /// When it began.
    pub created_at: Timestamp,
    /// The time of its latest event or change.
    pub updated_at: Timestamp,
    /// The number of the newest event.
    pub last_seq: u64,
    /// The number of times that a worker took it.
    pub epoch: Epoch,
    /// The turn that is under way.
    pub running_turn: Option<TurnId>,
    /// The runner to which it is pinned.
    pub pin: Option<Pin>,
    /// When its user put it out of the list.
    pub archived_at: Option<Timestamp>,
    /// The time when its user deleted it: no user sees it any more.
    pub deleted_at: Option<Timestamp>,
    /// The number of links to it that were made and not ended.
    pub links: u64,
    /// The number of its questions that have no answer yet.
    pub waiting_approvals: u64,
    /// The agent that works in it; absent of a session of the user's own.
    pub agent: Option<SessionAgent>,
}

/// The agent that works in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAgent {
    /// The session whose call began it.
    pub parent: SessionId,
    /// Its name.
    pub name: String,
    /// The name of its role.
    pub role: String,
}

/// The changes that a user makes to a session; absent values stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// Its title in lists.
    pub title: Option<String>,
    /// True to put it out of the list.
    pub archived: Option<bool>,
}

impl Store {
    /// Begins a session, with its first event, unless the user has `at_most` already.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user or the pinned runner is not in this tenant;
    /// [`StoreError::TooLarge`] for a title of more bytes than a message, a directory of more than a path, or a
    /// choice of models of more than a value of a setting;
    /// [`StoreError::Full`].
    pub async fn create_session(
        &self,
        tenant: TenantId,
        session: &NewSession,
        at_most: u64,
        now: Timestamp,
    ) -> Result<SessionRow, StoreError> {
        bounded("the title", &session.title, MAX_MESSAGE_BYTES)?;
        bounded("the directory", &session.directory, MAX_PATH_BYTES)?;
        let chosen = session.chosen_model.as_deref().unwrap_or_default();
        bounded("the choice of models", chosen, setting::MAX_VALUE_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, session.user).await?;
            require_room(&mut tx, tenant, session.user, at_most).await?;
            if let Some(choice) = session.pin {
                setting::require_runner(&mut tx, tenant, choice).await?;
            }
            query(
                "INSERT INTO sessions
                 (tenant_id, id, user_id, title, directory, created_at, updated_at, last_seq, epoch)
             VALUES ($1, $2, $3, $4, $5, $6, $6, 0, 0)",
            )
            .bind(tenant.to_string())
            .bind(session.id.to_string())
            .bind(session.user.to_string())
            .bind(&session.title)
            .bind(&session.directory)
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            let created = Event::SessionCreated {
                title: session.title.clone(),
                model: session.model.clone(),
                directory: session.directory.clone(),
            };
            let place = next(&mut tx, tenant, session.id, 1, now).await?;
            event::insert(&mut tx, tenant, session.id, place.seq, &created, now).await?;
            let (of, by) = (SettingsOf::Session(session.id), session.user);
            if session.pin.is_some() {
                let pin = SettingChange::runner(session.pin);
                setting::put(&mut tx, tenant, of, &pin, by, now).await?;
            }
            if session.chosen_model.is_some() {
                let name = SettingName::Model;
                let value = session.chosen_model.clone();
                setting::put(&mut tx, tenant, of, &SettingChange { name, value }, by, now).await?;
            }
            let row = find(&mut tx, tenant, session.id).await?;
            tx.commit().await?;
            Ok(row)
        })
    }

    /// Changes the title of a session, or its place in lists.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if it was deleted; [`StoreError::TooLarge`] for a title of more bytes than a
    /// message.
    pub async fn change_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        change: &SessionChange,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let title = change.title.as_deref();
        bounded("the title", title.unwrap_or_default(), MAX_MESSAGE_BYTES)?;
        let mut tx = self.write(tenant).await?;
        let changed = query(
            "UPDATE sessions SET title = COALESCE($1, title),
                 archived_at = CASE $2 WHEN 1 THEN COALESCE(archived_at, $3) WHEN 0 THEN NULL
                     ELSE archived_at END
             WHERE tenant_id = $4 AND id = $5 AND deleted_at IS NULL",
        )
        .bind(title)
        .bind(change.archived.map_or(-1, i64::from))
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(session.to_string())
        .execute(&mut tx)
        .await?;
        match changed {
            0 => Err(StoreError::NotFound),
            _ => tx.commit().await,
        }
    }

    /// One session, deleted or not.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<SessionRow, StoreError> {
        find(&mut self.read(tenant).await?, tenant, session).await
    }

    /// The user whose session it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if it was deleted.
    pub async fn session_owner(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<UserId, StoreError> {
        let row: Row = query(
            "SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(row.parsed("user_id")?)
    }

    /// The user's sessions that match the filter, the most recently used first. A place in the list is the time when a
    /// session was last used, and its id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn list_sessions(
        &self,
        tenant: TenantId,
        user: UserId,
        filter: SessionFilter<'_>,
        page: impl Into<Page<(Timestamp, SessionId)>>,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let Page { after, limit } = page.into();
        let (before, id) = after.unzip();
        let rows = query_as(select_sessions!(
            "WHERE tenant_id = $1 AND user_id = $2 AND deleted_at IS NULL
                 AND CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END = $3
                 AND (updated_at, id) < ($4, $5) AND LOWER(title) LIKE $6 ESCAPE '\\'
                 AND COALESCE(parent_session_id, '') = $8
             ORDER BY updated_at DESC, id DESC LIMIT $7"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(i64::from(filter.archived))
        .bind(before.map_or(i64::MAX, |before| before.as_micros()))
        .bind(id.map_or(String::new(), |id| id.to_string()))
        .bind(database::containing(filter.title))
        .bind(database::page(limit))
        .bind(
            filter
                .agents_of
                .map_or_else(String::new, |parent| parent.to_string()),
        )
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The user's sessions whose ids begin with this text, archived or not, by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn sessions_beginning(
        &self,
        tenant: TenantId,
        user: UserId,
        beginning: &str,
        page: impl Into<Page<SessionId>>,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let Page { after, limit } = page.into();
        let rows = query_as(select_sessions!(
            "WHERE tenant_id = $1 AND user_id = $2 AND id >= $3 AND id < $4 AND deleted_at IS NULL
                 AND id > $5
             ORDER BY id LIMIT $6"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(beginning)
        .bind(past(beginning))
        .bind(after.map_or(String::new(), |after| after.to_string()))
        .bind(database::page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

/// A text behind every id that begins with this text: no id has a tilde, and every letter of one is before it.
pub(crate) fn past(beginning: &str) -> String {
    format!("{beginning}~")
}

async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<SessionRow, StoreError> {
    let row = query_as(select_sessions!("WHERE tenant_id = $1 AND id = $2"))
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(connection)
        .await?;
    Ok(row)
}

pub(crate) async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    at_most: u64,
) -> Result<(), StoreError> {
    let row: Row =
        query("SELECT COUNT(*) AS begun FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND deleted_at IS NULL
             AND parent_session_id IS NULL")
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_one(tx)
            .await?;
    match row.count("begun")? {
        used if used < at_most => Ok(()),
        used => Err(Full {
            has: "you have",
            used,
            at_most,
            what: "sessions",
            remedy: "delete some: gantry sessions delete SESSION, or have the operator raise sessions_at_most under [limits] in gantry.toml",
        }
        .into()),
    }
}

/// The number of a session's next event, and the epoch under which it is written.
pub(crate) struct NextEvent {
    /// The number of the first of them.
    pub(crate) seq: u64,
    pub(crate) epoch: Epoch,
    /// The user whose session it is.
    pub(crate) user: UserId,
}

/// Takes a session's next $1 numbers at the time $2, of the tenant $3 and the session $4. Returns the last of them, the
/// epoch, and the columns that `$also` adds. It is the first statement of every transaction on a session, because it
/// takes the row's lock: the second transaction waits here, and sees the rest. Others may follow it in one call: each
/// call is a round trip between threads, which takes longer than the statement.
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

/// Takes the session's lock: no other transaction counts what belongs to the session, or deletes it, until this one ends.
///
/// # Errors
/// [`StoreError::NotFound`] if there is no such session, or it is deleted.
pub(crate) async fn lock(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<(), StoreError> {
    let there = query(
        "UPDATE sessions SET last_seq = last_seq
         WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .execute(tx)
    .await?;
    match there {
        0 => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// Takes the session's next `count` numbers.
pub(crate) async fn next(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    count: usize,
    now: Timestamp,
) -> Result<NextEvent, StoreError> {
    let row: Row = query(take_next!(", user_id"))
        .bind(integer(count as u64))
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(tx)
        .await?;
    Ok(NextEvent {
        seq: row.count("last_seq")? + 1 - count as u64,
        epoch: Epoch(row.count("epoch")?),
        user: row.parsed("user_id")?,
    })
}

/// Takes the session's next `count` numbers for a worker, unless its epoch is not the session's; returns the first.
pub(crate) async fn next_under(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    held: Epoch,
    count: usize,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let next = next(tx, tenant, session, count, now).await?;
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
            directory: row.text("directory")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            last_seq: row.count("last_seq")?,
            epoch: Epoch(row.count("epoch")?),
            running_turn: row.maybe_parsed("running_turn")?,
            pin: setting::pinned(row)?,
            archived_at: row.maybe_time("archived_at")?,
            deleted_at: row.maybe_time("deleted_at")?,
            links: row.count("links")?,
            waiting_approvals: row.count("waiting_approvals")?,
            agent: match row.maybe_parsed("parent_session_id")? {
                Some(parent) => Some(SessionAgent {
                    parent,
                    name: row.text("agent_name")?,
                    role: row.text("agent_role")?,
                }),
                None => None,
            },
        })
    }
}
