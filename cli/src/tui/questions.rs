//! The questions that wait for the person: those of the session's agent, and those of the agents that work for it.

use std::collections::VecDeque;

use shared_types::{ApprovalId, SessionId};

/// A question that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waits {
    /// The question.
    pub(super) approval: ApprovalId,
    /// The agent that asks; absent for the session's own.
    pub(super) agent: Option<Asker>,
}

/// An agent that works for this session, and asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asker {
    /// Its session.
    pub(super) session: SessionId,
    /// Its name.
    pub(super) name: String,
}

/// The questions, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Waits>,
}

impl Questions {
    /// Adds the newest one.
    pub(super) fn add(&mut self, waits: Waits) {
        self.waiting.push_back(waits);
    }

    /// Puts one back before all others.
    pub(super) fn put_back(&mut self, waits: Waits) {
        self.waiting.push_front(waits);
    }

    /// The one that is asked next.
    pub(super) fn first(&self) -> Option<ApprovalId> {
        self.waiting.front().map(|waits| waits.approval)
    }

    /// Takes one off; nothing if it does not wait.
    pub(super) fn take(&mut self, approval: ApprovalId) -> Option<Waits> {
        let at = self
            .waiting
            .iter()
            .position(|waits| waits.approval == approval)?;
        self.waiting.remove(at)
    }

    /// True if this one waits.
    pub(super) fn has(&self, approval: ApprovalId) -> bool {
        self.waiting.iter().any(|waits| waits.approval == approval)
    }

    /// Forgets those of an agent that has ended.
    pub(super) fn agent_ended(&mut self, session: SessionId) {
        let is_its = |waits: &Waits| {
            waits
                .agent
                .as_ref()
                .is_some_and(|agent| agent.session == session)
        };
        self.waiting.retain(|waits| !is_its(waits));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
