//! The contract between the engine and a model.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use shared_types::{
    SpanId, TraceContext,
    event::{Finish, Opaque, ToolCall, Usage},
};
use tokio::sync::mpsc;

use crate::ModelError;

/// Something that answers a conversation.
#[async_trait]
pub trait Model: Send + Sync {
    /// Who answers, as people see it.
    fn info(&self) -> ModelInfo;

    /// The answer to `request`. What is said on the way goes to `events`; whoever does not read
    /// them slows the answer down, and whoever drops the receiver still gets the answer.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    /// If no attempt led to a whole answer. Text that was already sent as an event is then not
    /// part of any answer.
    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError>;
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name that people see: `gpt-5`, or `practice model (no AI)`.
    pub name: String,
    /// Whether this is the practice model, which every surface says.
    pub practice: bool,
}

/// A conversation that waits for its next answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// What the model is told before the conversation; may be empty.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may ask for; may be empty.
    pub tools: Vec<ToolSpec>,
    /// Where the call stands in a trace, if it is part of one.
    pub trace: Option<CallTrace>,
}

/// Where a model call stands in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTrace {
    /// The call's own span, which the vendor is told.
    pub own: TraceContext,
    /// What it is part of.
    pub parent: SpanId,
    /// The call that this is another try of.
    pub after: Option<SpanId>,
}

/// One part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A person said something.
    User {
        /// What was said.
        text: String,
    },
    /// The model answered.
    Assistant {
        /// What it said; may be empty where it asked for tools.
        text: String,
        /// The tools that it asked for; each needs a [`Message::ToolResult`] before the next
        /// message of another kind.
        calls: Vec<ToolCall>,
        /// The vendor's own parts, from [`Answer::opaque`].
        opaque: Opaque,
    },
    /// A tool call ended.
    ToolResult {
        /// [`ToolCall::vendor_id`] of the call.
        vendor_id: String,
        /// What came of it. A vendor may see nothing else, so a failure says so here too.
        text: String,
        /// Whether it could not do what was asked.
        failed: bool,
    },
}

/// A tool that the model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// Its arguments, as a JSON Schema of an object.
    pub parameters: Value,
}

/// What happens while a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// An attempt begins: the first event of each. Text of earlier attempts is void.
    Attempt {
        /// From 1.
        number: u32,
    },
    /// The next piece of the thoughts before the answer; never empty.
    Reasoning(String),
    /// The next piece of the answer's text; never empty.
    Text(String),
    /// The attempt failed and another one follows.
    Retrying {
        /// How long until then.
        after: Duration,
        /// Why it failed, for people.
        reason: String,
    },
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the model said: the text of the last attempt's events.
    pub text: String,
    /// Its thoughts before it spoke, for people.
    pub reasoning: String,
    /// The tools that it asks for, in its order.
    pub calls: Vec<ToolCall>,
    /// The vendor's own parts, for the next request to the same model.
    pub opaque: Opaque,
    /// Whether it is whole. With [`Finish::Length`] the last call's arguments may be cut.
    pub finish: Finish,
    /// What it cost; zero where the vendor does not say.
    pub usage: Usage,
    /// Which model the vendor says has answered; empty where it does not say.
    pub model: String,
}
