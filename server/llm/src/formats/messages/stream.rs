//! An answer that grows from the events of a stream, or comes whole as one document.
//!
//! The vendor asks its readers to pass over events and kinds of deltas that they do not know. A block of a kind that
//! is not known is kept as it is: only the vendor can read it.

mod block;
mod blocks;
mod finish;
mod usage;

use serde_json::{Map, Value};
use shared_types::event::{Finish, Parts};

use self::{
    blocks::Blocks,
    finish::{MessagesFinish, broke_off, finish},
    usage::TokenCounts,
};
use super::Messages;
use crate::{
    Answer, ModelError, Piece,
    formats::{self, AnswerEnd, AnswerStage, Format as _, broken, malformed},
};

/// Longest name of a model that is kept, in bytes.
const MAX_MODEL_BYTES: usize = 128;

/// Takes events and becomes an answer.
#[derive(Debug, Default)]
pub(crate) struct MessagesBuilder {
    blocks: Blocks,
    end: Option<MessagesFinish>,
    /// True once the vendor has announced that nothing follows.
    is_over: bool,
    counts: TokenCounts,
    /// Which model says that it answers.
    model: String,
}

impl MessagesBuilder {
    /// An answer that may ask for these tools.
    pub(super) fn new(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            blocks: Blocks::of(tools),
            ..Self::default()
        }
    }

    fn absorb_event(&mut self, mut event: Map<String, Value>) -> Result<Vec<Piece>, ModelError> {
        let index = event.get("index").and_then(Value::as_u64);
        let kind = event.get("type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        match kind.as_str() {
            "message_start" => {
                self.begin(&event.remove("message").unwrap_or_default());
                Ok(Vec::new())
            }
            "content_block_start" => {
                let block = object(event.remove("content_block"), "content_block")?;
                let said = self.blocks.start(index, block)?;
                Ok(said.into_iter().collect())
            }
            "content_block_delta" => {
                let delta = object(event.remove("delta"), "delta")?;
                let said = self.blocks.grow(index, delta)?;
                Ok(said.into_iter().collect())
            }
            "content_block_stop" => {
                self.blocks.stop(index);
                Ok(Vec::new())
            }
            "message_delta" => {
                self.counts.take(event.get("usage").unwrap_or(&Value::Null));
                self.take_end(event.get("delta").unwrap_or(&Value::Null))?;
                Ok(Vec::new())
            }
            "message_stop" => {
                self.is_over = true;
                Ok(Vec::new())
            }
            "message" => self.absorb_document(event),
            "" => Err(malformed(Messages::NAME, &"an event without a type")),
            _ => Ok(Vec::new()),
        }
    }

    /// The answer of a server that does not stream.
    fn absorb_document(
        &mut self,
        mut message: Map<String, Value>,
    ) -> Result<Vec<Piece>, ModelError> {
        let Some(Value::Array(content)) = message.remove("content") else {
            return Err(malformed(Messages::NAME, &"content has another type"));
        };
        let message = Value::Object(message);
        self.begin(&message);
        let mut said = Vec::new();
        for (index, block) in (0..).zip(content) {
            let block = object(Some(block), "content")?;
            said.extend(self.blocks.start(Some(index), block)?);
            self.blocks.stop(Some(index));
        }
        self.take_end(&message)?;
        self.is_over = true;
        Ok(said)
    }

    fn begin(&mut self, message: &Value) {
        let model = message["model"].as_str().unwrap_or_default();
        model[..model.floor_char_boundary(MAX_MODEL_BYTES)].clone_into(&mut self.model);
        self.counts.take(&message["usage"]);
    }

    /// Takes the reason of the end, where there is one.
    fn take_end(&mut self, told: &Value) -> Result<(), ModelError> {
        if let Some(reason) = told["stop_reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
        {
            self.end = Some(finish(reason, &told["stop_details"])?);
        }
        Ok(())
    }

    /// The way in which the answer ended. Without a known reason, the mark of the stream's end suffices where
    /// something whole was said.
    fn finish(&self, announced: bool) -> Result<Finish, ModelError> {
        let is_whole = announced && !self.blocks.are_empty() && self.blocks.are_whole();
        match &self.end {
            Some(MessagesFinish::Known(finish)) => Ok(*finish),
            Some(MessagesFinish::Paused) => Ok(Finish::Complete),
            Some(MessagesFinish::Unknown(_)) | None if is_whole => Ok(Finish::Complete),
            Some(MessagesFinish::Unknown(reason)) => Err(broke_off(reason)),
            None => Err(broken("the answer broke off before its end")),
        }
    }
}

impl formats::AnswerBuilder for MessagesBuilder {
    fn absorb(&mut self, piece: Value) -> Result<Vec<Piece>, ModelError> {
        match piece {
            _ if self.is_over => Ok(Vec::new()),
            Value::Object(event) => self.absorb_event(event),
            _ => Err(malformed(Messages::NAME, &"an event is no object")),
        }
    }

    fn stage(&self) -> AnswerStage {
        match &self.end {
            _ if self.is_over => AnswerStage::Over,
            Some(MessagesFinish::Known(_) | MessagesFinish::Paused) => AnswerStage::Ended,
            Some(MessagesFinish::Unknown(_)) | None => AnswerStage::Open,
        }
    }

    fn is_paused(&self) -> bool {
        self.end == Some(MessagesFinish::Paused)
    }

    fn conclude(self, end: AnswerEnd) -> Result<(Answer, Vec<Piece>), ModelError> {
        let finish = self.finish(self.is_over || end.announced)?;
        let (parts, rest) = self.blocks.conclude(end.torn)?;
        let answer = Answer {
            parts: Parts(parts),
            finish,
            usage: self.counts.usage(),
            model: self.model,
            first_byte: None,
        };
        Ok((answer, rest.into_iter().collect()))
    }
}

fn object(value: Option<Value>, name: &str) -> Result<Map<String, Value>, ModelError> {
    match value {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(malformed(
            Messages::NAME,
            &format_args!("{name} has another type"),
        )),
    }
}

#[cfg(test)]
mod tests;
