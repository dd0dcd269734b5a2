//! What the server does with a request.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use shared_types::event::Usage;
use tokio::sync::Notify;

use super::chat;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Streams this answer, its end and its usage, in the format of the request.
    Said(Said),
    /// Streams the first bytes of this answer, and breaks the connection off.
    Cut {
        /// The answer.
        said: Said,
        /// So many of its bytes are sent.
        bytes: usize,
    },
    /// Refuses.
    Status {
        /// The HTTP status.
        code: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// Status 200 and an event stream of exactly these steps; it ends after the last one.
    Raw(Vec<Step>),
}

impl Reply {
    /// Streams `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Said(Said {
            text: text.into(),
            ..Said::default()
        })
    }

    /// Asks for one tool and says nothing.
    pub fn call(name: impl Into<String>, arguments: impl ToString) -> Self {
        Self::calls("", vec![(name.into(), arguments.to_string())])
    }

    /// Streams this text and these calls.
    pub fn calls(text: impl Into<String>, calls: Vec<(String, String)>) -> Self {
        Self::Said(Said {
            text: text.into(),
            calls,
            ..Said::default()
        })
    }

    /// Refuses with this status and an error object with this message.
    pub fn refusal(code: u16, message: &str) -> Self {
        Self::Status {
            code,
            headers: Vec::new(),
            body: json!({ "error": { "message": message } }).to_string(),
        }
    }
}

/// An answer, in no format yet.
#[derive(Debug, Clone)]
pub struct Said {
    /// The thoughts before it; may be empty. Where the vendor of the format signs thoughts, they are signed.
    pub thoughts: String,
    /// The words; may be empty.
    pub text: String,
    /// The calls as (name, arguments); their ids are `call_{request}_{place}`, both from 0. The arguments are sent as
    /// they are, also where they are not JSON and the format carries text.
    pub calls: Vec<(String, String)>,
    /// The tokens that it cost.
    pub usage: Usage,
}

impl Default for Said {
    /// Says nothing, for 10 tokens that are sent, 4 of them cached, and 5 that come back.
    fn default() -> Self {
        Self {
            thoughts: String::new(),
            text: String::new(),
            calls: Vec::new(),
            usage: Usage {
                input: 10,
                cached: 4,
                output: 5,
                ..Usage::default()
            },
        }
    }
}

/// One step of a raw reply.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends these bytes at once and by themselves.
    Send(Bytes),
    /// Waits until the test calls [`Notify::notify_one`].
    Hold(Arc<Notify>),
    /// Breaks the connection off without ending the response.
    Reset,
}

/// Steps in the format of Chat Completions.
impl Step {
    /// Sends a piece of the answer's text as a whole event.
    pub fn text(text: &str) -> Self {
        Self::Send(chat::event(&chat::text(text)))
    }

    /// Sends a piece of the answer's message as a whole event.
    pub fn delta(delta: &Value) -> Self {
        Self::Send(chat::event(&chat::delta(delta)))
    }

    /// Sends the end of the answer, its usage and the stream's end mark.
    pub fn end() -> Self {
        Self::end_with("stop")
    }

    /// The same, with this reason for the end.
    pub fn end_with(reason: &str) -> Self {
        Self::Send(chat::end(reason, Said::default().usage).concat().into())
    }
}
