//! The engine's log of a session over the store: one session, one epoch (docs/internals/contracts.md#c2).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use async_trait::async_trait;
use bytes::Bytes;
use server_llm::Images;
use server_records::{
    CallEnd, ChatHit, ChatQuery, LogRows, ModelCall, NewAgent, NewChat, SessionError, SessionKey,
    StandingExtensions, StandingRules, TrustedFile, WholeSkill,
};
use shared_sandbox::Outcome;
use shared_types::{
    Clock, Digest, Epoch, Event, OperationId, RunnerId, SessionEvent, SessionId, TurnId,
    event::{Layer, TodoItem},
};

use tokio::sync::mpsc;

use super::{cache::LogCache, measured::Counted};
use crate::{
    feed::LiveHub,
    session::{Live, LiveSink, LogError, SessionLog},
};

/// Writes of one worker to one session.
pub(crate) struct StoredLog {
    /// The stored log.
    pub(crate) rows: Arc<dyn LogRows>,
    /// The logs that this process knows.
    pub(crate) logs: LogCache,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// The session.
    pub(crate) of: SessionKey,
    /// The epoch of the worker.
    pub(crate) epoch: Epoch,
    /// The number of the event of the worker's claim, until the log was read for the first time; 0 where there is
    /// none. What the turn goes on from stands before it; later all is needed that came since.
    pub(crate) claimed_at: AtomicU64,
    /// Counts and traces what is recorded.
    pub(crate) counted: Counted,
    /// Wakes the workers of agents; absent where nothing is carried.
    pub(crate) wake: Option<mpsc::Sender<SessionKey>>,
    /// Set where the turn has ended, and the session had no other one left.
    pub(crate) was_last: Arc<AtomicBool>,
}

#[async_trait]
impl SessionLog for StoredLog {
    async fn load(&self) -> Result<Arc<Vec<SessionEvent>>, LogError> {
        let claimed_at = self.claimed_at.swap(0, Relaxed);
        let (at_least, now) = ((claimed_at > 0).then_some(claimed_at), self.clock.now());
        let log = (self.logs).load(&*self.rows, self.of, at_least, now).await;
        let log = log.map_err(refused)?;
        self.counted.loaded(&log);
        Ok(log)
    }

    async fn steers(&self, turn: TurnId, after: u32) -> Result<Vec<SessionEvent>, LogError> {
        self.rows.steers(turn, after).await.map_err(refused)
    }

    async fn record(&self, events: Vec<Event>) -> Result<(), LogError> {
        self.record_paid(events, Vec::new()).await
    }

    async fn record_paid(&self, events: Vec<Event>, calls: Vec<ModelCall>) -> Result<(), LogError> {
        let now = self.clock.now();
        let appended = self.rows.append(self.epoch, &events, &calls, now).await;
        let appended = appended.map_err(refused)?;
        self.counted.recorded(&events, now);
        self.was_last.store(appended.turns_left == Some(0), Relaxed);
        Ok(())
    }

    async fn images(&self, digests: &[Digest]) -> Result<Images, LogError> {
        let images = self.rows.images(digests).await.map_err(refused)?;
        Ok(images.into_iter().collect())
    }

    async fn keep_image(&self, media_type: &str, bytes: Bytes) -> Result<Digest, LogError> {
        let kept = self.rows.keep_image(media_type, bytes, self.clock.now());
        kept.await.map_err(refused)
    }

    async fn text(&self, digest: Digest) -> Result<Option<Bytes>, LogError> {
        self.rows.text(digest).await.map_err(refused)
    }

    async fn keep_text(&self, text: Bytes) -> Result<Digest, LogError> {
        let kept = self.rows.keep_text(text, self.clock.now());
        kept.await.map_err(refused)
    }

    async fn todo_of_place(&self, place: &str) -> Result<Vec<TodoItem>, LogError> {
        self.rows.todo_of_place(place).await.map_err(refused)
    }

    async fn rules(&self) -> Result<StandingRules, LogError> {
        self.rows.rules().await.map_err(refused)
    }

    async fn trusted_files(&self, runner: RunnerId) -> Result<Vec<TrustedFile>, LogError> {
        self.rows.trusted_files(runner).await.map_err(refused)
    }

    async fn extensions(&self) -> Result<StandingExtensions, LogError> {
        self.rows.extensions().await.map_err(refused)
    }

    async fn skill(&self, layer: Layer, name: &str) -> Result<Option<WholeSkill>, LogError> {
        self.rows.skill(layer, name).await.map_err(refused)
    }

    async fn search_chats(&self, query: &ChatQuery) -> Result<Vec<ChatHit>, LogError> {
        self.rows.search_chats(query).await.map_err(refused)
    }

    async fn start_agent(&self, new: &NewAgent) -> Result<SessionEvent, LogError> {
        let started = self.rows.start_agent(self.epoch, new, self.clock.now());
        let started = started.await.map_err(refused)?;
        if let Some(Event::AgentStarted { session, .. }) = started.known() {
            self.wake(*session);
        }
        Ok(started)
    }

    async fn stop_agent(&self, agent: SessionId, turn: TurnId) -> Result<(), LogError> {
        let stopped = self.rows.stop_agent(agent, turn, self.clock.now());
        stopped.await.map_err(refused)?;
        self.wake(agent);
        Ok(())
    }

    async fn start_chat(&self, new: &NewChat) -> Result<SessionEvent, LogError> {
        let started = self.rows.start_chat(self.epoch, new, self.clock.now());
        let started = started.await.map_err(refused)?;
        if let Some(Event::ChatStarted { session, .. }) = started.known() {
            self.wake(*session);
        }
        Ok(started)
    }

    async fn record_end(
        &self,
        ended: Event,
        operation: OperationId,
        outcome: &Outcome,
    ) -> Result<(), LogError> {
        let now = self.clock.now();
        let end = CallEnd {
            event: &ended,
            operation,
            outcome,
        };
        let stored = self.rows.append_end(self.epoch, &end, now).await;
        stored.map_err(refused)?;
        self.counted.recorded(&[ended], now);
        Ok(())
    }
}

impl StoredLog {
    /// Has a worker look at another session of the tenant. Where the dispatcher has no room, the next look at the queue
    /// finds its turn.
    fn wake(&self, session: SessionId) {
        let tenant = self.of.tenant;
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(SessionKey { tenant, session });
        }
    }
}

fn refused(error: SessionError) -> LogError {
    match error {
        SessionError::StaleEpoch => LogError::StaleEpoch,
        SessionError::UntakenSteers => LogError::UntakenSteers,
        // The turn goes on without it.
        SessionError::Full(why) => LogError::Refused(why),
        passing if passing.is_passing() => LogError::Unavailable(passing.to_string()),
        other => LogError::Refused(other.to_string()),
    }
}

/// The live events that the engine shows of one session.
pub(crate) struct SessionSink {
    /// The hub.
    pub(crate) hub: LiveHub,
    /// The session.
    pub(crate) session: SessionId,
}

impl LiveSink for SessionSink {
    fn publish(&self, live: Live) {
        self.hub.publish(self.session, live);
    }
}
