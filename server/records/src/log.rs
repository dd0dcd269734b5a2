//! The log of a session as it is stored.

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::Outcome;
use shared_types::{
    Digest, Epoch, Event, OperationId, RunnerId, SessionEvent, SessionId, Timestamp, TurnId,
    event::{Layer, TodoItem},
};

use crate::{
    ChatHit, ChatQuery, ModelCall, NewAgent, NewChat, SessionError, StandingExtensions,
    StandingRules, TrustedFile, WholeSkill,
};

/// The events of one session.
#[async_trait]
pub trait LogRows: Send + Sync {
    /// The whole log from the event of this number on, in order.
    ///
    /// # Errors
    /// There is no such session, or the store did not answer.
    async fn read_from(&self, seq: u64) -> Result<Vec<StoredEvent>, SessionError>;

    /// The events of the messages that joined this turn while it worked, without so many of the first.
    ///
    /// # Errors
    /// They cannot be read.
    async fn steers(&self, turn: TurnId, after: u32) -> Result<Vec<SessionEvent>, SessionError>;

    /// Appends events under the epoch of a worker, and records the calls of models that led to them: all or nothing.
    ///
    /// # Errors
    /// They are not stored.
    async fn append(
        &self,
        epoch: Epoch,
        events: &[Event],
        calls: &[ModelCall],
        now: Timestamp,
    ) -> Result<Appended, SessionError>;

    /// The bytes of those of these images that the session has, by their digests.
    ///
    /// # Errors
    /// They cannot be read.
    async fn images(&self, digests: &[Digest]) -> Result<Vec<(Digest, Bytes)>, SessionError>;

    /// Keeps an image with the session, once.
    ///
    /// # Errors
    /// It is not kept, because it is too large, the session has too many, or the store did not answer.
    async fn keep_image(
        &self,
        media_type: &str,
        bytes: Bytes,
        now: Timestamp,
    ) -> Result<Digest, SessionError>;

    /// The text with this digest, if the session has it.
    ///
    /// # Errors
    /// It cannot be read.
    async fn text(&self, digest: Digest) -> Result<Option<Bytes>, SessionError>;

    /// Keeps a long text with the session, once.
    ///
    /// # Errors
    /// It is not kept, because it is too long, the session has too many, or the store did not answer.
    async fn keep_text(&self, text: Bytes, now: Timestamp) -> Result<Digest, SessionError>;

    /// The to-do list that an earlier session of the same user left at this place; empty if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    async fn todo_of_place(&self, place: &str) -> Result<Vec<TodoItem>, SessionError>;

    /// The bounds of the session's agent as they are now.
    ///
    /// # Errors
    /// They cannot be read.
    async fn rules(&self) -> Result<StandingRules, SessionError>;

    /// The files with rules of projects on this runner that the session's owner trusts.
    ///
    /// # Errors
    /// They cannot be read.
    async fn trusted_files(&self, runner: RunnerId) -> Result<Vec<TrustedFile>, SessionError>;

    /// The extensions that are registered for the session, and the files with extensions that its owner trusts.
    ///
    /// # Errors
    /// They cannot be read.
    async fn extensions(&self) -> Result<StandingExtensions, SessionError>;

    /// A skill that is registered under this name in this layer, if it is.
    ///
    /// # Errors
    /// It cannot be read.
    async fn skill(&self, layer: Layer, name: &str) -> Result<Option<WholeSkill>, SessionError>;

    /// The texts in the sessions of this session's owner that have the words of the query, the newest first. The
    /// session itself is searched only if the query names it.
    ///
    /// # Errors
    /// They cannot be read.
    async fn search_chats(&self, query: &ChatQuery) -> Result<Vec<ChatHit>, SessionError>;

    /// Begins an agent for a call of this session, under the epoch of a worker. Returns the event of it in this log.
    ///
    /// # Errors
    /// It is not begun, because there are too many or the store did not answer.
    async fn start_agent(
        &self,
        epoch: Epoch,
        new: &NewAgent,
        now: Timestamp,
    ) -> Result<SessionEvent, SessionError>;

    /// Records that this turn of an agent is to stop, unless it has ended.
    ///
    /// # Errors
    /// The store did not answer.
    async fn stop_agent(
        &self,
        agent: SessionId,
        turn: TurnId,
        now: Timestamp,
    ) -> Result<(), SessionError>;

    /// Begins another conversation of the user for a call of this session, under the epoch of a worker. Returns the event
    /// of it in this log.
    ///
    /// # Errors
    /// It is not begun, because there are too many or the store did not answer.
    async fn start_chat(
        &self,
        epoch: Epoch,
        new: &NewChat,
        now: Timestamp,
    ) -> Result<SessionEvent, SessionError>;

    /// Appends the end of a call and stores the outcome of its operation, in one transaction.
    ///
    /// # Errors
    /// Those of [`LogRows::append`]. It also fails if another outcome is stored, or if this one is too long.
    async fn append_end(
        &self,
        epoch: Epoch,
        end: &CallEnd<'_>,
        now: Timestamp,
    ) -> Result<(), SessionError>;
}

/// The end of a call whose operation has ended.
#[derive(Debug, Clone, Copy)]
pub struct CallEnd<'a> {
    /// The event that tells of it.
    pub event: &'a Event,
    /// The operation.
    pub operation: OperationId,
    /// Its outcome.
    pub outcome: &'a Outcome,
}

/// The result of an append to a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The events, at their places.
    pub events: Vec<SessionEvent>,
    /// For the end of a turn: the number of turns of the session that are unfinished now.
    pub turns_left: Option<u64>,
}

/// An event as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// The event.
    pub event: SessionEvent,
    /// Bytes of its stored form.
    pub bytes: usize,
}
