//! The agents that calls of the session have begun, and the one that works in it.

use std::sync::Arc;

use shared_types::{
    Event, SessionId, Timestamp, TurnId,
    event::{Role, TurnOutcome, Worktree},
};

use super::{LateEnd, Transcript};
use crate::tools::bounded;

/// An agent that a call has begun, and that others may send messages to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownAgent {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) description: String,
    pub(crate) session: SessionId,
    /// The end of its last turn for a call; nothing while it works for one.
    pub(crate) idle_since: Option<Timestamp>,
}

/// The task of the agent that works in a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Brief {
    pub(crate) name: String,
    /// The number of agents above it and with it.
    pub(crate) depth: u32,
    pub(crate) role: Role,
    /// The git worktree in which it works, if it has one of its own.
    pub(crate) worktree: Option<Worktree>,
}

/// An agent that works for a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentCall {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    /// The turn in which it works.
    pub(crate) turn: TurnId,
    /// True if the call does not wait for its end.
    pub(crate) background: bool,
    /// The tokens that it may use.
    pub(crate) tokens: u64,
    /// The time at which it was begun.
    pub(crate) at: Timestamp,
    pub(crate) ended: Option<AgentEnd>,
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentEnd {
    pub(crate) outcome: TurnOutcome,
    pub(crate) reason: Option<String>,
    pub(crate) answer: String,
    /// The tokens that it used.
    pub(crate) tokens: u64,
    /// The worktree with the changes that it has left.
    pub(crate) worktree: Option<Worktree>,
}

/// The words on a worktree with changes that an agent has left; empty where it has left none.
pub(crate) fn kept_worktree(worktree: Option<&Worktree>) -> String {
    worktree.map_or_else(String::new, |Worktree { path, branch, .. }| {
        format!(
            "\n[its changes are in the git worktree {path}, branch {branch}. Take them over with git, then remove it with \
             git worktree remove.]"
        )
    })
}

impl Transcript {
    /// The task of the agent that works in the session; absent in a person's own.
    pub(crate) fn brief(&self) -> Option<&Brief> {
        self.brief.as_deref()
    }

    /// True if a call of another session has written the message of this turn.
    pub(crate) fn is_begun_by_call(&self, turn: TurnId) -> bool {
        self.is_of_call && self.turns.first().is_some_and(|first| first.id == turn)
    }

    /// The agents that calls of the session have ever begun.
    pub(crate) fn agents(&self) -> &[KnownAgent] {
        &self.agents
    }

    /// Notes the end of an agent whose call did not wait. The model reads it before the next message.
    fn late_agent(
        &mut self,
        (turn, step, ordinal): (TurnId, u32, u32),
        (outcome, reason, answer): (TurnOutcome, Option<&str>, &str),
    ) {
        /// Longest part of its last words that the note has, in bytes.
        const WORDS: usize = 4 * 1024;
        let call = self.turn(turn).and_then(|turn| turn.step(step));
        let call = call.and_then(|step| step.calls.get(ordinal as usize));
        let Some(call) = call else { return };
        let agent = call.agent.as_ref();
        let Some(agent) = agent.filter(|agent| agent.background && agent.ended.is_none()) else {
            return;
        };
        let how = match (outcome, reason) {
            (TurnOutcome::Completed, _) => "it completed".to_owned(),
            (TurnOutcome::Failed, Some(reason)) => format!("it failed: {reason}"),
            (TurnOutcome::Failed, None) => "it failed".to_owned(),
            (TurnOutcome::Cancelled | TurnOutcome::Interrupted, _) => "it was stopped".to_owned(),
        };
        let words = match bounded(answer.trim(), WORDS) {
            none if none.is_empty() => String::new(),
            words => format!("; its last words were:\n{words}\n"),
        };
        let late = LateEnd {
            turn,
            task: None,
            agent: Some(agent.name.clone()),
            asked: call.asked.clone(),
            summary: how + &words,
        };
        self.ended.push(late);
    }

    /// Takes in an event about agents; leaves others alone.
    pub(super) fn apply_agents(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::ChatOrigin { .. } => self.is_of_call = true,
            Event::AgentBriefed {
                name,
                depth,
                role,
                worktree,
                ..
            } => {
                self.brief = Some(Arc::new(Brief {
                    name: name.clone(),
                    depth: *depth,
                    role: (**role).clone(),
                    worktree: worktree.clone(),
                }));
            }
            Event::AgentStarted {
                session,
                name,
                role,
                description,
                ..
            } => match self
                .agents
                .iter_mut()
                .find(|known| known.session == *session)
            {
                Some(known) => known.idle_since = None,
                None => self.agents.push(KnownAgent {
                    name: name.clone(),
                    role: role.clone(),
                    description: description.clone(),
                    session: *session,
                    idle_since: None,
                }),
            },
            Event::AgentEnded {
                turn,
                step,
                ordinal,
                session,
                outcome,
                reason,
                answer,
                worktree,
                ..
            } => {
                let answer = format!("{answer}{}", kept_worktree(worktree.as_ref()));
                let end = (*outcome, reason.as_deref(), answer.as_str());
                self.late_agent((*turn, *step, *ordinal), end);
                let mut agents = self.agents.iter_mut();
                if let Some(known) = agents.find(|known| known.session == *session) {
                    known.idle_since = Some(at);
                }
            }
            _ => {}
        }
    }
}
