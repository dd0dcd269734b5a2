//! Searches over the texts of a user's sessions.

use shared_types::{SessionId, Timestamp};

/// The texts that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatQuery {
    /// The words that a text must have, all of them, without regard to case.
    pub words: String,
    /// Most texts that are wanted.
    pub at_most: u32,
    /// The only session to search in.
    pub within: Option<SessionId>,
}

/// A text that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatHit {
    /// Its session.
    pub session: SessionId,
    /// The title of that.
    pub title: String,
    /// The time at which it was recorded.
    pub at: Timestamp,
    /// The one who said it.
    pub speaker: ChatSpeaker,
    /// The part of it around the first word, on one line of at most 300 bytes.
    pub excerpt: String,
}

/// The speaker of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatSpeaker {
    /// A person.
    User,
    /// The model.
    Model,
}
