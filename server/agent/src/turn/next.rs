//! The next phase of a turn: a pure function of its log, of the waits of its calls, and of the limits.

use shared_types::event::{Finish, TurnLimit, TurnOutcome};

use crate::wait::WaitingCall;
use crate::{
    engine::EngineLimits,
    session::spoken,
    transcript::{Step, TurnLog},
};

use super::limit;

/// The next phase of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask the model for the answer of this step.
    AskModel { step: u32 },
    /// Ask the model for the answer of this step, a summary: the turn has reached this limit.
    AskForSummary { step: u32, limit: TurnLimit },
    /// Compact the conversation; this matters most in it.
    Compact { focus: String },
    /// Bring the calls of this step that have no result to their ends. A wish to cancel changes
    /// how they end, not that each of them does.
    RunCalls { step: u32, pending: Vec<u32> },
    /// Wait for these calls. No worker is needed for that.
    Wait(Vec<WaitingCall>),
    /// Record the end of the turn.
    End {
        outcome: TurnOutcome,
        reason: Option<String>,
    },
    /// Nothing: it has ended.
    Ended(TurnOutcome),
}

impl Next {
    /// True if it asks the model. Before that nothing of the turn is under way.
    pub(crate) fn asks_model(&self) -> bool {
        matches!(
            self,
            Self::AskModel { .. } | Self::AskForSummary { .. } | Self::Compact { .. }
        )
    }
}

/// Decides the next phase. `waiting`: the calls that were found to wait, where nothing else is left to do.
pub(crate) fn next(turn: &TurnLog, waiting: &[WaitingCall], limits: &EngineLimits) -> Next {
    if let Some(outcome) = turn.ended {
        return Next::Ended(outcome);
    }
    let last = turn.steps.last();
    if let Some(step) = last {
        let pending = step.pending();
        if !pending.is_empty() {
            let only_waits = !waiting.is_empty() && !turn.cancel_requested;
            return match only_waits {
                true => Next::Wait(waiting.to_vec()),
                false => Next::RunCalls {
                    step: step.number,
                    pending,
                },
            };
        }
    }
    if turn.cancel_requested || last.is_some_and(|step| step.finish == Finish::Cancelled) {
        return Next::End {
            outcome: match turn.is_interrupted {
                true => TurnOutcome::Interrupted,
                false => TurnOutcome::Cancelled,
            },
            reason: None,
        };
    }
    if let Some(focus) = &turn.compacts {
        return match turn.is_compacted {
            true => completed(),
            false => Next::Compact {
                focus: focus.clone(),
            },
        };
    }
    match last {
        None => Next::AskModel { step: 1 },
        Some(step) if let Some(limit) = step.limit => {
            failed(limit::reason(limit, step.has_words()))
        }
        Some(step) if step.calls.is_empty() => after_the_last_word(turn, step, limits),
        Some(step) => after_the_calls(turn, step, limits),
    }
}

fn after_the_last_word(turn: &TurnLog, step: &Step, limits: &EngineLimits) -> Next {
    let before = turn
        .steps
        .len()
        .checked_sub(2)
        .map(|place| &turn.steps[place]);
    let is_first = !before.is_some_and(is_empty);
    match (!step.has_words(), step.finish) {
        (false, _) if turn.untaken().is_none() && !turn.is_kept_going(step.number) => completed(),
        // A message joined the turn meanwhile. Where no step is left for it, the store starts a turn with it.
        (false, _) => match limit::reached(turn, limits) {
            Some(limit) => failed(limit::reason(limit, false)),
            None => Next::AskModel {
                step: step.number + 1,
            },
        },
        (true, Finish::Length) => {
            failed("the model reached its length limit before it said anything".to_owned())
        }
        // Models stop like that now and then, and say more when they are asked once more.
        (true, _) if is_first && limit::reached(turn, limits).is_none() => Next::AskModel {
            step: step.number + 1,
        },
        (true, _) => failed("the model gave an empty answer".to_owned()),
    }
}

fn after_the_calls(turn: &TurnLog, step: &Step, limits: &EngineLimits) -> Next {
    // Every other call would be refused for the same reason, until a person sees to it.
    if let Some(reason) = step.unplaced() {
        return failed(reason);
    }
    if step.is_cut_off() {
        return failed(format!(
            "the runner went offline before it told how a call ended, and was not back within {}: start \
             it with \"gantry-runner run\"; the call's end is known once it is back",
            spoken(limits.parked_at_most)
        ));
    }
    if repeats(&turn.steps, limits.same_steps) {
        return failed(format!(
            "the model asked for the same {} times in a row and got the same each time; say what it should do differently",
            limits.same_steps
        ));
    }
    let step = step.number + 1;
    match limit::reached(turn, limits) {
        Some(limit) => Next::AskForSummary { step, limit },
        None => Next::AskModel { step },
    }
}

fn is_empty(step: &Step) -> bool {
    step.calls.is_empty() && !step.has_words()
}

fn completed() -> Next {
    Next::End {
        outcome: TurnOutcome::Completed,
        reason: None,
    }
}

fn failed(reason: String) -> Next {
    Next::End {
        outcome: TurnOutcome::Failed,
        reason: Some(reason),
    }
}

/// True if each of the last `times` steps asked for the same calls and got the same results. If a
/// call still waited for something, to ask again is to wait on.
fn repeats(steps: &[Step], times: usize) -> bool {
    let Some(latest) = steps.len().checked_sub(times.max(2)) else {
        return false;
    };
    steps[latest..]
        .windows(2)
        .all(|pair| same_calls(&pair[0], &pair[1]))
}

fn same_calls(one: &Step, other: &Step) -> bool {
    one.calls.len() == other.calls.len()
        && one.calls.iter().zip(&other.calls).all(|(one, other)| {
            one.asked.name == other.asked.name
                && one.asked.arguments == other.asked.arguments
                && match (&one.result, &other.result) {
                    (Some(one), Some(other)) => one.awaits.is_none() && one.says_what(other),
                    (one, other) => one.is_none() && other.is_none(),
                }
        })
}

#[cfg(test)]
mod tests;
