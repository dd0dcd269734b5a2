//! The tool that begins an agent: a session of its own that works for the call.

use std::sync::Arc;

use shared_types::{Effect, event::TurnSettings};

use super::{Arguments, Ask, BadArguments, CreateChatTool, Kind, Parameter, Tool, ToolSource};

/// The name of the tool.
pub(crate) const SUB_AGENT: &str = "SubAgent";

/// The name of the tool that goes on with an agent.
pub(crate) const SEND_MESSAGE: &str = "SendMessage";

/// Longest message to an agent, in bytes.
const MAX_PROMPT_BYTES: usize = 32 * 1024;

/// Longest description of its task, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// Longest name of a role, in bytes.
const MAX_ROLE_BYTES: usize = 64;

/// Longest name of an agent, in bytes.
const MAX_AGENT_BYTES: usize = 64;

/// Something of another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAsk {
    /// A new one, which does a task.
    Begin(BeginAgent),
    /// An answer of one that was begun before.
    Send {
        /// Its name.
        to: String,
        /// The message to it.
        message: String,
    },
}

/// An agent that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginAgent {
    /// Its task, in a few words.
    pub description: String,
    /// Its message.
    pub prompt: String,
    /// The name of its role; absent for the general one.
    pub role: Option<String>,
    /// True if the call does not wait for its end.
    pub background: bool,
    /// True if it works in a git worktree of its own.
    pub worktree: bool,
}

/// Begins an agent.
#[derive(Debug, Clone, Copy)]
pub struct SubAgentTool;

impl Tool for SubAgentTool {
    fn name(&self) -> &str {
        SUB_AGENT
    }

    fn aliases(&self) -> &[&str] {
        &["Task", "Agent"]
    }

    fn description(&self) -> &str {
        "Has another agent do a task in a conversation of its own, and returns its last words. SendMessage goes on with it. It knows nothing of this \
         conversation: its prompt says all that it needs, and what it is to return. It works in the same folder, with \
         no more freedom than you. Several of these calls in one answer work at the same time. Use it for a search of many \
         files, or for work whose details you do not need here."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "description",
                Kind::Text {
                    empty: false,
                    at_most: MAX_DESCRIPTION_BYTES,
                    instead: "name the task in three to five words",
                },
                "The task in three to five words, for people.",
            ),
            Parameter::required(
                "prompt",
                Kind::Text {
                    empty: false,
                    at_most: MAX_PROMPT_BYTES,
                    instead: "write the long part to a file, and name it",
                },
                "The task, with all that the agent has to know.",
            ),
            Parameter::optional(
                "agent",
                Kind::Text {
                    empty: true,
                    at_most: MAX_ROLE_BYTES,
                    instead: "name one role",
                },
                "Its role: general, which has all tools (default), or explore, which only reads; or a role of this project.",
            ),
            Parameter::optional(
                "background",
                Kind::Flag,
                "True to go on without waiting for its end, which is told before a later message.",
            ),
            Parameter::optional(
                "isolation",
                Kind::Text {
                    empty: true,
                    at_most: 16,
                    instead: "leave it out, or use worktree",
                },
                "worktree: it works in a git worktree of its own, on its own branch. Use it where agents change the same \
                 files at the same time.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let role = arguments.text("agent").trim();
        let worktree = match arguments.text("isolation").trim() {
            "" => false,
            "worktree" => true,
            other => {
                return Err(BadArguments::new(format!(
                    "there is no isolation {:?}; there is: worktree",
                    super::arguments::shortened(other)
                )));
            }
        };
        Ok(Ask::Agent(AgentAsk::Begin(BeginAgent {
            description: arguments.text("description").trim().to_owned(),
            prompt: arguments.text("prompt").to_owned(),
            role: (!role.is_empty()).then(|| role.to_owned()),
            background: arguments.flag("background"),
            worktree,
        })))
    }
}

/// Sends a message to an agent that was begun before.
#[derive(Debug, Clone, Copy)]
pub struct SendMessageTool;

impl Tool for SendMessageTool {
    fn name(&self) -> &str {
        SEND_MESSAGE
    }

    fn description(&self) -> &str {
        "Sends a message to an agent that SubAgent began, and returns its answer. The agent remembers its conversation. An \
         agent that was idle for 30 minutes takes no more messages."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "to",
                Kind::Text {
                    empty: false,
                    at_most: MAX_AGENT_BYTES,
                    instead: "name one agent",
                },
                "The name of the agent, such as explore-1.",
            ),
            Parameter::required(
                "message",
                Kind::Text {
                    empty: false,
                    at_most: MAX_PROMPT_BYTES,
                    instead: "write the long part to a file, and name it",
                },
                "The message.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Agent(AgentAsk::Send {
            to: arguments.text("to").trim().to_owned(),
            message: arguments.text("message").to_owned(),
        }))
    }
}

/// The source of the tools for agents.
#[derive(Debug, Clone, Copy)]
pub struct AgentTools;

impl ToolSource for AgentTools {
    fn tools(&self, _settings: Option<&TurnSettings>) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(SubAgentTool),
            Arc::new(SendMessageTool),
            Arc::new(CreateChatTool),
        ]
    }
}
