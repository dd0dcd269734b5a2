//! Agents: sessions that work for a call of another session.

use shared_types::{
    SessionId, TurnId,
    event::{Role, Terms, Worktree},
};

/// An agent to be begun, for a call of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgent {
    /// The turn of the call.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The agent that was begun before, and gets the message; absent for a new one.
    pub session: Option<SessionId>,
    /// Its name.
    pub name: String,
    /// Its task, in a few words: the title of its session.
    pub description: String,
    /// Its message.
    pub prompt: String,
    /// Its role.
    pub role: Role,
    /// The number of agents above it and with it.
    pub depth: u32,
    /// The models that answer in it.
    pub model: Option<String>,
    /// The terms of its turn.
    pub terms: Terms,
    /// The most tokens that it may use.
    pub tokens: u64,
    /// True if the call does not wait for its end.
    pub background: bool,
    /// The git worktree in which it works; absent where it works in the folder of its caller.
    pub worktree: Option<Worktree>,
}

/// A conversation of the user to be begun, for a call of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChat {
    /// The turn of the call.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// Its title.
    pub title: String,
    /// Its first message.
    pub message: String,
    /// The models that answer in it; absent for those of the user's settings.
    pub model: Option<String>,
    /// The terms of its first turn.
    pub terms: Terms,
    /// Most conversations that the user may have.
    pub sessions_at_most: u64,
}
