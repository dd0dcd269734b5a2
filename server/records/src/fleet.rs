//! The runners that a placement may use.

use async_trait::async_trait;
use shared_link::server::RunnerState;
use shared_types::{Epoch, Incarnation, Isolation, RunnerId, SandboxId, UserId, event::Choice};
use tokio::time::Instant;

use crate::PortError;

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
    /// The user who has no sandbox yet on the chosen runner, a pool that the user may use.
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
    /// The name of the person who lets it drain; absent where it takes new operations, or was removed.
    pub drained_by: Option<String>,
    /// True if it makes sandboxes: its only one here is the user's own then.
    pub pool: bool,
    /// Its workspaces, the first one first; none before its first report.
    pub sandboxes: Vec<FleetSandbox>,
    /// True if its report of isolation counts: an admin has granted that, or the operator. If not, nothing is proved.
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
    /// True if its commands may be root there: its template says so, or it was made from one that did, and runs.
    pub has_sudo: bool,
    /// The epoch under which the operations of callers are sent there.
    pub epoch: Epoch,
}
