//! An answer that grows from the chunks of a stream.
//!
//! A chunk has the next parts of the one candidate. A part with a signature is never joined with another, because the
//! signature has to go back to the place it came from. The stream has no end mark of its own: an answer has ended
//! with its `finishReason`.

mod call;
mod finish;
mod pieces;

use serde_json::{Map, Value};
use shared_types::event::{Finish, Part, Parts, Usage};

use self::{
    call::GrowingCall,
    finish::{blocked, finish},
};
use super::Gemini;
use crate::{
    Answer, ModelError, Piece, Voice,
    formats::{
        self, AnswerEnd, AnswerStage, Format as _, MAX_ANSWER_BYTES, MAX_CALLS, broken,
        conversation::id_of_ours, malformed, tokens, too_large, too_many_calls,
    },
};

/// Longest name of a model that is kept, in bytes.
const MAX_MODEL_BYTES: usize = 128;

/// The least bytes that a part counts for, so that endless small ones have a bound.
const LEAST_WEIGHT: usize = 64;

/// Takes chunks and becomes an answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiBuilder {
    parts: Vec<Grown>,
    /// The names of the tools that it may ask for.
    tools: Vec<String>,
    /// So many parts of text and of thoughts have begun.
    begun: u32,
    calls: usize,
    /// About how many bytes the parts take.
    weight: usize,
    end: Option<Finish>,
    usage: Usage,
    /// Which model says that it answers.
    model: String,
}

/// A part as it grows.
#[derive(Debug)]
enum Grown {
    /// Text or thoughts.
    Said {
        voice: Voice,
        part: u32,
        text: String,
    },
    /// A call.
    Call(GrowingCall),
    /// A part of the vendor's own.
    Opaque(Map<String, Value>),
}

impl GeminiBuilder {
    /// An answer that may ask for these tools.
    pub(super) fn new(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            ..Self::default()
        }
    }

    fn chunk(
        &mut self,
        mut chunk: Map<String, Value>,
        said: &mut Vec<Piece>,
    ) -> Result<(), ModelError> {
        let feedback = chunk.get("promptFeedback");
        let reason = feedback.and_then(|feedback| feedback["blockReason"].as_str());
        if let Some(reason) = reason {
            blocked(reason)?;
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            self.count(usage);
        }
        if let Some(Value::String(mut model)) = chunk.remove("modelVersion") {
            model.truncate(model.floor_char_boundary(MAX_MODEL_BYTES));
            self.model = model;
        }
        for candidate in list(chunk.remove("candidates"), "the candidates")? {
            let mut candidate = object(candidate, "a candidate")?;
            // We ask for one only.
            if candidate
                .get("index")
                .is_some_and(|index| tokens(index) > 0)
            {
                continue;
            }
            if let Some(Value::Object(mut content)) = candidate.remove("content") {
                for part in list(content.remove("parts"), "the parts")? {
                    self.part(object(part, "a part")?, said)?;
                }
            }
            if let Some(Value::String(reason)) = candidate.get("finishReason")
                && let Some(finish) = finish(reason)?
            {
                self.end = Some(finish);
            }
        }
        Ok(())
    }

    /// Counts the tokens. The numbers are of the whole answer so far; a later chunk may leave some out.
    fn count(&mut self, usage: &Value) {
        let thoughts = tokens(&usage["thoughtsTokenCount"]);
        let input = tokens(&usage["promptTokenCount"]);
        let known = &mut self.usage;
        known.input = known.input.max(input);
        known.cached = known.cached.max(tokens(&usage["cachedContentTokenCount"]));
        known.thoughts = known.thoughts.max(thoughts);
        let output = tokens(&usage["candidatesTokenCount"]).saturating_add(thoughts);
        known.output = known.output.max(output);
    }

    fn part(
        &mut self,
        mut part: Map<String, Value>,
        said: &mut Vec<Piece>,
    ) -> Result<(), ModelError> {
        part.retain(|_, value| !value.is_null());
        if part.contains_key("functionCall") {
            return self.call(part);
        }
        let voice = match part.get("thought") {
            Some(Value::Bool(true)) => Voice::Reasoning,
            _ => Voice::Text,
        };
        let text = match part.get("text") {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(form("a text is no text")),
        };
        if let Some(text) = &text {
            self.say(voice, text, said)?;
        }
        let is_known = |name: &str| name == "text" || name == "thought";
        if part.keys().any(|name| !is_known(name)) {
            self.weigh(&part)?;
            self.parts.push(Grown::Opaque(part));
        }
        Ok(())
    }

    /// Adds this to the part that is being said, or begins another one.
    fn say(&mut self, voice: Voice, more: &str, said: &mut Vec<Piece>) -> Result<(), ModelError> {
        if more.is_empty() {
            return Ok(());
        }
        self.add(more.len())?;
        let part = match self.parts.last_mut() {
            Some(Grown::Said {
                voice: known,
                part,
                text,
            }) if *known == voice => {
                text.push_str(more);
                *part
            }
            _ => {
                let part = self.begun;
                self.begun += 1;
                let text = more.to_owned();
                self.add(LEAST_WEIGHT)?;
                self.parts.push(Grown::Said { voice, part, text });
                part
            }
        };
        let text = more.to_owned();
        said.push(Piece { part, voice, text });
        Ok(())
    }

    /// Takes a call, or more of the one before.
    fn call(&mut self, part: Map<String, Value>) -> Result<(), ModelError> {
        self.weigh(&part)?;
        let next = GrowingCall::of(part, &self.tools)?;
        match self.parts.last_mut() {
            Some(Grown::Call(call)) if call.takes(&next) => call.absorb(next),
            _ if next.is_nameless() => {
                return Err(broken("the answer has a call without a name"));
            }
            _ => {
                let is_same =
                    |part: &Grown| matches!(part, Grown::Call(call) if call.is_repeated_by(&next));
                if self.parts.iter().any(is_same) {
                    return Ok(());
                }
                if self.calls == MAX_CALLS {
                    return Err(too_many_calls());
                }
                self.calls += 1;
                self.parts.push(Grown::Call(next));
            }
        }
        Ok(())
    }

    fn weigh(&mut self, part: &Map<String, Value>) -> Result<(), ModelError> {
        let weight = serde_json::to_string(part).map_or(0, |text| text.len());
        self.add(weight + LEAST_WEIGHT)
    }

    fn add(&mut self, weight: usize) -> Result<(), ModelError> {
        self.weight = self.weight.saturating_add(weight);
        match self.weight > MAX_ANSWER_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

impl formats::AnswerBuilder for GeminiBuilder {
    fn absorb(&mut self, piece: Value) -> Result<Vec<Piece>, ModelError> {
        let mut said = Vec::new();
        let chunks = match piece {
            // One document with all chunks, where `alt=sse` did not reach the server.
            Value::Array(chunks) => chunks,
            chunk => vec![chunk],
        };
        for chunk in chunks {
            self.chunk(object(chunk, "a chunk")?, &mut said)?;
        }
        Ok(said)
    }

    fn stage(&self) -> AnswerStage {
        match self.end {
            Some(_) => AnswerStage::Ended,
            None => AnswerStage::Open,
        }
    }

    fn conclude(mut self, end: AnswerEnd) -> Result<(Answer, Vec<Piece>), ModelError> {
        let Some(finish) = self.end else {
            return Err(broken("the answer broke off before its end"));
        };
        let mut rest = Vec::new();
        if end.torn && matches!(self.parts.last(), Some(Grown::Said { .. })) {
            let lost = char::REPLACEMENT_CHARACTER.to_string();
            if let Some(Grown::Said { voice, .. }) = self.parts.last() {
                self.say(*voice, &lost, &mut rest)?;
            }
        }
        let mut parts = Vec::new();
        let mut calls = 0;
        for part in self.parts {
            parts.push(match part {
                Grown::Said { voice, text, .. } => match voice {
                    Voice::Text => Part::Text { text },
                    Voice::Reasoning => Part::Reasoning {
                        text,
                        signature: None,
                    },
                },
                Grown::Call(call) if finish == Finish::Complete && call.goes_on() => {
                    return Err(broken("the answer broke off in the middle of a call"));
                }
                Grown::Call(call) => {
                    calls += 1;
                    Part::ToolCall(call.conclude(|| id_of_ours(calls - 1))?)
                }
                Grown::Opaque(fields) => Part::Opaque { fields },
            });
        }
        let counts = |part: &Part| matches!(part, Part::Text { .. } | Part::ToolCall(_));
        if finish == Finish::Complete && !parts.iter().any(counts) {
            return Err(broken("the model's answer is empty"));
        }
        let answer = Answer {
            parts: Parts(parts),
            finish,
            usage: self.usage,
            model: self.model,
            first_byte: None,
        };
        Ok((answer, rest))
    }
}

fn form(what: &str) -> ModelError {
    malformed(Gemini::NAME, &what)
}

fn object(value: Value, what: &str) -> Result<Map<String, Value>, ModelError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(form(&format!("{what} is no object"))),
    }
}

fn list(value: Option<Value>, what: &str) -> Result<Vec<Value>, ModelError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(form(&format!("{what} are no list"))),
    }
}

#[cfg(test)]
mod tests;
