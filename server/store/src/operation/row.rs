//! An operation as it is stored.

use shared_types::{
    Digest, Effect, Epoch, Incarnation, OperationId, Owner, RunnerId, SandboxId, SessionId,
    Timestamp, TraceContext, TurnId, UserId, clock::BootMoment, event::StopReason,
};

use crate::{
    columns::Columns as _,
    database::{FromRow, Row},
};

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRow {
    /// Its id.
    pub id: OperationId,
    /// The call or caller that asked for it.
    pub asked_by: AskedBy,
    /// The digest of the canonical request.
    pub digest: Digest,
    /// The epoch of the worker that placed it.
    pub epoch: Epoch,
    /// The runner that it was sent to.
    pub runner: RunnerId,
    /// The sandbox that it runs in.
    pub sandbox: SandboxId,
    /// The runner's incarnation that it was sent to.
    pub incarnation: Incarnation,
    /// The effect that a second run would have.
    pub effect: Effect,
    /// The moment by which it must have started; later it does not start at all. Absent where an earlier release placed
    /// it.
    pub start_by: Option<BootMoment>,
    /// About the same moment, for people and for earlier releases.
    pub deadline_at: Timestamp,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// The time when a user or the server first asked to stop it.
    pub cancel_requested_at: Option<Timestamp>,
    /// The reason why it had to stop, if its own user did not ask for that.
    pub stopped: Option<StopCause>,
    /// The time when its user lost the right to use its runner while it ran: its output is not shown any more.
    pub access_ended_at: Option<Timestamp>,
    /// Its outcome.
    pub outcome: Option<StoredOutcome>,
    /// The time when its call ended: no call waits for the outcome any more.
    pub closed_at: Option<Timestamp>,
    /// The span that it is part of.
    pub trace: Option<TraceContext>,
}

/// The reason why an operation had to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopCause {
    /// The reason.
    pub why: StopReason,
    /// The name of the user who caused that, which may be its own user; absent where that user was removed.
    pub by: Option<String>,
}

/// The call or caller that asked for an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedBy {
    /// A tool call of the engine's.
    Call(CallOf),
    /// A person or program, through the API.
    Caller {
        /// The user.
        user: UserId,
        /// The caller's name for it; no other operation of the user's has this key.
        key: String,
    },
}

/// The tool call that an operation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOf {
    /// The session, which owns the operation.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// 0, or more where a pure operation was run again after it was lost.
    pub attempt: u32,
}

/// The outcome of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutcome {
    /// The outcome in the form in which it was given.
    pub json: String,
    /// When it was stored.
    pub at: Timestamp,
}

/// The state of an operation that a runner remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState {
    /// The store does not know it on this runner.
    Unknown,
    /// Its outcome is stored: the runner may forget it.
    Settled,
    /// Its stop was requested, and its outcome is not known.
    CancelRequested,
    /// Its call ended without its outcome, which is still wanted.
    Closed,
    /// Its call waits for it.
    Open,
}

impl OperationRow {
    /// The session or sandbox that it belongs to.
    pub fn owner(&self) -> Owner {
        match &self.asked_by {
            AskedBy::Call(call) => Owner::Session(call.session),
            AskedBy::Caller { .. } => Owner::Sandbox(self.sandbox),
        }
    }

    /// The session that owns it, if one does.
    pub fn session(&self) -> Option<SessionId> {
        match &self.asked_by {
            AskedBy::Call(call) => Some(call.session),
            AskedBy::Caller { .. } => None,
        }
    }

    /// Its state.
    pub fn state(&self) -> OperationState {
        let settled_at = self.outcome.as_ref().map(|outcome| outcome.at);
        state(settled_at, self.cancel_requested_at, self.closed_at)
    }
}

/// The state by these columns. A stored outcome goes before everything: the runner's copy has served. A request to
/// stop goes before a closed call, because the process may still run.
pub(super) fn state(
    settled: Option<Timestamp>,
    cancelled: Option<Timestamp>,
    closed: Option<Timestamp>,
) -> OperationState {
    match (settled, cancelled, closed) {
        (Some(_), _, _) => OperationState::Settled,
        (None, Some(_), _) => OperationState::CancelRequested,
        (None, None, Some(_)) => OperationState::Closed,
        (None, None, None) => OperationState::Open,
    }
}

fn start_by(row: &Row) -> Result<Option<BootMoment>, sqlx::Error> {
    let at = row.maybe_time("start_by_us")?;
    let boot = row.maybe_text("start_by_boot")?;
    Ok(boot.zip(at).map(|(boot, at)| BootMoment {
        boot,
        at: at.since(Timestamp::from_micros(0)),
    }))
}

fn asked_by(row: &Row) -> Result<AskedBy, sqlx::Error> {
    Ok(match row.maybe_parsed("session_id")? {
        Some(session) => AskedBy::Call(CallOf {
            session,
            turn: row.parsed("turn_id")?,
            step: row.small("step")?,
            ordinal: row.small("ordinal")?,
            attempt: row.small("attempt")?,
        }),
        None => AskedBy::Caller {
            user: row.parsed("user_id")?,
            key: row.text("request_key")?,
        },
    })
}

impl FromRow for OperationRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let outcome = row
            .maybe_text("outcome")?
            .zip(row.maybe_time("outcome_at")?)
            .map(|(json, at)| StoredOutcome { json, at });
        Ok(Self {
            id: row.parsed("id")?,
            asked_by: asked_by(row)?,
            digest: row.digest("digest")?,
            epoch: Epoch(row.count("epoch")?),
            runner: row.parsed("runner_id")?,
            sandbox: row.parsed("sandbox_id")?,
            incarnation: Incarnation {
                journal: row.parsed("journal_id")?,
                boot: row.text("boot_id")?,
            },
            effect: row.word("effect")?,
            start_by: start_by(row)?,
            deadline_at: row.time("deadline_at")?,
            placed_at: row.time("placed_at")?,
            cancel_requested_at: row.maybe_time("cancel_requested_at")?,
            stopped: stopped(row)?,
            access_ended_at: row.maybe_time("access_ended_at")?,
            outcome,
            closed_at: row.maybe_time("closed_at")?,
            trace: row.maybe_parsed("traceparent")?,
        })
    }
}

fn stopped(row: &Row) -> Result<Option<StopCause>, sqlx::Error> {
    if row.maybe_text("stop_reason")?.is_none() {
        return Ok(None);
    }
    Ok(Some(StopCause {
        why: row.word("stop_reason")?,
        by: row.maybe_text("stopped_by_name")?,
    }))
}
