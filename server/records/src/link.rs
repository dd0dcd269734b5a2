//! The links of runners.

use std::sync::Arc;

use async_trait::async_trait;
use shared_link::server::{
    HelloFacts, KnownMemory, ModelsReport, ReconcileVerdict, SandboxReport, TurnedAway,
};
use shared_types::{
    Generation, Incarnation, OperationId, ReplicaId, RunnerId, TenantId, Timestamp,
};

use crate::{Operations, PortError};

/// The rows of runners and links.
#[async_trait]
pub trait LinkRows: Send + Sync {
    /// The runner's memory as its newest link has shown it; none before the first one.
    ///
    /// # Errors
    /// The store did not answer, or the runner may not link (any more).
    async fn seen(&self, who: &LinkIdentity) -> Result<Option<KnownMemory>, PortError>;

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
    ) -> Result<Vec<(OperationId, ReconcileVerdict)>, PortError>;

    /// Stores the state of a sandbox of the runner's pool. Returns true if the runner is to remove it, because it is
    /// not wanted any more.
    ///
    /// # Errors
    /// The store did not answer.
    async fn reported(&self, who: &LinkIdentity, report: &SandboxReport)
    -> Result<bool, PortError>;

    /// Stores the runner's report of its models, over the link of this generation. That of an older link changes
    /// nothing.
    ///
    /// # Errors
    /// The store did not answer.
    async fn models(
        &self,
        who: &LinkIdentity,
        link: Generation,
        report: &ModelsReport,
    ) -> Result<(), PortError>;

    /// The replica that holds the runner's link now.
    ///
    /// # Errors
    /// The store did not answer.
    async fn holder(&self, runner: RunnerId) -> Result<LinkState, PortError>;

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

/// The link of a runner, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// It has none.
    Absent,
    /// This replica holds it, under this generation.
    Here(Generation),
    /// Another replica holds it.
    Elsewhere(LinkHolder),
    /// The runner never comes back.
    Barred(TurnedAway),
}

/// The replica that holds the link of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkHolder {
    /// The replica.
    pub replica: ReplicaId,
    /// The host and port at which it answers other replicas; none if it does not.
    pub address: Option<String>,
    /// The runner's tenant.
    pub tenant: TenantId,
    /// The runner.
    pub runner: RunnerId,
    /// The generation of the link.
    pub generation: Generation,
    /// The identity of the runner's memory.
    pub incarnation: Incarnation,
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
