//! The log as the engine sees it: turns, their steps, their calls. A pure fold: what is not the
//! engine's business, and what a newer writer has added, leaves no trace in it.
//!
//! A message may be accepted while an earlier turn still works, so events of different turns
//! interleave in the log; here each turn stands by itself, in the order of the inputs.

use shared_types::{
    Event, SessionEvent, Timestamp, TurnId,
    event::{CallOutcome, Finish, ToolCall, TurnOutcome},
};

/// A session's turns, in the order of their inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Transcript {
    turns: Vec<TurnLog>,
}

/// What is recorded of one turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TurnLog {
    pub(crate) id: TurnId,
    pub(crate) input: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) cancel_requested: bool,
    pub(crate) ended: Option<TurnOutcome>,
}

/// One answer of the model with the calls that it asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) number: u32,
    pub(crate) text: String,
    pub(crate) finish: Finish,
    pub(crate) calls: Vec<Call>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) asked: ToolCall,
    /// When an operation of it was first placed: from then on it may have happened.
    pub(crate) placed: Option<Timestamp>,
    pub(crate) result: Option<CallResult>,
}

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) outcome: CallOutcome,
    pub(crate) text: String,
}

impl Transcript {
    pub(crate) fn of(log: &[SessionEvent]) -> Self {
        let mut transcript = Self::default();
        for event in log {
            if let Some(known) = event.known() {
                transcript.apply(known, event.at);
            }
        }
        transcript
    }

    /// Takes in an event that follows those before; where something is recorded twice, the
    /// first stands.
    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp) {
        if let Event::InputAccepted { turn, text, .. } = event {
            if self.turn(*turn).is_none() {
                self.turns.push(TurnLog::new(*turn, text.clone()));
            }
            return;
        }
        let Some(id) = event.turn() else { return };
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.id == id) {
            turn.apply(event, at);
        }
    }

    pub(crate) fn turn(&self, id: TurnId) -> Option<&TurnLog> {
        self.turns.iter().find(|turn| turn.id == id)
    }

    /// The turns up to and with this one: what the model knows while it works on it.
    pub(crate) fn up_to(&self, id: TurnId) -> &[TurnLog] {
        let place = self.turns.iter().position(|turn| turn.id == id);
        &self.turns[..place.map_or(0, |place| place + 1)]
    }

    /// Notes a wish to cancel that was heard before it was read.
    pub(crate) fn note_cancel(&mut self, id: TurnId) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.id == id) {
            turn.cancel_requested = true;
        }
    }
}

impl TurnLog {
    fn new(id: TurnId, input: String) -> Self {
        Self {
            id,
            input,
            steps: Vec::new(),
            cancel_requested: false,
            ended: None,
        }
    }

    pub(crate) fn step(&self, number: u32) -> Option<&Step> {
        self.steps.iter().find(|step| step.number == number)
    }

    fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::AnswerRecorded {
                step,
                text,
                calls,
                finish,
                ..
            } if self.step(*step).is_none() => self.steps.push(Step {
                number: *step,
                text: text.clone(),
                finish: *finish,
                calls: calls.iter().cloned().map(Call::new).collect(),
            }),
            Event::CallPlaced { step, ordinal, .. } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    call.placed.get_or_insert(at);
                }
            }
            Event::CallEnded {
                step,
                ordinal,
                outcome,
                text,
                ..
            } => {
                if let Some(call) = self.call_mut(*step, *ordinal) {
                    call.result.get_or_insert_with(|| CallResult {
                        outcome: *outcome,
                        text: text.clone(),
                    });
                }
            }
            Event::CancelRequested { .. } => self.cancel_requested = true,
            Event::TurnEnded { outcome, .. } => {
                self.ended.get_or_insert(*outcome);
            }
            _ => {}
        }
    }

    fn call_mut(&mut self, step: u32, ordinal: u32) -> Option<&mut Call> {
        self.steps
            .iter_mut()
            .find(|known| known.number == step)?
            .calls
            .get_mut(ordinal as usize)
    }
}

impl Step {
    /// The calls that have no result yet, by their place in the answer.
    pub(crate) fn pending(&self) -> Vec<u32> {
        (0..)
            .zip(&self.calls)
            .filter(|(_, call)| call.result.is_none())
            .map(|(ordinal, _)| ordinal)
            .collect()
    }
}

impl Call {
    fn new(asked: ToolCall) -> Self {
        Self {
            asked,
            placed: None,
            result: None,
        }
    }
}
