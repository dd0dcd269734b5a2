//! The contract between the engine and a model.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use shared_types::{
    Digest, PaidBy, SpanId, TraceContext,
    event::{Finish, Origin, Parts, Usage},
};
use tokio::sync::mpsc;

use crate::{ModelError, Profile};

/// Something that answers a conversation.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name and kind of the model.
    fn info(&self) -> ModelInfo;

    /// True while it is not asked, because it cools down after failures and another model is asked in its place.
    fn is_left_alone(&self) -> bool {
        false
    }

    /// Answers `request`. Events on the way go to `events`. A slow receiver slows the answer down;
    /// a dropped receiver does not stop it. Dropping the future cancels the request.
    ///
    /// # Errors
    /// Fails if no attempt led to a whole answer. Text that was already sent as an event is then
    /// not part of any answer.
    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError>;
}

/// The name and kind of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name that people see: `gpt-5`, or `practice model (no AI)`.
    pub name: String,
    /// True for the practice model; every surface shows that.
    pub practice: bool,
    /// The origin of its answers.
    pub origin: Origin,
    /// Its abilities and its price.
    pub profile: Profile,
    /// The account that pays for it.
    pub paid_by: PaidBy,
}

impl ModelInfo {
    /// The place that answers, as people name it: the provider, or the model where that is unknown.
    pub fn place(&self) -> &str {
        match self.profile.provider.as_str() {
            "" => &self.name,
            provider => provider,
        }
    }

    /// The provider in metrics and traces, which name no runner.
    pub fn provider_label(&self) -> &str {
        match self.paid_by {
            PaidBy::Runner(_) => "runner",
            _ => &self.profile.provider,
        }
    }
}

/// A conversation that waits for its next answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    /// The system prompt, before the conversation; may be empty.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may ask for; may be empty.
    pub tools: Vec<ToolSpec>,
    /// The bytes of the images in the messages. An image that is not here is described in words.
    pub images: Images,
    /// The place of the call in a trace, if it is part of one.
    pub trace: Option<CallTrace>,
}

/// The bytes of images, by their digests.
pub type Images = HashMap<Digest, Bytes>;

/// The place of a model call in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTrace {
    /// The call's own span, which the vendor receives.
    pub own: TraceContext,
    /// The span that it is part of.
    pub parent: SpanId,
    /// The call that this is another try of.
    pub after: Option<SpanId>,
}

/// One part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A person said something.
    User {
        /// The message of the user.
        parts: Parts,
    },
    /// The model answered.
    Assistant {
        /// The answer, from [`Answer::parts`]. Each of its calls needs a [`Message::ToolResult`] before the
        /// next message of another kind.
        parts: Parts,
    },
    /// A tool call ended.
    ToolResult {
        /// `vendor_id` of the call.
        vendor_id: String,
        /// The outcome. A vendor may see nothing else, so the text of a failure says that it
        /// failed.
        parts: Parts,
        /// True if the call failed.
        failed: bool,
    },
}

impl Message {
    /// The parts of the message.
    pub fn parts(&self) -> &Parts {
        match self {
            Self::User { parts } | Self::Assistant { parts } | Self::ToolResult { parts, .. } => {
                parts
            }
        }
    }
}

/// A tool that the model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// A description of the tool and its use, for the model.
    pub description: String,
    /// Its arguments, as a JSON Schema of an object.
    pub parameters: Value,
    /// Other names that stand for it in a call that a model writes as text.
    pub aliases: Vec<String>,
}

/// An event while a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// The call waits, because the tenant makes as many at the same time as it may.
    Waiting,
    /// An attempt begins: the first event of each. Text of earlier attempts is void.
    Attempt {
        /// From 1.
        number: u32,
    },
    /// The next piece of the answer.
    Said(Piece),
    /// The text that was said is not the answer's: a part of it is a call. The answer tells all that is left.
    TakenBack,
    /// The attempt has ended, well or not.
    Attempted(Attempted),
    /// The attempt failed and another one follows.
    Retrying {
        /// The pause before it.
        after: Duration,
        /// The failure in a few words, for people: `anthropic is overloaded`.
        reason: String,
        /// The number of the next attempt, from 2.
        next: u32,
        /// Attempts in all.
        of: u32,
    },
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// The attempt, from 1.
    pub number: u32,
    /// `ok`, or the kind of failure.
    pub outcome: &'static str,
    /// The tokens that it cost, as far as the vendor said.
    pub usage: Usage,
    /// The time from the request to its end.
    pub duration: Duration,
    /// The time from the request to the first byte of the answer; `None` where none came.
    pub first_byte: Option<Duration>,
}

/// A piece of the answer while the model gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The part: its place among the parts of text and of thoughts, in the order in which they began, from 0.
    pub part: u32,
    /// The kind of the part.
    pub voice: Voice,
    /// More of the part; never empty.
    pub text: String,
}

/// A kind of part that is shown while the model says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// Thoughts before the model goes on.
    Reasoning,
    /// Words for the reader.
    Text,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The parts of the answer, in the order in which they began.
    pub parts: Parts,
    /// The way in which it ended. With [`Finish::Length`] the last call's arguments may be cut.
    pub finish: Finish,
    /// The tokens that it cost; zero if the vendor does not tell.
    pub usage: Usage,
    /// The model that has answered, as the vendor says; empty if it does not say.
    pub model: String,
    /// The time from the request to the first byte of the answer, where that was measured.
    pub first_byte: Option<Duration>,
}

#[cfg(test)]
impl Answer {
    pub(crate) fn text(&self) -> String {
        self.parts.words().into_owned()
    }

    pub(crate) fn reasoning(&self) -> String {
        self.parts.reasoning().into_owned()
    }

    pub(crate) fn calls(&self) -> Vec<shared_types::event::ToolCall> {
        self.parts.calls().cloned().collect()
    }
}
