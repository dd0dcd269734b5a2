//! The agents that the calls of a session have begun, for people: a fold of its log.

use shared_types::{Event, SessionEvent, SessionId, Timestamp, TurnId, event::TurnOutcome};

/// An agent that a call of a session has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name, such as `explore-2`.
    pub name: String,
    /// The name of its role.
    pub role: String,
    /// Its task, in a few words.
    pub description: String,
    /// Its session.
    pub session: SessionId,
    /// The turn in which it works for a call, or did last.
    pub turn: TurnId,
    /// True if that call does not wait for it.
    pub background: bool,
    /// The time at which it was begun.
    pub begun_at: Timestamp,
    /// Its end; absent while it works.
    pub ended: Option<AgentEnded>,
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEnded {
    /// The outcome of its turn.
    pub outcome: TurnOutcome,
    /// Its model calls.
    pub steps: u32,
    /// The tokens that these sent and received.
    pub tokens: u64,
    /// The time of the end.
    pub at: Timestamp,
}

/// The agents of a session with this log, in the order in which they were begun.
pub fn agents(log: &[SessionEvent]) -> Vec<Agent> {
    let mut agents: Vec<Agent> = Vec::new();
    for event in log {
        match event.known() {
            Some(Event::AgentStarted {
                session,
                agent_turn,
                name,
                role,
                description,
                background,
                ..
            }) => match agents.iter_mut().find(|agent| agent.session == *session) {
                // A further message to it.
                Some(known) => {
                    (known.turn, known.background, known.ended) = (*agent_turn, *background, None);
                }
                None => agents.push(Agent {
                    name: name.clone(),
                    role: role.clone(),
                    description: description.clone(),
                    session: *session,
                    turn: *agent_turn,
                    background: *background,
                    begun_at: event.at,
                    ended: None,
                }),
            },
            Some(Event::AgentEnded {
                agent_turn,
                outcome,
                steps,
                tokens,
                ..
            }) => {
                let mut known = agents.iter_mut().rev();
                if let Some(agent) = known.find(|agent| agent.turn == *agent_turn) {
                    agent.ended.get_or_insert(AgentEnded {
                        outcome: *outcome,
                        steps: *steps,
                        tokens: *tokens,
                        at: event.at,
                    });
                }
            }
            _ => {}
        }
    }
    agents
}
