//! What the router needs of the store, as narrow traits that `server-app` implements.
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
    RunnerId, SandboxId, SandboxSpec, TenantId, Timestamp, TraceContext,
    clock::BootMoment,
    event::{Choice, Place},
};

/// The runners that one turn may use, and which one was chosen when it was claimed.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// The fleet as it is stored now.
    ///
    /// # Errors
    /// The store did not answer.
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError>;

    /// Tells the people who watch the turn what its call waits for.
    fn tell(&self, words: String);
}

/// All that placement looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSnapshot {
    /// Whether a caller named the runner for this one operation, outside any turn.
    pub is_callers: bool,
    /// The choice that counts.
    pub choice: Choice,
    /// What policy demands of the sandbox.
    pub demanded: Isolation,
    /// The runners.
    pub runners: Vec<FleetRunner>,
}

/// One runner as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRunner {
    /// Which one.
    pub id: RunnerId,
    /// What people call it.
    pub name: String,
    /// Whether it can be reached.
    pub state: RunnerState,
    /// Whether it may not come back as who it is, because its folder was copied.
    pub locked: bool,
    /// Whether it makes sandboxes: its only one here is the user's own then.
    pub pool: bool,
    /// Its workspaces, the first one first; none until it has said so.
    pub sandboxes: Vec<FleetSandbox>,
    /// Whether policy takes its word for that. Where it does not, nothing is proved.
    pub believed: bool,
    /// What its memory is worth; absent until it has linked once.
    pub incarnation: Option<Incarnation>,
}

/// A workspace of a runner as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSandbox {
    /// Which one.
    pub id: SandboxId,
    /// What the runner calls it.
    pub name: String,
    /// What the runner reports that it keeps apart.
    pub isolation: Isolation,
    /// Why nothing can happen there, where that is so.
    pub problem: Option<String>,
}

/// Where the operations of one owner are placed.
#[async_trait]
pub trait Intents: Send + Sync {
    /// Commits the intent to carry this request out, and where a tool call asks the event that says
    /// where it was placed, synced to disk.
    ///
    /// # Errors
    /// Nothing was committed.
    async fn place(&self, intent: NewIntent, request: &Request) -> Result<(), PlaceError>;
}

/// The operations of one tenant that are placed, durable.
#[async_trait]
pub trait Operations: Send + Sync {
    /// What is stored of an operation.
    ///
    /// # Errors
    /// The store did not answer.
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError>;

    /// The state of a runner on which an operation was placed, whether or not its user may still choose
    /// it: an operation on a revoked runner is lost, on an offline one it waits.
    ///
    /// # Errors
    /// The store did not answer.
    async fn runner(&self, runner: RunnerId) -> Result<RunnerState, PortError>;

    /// Records that the operation is to be stopped. May be asked again.
    ///
    /// # Errors
    /// The store did not answer.
    async fn request_cancel(&self, id: OperationId) -> Result<(), PortError>;

    /// Stores the one outcome of an operation, synced to disk. The first one stays.
    ///
    /// # Errors
    /// The store did not answer.
    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settled, PortError>;

    /// What a sandbox is to be that its runner has to make; nothing, where it is a workspace, or not
    /// wanted any more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn sandbox_spec(&self, sandbox: SandboxId) -> Result<Option<SandboxSpec>, PortError>;

    /// Where the output of these operations is kept.
    fn outputs(&self) -> Arc<dyn Outputs>;
}

/// Where the output of operations is kept (docs/internals/contracts.md#a8 to #a10).
#[async_trait]
pub trait Outputs: Send + Sync {
    /// The first bytes that are kept of a stream from this offset on, and where they begin; nothing
    /// where there are no more.
    ///
    /// # Errors
    /// It cannot be read.
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError>;

    /// Keeps all of this operation's output from now on, and not only its head and its tail. That is
    /// durable when this returns, and holds for whoever appends, also without knowing the request.
    ///
    /// # Errors
    /// It cannot be written.
    async fn keep_all(&self, id: OperationId) -> Result<(), PortError>;

    /// Keeps bytes at their place; what is kept already is left out. No bytes say that those before
    /// their place never come. Whether they can be written, and whether those before them were, is
    /// told by [`Outputs::synced`]: by its error, or by an offset before their end.
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

    /// From where on stdout and stderr are to be appended to by whoever begins: what is before is
    /// durable, and what could not be written is tried again.
    ///
    /// # Errors
    /// It still cannot be written.
    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError>;

    /// Waits until what was appended is durable: how far stdout and stderr are. Never falls.
    ///
    /// # Errors
    /// Some of it could not be written.
    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError>;
}

/// An operation that is about to be sent for the first time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewIntent {
    /// Which one.
    pub id: OperationId,
    /// Of the canonical request.
    pub digest: Digest,
    /// What it belongs to.
    pub owner: Owner,
    /// What the owner calls it.
    pub key: OperationKey,
    /// The owner's epoch: a lower one than is stored must be refused.
    pub epoch: Epoch,
    /// What a second run would do.
    pub effect: Effect,
    /// Where it will run.
    pub place: Place,
    /// The runner's incarnation.
    pub incarnation: Incarnation,
    /// It must start by then or not at all.
    pub start_by: BootMoment,
    /// About when that is, for people and for earlier releases.
    pub deadline: Timestamp,
    /// The span that it is part of, where it is traced.
    pub trace: Option<TraceContext>,
}

/// The rows of runners and links.
#[async_trait]
pub trait LinkRows: Send + Sync {
    /// What the runner's newest link has shown of its memory; nothing before the first one.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<Seen>, PortError>;

    /// Makes a new link the runner's current one, stores what the runner says of itself, and
    /// returns the link's generation, higher than every earlier one of this runner. In the same
    /// transaction [`forgotten`] becomes the outcome of every open operation of another incarnation
    /// that the runner does not list: no later link can start it.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError>;

    /// Stores [`never_started`] as the outcome of every open operation of the runner that it does not
    /// list, and whose call ended or which somebody wants stopped; nothing, where this link is not
    /// the newest any more. Asked before the link carries operations.
    ///
    /// # Errors
    /// The store did not answer.
    async fn settle_unheard(
        &self,
        who: &LinkIdentity,
        link: Generation,
        hello: &HelloFacts,
    ) -> Result<(), PortError>;

    /// Stores a sign of life. Where the link does not hold any more nothing is stored, and the answer
    /// is why; a store that does not answer says nothing.
    async fn heard(&self, who: &LinkIdentity, heard: Heard) -> Option<TurnedAway>;

    /// How the runner says it is, over the link of this generation. It is for people and metrics.
    fn figures(&self, who: &LinkIdentity, generation: Generation, figures: Figures);

    /// The link of this generation ended, over which the runner said that it has accepted so many
    /// operations. A generation that is not current changes nothing.
    async fn ended(&self, who: &LinkIdentity, generation: Generation, accepted: u64);

    /// What is to become of these operations, which the runner remembers.
    ///
    /// # Errors
    /// The store did not answer.
    async fn verdicts(
        &self,
        who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, Verdict)>, PortError>;

    /// Stores how a sandbox of the runner's pool is; whether the runner is to remove it, because nobody
    /// wants it any more.
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
    /// Of the link.
    pub generation: Generation,
    /// When its last frame came.
    pub at: Timestamp,
    /// Operations that the runner has accepted by its own word.
    pub accepted: u64,
}

/// Whose link it is, proved by the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkIdentity {
    /// The runner's tenant.
    pub tenant: TenantId,
    /// The runner.
    pub runner: RunnerId,
    /// What people call it.
    pub name: String,
}

/// The store did not answer, or refused.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The store is away; it may answer later.
    #[error(transparent)]
    Away(Box<dyn std::error::Error + Send + Sync>),
    /// The store has answered, and will answer the same again: there is no such row for instance, or this
    /// version cannot read it.
    #[error(transparent)]
    Lasting(Box<dyn std::error::Error + Send + Sync>),
}

impl PortError {
    /// Says why the store did not answer: lower case, no full stop.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Away(cause.into())
    }

    /// Says why it is of no use to ask again.
    pub fn lasting(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Lasting(cause.into())
    }

    /// Whether the store may answer later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// Why an intent was not committed.
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
    /// The runner was revoked or locked meanwhile.
    #[error("the runner was removed or locked")]
    Barred,
    /// The user may not use the runner any more.
    #[error("the runner may not be used any more")]
    NotAllowed,
    /// The store did not answer.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
