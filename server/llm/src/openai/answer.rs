//! An answer as it grows out of the pieces of a stream.
//!
//! Servers that call themselves compatible differ in the pieces: ids, indices and names may be
//! missing, repeated or cut. What can only mean one thing is accepted; an answer whose end was
//! never announced is not.

use serde::Deserialize;
use serde_json::Value;
use shared_types::event::{Finish, ToolCall, Usage};

use crate::{Answer, ModelError};

/// Largest answer, text and calls together, in bytes.
pub(super) const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Most tool calls in one answer.
const MAX_CALLS: usize = 128;

/// One piece of a stream, or the whole answer of a server that does not stream.
#[derive(Debug, Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    /// In a stream the part is called `delta`.
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<Content>,
    /// The model's own words when it declines.
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part without text, such as a thought, is not part of the answer.
#[derive(Debug, Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<WireDetails>,
}

#[derive(Debug, Deserialize)]
struct WireDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

/// Takes pieces and becomes an answer.
#[derive(Debug, Default)]
pub(super) struct Growing {
    text: String,
    calls: Vec<GrowingCall>,
    call_bytes: usize,
    finish: Option<Finish>,
    usage: Usage,
}

#[derive(Debug, Default)]
struct GrowingCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Growing {
    /// Takes one piece; gives the text that it adds.
    ///
    /// # Errors
    /// If the answer outgrows its bounds, or the vendor withheld it.
    pub(super) fn absorb(&mut self, piece: Piece) -> Result<String, ModelError> {
        if let Some(usage) = piece.usage {
            self.usage = usage.into();
        }
        let before = self.text.len();
        let choices = piece.choices.unwrap_or_default();
        for choice in choices {
            // We ask for one choice only.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.absorb_delta(delta)?;
            }
            // Some servers send an empty reason until there is one.
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(finish(&reason)?);
            }
        }
        Ok(self.text[before..].to_owned())
    }

    /// Whether the vendor said that the answer ended; only its usage may still follow.
    pub(super) fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    /// The answer. `announced` says that the stream's own end mark was seen.
    ///
    /// # Errors
    /// If the end was never announced, nothing was said before the mark, or a call has no name.
    pub(super) fn conclude(self, announced: bool) -> Result<Answer, ModelError> {
        let said = !self.text.is_empty() || !self.calls.is_empty();
        let finish = match self.finish {
            Some(finish) => finish,
            None if announced && said => Finish::Complete,
            None => {
                return Err(broken("the answer broke off before its end"));
            }
        };
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(broken("the answer asks for a tool without naming it"));
        }
        let calls = self.calls.into_iter().enumerate().map(|(position, call)| {
            let index = call.index.unwrap_or(position as u64);
            ToolCall {
                vendor_id: if call.id.is_empty() {
                    format!("call_{index}")
                } else {
                    call.id
                },
                name: call.name,
                arguments: call.arguments,
            }
        });
        Ok(Answer {
            text: self.text,
            calls: calls.collect(),
            finish,
            usage: self.usage,
        })
    }

    fn absorb_delta(&mut self, delta: Delta) -> Result<(), ModelError> {
        match delta.content {
            Some(Content::Text(text)) => self.text.push_str(&text),
            Some(Content::Parts(parts)) => {
                let texts = parts.into_iter().filter_map(|part| part.text);
                self.text.extend(texts);
            }
            None => {}
        }
        self.text.extend(delta.refusal);
        for call in delta.tool_calls.unwrap_or_default() {
            self.absorb_call(call)?;
        }
        if self.text.len() + self.call_bytes > MAX_ANSWER_BYTES {
            return Err(ModelError::Refused(format!(
                "the model's answer is larger than {} MiB: ask for less at a time",
                MAX_ANSWER_BYTES / (1024 * 1024)
            )));
        }
        Ok(())
    }

    fn absorb_call(&mut self, delta: CallDelta) -> Result<(), ModelError> {
        let function = delta.function.unwrap_or(FunctionDelta {
            name: None,
            arguments: None,
        });
        let id = delta.id.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let position = match self.continued(delta.index, &id, &name) {
            Some(position) => position,
            None if self.calls.len() == MAX_CALLS => {
                return Err(broken(&format!(
                    "the answer asks for more than {MAX_CALLS} tools at once"
                )));
            }
            None => {
                self.calls.push(GrowingCall {
                    index: delta.index,
                    ..GrowingCall::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id = id;
        }
        // A piece that equals the name so far is a server that repeats the whole name each time.
        if call.name != name {
            call.name.push_str(&name);
        }
        let arguments = match function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(arguments)) => arguments,
            Some(object) => object.to_string(),
        };
        call.arguments.push_str(&arguments);
        self.call_bytes += name.len() + arguments.len();
        Ok(())
    }

    /// The call that a piece goes on with; `None` where it begins one.
    ///
    /// The index decides. But some servers give every call the index 0, or none: then a piece
    /// that brings both a name and another id begins a call. (An id alone does not: others make
    /// up a new id for each piece.)
    fn continued(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let position = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[position];
        let begins = if index.is_none() && id.is_empty() {
            // Without index and id, a second name is all that tells two calls apart.
            !name.is_empty() && !call.arguments.is_empty()
        } else {
            !name.is_empty() && !id.is_empty() && !call.id.is_empty() && call.id != id
        };
        (!begins).then_some(position)
    }
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Self {
            input: usage.prompt_tokens.unwrap_or(0),
            cached: usage
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0),
            output: usage.completion_tokens.unwrap_or(0),
        }
    }
}

fn finish(reason: &str) -> Result<Finish, ModelError> {
    match reason {
        "length" => Ok(Finish::Length),
        "content_filter" => Err(ModelError::Refused(
            "the model's provider withheld the answer (content filter): say it in other words"
                .to_owned(),
        )),
        // `stop` and `tool_calls`, and other names for them: servers are not exact here, and
        // the calls themselves say what is to be done.
        _ => Ok(Finish::Complete),
    }
}

fn broken(what: &str) -> ModelError {
    ModelError::Broken(format!(
        "{what}: if this repeats, look at the model server's log"
    ))
}

#[cfg(test)]
mod tests;
