//! Commands that go on in the background, and ends that come after the results of their calls.

use shared_types::{
    OperationId, SessionEvent, TurnId,
    event::{CallOutcome, ToolCall},
};

use super::{Call, Placed, Transcript};

/// A call whose command goes on in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its number in the session, from 1.
    pub number: u32,
    /// The turn of its call.
    pub turn: TurnId,
    /// The model call that asked for it, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The model's call.
    pub asked: ToolCall,
    /// The place where it runs.
    pub placed: Placed,
    /// Its end, in words for people; nothing while it runs, as far as is known.
    pub ended: Option<String>,
}

/// The tasks of a session with this log, by number.
pub fn tasks(log: &[SessionEvent]) -> Vec<Task> {
    Transcript::of(log).tasks
}

/// The end of an operation that came after its call had a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LateEnd {
    /// The turn of its call.
    pub(crate) turn: TurnId,
    /// Its task, where it went on in the background.
    pub(crate) task: Option<u32>,
    /// The name of its agent, where it has one.
    pub(crate) agent: Option<String>,
    /// The model's call.
    pub(crate) asked: ToolCall,
    /// The end, in words.
    pub(crate) summary: String,
}

impl Transcript {
    /// The tasks of the session, in the order of the numbers.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The most tasks that can be running, by this log. Calls that continue as tasks count also if
    /// their place is not known.
    pub(crate) fn tasks_at_most(&self) -> usize {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        let begun = steps.flat_map(|step| &step.calls).filter(|call| {
            let outcome = call.result.as_ref().map(|result| result.outcome);
            outcome == Some(CallOutcome::Background)
        });
        let ended = self.tasks.iter().filter(|task| task.ended.is_some());
        let ended = ended.filter(|task| self.turn(task.turn).is_some());
        // Those of turns that are no part of the conversation any more run on.
        let others = self.running_tasks();
        let others = others.filter(|task| self.turn(task.turn).is_none());
        begun.count().saturating_sub(ended.count()) + others.count()
    }

    /// The tasks without a known end.
    pub(crate) fn running_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.ended.is_none())
    }

    /// The number of the next task.
    pub(crate) fn next_task(&self) -> u32 {
        self.last_task.saturating_add(1)
    }

    pub(super) fn settle(&mut self, operation: OperationId, summary: &str) {
        if self.settled.contains(&operation) {
            return;
        }
        let mut tasks = self.tasks.iter_mut();
        let late = match tasks.find(|task| task.placed.operation == operation) {
            Some(task) => {
                task.ended = Some(summary.to_owned());
                Some((task.turn, Some(task.number), task.asked.clone()))
            }
            None => self.without_an_end(operation),
        };
        if let Some((turn, task, asked)) = late {
            let steps = self.turns.iter_mut().rev().flat_map(|turn| &mut turn.steps);
            let is_it = |call: &&mut Call| {
                let placed = call.placed.as_ref();
                placed.is_some_and(|placed| placed.operation == operation)
            };
            if let Some(call) = steps.flat_map(|step| &mut step.calls).find(is_it) {
                call.settled = Some(summary.to_owned());
            }
            self.settled.push(operation);
            self.ended.push(LateEnd {
                turn,
                task,
                agent: None,
                asked,
                summary: summary.to_owned(),
            });
        }
    }

    /// The call of this operation, where the model was told that it does not know its end.
    pub(super) fn without_an_end(
        &self,
        operation: OperationId,
    ) -> Option<(TurnId, Option<u32>, ToolCall)> {
        let mut calls = self.turns.iter().rev().flat_map(|turn| {
            let calls = turn.steps.iter().flat_map(|step| &step.calls);
            calls.map(|call| (turn.id, call))
        });
        let (turn, call) = calls.find(|(_, call)| {
            let placed = call.placed.as_ref().map(|placed| placed.operation);
            placed == Some(operation)
        })?;
        let outcome = call.result.as_ref()?.outcome;
        let is_open = matches!(
            outcome,
            CallOutcome::Unknown | CallOutcome::Cancelled | CallOutcome::TimedOut
        );
        is_open.then(|| (turn, None, call.asked.clone()))
    }
}
