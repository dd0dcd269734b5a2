//! The spans of a turn and of its tool calls, made when their ends are stored.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use shared_telemetry::{server::TOOL_CALLS, traces::Span};
use shared_types::{Event, SessionEvent, SessionId, SpanId, Timestamp, TraceContext, TurnId};

/// A turn as its spans tell of it.
#[derive(Debug)]
pub(crate) struct TurnSpans {
    session: SessionId,
    turn: TurnId,
    /// The turn's own span.
    own: TraceContext,
    /// The request that it answers.
    parent: SpanId,
    sent_at: Timestamp,
    before: Mutex<Before>,
}

/// The state of the turn before this worker, from the log.
#[derive(Debug, Default)]
struct Before {
    claims: i64,
    /// The times at which calls were placed that had not ended, by step and ordinal.
    placed: HashMap<(u32, u32), Timestamp>,
}

impl TurnSpans {
    /// Of a turn that was sent with this request.
    pub(crate) fn new(
        session: SessionId,
        turn: TurnId,
        request: TraceContext,
        sent_at: Timestamp,
    ) -> Self {
        Self {
            session,
            turn,
            own: request.with(SpanId::of_turn(turn)),
            parent: request.span,
            sent_at,
            before: Mutex::default(),
        }
    }

    /// Reads the state of the turn before this worker.
    pub(super) fn loaded(&self, log: &[SessionEvent]) {
        let mut before = Before::default();
        for event in log {
            match event.known() {
                Some(Event::TurnClaimed { turn, .. }) if *turn == self.turn => before.claims += 1,
                Some(Event::CallPlaced {
                    turn,
                    step,
                    ordinal,
                    ..
                }) if *turn == self.turn => {
                    before.placed.entry((*step, *ordinal)).or_insert(event.at);
                }
                _ => {}
            }
        }
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = before;
    }

    /// A call took so long in this worker, and longer where an earlier one had placed it.
    pub(super) fn call_ended(
        &self,
        (step, ordinal): (u32, u32),
        (tool, outcome): (&str, &str),
        (took, now): (Duration, Timestamp),
    ) {
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        let began = Timestamp::from_micros(now.as_micros().saturating_sub(took));
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = before.placed.get(&(step, ordinal));
        let began = placed.map_or(began, |placed| began.min(*placed));
        drop(before);
        // What the model calls it may be anything.
        let tool = TOOL_CALLS.known(0, tool);
        let has_failed = !matches!(outcome, "completed" | "background");
        let own = SpanId::of_tool_call(self.turn, step, ordinal);
        Span::new(
            self.own.with(own),
            format!("execute_tool {tool}"),
            (began, now),
        )
        .within(self.own.span)
        .with("gen_ai.operation.name", "execute_tool")
        .with("gen_ai.tool.name", tool)
        .with("gantry.session.id", self.session)
        .with("gantry.turn.id", self.turn)
        .with_number("gantry.turn.step", Some(step.into()))
        .with_number("gantry.call.ordinal", Some(ordinal.into()))
        .with("gantry.call.outcome", outcome)
        .failed(has_failed.then_some(outcome))
        .record();
    }

    /// The turn has ended: its span is made.
    pub(super) fn turn_ended(&self, outcome: &'static str, now: Timestamp) {
        let claims = self.before.lock();
        let claims = claims.unwrap_or_else(PoisonError::into_inner).claims;
        Span::new(self.own, "invoke_agent gantry", (self.sent_at, now))
            .within(self.parent)
            .with("gen_ai.operation.name", "invoke_agent")
            .with("gen_ai.agent.name", "gantry")
            .with("gen_ai.conversation.id", self.session)
            .with("gantry.session.id", self.session)
            .with("gantry.turn.id", self.turn)
            .with("gantry.turn.outcome", outcome)
            .with_number("gantry.turn.claims", Some(claims))
            .failed((outcome != "completed").then_some(outcome))
            .record();
    }
}
