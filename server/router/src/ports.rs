//! The router's needs of the store, as narrow traits that `server-app` implements.
//!
//! Every implementor is bound to its tenant (and session, where it is one session's) when it is
//! made, so no method names one. The router never sees SQL.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
pub use shared_link::server::{
    Figures, HelloFacts, PoolFacts, Remembered, RunnerState, SandboxFacts, SandboxReport, Seen,
    Settled, StoredIntent, TurnedAway, Verdict, forgotten, lost_to_restoration, lost_to_revocation,
    lost_to_silence, never_started,
};
use shared_sandbox::{Outcome, OutputStream, Request};
use shared_types::{
    Digest, Effect, Epoch, Generation, Incarnation, Isolation, OperationId, OperationKey, Owner,
    RunnerId, SandboxId, SandboxSpec, TenantId, Timestamp, TraceContext, UserId,
    clock::BootMoment,
    event::{Choice, Place},
};
use tokio::time::Instant;

/// The runners that one turn may use, and the one that was chosen when the turn was claimed.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// The fleet as it is stored now. Only reads.
    ///
    /// # Errors
    /// The store did not answer.
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError>;

    /// Stores that this pool is to make a sandbox for this user.
    ///
    /// # Errors
    /// The store did not answer.
    async fn want_sandbox(&self, pool: RunnerId, user: UserId) -> Result<(), PortError>;

    /// Tells the people who watch the turn about the wait of its call.
    fn tell(&self, words: String);
}

/// The facts that placement decides by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSnapshot {
    /// True if a caller named the runner for this one operation, outside any turn.
    pub is_callers: bool,
    /// The choice that counts.
    pub choice: Choice,
    /// The isolation that policy demands of the sandbox.
    pub demanded: Isolation,
    /// The chosen runner may be on its way back until then: this server has just started, and the runner was last
    /// heard of before that.
    pub returns_until: Option<Instant>,
    /// The user for whom the chosen runner, a pool that the user may use, has no sandbox yet.
    pub lacks_sandbox: Option<UserId>,
    /// The runners.
    pub runners: Vec<FleetRunner>,
}

/// One runner as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRunner {
    /// Its id.
    pub id: RunnerId,
    /// Its name for people.
    pub name: String,
    /// Its state of connection.
    pub state: RunnerState,
    /// True if its identity is locked, because its folder was copied.
    pub locked: bool,
    /// True if it makes sandboxes: its only one here is the user's own then.
    pub pool: bool,
    /// Its workspaces, the first one first; none before its first report.
    pub sandboxes: Vec<FleetSandbox>,
    /// True if policy counts its report of isolation. If not, nothing is proved.
    pub believed: bool,
    /// The incarnation that it had at its newest link; absent before the first.
    pub incarnation: Option<Incarnation>,
}

/// A workspace of a runner as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSandbox {
    /// Its id.
    pub id: SandboxId,
    /// The runner's name for it.
    pub name: String,
    /// The isolation that the runner reports.
    pub isolation: Isolation,
    /// The reason why no operation can run there, if none can.
    pub problem: Option<String>,
}

/// Places the operations of one owner.
#[async_trait]
pub trait Intents: Send + Sync {
    /// Commits the intent to carry this request out, synced to disk. If a tool call asks, it commits the event of the
    /// placement as well.
    ///
    /// # Errors
    /// Nothing was committed.
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError>;
}

/// The operations of one tenant that are placed, durable.
#[async_trait]
pub trait Operations: Send + Sync {
    /// The stored row of an operation.
    ///
    /// # Errors
    /// The store did not answer.
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError>;

    /// The state of a runner on which an operation was placed, whether or not its user may still choose it. An
    /// operation on a revoked runner is lost; on an offline one it waits.
    ///
    /// # Errors
    /// The store did not answer.
    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError>;

    /// Records that the operation is to be stopped. May be called again.
    ///
    /// # Errors
    /// The store did not answer.
    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError>;

    /// Stores the one outcome of an operation, synced to disk. The first one stays.
    ///
    /// # Errors
    /// The store did not answer.
    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settled, PortError>;

    /// The specification of a sandbox that its runner has to make; none if it is a workspace, or not wanted any more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn sandbox_spec(&self, sandbox: SandboxId) -> Result<Option<SandboxSpec>, PortError>;

    /// The store of these operations' output.
    fn outputs(&self) -> Arc<dyn Outputs>;
}

/// The store of operations' output (docs/internals/contracts.md#a8 to #a10).
#[async_trait]
pub trait Outputs: Send + Sync {
    /// The first kept bytes of a stream from this offset on, and their offset; none if there are no more.
    ///
    /// # Errors
    /// It cannot be read.
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError>;

    /// Keeps all of this operation's output from now on, and not only its head and its tail. That is durable when this
    /// returns. It also holds for later appends by a caller that does not know the request.
    ///
    /// # Errors
    /// It cannot be written.
    async fn keep_all(&self, id: OperationId) -> Result<(), PortError>;

    /// Keeps bytes at their offset; bytes that are kept already are left out. An empty append declares that the bytes
    /// before its offset never come. [`Outputs::synced`] reports a failed write, or missing bytes before it: by its
    /// error, or by an offset before their end.
    ///
    /// # Errors
    /// The server stops.
    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError>;

    /// The offsets at which a new writer continues stdout and stderr. Bytes before them are durable, and bytes that
    /// could not be written are tried again.
    ///
    /// # Errors
    /// It still cannot be written.
    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError>;

    /// Waits until the appended bytes are durable; returns the offsets up to which stdout and stderr are. They never
    /// fall.
    ///
    /// # Errors
    /// Some of it could not be written.
    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError>;
}

/// An operation that is about to be sent for the first time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewIntent {
    /// Its id.
    pub id: OperationId,
    /// Of the canonical request.
    pub digest: Digest,
    /// The session or sandbox that it belongs to.
    pub owner: Owner,
    /// The owner's name for it.
    pub key: OperationKey,
    /// The owner's epoch: it must be refused if it is lower than the stored one.
    pub epoch: Epoch,
    /// The effect that a second run would have.
    pub effect: Effect,
    /// The place where it will run.
    pub place: Place,
    /// The runner's incarnation.
    pub incarnation: Incarnation,
    /// The moment by which it must start; later it does not start at all.
    pub start_by: BootMoment,
    /// About the same moment, for people and for earlier releases.
    pub deadline: Timestamp,
    /// The span that it is part of, if it is traced.
    pub trace: Option<TraceContext>,
}

/// The rows of runners and links.
#[async_trait]
pub trait LinkRows: Send + Sync {
    /// The runner's memory as its newest link has shown it; none before the first one.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<Seen>, PortError>;

    /// Makes a new link the runner's current one, stores the runner's report, and returns the link's generation, higher
    /// than every earlier one of this runner. In the same transaction [`forgotten`] becomes the outcome of every open
    /// operation of another incarnation that the runner does not list: no later link can start it.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError>;

    /// Stores [`never_started`] as the outcome of open operations of the runner: those that it does not list, and whose
    /// call ended or whose stop was requested. Stores nothing if this link is not the newest any more. Called before
    /// the link carries operations.
    ///
    /// # Errors
    /// The store did not answer.
    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError>;

    /// Stores a sign of life. If the link does not hold any more, nothing is stored, and the reason is returned. A
    /// store that does not answer returns none.
    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway>;

    /// Takes the runner's figures about itself, over the link of this generation. They are for people and metrics.
    fn figures(&self, who: &LinkIdentity, generation: Generation, figures: Figures);

    /// Records that the link of this generation ended, over which the runner reported that it has accepted so many
    /// operations. A generation that is not current changes nothing.
    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64);

    /// The verdicts on these operations, which the runner remembers.
    ///
    /// # Errors
    /// The store did not answer.
    async fn verdicts(
        &self,
        who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, Verdict)>, PortError>;

    /// Stores the state of a sandbox of the runner's pool. Returns true if the runner is to remove it, because it is
    /// not wanted any more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn reported(&self, who: &LinkIdentity, report: &SandboxReport)
    -> Result<bool, PortError>;

    /// The operations of this runner's tenant.
    fn operations(&self, who: &LinkIdentity) -> Arc<dyn Operations>;
}

/// A sign of life of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The generation of the link.
    pub generation: Generation,
    /// When its last frame came.
    pub at: Timestamp,
    /// Operations that the runner has reported as accepted.
    pub accepted: u64,
}

/// The runner of a link, proved by the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkIdentity {
    /// The runner's tenant.
    pub tenant: TenantId,
    /// The runner.
    pub runner: RunnerId,
    /// Its name for people.
    pub name: String,
}

/// The store did not answer, or refused.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The store is away; it may answer later.
    #[error(transparent)]
    Away(Box<dyn std::error::Error + Send + Sync>),
    /// The store has answered, and will answer the same again: for instance, there is no such row, or this version
    /// cannot read it.
    #[error(transparent)]
    Lasting(Box<dyn std::error::Error + Send + Sync>),
}

impl PortError {
    /// An error of a store that did not answer: lower case, no full stop.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Away(cause.into())
    }

    /// An error that another try would not change.
    pub fn lasting(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Lasting(cause.into())
    }

    /// True if the store may answer later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// The reason why an intent was not committed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A newer holder of the owner exists.
    #[error("a newer holder of the session exists")]
    StaleEpoch,
    /// The operation is stored already.
    #[error("the operation is stored already")]
    Conflict,
    /// The runner has another incarnation by now than the intent's.
    #[error("the runner has just linked anew")]
    OtherIncarnation,
    /// The runner was revoked or locked since.
    #[error("the runner was removed or locked")]
    Barred,
    /// The user may not use the runner any more.
    #[error("the runner may not be used any more")]
    NotAllowed,
    /// The store did not answer.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
