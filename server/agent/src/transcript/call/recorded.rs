//! The events of the log that make a step or change one of its calls.

use shared_types::{Event, Timestamp};

use super::{Approval, Call, CallResult, Placed, Step};
use crate::transcript::{AgentCall, AgentEnd};

impl Step {
    /// The step that an answer of the model makes; nothing of another event.
    pub(in crate::transcript) fn of(event: &Event) -> Option<Self> {
        let Event::AnswerRecorded {
            step,
            model,
            origin,
            parts,
            finish,
            usage,
            estimated,
            model_ms,
            limit,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            number: *step,
            model: model.clone(),
            origin: origin.clone(),
            parts: parts.clone(),
            longest: usize::MAX,
            prefix: 0,
            estimated: *estimated,
            counted: usage.input,
            tokens: usage.input.saturating_add(usage.output),
            model_ms: *model_ms,
            limit: *limit,
            finish: *finish,
            calls: parts.calls().cloned().map(Call::new).collect(),
        })
    }
}

impl Call {
    /// Applies an event of this call other than its end.
    pub(in crate::transcript) fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::ApprovalAsked { .. } | Event::ApprovalAnswered { .. } => {
                self.apply_approval(event);
            }
            Event::CallPlaced {
                operation, place, ..
            } => {
                let at = self.placed.as_ref().map_or(at, |before| before.at);
                self.placed = Some(Placed {
                    at,
                    operation: *operation,
                    place: place.clone(),
                });
            }
            Event::CallSent { .. } => {
                self.requested.get_or_insert(at);
            }
            Event::ChatStarted { session, .. } => {
                self.chat.get_or_insert(*session);
            }
            Event::AgentStarted { .. } | Event::AgentEnded { .. } => self.apply_agent(event, at),
            _ => {}
        }
    }

    fn apply_approval(&mut self, event: &Event) {
        match event {
            Event::ApprovalAsked {
                approval,
                plan,
                until,
                ..
            } => {
                let before = self.approval.as_ref().map_or(0, |before| before.number);
                self.approval = Some(Approval {
                    id: *approval,
                    number: before + 1,
                    plan: *plan,
                    until: *until,
                    answer: None,
                });
            }
            Event::ApprovalAnswered {
                approval, answer, ..
            } => {
                let known = self.approval.as_mut();
                if let Some(known) = known.filter(|known| known.id == *approval) {
                    known.answer.get_or_insert_with(|| answer.clone());
                }
            }
            _ => {}
        }
    }

    fn apply_agent(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::AgentStarted {
                session,
                agent_turn,
                name,
                background,
                tokens,
                ..
            } => {
                self.agent.get_or_insert_with(|| AgentCall {
                    name: name.clone(),
                    session: *session,
                    turn: *agent_turn,
                    background: *background,
                    tokens: *tokens,
                    at,
                    ended: None,
                });
            }
            Event::AgentEnded {
                agent_turn,
                outcome,
                reason,
                answer,
                tokens,
                worktree,
                ..
            } => {
                let agent = self.agent.as_mut();
                if let Some(agent) = agent.filter(|agent| agent.turn == *agent_turn) {
                    agent.ended.get_or_insert_with(|| AgentEnd {
                        outcome: *outcome,
                        reason: reason.clone(),
                        answer: answer.clone(),
                        tokens: *tokens,
                        worktree: worktree.clone(),
                    });
                }
            }
            _ => {}
        }
    }
}

impl CallResult {
    /// The result that the end of a call records; nothing of another event.
    pub(in crate::transcript) fn of(event: &Event) -> Option<Self> {
        let Event::CallEnded {
            outcome,
            parts,
            unplaced,
            awaits,
            file,
            whole,
            tools,
            ..
        } = event
        else {
            return None;
        };
        Some(Self {
            outcome: *outcome,
            parts: parts.clone(),
            unplaced: *unplaced,
            awaits: *awaits,
            file: file.clone(),
            whole: *whole,
            tools: tools.clone(),
        })
    }
}
