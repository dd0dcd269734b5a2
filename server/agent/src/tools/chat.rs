//! The tool that begins another conversation of the user.

use shared_types::{Effect, Mode};

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Tool};

/// The name of the tool.
pub(crate) const CREATE_CHAT: &str = "create_chat";

/// Longest first message, in bytes.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// Longest title, in bytes.
const MAX_TITLE_BYTES: usize = 200;

/// A conversation that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAsk {
    /// Its title.
    pub title: String,
    /// Its first message.
    pub message: String,
    /// The mode of its first turn; absent for that of the calling turn.
    pub mode: Option<Mode>,
}

/// Begins another conversation of the user.
#[derive(Debug, Clone, Copy)]
pub struct CreateChatTool;

impl Tool for CreateChatTool {
    fn name(&self) -> &str {
        CREATE_CHAT
    }

    fn description(&self) -> &str {
        "Begins a new conversation of the user's, in the same folder, with a first message for the agent there, and \
         returns its id. You hear nothing of it again: the user goes on there. Use it only where the user wants a task done \
         apart from this conversation; SubAgent does a part of your own task."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "title",
                Kind::Text {
                    empty: false,
                    at_most: MAX_TITLE_BYTES,
                    instead: "name the task in a few words",
                },
                "The title, as the user's list shows it.",
            ),
            Parameter::required(
                "message",
                Kind::Text {
                    empty: false,
                    at_most: MAX_MESSAGE_BYTES,
                    instead: "write the long part to a file, and name it",
                },
                "The first message, with all that the agent there has to know.",
            ),
            Parameter::optional(
                "mode",
                Kind::Text {
                    empty: true,
                    at_most: 16,
                    instead: "name one mode",
                },
                "The freedom of its first turn: plan, ask, auto or full, at most yours (default).",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let mode = match arguments.text("mode").trim() {
            "" => None,
            word => Some(word.parse().map_err(|_| {
                BadArguments::new("the modes are plan, ask, auto and full".to_owned())
            })?),
        };
        Ok(Ask::Chat(ChatAsk {
            title: arguments.text("title").trim().to_owned(),
            message: arguments.text("message").to_owned(),
            mode,
        }))
    }
}
