//! The view of an operation for people, and the reading of one.

use std::sync::Arc;

use server_store::{AskedBy, ListedOperation, StopCause};
use shared_sandbox::{Controls, Events, OperationEvent, Outcome, Request};
use shared_types::{OperationId, RunnerId, SessionId, Timestamp, TurnId};

use crate::{
    AppError,
    guarded::{HeldEvents, Right},
    rights::Action,
};

/// An operation as its user sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// The runner that it was sent to.
    pub runner: RunnerId,
    /// The runner's name.
    pub runner_name: String,
    /// The request, in a line for people.
    pub title: String,
    /// The kind of request, such as `exec`; empty where an earlier release placed it.
    pub kind: String,
    /// The name of the user who asked; absent of a tool call's.
    pub started_by: Option<String>,
    /// The session of the tool call that asked.
    pub session: Option<SessionId>,
    /// Its turn.
    pub turn: Option<TurnId>,
    /// The request's input, for one operation; absent in a list.
    pub input: Option<TakesInput>,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// The time of the first request to stop it.
    pub cancel_requested_at: Option<Timestamp>,
    /// The reason that it had to stop, if its own user has not asked for that.
    pub stopped: Option<StopCause>,
    /// When its end was stored.
    pub ended_at: Option<Timestamp>,
    /// Absent also where it is too long for a list. It is absent, too, where it tells of files on the runner and the
    /// user's right to that runner had ended before.
    pub outcome: Option<Outcome>,
}

/// The input that an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesInput {
    /// None.
    Nothing,
    /// Bytes.
    Bytes,
    /// Keys typed in its terminal.
    Terminal,
}

impl TakesInput {
    pub(super) fn of(request: &Request) -> Self {
        match (request.has_terminal(), request.takes_input()) {
            (true, _) => Self::Terminal,
            (false, true) => Self::Bytes,
            (false, false) => Self::Nothing,
        }
    }
}

/// An operation that is being read.
#[derive(Debug)]
pub struct Attached {
    /// The operation.
    pub view: OperationView,
    /// The right of the subject: [`Action::PassInput`], else [`Action::FollowOperation`].
    pub does: Action,
    /// Its events.
    pub reading: GuardedReader,
    /// The controls that pass input to it.
    pub controls: Arc<dyn Controls>,
}

/// Reads one operation to its end, as long as its user may use its runner.
#[derive(Debug)]
pub struct GuardedReader {
    events: Box<dyn Events>,
    held: HeldEvents,
}

impl GuardedReader {
    pub(super) fn new(events: impl Events + 'static, right: Right) -> Self {
        Self {
            events: Box::new(events),
            held: HeldEvents::new(right),
        }
    }

    /// The next event. Nothing after the end, or once another reader has taken over an operation
    /// whose output is kept nowhere. Cancel-safe.
    ///
    /// # Errors
    /// [`AppError::Forbidden`] once the user may not use the runner any more: the reading is over.
    pub async fn next(&mut self) -> Result<Option<OperationEvent>, AppError> {
        let next = self.held.next(&mut *self.events).await;
        next.map_err(|refusal| AppError::Forbidden(refusal.message.into()))
    }
}

/// True of an outcome with names or content of the runner's files.
fn has_content(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Exited(_) | Outcome::Failed(_) | Outcome::Refused(_)
    )
}

pub(super) fn shown(listed: ListedOperation) -> OperationView {
    let ListedOperation {
        row,
        label,
        runner_name,
        user_name,
        request: _,
    } = listed;
    let (session, turn) = match row.asked_by {
        AskedBy::Call(call) => (Some(call.session), Some(call.turn)),
        AskedBy::Caller { .. } => (None, None),
    };
    let stored = row.outcome;
    let outcome = stored.as_ref().and_then(|stored| stored.decode().ok());
    let is_shown = row.access_ended_at.is_none();
    OperationView {
        id: row.id,
        runner: row.runner,
        runner_name,
        title: label.title,
        kind: label.kind,
        started_by: user_name,
        session,
        turn,
        input: None,
        placed_at: row.placed_at,
        cancel_requested_at: row.cancel_requested_at,
        stopped: row.stopped,
        ended_at: stored.as_ref().map(|stored| stored.at),
        outcome: outcome.filter(|outcome| is_shown || !has_content(outcome)),
    }
}
