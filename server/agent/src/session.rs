//! The engine's ports of one session: its log, the sandbox of its tools, its watchers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use server_llm::{Images, Piece};
use server_records::{
    ChatHit, ChatQuery, ModelCall, NewAgent, NewChat, StandingExtensions, StandingRules,
    TrustedFile, WholeSkill,
};
use shared_sandbox::{Outcome, OutputStream, Sandbox};
use shared_types::{
    Digest, Event, OperationId, OperationScope, RunnerId, SessionEvent, SessionId, TraceContext,
    TurnId,
    event::{Layer, TodoItem},
};
use tokio::sync::watch;

use crate::{hooks::HookPosts, models::ModelSource, servers::ToolServers};

/// The ports of one session.
#[derive(Clone)]
pub struct SessionPorts {
    /// The session's log, written under one epoch.
    pub log: Arc<dyn SessionLog>,
    /// The models that answer in the session.
    pub models: Arc<dyn ModelSource>,
    /// The sandbox of the session's tools.
    pub sandbox: Arc<dyn Sandbox>,
    /// The tool servers of the session.
    pub servers: Arc<dyn ToolServers>,
    /// Sends the hooks of the session to addresses.
    pub posts: Arc<dyn HookPosts>,
    /// The watchers of the turn.
    pub live: Arc<dyn LiveSink>,
    /// Stands for the tenant where operation ids are derived.
    pub scope: OperationScope,
    /// The session.
    pub session: SessionId,
    /// The span of the turn, where it is traced.
    pub trace: Option<TraceContext>,
    /// Tells that others may have written to the log.
    pub stirs: Stirs,
}

/// The hints that others may have written to a session's log while its turn works. A hint carries no data, and one may
/// be lost: the log is the truth.
#[derive(Debug, Clone)]
pub struct Stirs(watch::Sender<()>);

impl Default for Stirs {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl Stirs {
    /// Passes on a hint.
    pub fn stir(&self) {
        self.0.send_replace(());
    }

    /// The hints from now on.
    pub(crate) fn heard(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// The log of one session, bound by its implementor to the session and to the turn's epoch.
///
/// The engine records answers, ends of calls and the end of the turn. The use cases that receive
/// inputs, claims and wishes to cancel record those. The sandbox records the placement of an
/// operation (`call.placed`), in one transaction with the intent.
#[async_trait]
pub trait SessionLog: Send + Sync {
    /// The whole log, in order.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn load(&self) -> Result<Arc<Vec<SessionEvent>>, LogError>;

    /// The events of the messages that joined this turn while it worked, in their order, without so many of the first.
    /// One cheap read: it is asked before each request to the model.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn steers(&self, turn: TurnId, after: u32) -> Result<Vec<SessionEvent>, LogError>;

    /// Appends the events in one durable transaction.
    ///
    /// # Errors
    /// If they are not, or may not be, durable: then the turn goes no further here. With [`LogError::UntakenSteers`]
    /// nothing was written, and the turn goes on.
    async fn record(&self, events: Vec<Event>) -> Result<(), LogError>;

    /// Appends the events, and the calls of models that led to them to the ledger of usage, in one durable
    /// transaction.
    ///
    /// # Errors
    /// Those of [`SessionLog::record`].
    async fn record_paid(&self, events: Vec<Event>, calls: Vec<ModelCall>) -> Result<(), LogError>;

    /// The bytes of those of these images that the session has.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn images(&self, digests: &[Digest]) -> Result<Images, LogError>;

    /// Keeps an image with the session.
    ///
    /// # Errors
    /// If it is not kept, because the session has too many of them or the store does not answer.
    async fn keep_image(&self, media_type: &str, bytes: Bytes) -> Result<Digest, LogError>;

    /// The long text with this digest, if the session has it.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn text(&self, digest: Digest) -> Result<Option<Bytes>, LogError>;

    /// Keeps a long text with the session, of which the model is shown a part.
    ///
    /// # Errors
    /// If it is not kept, because the session has too many of them or the store does not answer.
    async fn keep_text(&self, text: Bytes) -> Result<Digest, LogError>;

    /// The to-do list that an earlier session of the same user left at this place; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn todo_of_place(&self, place: &str) -> Result<Vec<TodoItem>, LogError>;

    /// The bounds of the session's agent as they are now.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn rules(&self) -> Result<StandingRules, LogError>;

    /// The files with rules of projects on this runner that the session's owner trusts.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn trusted_files(&self, runner: RunnerId) -> Result<Vec<TrustedFile>, LogError>;

    /// The extensions that are registered for the session, and the files with extensions that its owner trusts.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn extensions(&self) -> Result<StandingExtensions, LogError>;

    /// A skill that is registered under this name in this layer, if it is.
    ///
    /// # Errors
    /// If it cannot be read.
    async fn skill(&self, layer: Layer, name: &str) -> Result<Option<WholeSkill>, LogError>;

    /// The texts in the sessions of this session's owner that have the words of the query, the newest first. The
    /// session itself is searched only if the query names it.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn search_chats(&self, query: &ChatQuery) -> Result<Vec<ChatHit>, LogError>;

    /// Begins an agent for a call of this session, in one durable transaction. Returns the event of it in this log.
    ///
    /// # Errors
    /// If it is not begun, because there are too many agents or the store does not answer.
    async fn start_agent(&self, new: &NewAgent) -> Result<SessionEvent, LogError>;

    /// Has this turn of an agent stop, unless it has ended.
    ///
    /// # Errors
    /// If that cannot be recorded.
    async fn stop_agent(&self, agent: SessionId, turn: TurnId) -> Result<(), LogError>;

    /// Begins another conversation of the user for a call of this session, in one durable transaction. Returns the event of
    /// it in this log.
    ///
    /// # Errors
    /// If it is not begun, because there are too many or the store does not answer.
    async fn start_chat(&self, new: &NewChat) -> Result<SessionEvent, LogError>;

    /// Appends the end of a call and stores the outcome of its operation, in one durable
    /// transaction.
    ///
    /// # Errors
    /// Those of [`SessionLog::record`]. It also fails if another end of the operation is stored;
    /// then the operation answers that end when it is asked for again.
    async fn record_end(
        &self,
        ended: Event,
        operation: OperationId,
        outcome: &Outcome,
    ) -> Result<(), LogError>;
}

/// The reason that the log cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A newer worker has the session.
    #[error("write to the session's log: a newer worker has taken the session over")]
    StaleEpoch,
    /// The turn would complete without messages that joined it since.
    #[error("end the turn: it has messages that the agent has not read yet")]
    UntakenSteers,
    /// The store does not answer; it may later.
    #[error("use the session's log: {0}")]
    Unavailable(String),
    /// The store answers, and will refuse the same again.
    #[error("use the session's log: {0}")]
    Refused(String),
}

/// The watchers of a turn. A published piece is a hint for people: the truth is the log.
pub trait LiveSink: Send + Sync {
    /// Passes it on without ever waiting; a piece that no watcher takes in time is dropped.
    fn publish(&self, live: Live);
}

/// A piece of work that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// The model speaks or thinks.
    Said {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The attempt at it, from 1; a higher one starts the answer again.
        attempt: u32,
        /// The place of the piece in its part, in bytes from 0.
        offset: u64,
        /// The piece, and the part to which it belongs.
        piece: Piece,
    },
    /// All that this attempt said, and thought, is void: it broke off.
    TakenBack {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The attempt at it, from 1.
        attempt: u32,
    },
    /// A command writes.
    Output {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// The stream.
        stream: OutputStream,
        /// The offset of the bytes in the stream, from 0.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Output that is not kept any more; the stream goes on at `to`.
    Gap {
        /// The turn.
        turn: TurnId,
        /// The model call, from 1.
        step: u32,
        /// The place of the call in the answer, from 0.
        ordinal: u32,
        /// The operation.
        operation: OperationId,
        /// The stream.
        stream: OutputStream,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap.
        to: u64,
    },
    /// The event that the turn waits for, in words for people.
    Notice {
        /// The turn.
        turn: TurnId,
        /// The words.
        text: String,
    },
}

/// A duration as people say it: `90 s`, `15 min`, `24 h`, `250 ms`.
pub(crate) fn spoken(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis if millis % 3_600_000 == 0 => format!("{} h", millis / 3_600_000),
        millis if millis % 60_000 == 0 => format!("{} min", millis / 60_000),
        millis => format!("{} s", millis / 1000),
    }
}
