//! The spans of operations and of their processes, made once the journal has their ends.

use std::ffi::CString;

use runner_host::CommandPlan;
use shared_sandbox::{ExitStatus, Outcome};
use shared_telemetry::traces::{self, Span};
use shared_types::{OperationId, SpanId, Timestamp};

use super::OperationsService;

/// The variable in which a process finds its place in a trace
/// (<https://opentelemetry.io/docs/specs/otel/context/env-carriers/>).
const TRACEPARENT: &str = "TRACEPARENT";

/// The beginning of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    /// The kind of the request.
    pub(super) kind: &'static str,
    /// When it was accepted.
    pub(super) at: Timestamp,
}

impl OperationsService {
    /// Gives a process its span, unless the caller has set one.
    pub(super) fn trace_process(&self, id: OperationId, plan: &mut CommandPlan) {
        let Some(operation) = self.table.trace_of(id) else {
            return;
        };
        // Where this runner sends no spans, the server's is the nearest.
        let nearest = match traces::is_on() {
            true => operation.with(SpanId::of_process(id)),
            false => operation,
        };
        let is_it = |variable: &CString| {
            let name = variable.as_bytes().strip_prefix(TRACEPARENT.as_bytes());
            name.is_some_and(|rest| rest.starts_with(b"="))
        };
        if !plan.environment.iter().any(is_it) {
            let variable = CString::new(format!("{TRACEPARENT}={nearest}"));
            plan.environment.extend(variable);
        }
    }

    /// An operation has ended now. Of one that an earlier daemon began the time is known that it ran for.
    pub(super) fn trace_end(&self, id: OperationId, begun: Option<Begun>) {
        let traced = self.table.trace_of(id).zip(self.table.outcome(id));
        let Some((operation, outcome)) = traced else {
            return;
        };
        let cause = outcome.cause();
        let has_failed = (!matches!(cause, "exited" | "done")).then_some(cause);
        let end = self.clock.now();
        let exited = match outcome {
            Outcome::Exited(record) => Some(record),
            _ => None,
        };
        let ran_for = exited.map_or(0, |record| record.wall_ms);
        let ran_for = i64::try_from(ran_for).unwrap_or(0).saturating_mul(1000);
        let started = Timestamp::from_micros(end.as_micros().saturating_sub(ran_for));
        let began = begun.map_or(started, |begun| begun.at);
        let own = operation.with(SpanId::of_runner(id));
        // Of what an earlier daemon began, only a process is known for what it was.
        let recovered = exited.map_or("other", |_| "exec");
        let kind = begun.map_or(recovered, |begun| begun.kind);
        Span::new(own, format!("run {kind}"), (began, end))
            .within(operation.span)
            .with("gantry.operation.id", id)
            .with("gantry.operation.kind", kind)
            .with("gantry.operation.cause", cause)
            .failed(has_failed)
            .record();
        let Some(record) = exited else { return };
        let code = match record.status {
            ExitStatus::Code(code) => Some(i64::from(code)),
            ExitStatus::NotStarted(_) => return,
            _ => None,
        };
        Span::new(own.with(SpanId::of_process(id)), "process", (started, end))
            .within(own.span)
            .with("gantry.operation.id", id)
            .with("gantry.operation.cause", cause)
            .with_number("process.exit.code", code)
            .failed(has_failed)
            .record();
    }
}
