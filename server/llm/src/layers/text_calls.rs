//! Calls of tools that a model writes as text.
//!
//! Small models, and servers without a parser for their model, print a call where they should make one. This layer
//! stands around the vendor of every model that is not known to call natively ([`ToolCalls`]):
//!
//! - A model that calls in text is sent no tools. It reads of them in the system prompt (`told`).
//! - Another one is sent tools natively, and is asked in text once its server has refused them.
//! - The whole answer of either is searched where it has no native call (`search`).
//!
//! A call that a person or a tool wrote before is none: the model may only repeat it.
//! A call that was found is a call like any other: it is taken out of the text, and the engine checks its arguments.

mod elements;
mod search;
mod shape;
mod told;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use shared_types::event::{Finish, Part, Parts, ToolCall};
use tokio::sync::mpsc;

use crate::{
    Answer, Failure, Message, ModelError, ModelEvent, ModelInfo, ModelRequest, ToolCalls, Vendor,
    formats::{MAX_CALLS, id_of_ours, too_many_calls},
};

/// A vendor whose model may write its calls as text.
pub(crate) struct TextCalls {
    vendor: Arc<dyn Vendor>,
    /// True once the vendor's server has refused tools.
    refuses_tools: AtomicBool,
}

impl TextCalls {
    /// Finds the calls in the answers of this vendor.
    pub(crate) fn new(vendor: Arc<dyn Vendor>) -> Self {
        Self {
            vendor,
            refuses_tools: AtomicBool::new(false),
        }
    }

    fn asks_in_text(&self) -> bool {
        self.vendor.info().profile.tools == ToolCalls::Text
            || self.refuses_tools.load(Ordering::Relaxed)
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        if !self.asks_in_text() {
            match self.vendor.attempt(request, events).await {
                Err(failure) if refuses_tools(&failure.error) && !request.tools.is_empty() => {
                    tracing::debug!("the model server refuses tools: they are told in text");
                    self.refuses_tools.store(true, Ordering::Relaxed);
                }
                asked => return asked,
            }
        }
        self.vendor.attempt(&told::request(request), events).await
    }
}

#[async_trait]
impl Vendor for TextCalls {
    fn info(&self) -> ModelInfo {
        self.vendor.info()
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let answer = self.ask(request, events).await?;
        let Some(parts) = with_calls(&answer, request)? else {
            return Ok(answer);
        };
        // The text of the calls may have been shown. The answer counts also where no receiver listens.
        let _ = events.send(ModelEvent::TakenBack).await;
        Ok(Answer { parts, ..answer })
    }
}

/// Words of a server or a model that takes no tools, as Ollama, llama.cpp, vLLM and others write them.
const REFUSALS: &[&str] = &[
    "not support",
    "unsupported",
    "requires --",
    "unknown",
    "unrecognized",
    "not permitted",
];

fn refuses_tools(error: &ModelError) -> bool {
    let ModelError::Refused(said) = error else {
        return false;
    };
    let said = said.to_lowercase();
    (said.contains("tools") || said.contains("tool choice"))
        && REFUSALS.iter().any(|words| said.contains(words))
}

/// The parts of the answer with the calls in its text as calls; `None` where there are none. An answer that was cut
/// at its length is left as it is, because its last call may be cut.
///
/// # Errors
/// If there are too many.
fn with_calls(answer: &Answer, request: &ModelRequest) -> Result<Option<Parts>, ModelError> {
    if answer.finish != Finish::Complete || answer.parts.calls().next().is_some() {
        return Ok(None);
    }
    let texts = answer.parts.0.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    let text = texts.join("\n\n");
    let found = search::calls(&text, &request.tools);
    let is_copied = |written: &Range<usize>| was_read(&text[written.clone()], &request.messages);
    if found.calls.is_empty() || found.written.iter().any(is_copied) {
        return Ok(None);
    }
    if found.calls.len() > MAX_CALLS {
        return Err(too_many_calls());
    }
    let mut left = Some(found.text).filter(|text| !text.is_empty());
    let parts = answer.parts.0.iter().filter_map(|part| match part {
        Part::Text { .. } => left.take().map(|text| Part::Text { text }),
        other => Some(other.clone()),
    });
    let calls = found.calls.into_iter().enumerate().map(|(place, call)| {
        Part::ToolCall(ToolCall {
            vendor_id: id_of_ours(place),
            name: call.name,
            arguments: call.arguments,
            opaque: serde_json::Map::new(),
        })
    });
    Ok(Some(Parts(parts.chain(calls).collect())))
}

/// True if a person or a tool said these words, so that the model may only repeat them.
fn was_read(words: &str, messages: &[Message]) -> bool {
    let words = words.trim();
    messages.iter().any(|message| match message {
        Message::Assistant { .. } => false,
        Message::User { parts } | Message::ToolResult { parts, .. } => {
            let mut parts = parts.0.iter();
            parts.any(|part| matches!(part, Part::Text { text } if text.contains(words)))
        }
    })
}

#[cfg(test)]
mod tests;
