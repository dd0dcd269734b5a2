//! Operations: the intent to run one, and its state once it is placed.

use std::sync::Arc;

use async_trait::async_trait;
use shared_link::server::{RunnerState, Settlement, StoredIntent};
use shared_sandbox::{Outcome, Request};
use shared_types::{
    Digest, Effect, Epoch, Incarnation, OperationId, OperationKey, Owner, RunnerId, SandboxId,
    SandboxSpec, Timestamp, TraceContext, clock::BootMoment, event::Place,
};

use crate::{Outputs, PortError};

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
    async fn settle(&self, id: OperationId, outcome: &Outcome) -> Result<Settlement, PortError>;

    /// The specification of a sandbox that its runner has to make; none if it is a workspace, or not wanted any more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn sandbox_spec(&self, sandbox: SandboxId) -> Result<Option<SandboxSpec>, PortError>;

    /// The store of these operations' output.
    fn outputs(&self) -> Arc<dyn Outputs>;
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
    /// The runner drains by now.
    #[error("the runner takes no new operations")]
    Draining,
    /// The user may not use the runner any more.
    #[error("the runner may not be used any more")]
    NotAllowed,
    /// The store did not answer.
    #[error(transparent)]
    Unavailable(#[from] PortError),
}
