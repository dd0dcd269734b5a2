//! Turns as they are stored, and the rows by which workers find, claim, park and give up turns.

use std::sync::Arc;

use async_trait::async_trait;
use shared_types::{
    CallWait, CredentialId, Epoch, ReplicaId, SessionEvent, SessionId, TenantId, Timestamp,
    TraceContext, TurnId,
    event::{Choice, TurnOutcome, TurnSettings},
};

use crate::{LogRows, PortError, SessionError, SessionKey};

/// The turns of all sessions: a server finds its work with them.
#[async_trait]
pub trait TurnRows: Send + Sync {
    /// Turns that have not ended, by id, after that one, `limit` at most.
    ///
    /// # Errors
    /// The store did not answer.
    async fn unfinished(
        &self,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError>;

    /// Turns that are queued since before this moment, and those that were let go of, by id, after that one, `limit` at most.
    ///
    /// # Errors
    /// The store did not answer.
    async fn queued(
        &self,
        since: Timestamp,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError>;

    /// Turns whose wait is over, by id, after that one, `limit` at most.
    ///
    /// # Errors
    /// The store did not answer.
    async fn to_wake(
        &self,
        over: WaitsOver,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError>;

    /// The time when the next wait is over, of those that are not over at this moment.
    ///
    /// # Errors
    /// The store did not answer.
    async fn next_wait_over_at(&self, now: Timestamp) -> Result<Option<Timestamp>, PortError>;

    /// Lets go of all running turns that this replica has. None of its workers carries one.
    ///
    /// # Errors
    /// The store did not answer.
    async fn let_go_of_left(&self, replica: ReplicaId) -> Result<(), PortError>;

    /// The turns of one session.
    fn of(&self, session: SessionKey) -> Arc<dyn SessionTurns>;
}

/// The turns of one session, for its worker.
#[async_trait]
pub trait SessionTurns: Send + Sync {
    /// The epoch of the session's newest claim.
    ///
    /// # Errors
    /// There is no such session, or the store did not answer.
    async fn epoch(&self) -> Result<Epoch, SessionError>;

    /// The next step for the turns. Only reads, so that no writer waits.
    ///
    /// # Errors
    /// The store did not answer.
    async fn next(&self, over: WaitsOver) -> Result<NextTurn, SessionError>;

    /// Takes the next turn for a worker of this replica, under a new epoch. The settings are those of a turn for which
    /// none are set. Returns none if there is nothing to do.
    ///
    /// # Errors
    /// There is no such session, or the store did not answer.
    async fn claim(
        &self,
        replica: ReplicaId,
        if_running: IfRunning,
        unless_set: &TurnSettings,
        now: Timestamp,
    ) -> Result<Option<ClaimedTurn>, SessionError>;

    /// True if the turn is to stop.
    ///
    /// # Errors
    /// There is no such turn, or the store did not answer.
    async fn is_to_stop(&self, turn: TurnId) -> Result<bool, SessionError>;

    /// Parks a turn that only waits for these calls. From then on no worker has it.
    ///
    /// # Errors
    /// The turn does not run under this epoch, or the store did not answer.
    async fn park(&self, turn: TurnId, held: Epoch, calls: &[CallWait])
    -> Result<(), SessionError>;

    /// Lets go of a turn at a point where nothing of it is under way: any replica may claim it from then on, and the
    /// others are told.
    ///
    /// # Errors
    /// The turn does not run under this epoch, or the store did not answer.
    async fn let_go(&self, turn: TurnId, held: Epoch) -> Result<(), SessionError>;

    /// Lets go of the session's turn if this replica has it and none of its workers carries it: one has failed.
    ///
    /// # Errors
    /// The store did not answer.
    async fn let_go_of_left(&self, replica: ReplicaId) -> Result<(), SessionError>;

    /// Tells other replicas that the session may have a turn to claim, which this one does not claim.
    fn offer(&self);

    /// Counts a failure of the turn's worker.
    ///
    /// # Errors
    /// The turn does not run under this epoch, or the store did not answer.
    async fn count_failure(&self, turn: TurnId, held: Epoch) -> Result<TurnFailures, SessionError>;

    /// The log of the session.
    fn log(&self) -> Arc<dyn LogRows>;
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRow {
    /// Its id.
    pub id: TurnId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// The client's idempotency key.
    pub client_id: Option<String>,
    /// The number of the event of its input.
    pub input_seq: u64,
    /// Its state.
    pub state: TurnState,
    /// When its input was accepted.
    pub created_at: Timestamp,
    /// The time when a user or the server first asked to stop it.
    pub cancel_requested_at: Option<Timestamp>,
    /// The place of its calls; absent before its first claim.
    pub choice: Option<Choice>,
    /// Its settings; absent before its first claim, and where an earlier release claimed it.
    pub settings: Option<TurnSettings>,
    /// The span that it is part of.
    pub trace: Option<TraceContext>,
    /// True if it works for a call of another session.
    pub for_call: bool,
    /// The credential with which its message was sent; absent where an earlier release accepted it.
    pub credential: Option<CredentialId>,
    /// The time until which its work may continue under that credential; before every moment, if it was revoked.
    pub credential_until: Option<Timestamp>,
}

/// The state of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnState {
    /// No worker has taken it.
    Queued,
    /// A worker took it, and may be gone since.
    Running {
        /// The replica that the worker runs in.
        replica: ReplicaId,
        /// The epoch that it writes under.
        epoch: Epoch,
        /// The time since.
        since: Timestamp,
    },
    /// A worker has parked it, because it has nothing to do but to wait.
    Waiting {
        /// The epoch that the worker wrote under.
        epoch: Epoch,
        /// The end of the wait; then it waits no longer, even if nothing has come.
        until: Timestamp,
    },
    /// It is over.
    Ended {
        /// The outcome.
        outcome: TurnOutcome,
        /// The reason, if it did not complete.
        reason: Option<String>,
        /// The time of the end.
        at: Timestamp,
    },
}

/// A turn that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedTurn {
    /// The tenant.
    pub tenant: TenantId,
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// True if a worker had taken it.
    pub running: bool,
}

impl UnfinishedTurn {
    /// Its session.
    pub fn key(&self) -> SessionKey {
        SessionKey {
            tenant: self.tenant,
            session: self.session,
        }
    }
}

/// The action of a claim if a turn of the session runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfRunning {
    /// It fails: the worker lives.
    Refuse,
    /// It takes nothing; a parked turn is left as well, and one that works for a call of another session.
    Leave,
    /// It takes that turn over, unless another live replica has it: its worker is known to be gone.
    TakeOver,
    /// The same, for the turn of an agent. The claim fails as full if live replicas carry so many turns of the tenant's
    /// agents.
    TakeOverWithin(u32),
}

/// A turn that the caller now works on, alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedTurn {
    /// The turn, running.
    pub turn: TurnRow,
    /// The epoch that every write of the worker carries.
    pub epoch: Epoch,
    /// The calls that it waited for without a worker until now.
    pub waited: Vec<CallWait>,
    /// The epoch of the worker that was lost with it, if one was.
    pub interrupted: Option<Epoch>,
    /// The events that the claim added to the log; none for a turn that only waited.
    pub events: Vec<SessionEvent>,
}

/// A turn that waits without a worker, and the calls that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingTurn {
    /// The turn.
    pub turn: TurnId,
    /// Its calls that wait.
    pub calls: Vec<CallWait>,
}

/// The next step for a session's turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextTurn {
    /// No turn is unfinished.
    Nothing,
    /// Claim the oldest unfinished turn.
    Claim {
        /// True if it works for a call of another session.
        for_call: bool,
    },
    /// The oldest unfinished turn waits, and its wait is not over.
    Wait(WaitingTurn),
}

/// The moment for which the store is asked which waits are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitsOver {
    /// The replica that asks.
    pub replica: ReplicaId,
    /// The moment for turns that a worker of this replica has parked: now.
    pub at: Timestamp,
    /// The moment for turns that other replicas have parked: earlier, while it is not known yet which replicas come
    /// back.
    pub of_others_at: Timestamp,
}

/// A turn whose worker failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnFailures {
    /// Failures in the turn's present phase, this one included.
    pub count: u32,
    /// True if a user asked to stop the turn.
    pub cancel_requested: bool,
}
