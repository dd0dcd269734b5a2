//! A turn as it is stored.

use serde::{Deserialize, Serialize};
use shared_types::{
    CredentialId, Epoch, ReplicaId, SessionId, TenantId, Timestamp, TraceContext, TurnId,
    event::{Choice, StopReason, TurnOutcome, TurnSettings},
};

use crate::{
    columns::{Columns as _, word},
    credential,
    database::{FromRow, Row},
};

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
    /// The credential with which its message was sent; absent where an earlier release accepted it.
    pub credential: Option<CredentialId>,
    /// The time until which its work may continue under that credential; before every moment, if it was revoked.
    pub(super) credential_until: Option<Timestamp>,
}

impl TurnRow {
    /// The reason why the turn has to stop; none while its credential holds.
    pub fn credential_ended(&self, now: Timestamp) -> Option<StopReason> {
        credential::ended(self.credential_until, now)
    }
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

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Queued,
    Running,
    Ended,
}

impl FromRow for TurnRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let state = match row.word("state")? {
            State::Queued => TurnState::Queued,
            State::Running => {
                let epoch = Epoch(row.count("claimed_epoch")?);
                match row.maybe_time("waits_until")? {
                    Some(until) => TurnState::Waiting { epoch, until },
                    None => TurnState::Running {
                        replica: row.parsed("claimed_by")?,
                        epoch,
                        since: row.time("claimed_at")?,
                    },
                }
            }
            State::Ended => TurnState::Ended {
                outcome: row.word("outcome")?,
                reason: row.maybe_text("reason")?,
                at: row.time("ended_at")?,
            },
        };
        Ok(Self {
            id: row.parsed("id")?,
            session: row.parsed("session_id")?,
            client_id: row.maybe_text("client_id")?,
            input_seq: row.count("input_seq")?,
            state,
            created_at: row.time("created_at")?,
            cancel_requested_at: row.maybe_time("cancel_requested_at")?,
            credential: row.maybe_parsed("credential_id")?,
            credential_until: row.maybe_time("credential_until")?,
            choice: match row.maybe_text("chosen_by")? {
                Some(_) => Some(choice(row)?),
                None => None,
            },
            settings: row.maybe_json("settings")?,
            trace: row.maybe_parsed("traceparent")?,
        })
    }
}

/// The origin of the choice of a runner.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChosenBy {
    None,
    Session,
    User,
    Tenant,
}

/// The choice in the columns `chosen_by`, `chosen_runner_id`, `chosen_runner_name` and `chosen_workspace`.
pub(crate) fn choice(row: &Row) -> Result<Choice, sqlx::Error> {
    let runner = || row.parsed("chosen_runner_id");
    let name = || row.text("chosen_runner_name");
    let workspace = row.maybe_text("chosen_workspace")?;
    Ok(match row.word("chosen_by")? {
        ChosenBy::None => Choice::None,
        ChosenBy::Session => Choice::Session {
            runner: runner()?,
            name: name()?,
            workspace,
        },
        ChosenBy::User => Choice::User {
            runner: runner()?,
            name: name()?,
            workspace,
        },
        ChosenBy::Tenant => Choice::Tenant {
            runner: runner()?,
            name: name()?,
            workspace,
        },
    })
}

/// The stored form of the choice's origin.
pub(crate) fn chosen_by(choice: &Choice) -> String {
    word(&match choice {
        Choice::None => ChosenBy::None,
        Choice::Session { .. } => ChosenBy::Session,
        Choice::User { .. } => ChosenBy::User,
        Choice::Tenant { .. } => ChosenBy::Tenant,
    })
}

impl FromRow for UnfinishedTurn {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            session: row.parsed("session_id")?,
            turn: row.parsed("id")?,
            running: matches!(row.word("state")?, State::Running),
        })
    }
}
