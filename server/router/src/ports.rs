//! What the router needs of the store, as narrow traits that `server-app` implements.
//!
//! Every implementor is bound to its tenant (and session, where it is one session's) when it is
//! made, so no method names one. The router never sees SQL.

use async_trait::async_trait;
use shared_sandbox::Outcome;
use shared_types::{
    Digest, Effect, Epoch, Generation, Incarnation, Isolation, OperationId, OperationKey, Owner,
    RunnerId, SandboxId, TenantId, Timestamp, event::Place,
};

/// The runners that one user may use, and which one was chosen.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// The fleet as it is stored now.
    ///
    /// # Errors
    /// The store did not answer.
    async fn snapshot(&self) -> Result<FleetSnapshot, PortError>;

    /// The state of one runner on which an operation was placed before, whether or not its user
    /// may still choose it. Whoever leaves revoked runners out of the snapshot answers this from
    /// the runner's own row: an operation on a revoked runner is lost, on an offline one it waits.
    ///
    /// # Errors
    /// The store did not answer.
    async fn state(&self, runner: RunnerId) -> Result<RunnerState, PortError> {
        let snapshot = self.snapshot().await?;
        let row = snapshot.runners.iter().find(|row| row.id == runner);
        Ok(row.map_or(RunnerState::Offline { since: None }, |row| row.state))
    }
}

/// All that placement looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSnapshot {
    /// The runner that the user chose.
    pub choice: Option<RunnerId>,
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
    /// Its workspace and what that is proved to keep apart; absent until it has said so.
    pub sandbox: Option<(SandboxId, Isolation)>,
    /// What its memory is worth; absent until it has linked once.
    pub incarnation: Option<Incarnation>,
}

/// Whether a runner can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerState {
    /// It has a link.
    Online,
    /// It has none.
    Offline {
        /// When it was last heard of; absent where it never was.
        since: Option<Timestamp>,
    },
    /// Its credential was withdrawn; it never comes back.
    Revoked,
}

/// The operations of one owner, durable.
#[async_trait]
pub trait Intents: Send + Sync {
    /// What is stored of an operation.
    ///
    /// # Errors
    /// The store did not answer.
    async fn find(&self, id: OperationId) -> Result<Option<StoredIntent>, PortError>;

    /// Commits the intent, and the event that says where the call was placed, synced to disk.
    ///
    /// # Errors
    /// Nothing was committed.
    async fn place(&self, intent: NewIntent) -> Result<(), PlaceError>;

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
}

/// What is stored of an operation that was placed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredIntent {
    /// Of the canonical request.
    pub digest: Digest,
    /// Where it was placed; never another place.
    pub place: Place,
    /// The runner's incarnation when it was placed.
    pub incarnation: Incarnation,
    /// Its end, once that is known.
    pub outcome: Option<Outcome>,
    /// Whether it is to be stopped.
    pub cancel_requested: bool,
    /// What a second run would do.
    pub effect: Effect,
    /// It must have started by then or not at all.
    pub deadline: Timestamp,
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
    pub deadline: Timestamp,
}

/// What settling an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// The outcome is stored now.
    First,
    /// This one had been stored before, and stays.
    Already(Outcome),
}

/// The rows of runners and links.
#[async_trait]
pub trait LinkRows: Send + Sync {
    /// Makes a new link the runner's current one, stores what the runner says of itself, and
    /// returns the link's generation, higher than every earlier one of this runner.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn claim(&self, who: &LinkIdentity, hello: &HelloFacts) -> Result<Generation, PortError>;

    /// The link of this generation lives. A generation that is not current changes nothing.
    async fn heard(&self, who: &LinkIdentity, generation: Generation);

    /// The link of this generation ended. A generation that is not current changes nothing.
    async fn ended(&self, who: &LinkIdentity, generation: Generation);

    /// What is to become of these operations, which the runner remembers.
    ///
    /// # Errors
    /// The store did not answer.
    async fn verdicts(
        &self,
        who: &LinkIdentity,
        operations: &[OperationId],
    ) -> Result<Vec<(OperationId, Verdict)>, PortError>;

    /// Stores the outcome of an operation for which nobody waits any more; the first one stays.
    ///
    /// # Errors
    /// The store did not answer.
    async fn settle(
        &self,
        who: &LinkIdentity,
        id: OperationId,
        outcome: &Outcome,
    ) -> Result<(), PortError>;
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

/// What a runner says of itself when it links, checked and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloFacts {
    /// The protocol version that both speak on this link.
    pub protocol_version: u32,
    /// The runner's build.
    pub software_version: String,
    /// What its memory is worth.
    pub incarnation: Incarnation,
    /// Operations that it accepted since its journal began.
    pub journal_sequence: u64,
    /// Its operating system.
    pub os: String,
    /// Its processor architecture.
    pub architecture: String,
    /// Its host's name.
    pub hostname: String,
    /// Requests beyond version 1 that it serves.
    pub features: Vec<String>,
    /// Where operations can happen on it.
    pub sandboxes: Vec<SandboxFacts>,
    /// The operations that it remembers.
    pub inventory: Vec<Remembered>,
}

/// A sandbox as its runner describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxFacts {
    /// Which one; derived from the runner's id and the name.
    pub id: SandboxId,
    /// What the runner calls it.
    pub name: String,
    /// Its root on the host: for people.
    pub root: String,
    /// What it is proved to keep apart.
    pub isolation: Isolation,
}

/// An operation that a runner remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Which one.
    pub operation: OperationId,
    /// Whether it has ended.
    pub ended: bool,
}

/// What is to become of an operation that a runner remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody waits for it, or will.
    Keep,
    /// It is to be stopped; its outcome is fetched and stored.
    Cancel(Attachment),
    /// Its outcome and output are stored, or nobody will ever want them: the runner drops it.
    Forget,
    /// Nobody waits for it: its outcome is fetched and stored.
    Settle(Attachment),
}

/// What it takes to attach to an operation without its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Of the canonical request.
    pub digest: Digest,
    /// Where it was placed.
    pub sandbox: SandboxId,
    /// What it belongs to.
    pub owner: Owner,
    /// The owner's epoch.
    pub epoch: Epoch,
}

/// The store did not answer, or refused.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PortError(Box<dyn std::error::Error + Send + Sync>);

impl PortError {
    /// Says why: lower case, no full stop.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
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
    /// The store did not answer.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
