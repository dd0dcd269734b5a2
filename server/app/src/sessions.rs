//! Conversations: begin, list, send, cancel, follow.

use std::sync::Arc;

use server_llm::ModelInfo;
use server_store::{Cancel, Input, NewSession, SessionRow, Store};
use shared_types::{
    Clock, Entropy, Event, RunnerId, SessionEvent, SessionId, TenantId, TurnId,
    limits::{MAX_CLIENT_ID_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES},
};

mod tasks;

use crate::{
    AppError, OpContext, allowance::Allowance, follow::Subscription, gate::Gate, live::LiveHub,
    rights::Action, runners, turns::Turns, whole::whole,
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
    turns: Turns,
    allowance: Allowance,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    model: String,
}

impl Sessions {
    pub(crate) fn new(
        (store, gate): (Store, Gate),
        hub: LiveHub,
        turns: Turns,
        allowance: Allowance,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        model: &ModelInfo,
    ) -> Self {
        Self {
            store,
            gate,
            hub,
            turns,
            allowance,
            clock,
            entropy,
            model: model.name.clone(),
        }
    }

    /// Begins a session, pinned to the runner of this name or id if one is given.
    ///
    /// # Errors
    /// If the title is too long, the tenant has no such runner, or the user has too many sessions
    /// or began too many lately.
    pub async fn create(
        &self,
        ctx: &OpContext,
        title: &str,
        runner: Option<&str>,
    ) -> Result<Session, AppError> {
        self.gate.own(ctx, Action::BeginSession)?;
        if title.len() > MAX_NAME_BYTES * 4 {
            return Err(AppError::Invalid(format!(
                "a title has at most {} bytes",
                MAX_NAME_BYTES * 4
            )));
        }
        let session = NewSession {
            id: SessionId::generate(&*self.clock, &*self.entropy),
            user: ctx.user,
            title: title.to_owned(),
            model: self.model.clone(),
            pin: self.runner(ctx, runner).await?,
        };
        self.allowance.one_more(ctx)?;
        let at_most = self.allowance.limits().sessions.into();
        Ok(self
            .store
            .create_session(ctx.tenant, &session, at_most, self.clock.now())
            .await?)
    }

    /// Pins a session to the runner of this name or id, whatever runner its user works on; without
    /// one, the user's runner counts again. It counts from the next turn.
    ///
    /// # Errors
    /// If the user has no such session, or the tenant no such runner.
    pub async fn pin(
        &self,
        ctx: &OpContext,
        session: SessionId,
        runner: Option<&str>,
    ) -> Result<Session, AppError> {
        let row = self.gate.session(ctx, Action::PinSession, session).await?;
        let runner = self.runner(ctx, runner).await?;
        let pinned = self.store.pin_session(ctx.tenant, session, runner).await;
        let pin = pinned.map_err(runners::not_found)?;
        Ok(Session { pin, ..row })
    }

    async fn runner(
        &self,
        ctx: &OpContext,
        name_or_id: Option<&str>,
    ) -> Result<Option<RunnerId>, AppError> {
        let Some(name_or_id) = name_or_id else {
            return Ok(None);
        };
        let found = self.gate.runner(ctx, Action::UseRunner, name_or_id).await;
        Ok(Some(found?.id))
    }

    /// The user's sessions, the most recently used first.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(&self, ctx: &OpContext, limit: u32) -> Result<Vec<Session>, AppError> {
        self.gate.own(ctx, Action::ReadSession)?;
        Ok(self
            .store
            .list_sessions(ctx.tenant, ctx.user, limit)
            .await?)
    }

    /// The user's sessions whose ids begin so, by id.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn beginning(
        &self,
        ctx: &OpContext,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<Session>, AppError> {
        self.gate.own(ctx, Action::ReadSession)?;
        let found = self
            .store
            .sessions_beginning(ctx.tenant, ctx.user, beginning, limit);
        Ok(found.await?)
    }

    /// One of the user's sessions.
    ///
    /// # Errors
    /// If the user has no such session; another user's is no different from none.
    pub async fn get(&self, ctx: &OpContext, session: SessionId) -> Result<Session, AppError> {
        self.gate.session(ctx, Action::ReadSession, session).await
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
        let events = self
            .store
            .events_after(ctx.tenant, session, after, limit)
            .await?;
        let more = events.last().is_some_and(|last| last.seq < row.last_seq);
        Ok((events, more))
    }

    /// Accepts a message: durable before this returns, and worked on whatever happens then.
    ///
    /// # Errors
    /// If the user has no such session, the message is empty or too long, too many wait, or the user
    /// sent too many bytes lately.
    pub async fn send(
        &self,
        ctx: &OpContext,
        session: SessionId,
        client_id: Option<String>,
        text: String,
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
        let input = Input {
            turn: TurnId::generate(&*self.clock, &*self.entropy),
            by: ctx.user,
            client_id,
            text,
        };
        let allowed = self.allowance.message(ctx, input.text.len())?;
        let (this, tenant, now) = (self.clone(), ctx.tenant, self.clock.now());
        whole(async move {
            let sent = this.store.send_input(tenant, session, &input, now).await;
            if !sent.as_ref().is_ok_and(|sent| !sent.repeated) {
                this.allowance.back(allowed);
            }
            let sent = sent?;
            this.look_again(tenant, session, Vec::new()).await;
            Ok(sent)
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
        whole(async move { this.stop(&ctx, session, turn).await }).await
    }

    /// Stops a turn, whoever's it is. Answers it, unless it has ended.
    pub(crate) async fn stop(
        &self,
        ctx: &OpContext,
        session: SessionId,
        turn: TurnId,
    ) -> Result<Option<TurnId>, AppError> {
        let (tenant, by, now) = (ctx.tenant, ctx.user, self.clock.now());
        let cancelled = self.store.request_cancel(tenant, session, turn, by, now);
        if matches!(cancelled.await?, Cancel::Ended) {
            return Ok(None);
        }
        let requested = Event::CancelRequested { turn, by };
        self.look_again(tenant, session, vec![requested]).await;
        Ok(Some(turn))
    }

    /// Tells watchers and workers that the session has changed.
    async fn look_again(&self, tenant: TenantId, session: SessionId, events: Vec<Event>) {
        self.hub.appended(session, events).await;
        self.turns.wake(tenant, session).await;
    }

    /// Follows a session from a cursor.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn follow(
        &self,
        ctx: &OpContext,
        session: SessionId,
        after: u64,
    ) -> Result<Subscription, AppError> {
        self.get(ctx, session).await?;
        Subscription::start(
            self.store.clone(),
            self.hub.clone(),
            ctx.tenant,
            session,
            after,
        )
        .await
    }
}

#[cfg(test)]
mod tests;
