//! The messages about commands: lines behind a slash that a person writes in a conversation.

use serde::{Deserialize, Serialize};
use shared_types::event::Terms;

use crate::{MessageAccepted, Session};

messages! {
    /// The commands of conversations, in the order in which help lists them.
    pub struct Commands {
        /// Each command once.
        pub commands: Vec<Command>,
    }

    /// A command.
    pub struct Command {
        /// Its name, without the slash.
        pub name: String,
        /// Its arguments for people, those in brackets optional; empty for none.
        pub arguments: String,
        /// Its effect, in a few words.
        pub summary: String,
        /// True if the conversation may go on in another session. A surface that shows a turn sends it after that.
        #[serde(default)]
        pub between_turns: bool,
    }

    /// Runs a command.
    #[serde(deny_unknown_fields)]
    pub struct RunCommand {
        /// The line as it was written, with its slash.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 262144, pattern = "^/"))]
        pub line: String,
        /// The terms of messages from this surface. Where no person can be asked, commands are refused that give an
        /// agent more freedom or delete something.
        #[serde(default, skip_serializing_if = "Terms::is_none")]
        pub terms: Terms,
        /// An idempotency key of the message that the command may send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        pub client_id: Option<String>,
    }

    /// The outcome of a command.
    #[derive(Default)]
    pub struct CommandDone {
        /// The parts of the answer, in their order. They hold names that others chose: clean them of control characters.
        pub shown: Vec<Shown>,
        /// The session in which the conversation goes on: another one, or this one after a change of its runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<Session>,
        /// The message that was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub message: Option<MessageAccepted>,
        /// True if the mode was set. The surface names no other mode with its messages from now on.
        #[serde(default)]
        pub sets_mode: bool,
        /// A text to be changed and sent: a surface puts it where the next message is written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub draft: Option<String>,
    }

    /// Rows below headings. Without headings, pairs of a name and its value.
    pub struct CommandTable {
        /// The headings; some are empty.
        pub columns: Vec<String>,
        /// The rows.
        pub rows: Vec<Vec<String>>,
    }
}

/// A part of the answer to a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Shown {
    /// A line.
    Text(String),
    /// A table.
    Table(CommandTable),
}
