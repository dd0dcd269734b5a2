//! The facts about an operation for counters, logs and traces of its end.

use shared_telemetry::{
    server::{OPERATIONS_ENDED, OPERATIONS_LOST},
    traces::Span,
};
use shared_types::{
    OperationId, OperationKey, OperationScope, Owner, RunnerId, SandboxId, SessionId, SpanId,
    TenantId, Timestamp, TraceContext, TurnId,
};

use super::end::EndFigures;
use crate::{
    columns::Columns as _,
    database::{FromRow, Row},
};

/// The columns that [`Ran`] is read from.
macro_rules! ran {
    () => {
        "tenant_id, id, kind, runner_id, sandbox_id, placed_at, session_id, turn_id, step, ordinal,
             attempt, traceparent"
    };
}
pub(super) use ran;

/// The facts about an operation for counters, logs and traces of its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Its id.
    pub(super) id: OperationId,
    /// The kind of the request; empty where an earlier release has placed it.
    pub(crate) kind: String,
    /// The runner that it was placed on.
    runner: RunnerId,
    sandbox: SandboxId,
    placed_at: Timestamp,
    /// The session and the turn that asked for it.
    of_turn: Option<(SessionId, TurnId)>,
    /// The attempt before, if this is another attempt.
    pub(crate) before: Option<OperationId>,
    /// The span that it is part of.
    pub(crate) trace: Option<TraceContext>,
}

impl Ran {
    /// The end of the operation is stored: counts it, tells it in one line of the log, and traces it. The request is in
    /// none of these: it may hold a secret.
    pub(crate) fn ended(&self, end: EndFigures, at: Timestamp) {
        let EndFigures {
            cause,
            exit_code,
            wall_ms,
        } = end;
        tracing::info!(
            operation.id = %self.id,
            operation.kind = self.kind,
            runner.id = %self.runner,
            trace.id = self.trace.map(|of| tracing::field::display(of.trace)),
            cause,
            exit_code,
            wall_ms,
            "operation ended"
        );
        OPERATIONS_ENDED.add(&[&self.kind, cause], 1);
        if cause == "lost" {
            OPERATIONS_LOST.add(&[], 1);
        }
        self.trace_end(at, cause, exit_code);
    }

    /// Its span: it was stored at `end` that it has ended for this reason.
    fn trace_end(&self, end: Timestamp, cause: &str, exit_code: Option<i32>) {
        let Some(parent) = self.trace else { return };
        let has_failed = !matches!(cause, "exited" | "done");
        let own = parent.with(SpanId::of_operation(self.id));
        let mut span = Span::new(
            own,
            format!("operation {}", self.kind),
            (self.placed_at, end),
        )
        .of_client()
        .within(parent.span)
        .after(self.before.map(SpanId::of_operation))
        .with("gantry.operation.id", self.id)
        .with("gantry.operation.kind", &self.kind)
        .with("gantry.operation.cause", cause)
        .with("gantry.runner.id", self.runner)
        .with("gantry.sandbox.id", self.sandbox)
        .with_number("process.exit.code", exit_code.map(i64::from))
        .failed(has_failed.then_some(cause));
        if let Some((session, turn)) = self.of_turn {
            span = span
                .with("gantry.session.id", session)
                .with("gantry.turn.id", turn);
        }
        span.record();
    }
}

impl FromRow for Ran {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let session: Option<SessionId> = row.maybe_parsed("session_id")?;
        let (mut of_turn, mut before) = (None, None);
        if let Some(session) = session {
            let turn: TurnId = row.parsed("turn_id")?;
            of_turn = Some((session, turn));
            let attempt = row.small("attempt")?;
            let tenant: TenantId = row.parsed("tenant_id")?;
            if let Some(attempt) = attempt.checked_sub(1) {
                let key = OperationKey::Call {
                    turn,
                    step: row.small("step")?,
                    ordinal: row.small("ordinal")?,
                    attempt,
                };
                let owner = Owner::Session(session);
                let scope = OperationScope::of(tenant);
                before = Some(OperationId::derive(&scope, &owner, &key));
            }
        }
        Ok(Self {
            id: row.parsed("id")?,
            kind: row.text("kind")?,
            runner: row.parsed("runner_id")?,
            sandbox: row.parsed("sandbox_id")?,
            placed_at: row.time("placed_at")?,
            of_turn,
            before,
            trace: row.maybe_parsed("traceparent")?,
        })
    }
}
