//! The metrics of turns and tool calls: the one place that assigns each to its series.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use shared_telemetry::{
    OTHER,
    server::{TOOL_CALLS, TURNS_ENDED, TURNS_RUNNING},
};
use shared_types::{
    Event, SessionEvent, Timestamp, TurnId,
    event::{CallOutcome, Parts, TurnOutcome},
};

use super::spans::TurnSpans;

/// A turn that a worker carries, for as long as this lives.
pub(crate) struct RunningTurn(());

impl RunningTurn {
    /// Counts it as running.
    pub(crate) fn begin() -> Self {
        TURNS_RUNNING.gauge(&[]).increment(1.0);
        Self(())
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        TURNS_RUNNING.gauge(&[]).decrement(1.0);
    }
}

/// Counts and traces what the log of one turn's worker tells of. The ends of calls do not name their tools, so
/// the last answer's are remembered.
#[derive(Debug)]
pub(crate) struct Counted {
    asked: Mutex<Asked>,
    /// The spans of the turn, if it is traced.
    spans: Option<TurnSpans>,
}

/// The calls of an answer.
#[derive(Debug, Default)]
struct Asked {
    answer: Option<(TurnId, u32)>,
    tools: Vec<String>,
}

impl Counted {
    /// Counts from now on.
    pub(crate) fn new(spans: Option<TurnSpans>) -> Self {
        Self {
            asked: Mutex::default(),
            spans,
        }
    }

    /// The log as it was before this worker.
    pub(super) fn loaded(&self, log: &[SessionEvent]) {
        if let Some(spans) = &self.spans {
            spans.loaded(log);
        }
        let mut known = log.iter().rev().filter_map(SessionEvent::known);
        if let Some((answer, parts)) = known.find_map(answer) {
            self.asked(answer, parts);
        }
    }

    /// These events were recorded.
    pub(super) fn recorded(&self, events: &[Event], now: Timestamp) {
        for event in events {
            if let Some((answer, parts)) = answer(event) {
                self.asked(answer, parts);
            }
            match event {
                Event::TurnEnded { outcome, .. } => {
                    let outcome = turn_word(*outcome);
                    TURNS_ENDED.add(&[outcome], 1);
                    if let Some(spans) = &self.spans {
                        spans.turn_ended(outcome, now);
                    }
                }
                Event::CallEnded {
                    turn,
                    step,
                    ordinal,
                    outcome,
                    duration_ms,
                    ..
                } => {
                    let tool = self.tool((*turn, *step), *ordinal);
                    let outcome = call_word(*outcome);
                    TOOL_CALLS.add(&[&tool, outcome], 1);
                    if let Some(spans) = &self.spans {
                        let took = Duration::from_millis(*duration_ms);
                        spans.call_ended((*step, *ordinal), (&tool, outcome), (took, now));
                    }
                }
                _ => {}
            }
        }
    }

    fn asked(&self, answer: (TurnId, u32), parts: &Parts) {
        let tools = parts.calls().map(|call| call.name.to_ascii_lowercase());
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Asked {
            answer: Some(answer),
            tools: tools.collect(),
        };
    }

    fn tool(&self, answer: (TurnId, u32), ordinal: u32) -> String {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(ordinal).unwrap_or(usize::MAX);
        let tool = asked.tools.get(place);
        let tool = tool.filter(|_| asked.answer == Some(answer));
        tool.cloned().unwrap_or_else(|| OTHER.to_owned())
    }
}

fn answer(event: &Event) -> Option<((TurnId, u32), &Parts)> {
    match event {
        Event::AnswerRecorded {
            turn, step, parts, ..
        } => Some(((*turn, *step), parts)),
        _ => None,
    }
}

fn turn_word(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::Completed => "completed",
        TurnOutcome::Failed => "failed",
        TurnOutcome::Cancelled => "cancelled",
        TurnOutcome::Interrupted => "interrupted",
    }
}

fn call_word(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Completed => "completed",
        CallOutcome::Failed => "failed",
        CallOutcome::Refused => "refused",
        CallOutcome::TimedOut => "timed_out",
        CallOutcome::Cancelled => "cancelled",
        CallOutcome::Unknown => "unknown",
        CallOutcome::Background => "background",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared_sandbox::examples;
    use shared_telemetry::{Metric, runner, server::OPERATIONS_ENDED};

    use super::*;
    use crate::{BuiltIn, ToolSet, WebTools};

    fn values(metric: &Metric, label: &str) -> Vec<&'static str> {
        let place = metric.labels.iter().position(|known| *known == label);
        let place = place.expect("it has this label");
        let combinations = metric.combinations().into_iter();
        combinations.map(|values| values[place]).collect()
    }

    #[test]
    fn the_metrics_know_every_kind_of_request_every_end_and_every_tool() {
        for metric in [&OPERATIONS_ENDED, &runner::OPERATIONS_ENDED] {
            let (kinds, causes) = (values(metric, "kind"), values(metric, "cause"));
            for request in examples::requests() {
                assert!(kinds.contains(&request.kind()), "{}", request.kind());
            }
            for outcome in examples::outcomes() {
                assert!(causes.contains(&outcome.cause()), "{}", outcome.cause());
            }
        }
        let tools = values(&TOOL_CALLS, "tool");
        let web = WebTools {
            pages: true,
            searches: true,
        };
        let all = ToolSet::of(&[Arc::new(BuiltIn), Arc::new(web)], None);
        for tool in all.specs() {
            let name = tool.name.to_ascii_lowercase();
            assert!(tools.contains(&name.as_str()), "{name}");
        }
    }
}
