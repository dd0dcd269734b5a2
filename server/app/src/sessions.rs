//! Conversations: begin, list, send, cancel, follow.

use std::sync::Arc;

use server_agent::{Turns, feed::LiveHub};
use server_records::SessionKey;
use server_store::{
    Cancel, Input, NewSession, Page, SessionChange, SessionFilter, SessionRow, Store, StoreError,
};
use shared_types::{
    Clock, Digest, Entropy, SessionEvent, SessionId, TenantId, Timestamp, TurnId, UserId,
    WhileWorking,
    clean::clean_line,
    event::{StopReason, Terms},
    limits::{MAX_CLIENT_ID_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_STEPS},
};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

mod agents;
mod context;
mod deletion;
mod ends;
mod following;
mod images;
mod sharing;
mod tasks;

use deletion::Deletions;
pub(crate) use ends::SessionEnds;
pub use following::Subscription;
pub use images::KeptImage;

pub use sharing::{SessionLink, SharedSession};

use crate::{
    AppError, OpContext, Parts,
    allowance::Allowance,
    commits::Commits,
    gate::Gate,
    hints::SeenLogs,
    pages::{and_one, cut},
    permissions,
    rights::Action,
    settings::Settings,
    shielded::shielded,
};

/// A session as its user sees it.
pub type Session = SessionRow;

/// A message that was accepted.
pub type Sent = server_store::Sent;

/// The use cases of this file.
#[derive(Clone)]
pub struct Sessions {
    store: Store,
    gate: Gate,
    hub: LiveHub,
    seen: SeenLogs,
    turns: Turns,
    allowance: Allowance,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    settings: Settings,
    /// Tells [`deletion::Deletions`] of a session to be taken away.
    deletions: Arc<Notify>,
    /// Runs the hooks of sessions that end.
    ends: SessionEnds,
}

/// Most rules that a message sets.
const MESSAGE_RULES_AT_MOST: usize = 32;

/// A message that is to be sent.
#[derive(Debug, Clone, Default)]
pub struct NewMessage {
    /// The client's idempotency key.
    pub client_id: Option<String>,
    /// Its words.
    pub text: String,
    /// The images behind them, by their digests; the session has them already.
    pub images: Vec<Digest>,
    /// Present if it asks to compact the conversation: what matters most in it.
    pub compacts: Option<String>,
    /// Its terms for its turn.
    pub terms: Terms,
    /// Its effect on a turn that works already.
    pub while_working: WhileWorking,
}

impl NewMessage {
    /// A message of words alone.
    pub fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// The terms of a new session.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionTerms<'a> {
    /// Its title in lists; empty for the beginning of the first message.
    pub title: &'a str,
    /// The name or id of the runner to which it is pinned.
    pub runner: Option<&'a str>,
    /// The models that answer in it: as the setting `model`.
    pub model: Option<&'a str>,
    /// The folder in which its commands start and its paths begin, relative to the root of the workspace;
    /// empty for the root.
    pub directory: &'a str,
}

impl Sessions {
    /// Finishes deletions from now on.
    pub(crate) fn start(
        parts: &Parts,
        gate: &Gate,
        commits: &Commits,
        turns: &Turns,
        allowance: &Allowance,
        settings: &Settings,
        tasks: &TaskTracker,
    ) -> Self {
        let sessions = Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            hub: commits.hub.clone(),
            seen: commits.seen.clone(),
            turns: turns.clone(),
            allowance: allowance.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
            settings: settings.clone(),
            deletions: Arc::default(),
            ends: SessionEnds::new(parts, tasks),
        };
        let deletions = Deletions {
            store: parts.store.clone(),
            outputs: parts.outputs.clone(),
            sessions: sessions.clone(),
        };
        tasks.spawn(deletions.run(parts.stop.clone()));
        sessions
    }

    /// Runs the hooks of sessions that end.
    pub(crate) fn ends(&self) -> &SessionEnds {
        &self.ends
    }

    /// Begins a session.
    ///
    /// # Errors
    /// If the title or the directory cannot be used, the user has no such runner or model, or the user has too
    /// many sessions or began too many lately.
    pub async fn create(
        &self,
        ctx: &OpContext,
        terms: &SessionTerms<'_>,
    ) -> Result<Session, AppError> {
        self.gate.own(ctx, Action::BeginSession)?;
        bounded(terms.title)?;
        let directory = directory(terms.directory)?;
        let pin = match terms.runner {
            Some(named) => Some(
                self.gate
                    .place(ctx, Action::UseRunner, named)
                    .await?
                    .choice(),
            ),
            None => None,
        };
        let chosen_model = match terms.model {
            Some(named) => Some(self.settings.model_choice(ctx, named).await?),
            None => None,
        };
        let session = NewSession {
            id: SessionId::generate(&*self.clock, &*self.entropy),
            user: ctx.user,
            title: terms.title.to_owned(),
            model: match terms.model {
                Some(named) => named.to_owned(),
                None => self.settings.model(ctx).await?.name,
            },
            chosen_model,
            pin,
            directory,
        };
        self.allowance.one_more(ctx)?;
        let at_most = self.allowance.limits().sessions.into();
        Ok(self
            .store
            .create_session(ctx.tenant, &session, at_most, self.clock.now())
            .await?)
    }

    /// Pins a session to the runner of this name or id, in place of the runner that its user works
    /// on. Without one, the user's runner counts again. It counts from the next turn.
    ///
    /// # Errors
    /// If the user has no such session, or the tenant no such runner.
    pub async fn pin(
        &self,
        ctx: &OpContext,
        session: SessionId,
        runner: Option<&str>,
    ) -> Result<Session, AppError> {
        self.gate.session(ctx, Action::PinSession, session).await?;
        if let Some(named) = runner {
            // To this door an unknown runner is not found; to the settings its name is a wrong value.
            self.gate.place(ctx, Action::UseRunner, named).await?;
        }
        let chosen = self.settings.choose_runner(ctx, Some(session), runner);
        chosen.await?;
        Ok(self.store.session(ctx.tenant, session).await?)
    }

    /// Changes what lists show of a session.
    ///
    /// # Errors
    /// If the user has no such session, or the title is too long or empty.
    pub async fn change(
        &self,
        ctx: &OpContext,
        session: SessionId,
        change: &SessionChange,
    ) -> Result<Session, AppError> {
        let change = SessionChange {
            title: change.title.as_deref().map(title).transpose()?,
            archived: change.archived,
        };
        self.gate
            .session(ctx, Action::ChangeSession, session)
            .await?;
        let before = self.store.session(ctx.tenant, session).await?;
        let ending = match change.archived == Some(true) && before.archived_at.is_none() {
            true => Some(self.ends.of(ctx, session, "archived").await?),
            false => None,
        };
        let now = self.clock.now();
        self.store
            .change_session(ctx.tenant, session, &change, now)
            .await?;
        let after = self.store.session(ctx.tenant, session).await?;
        // Of requests at the same time one has archived it.
        if let Some(ending) = ending.filter(|_| after.archived_at == Some(now)) {
            self.ends.run(ctx, ending);
        }
        Ok(after)
    }

    /// A page of the user's sessions that are archived, or of those that are not, the most recently used
    /// first, and whether there are more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(
        &self,
        ctx: &OpContext,
        filter: SessionFilter<'_>,
        page: Page<(Timestamp, SessionId)>,
    ) -> Result<(Vec<Session>, bool), AppError> {
        self.gate.own(ctx, Action::ReadSession)?;
        let (limit, page) = (page.limit, and_one(page));
        let rows = self.store.list_sessions(ctx.tenant, ctx.user, filter, page);
        Ok(cut(rows.await?, limit))
    }

    /// A page of the user's sessions whose ids begin so, by id, and whether there are more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn beginning(
        &self,
        ctx: &OpContext,
        beginning: &str,
        page: Page<SessionId>,
    ) -> Result<(Vec<Session>, bool), AppError> {
        self.gate.own(ctx, Action::ReadSession)?;
        let (limit, page) = (page.limit, and_one(page));
        let rows = self
            .store
            .sessions_beginning(ctx.tenant, ctx.user, beginning, page);
        Ok(cut(rows.await?, limit))
    }

    /// One of the user's sessions.
    ///
    /// # Errors
    /// If the user has no such session; another user's is no different from none.
    pub async fn get(&self, ctx: &OpContext, session: SessionId) -> Result<Session, AppError> {
        self.gate.session_row(ctx, session).await
    }

    /// A page of the log after that event, and whether there is more.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn events(
        &self,
        ctx: &OpContext,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<SessionEvent>, bool), AppError> {
        let row = self.get(ctx, session).await?;
        self.page_of_log(ctx.tenant, &row, after, limit).await
    }

    async fn page_of_log(
        &self,
        tenant: TenantId,
        session: &Session,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<SessionEvent>, bool), AppError> {
        let events = self.store.page_of_events(tenant, session.id, after, limit);
        let events = events.await?;
        let last = events.last();
        let more = last.is_some_and(|last| last.seq < session.last_seq);
        Ok((events, more))
    }

    /// True if a message of the session has this client id.
    ///
    /// # Errors
    /// If the user has no such session.
    pub(crate) async fn is_sent(
        &self,
        ctx: &OpContext,
        session: SessionId,
        client_id: &str,
    ) -> Result<bool, AppError> {
        self.gate.session(ctx, Action::ReadSession, session).await?;
        Ok(self.store.is_sent(ctx.tenant, session, client_id).await?)
    }

    /// Accepts a message: durable before this returns, and a worker carries it out even if the
    /// server stops.
    ///
    /// # Errors
    /// If the user has no such session, the message is empty or too long, the session does not have one of its images,
    /// too many messages wait or have joined the turn, or the user sent too many bytes lately.
    pub async fn send(
        &self,
        ctx: &OpContext,
        session: SessionId,
        NewMessage {
            client_id,
            text,
            images,
            compacts,
            terms,
            while_working,
        }: NewMessage,
    ) -> Result<Sent, AppError> {
        self.gate.session(ctx, Action::SendMessage, session).await?;
        if text.trim().is_empty() {
            return Err(AppError::Invalid("the message is empty".to_owned()));
        }
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(AppError::Invalid(format!(
                "the message has {} bytes; at most {MAX_MESSAGE_BYTES} can be sent at once",
                text.len()
            )));
        }
        if client_id
            .as_ref()
            .is_some_and(|id| id.is_empty() || id.len() > MAX_CLIENT_ID_BYTES)
        {
            return Err(AppError::Invalid(format!(
                "a client id has 1 to {MAX_CLIENT_ID_BYTES} bytes"
            )));
        }
        check_terms(&terms)?;
        let images = self.images_of_message(ctx, session, &images).await?;
        let input = Input {
            turn: TurnId::generate(&*self.clock, &*self.entropy),
            by: ctx.user,
            credential: Some(ctx.credential),
            client_id,
            text,
            images,
            compacts,
            terms,
            while_working,
            trace: ctx.trace,
        };
        let allowed = self.allowance.message(ctx, input.text.len())?;
        let (this, tenant, now) = (self.clone(), ctx.tenant, self.clock.now());
        shielded(async move {
            let sent = this.store.send_input(tenant, session, &input, now).await;
            if !sent.as_ref().is_ok_and(|sent| sent.event.is_some()) {
                this.allowance.back(allowed);
            }
            match sent {
                Ok(sent) => {
                    this.turns.wake(SessionKey { tenant, session }).await;
                    Ok(sent)
                }
                Err(error) => {
                    this.look_again_where_unknown(tenant, session, &error).await;
                    Err(error.into())
                }
            }
        })
        .await
    }

    /// Stops the turn that is under way, and what it runs; where none is, the next that waits.
    /// Answers which one it was.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn cancel(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<Option<TurnId>, AppError> {
        self.gate.session(ctx, Action::CancelTurn, session).await?;
        let Some(row) = self.store.unfinished_turn(ctx.tenant, session).await? else {
            return Ok(None);
        };
        let (this, ctx, turn) = (self.clone(), ctx.clone(), row.id);
        shielded(async move { this.stop(ctx.tenant, (ctx.user, None), session, turn).await }).await
    }

    /// Stops a turn of any user, in the name of this user. Returns it, unless it has ended.
    pub(crate) async fn stop(
        &self,
        tenant: TenantId,
        by: (UserId, Option<StopReason>),
        session: SessionId,
        turn: TurnId,
    ) -> Result<Option<TurnId>, AppError> {
        let now = self.clock.now();
        let cancelled = self.store.request_cancel(tenant, session, turn, by, now);
        match cancelled.await {
            Ok(Cancel::Ended) => return Ok(None),
            Ok(Cancel::Requested(_) | Cancel::Repeated) => {}
            Err(error) => {
                self.look_again_where_unknown(tenant, session, &error).await;
                return Err(error.into());
            }
        }
        self.turns.wake(SessionKey { tenant, session }).await;
        Ok(Some(turn))
    }

    /// Has workers look again where a commit may have happened although its answer was lost.
    async fn look_again_where_unknown(
        &self,
        tenant: TenantId,
        session: SessionId,
        error: &StoreError,
    ) {
        if matches!(error, StoreError::Unavailable(_)) {
            self.turns.wake(SessionKey { tenant, session }).await;
        }
    }
}

/// Longest title in bytes.
const MAX_TITLE_BYTES: usize = MAX_NAME_BYTES * 4;

fn bounded(title: &str) -> Result<(), AppError> {
    match title.len() > MAX_TITLE_BYTES {
        true => Err(AppError::Invalid(format!(
            "a title has at most {MAX_TITLE_BYTES} bytes"
        ))),
        false => Ok(()),
    }
}

/// A directory as it is kept: its parts, below the root.
fn directory(given: &str) -> Result<String, AppError> {
    let refused = |why: &str| {
        let help =
            "name a directory relative to the root of the runner's workspace, such as src/app";
        Err(AppError::Invalid(format!("the directory {why}; {help}")))
    };
    if given.len() > MAX_PATH_BYTES {
        return refused(&format!("has more than {MAX_PATH_BYTES} bytes"));
    }
    if given.chars().any(char::is_control) {
        return refused("holds a control character");
    }
    if given.starts_with('/') {
        return refused("is absolute");
    }
    let parts = given.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<_> = parts.collect();
    if parts.contains(&"..") {
        return refused("leads upwards");
    }
    Ok(parts.join("/"))
}

/// A title that a user chose: one line with at least one letter.
fn title(given: &str) -> Result<String, AppError> {
    bounded(given)?;
    let title = clean_line(given.trim(), MAX_TITLE_BYTES);
    match title.is_empty() {
        true => Err(AppError::Invalid(
            "a title has at least one letter".to_owned(),
        )),
        false => Ok(title),
    }
}

/// Refuses terms that cannot be used.
fn check_terms(terms: &Terms) -> Result<(), AppError> {
    if terms.allow.len() > MESSAGE_RULES_AT_MOST {
        return Err(AppError::Invalid(format!(
            "a message sets at most {MESSAGE_RULES_AT_MOST} rules; set the others with: gantry permissions add"
        )));
    }
    for rule in &terms.allow {
        permissions::rule(rule)?;
    }
    match terms.steps {
        Some(steps) if !(1..=MAX_STEPS).contains(&steps) => Err(AppError::Invalid(format!(
            "steps is a number from 1 to {MAX_STEPS}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
