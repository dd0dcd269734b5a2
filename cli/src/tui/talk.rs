//! The session of a conversation, and what the person chose for it.

use std::collections::HashSet;

use shared_api::{Command, Me, Session};
use shared_client::{Client, Follow};
use shared_types::{Mode, TurnId, event::Terms};

use tokio::time::Instant;

use super::{Start, facts::SessionFacts};

/// The session that is talked in.
pub(super) struct Talk {
    pub(super) client: Client,
    pub(super) session: Session,
    pub(super) me: Me,
    /// The mode that was chosen for the messages of this run.
    pub(super) mode: Option<Mode>,
    /// The commands of the server.
    pub(super) commands: Vec<Command>,
    /// The advice for the case that the server refuses the credential.
    pub(super) advice: &'static str,
    pub(super) facts: SessionFacts,
    /// The time at which the facts were asked for.
    pub(super) facts_asked_at: Instant,
    /// Absent once it has failed for good.
    pub(super) follow: Option<Follow>,
    /// The last event that was heard.
    pub(super) seq: u64,
    /// True until the server has told the session to go on in.
    pub(super) is_entering: bool,
    /// The turns whose messages were accepted and that have not ended: one works, the others wait for it.
    pub(super) turns: HashSet<TurnId>,
    /// True until a new session was greeted.
    pub(super) is_new: bool,
}

impl Talk {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            client: start.client.clone(),
            session: start.session.clone(),
            me: start.me.clone(),
            mode: start.mode,
            commands: Vec::new(),
            advice: start.advice,
            facts: SessionFacts::default(),
            facts_asked_at: Instant::now(),
            follow: None,
            seq: 0,
            is_entering: false,
            turns: HashSet::new(),
            is_new: false,
        }
    }

    /// Takes up another session. Its facts are asked for by the caller.
    pub(super) fn enter(&mut self, session: Session, is_new: bool) {
        self.seq = session.last_seq;
        self.session = session;
        self.follow = None;
        self.turns.clear();
        self.is_new = is_new;
        self.is_entering = false;
    }

    /// The terms of a message from here that was said in this mode. A `/mode` since then counts more.
    pub(super) fn terms(&self, said_in: Option<Mode>) -> Terms {
        Terms {
            unattended: false,
            mode: self.mode.and(said_in),
            ..Terms::default()
        }
    }

    /// True if the line may lead to another session, so that it waits for the end of a turn.
    pub(super) fn is_between_turns(&self, line: &str) -> bool {
        let name = command_name(line);
        let mut commands = self.commands.iter();
        commands.any(|command| command.between_turns && command.name == name)
    }

    /// A failure in words, with advice where the server takes no such credential.
    pub(super) fn told(&self, error: impl Into<anyhow::Error>) -> String {
        crate::told(&error.into(), self.advice)
    }

    /// Goes on from behind this event.
    pub(super) fn follow_from(&mut self, after: u64) {
        self.follow = Some(self.client.follow(self.session.id, after));
        self.seq = after;
    }
}

/// The name of the command of a line.
pub(super) fn command_name(line: &str) -> &str {
    let name = line.strip_prefix('/').unwrap_or(line);
    name.split_whitespace().next().unwrap_or_default()
}
