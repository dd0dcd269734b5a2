//! An answer that grows from the pieces of a stream.
//!
//! Servers that call themselves compatible differ in the pieces: ids, indices and names may be
//! missing, repeated or cut. A piece with only one possible meaning is accepted. An answer without
//! an announced end is not.

mod arguments;
mod calls;
mod finish;
mod opaque;
mod think;
mod wire;

use serde_json::{Map, Value, json};
use shared_types::event::{self, Finish, Parts, Usage};

use self::{
    calls::{Calls, too_many},
    finish::{ChatFinish, broke_off, finish},
    opaque::TooMany,
    think::{Divider, Places},
    wire::{MessagePart, ThoughtsField},
};
use self::{think::DividedPiece, wire::Chunk};
use super::{Chat, own::Own};
use crate::{
    Answer, ModelError, Piece, Voice,
    formats::{
        self, AnswerEnd, AnswerStage, Format as _, MAX_ANSWER_BYTES, broken, malformed, too_large,
    },
};

/// Takes pieces and becomes an answer.
#[derive(Debug, Default)]
pub(crate) struct ChatBuilder {
    divider: Divider,
    text: String,
    reasoning: String,
    places: Places,
    /// The field that first held the thoughts; the same thoughts in other fields are ignored.
    source: Option<ThoughtsField>,
    calls: Calls,
    fields: Map<String, Value>,
    fields_weight: usize,
    end: Option<ChatFinish>,
    usage: Usage,
    /// Which model says that it answers.
    model: String,
}

impl ChatBuilder {
    /// An answer that may ask for these tools.
    pub(super) fn new(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            calls: Calls::of(tools),
            ..Self::default()
        }
    }

    /// Takes one piece, and returns its additions.
    ///
    /// # Errors
    /// Fails if the answer outgrows its bounds, broke off, or was withheld.
    fn absorb(&mut self, piece: Chunk) -> Result<DividedPiece, ModelError> {
        if let Some(usage) = piece.usage {
            self.usage = usage;
        }
        if self.model.is_empty() {
            self.model = piece.model;
        }
        let mut said = DividedPiece::default();
        // We ask for one choice only.
        for choice in piece.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(part) = self.part(choice.delta, choice.message) {
                self.absorb_part(part, &mut said)?;
            }
            if let Some(reason) = choice.finish_reason {
                self.end = Some(finish(&reason)?);
            }
        }
        self.place(&mut said);
        Ok(said)
    }

    /// True once the vendor has announced the end of the answer. Only its usage may follow.
    fn has_ended(&self) -> bool {
        matches!(self.end, Some(ChatFinish::Known(_)))
    }

    /// The answer, and the part of it that was not returned before. `announced` is true if the
    /// stream's own end mark was seen.
    ///
    /// # Errors
    /// Fails if the end was never announced, if nothing came before the mark, or if a call has no
    /// name.
    fn conclude(
        mut self,
        AnswerEnd { announced, torn }: AnswerEnd,
    ) -> Result<(Answer, DividedPiece), ModelError> {
        let finish = match &self.end {
            Some(ChatFinish::Known(finish)) => *finish,
            Some(ChatFinish::Unknown(_))
                if announced && !self.is_empty() && self.calls.are_whole() =>
            {
                Finish::Complete
            }
            Some(ChatFinish::Unknown(reason)) => return Err(broke_off(reason)),
            None if announced && !self.is_empty() => Finish::Complete,
            None => {
                return Err(broken("the answer broke off before its end"));
            }
        };
        let is_text = self.calls.is_empty() && finish == Finish::Complete;
        if is_text && self.divider.is_open() {
            self.reasoning.clear();
        }
        let (before_text, mut rest) = self.divider.finish(is_text);
        if torn && !self.text.is_empty() {
            rest.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.places.take(&rest);
        rest.places = self.places;
        let reasoning = self.reasoning + &rest.reasoning;
        if self.source == Some(ThoughtsField::Content) && !reasoning.is_empty() {
            let thought = json!({ "type": "text", "text": reasoning });
            let thoughts = json!([{ "type": "thinking", "thinking": [thought] }]);
            self.fields.insert("content".to_owned(), thoughts);
        }
        let own = Own {
            before_text,
            fields: self.fields,
        };
        let reasoning = (!reasoning.is_empty()).then_some(event::Part::Reasoning {
            text: reasoning,
            signature: None,
        });
        let text = self.text + &rest.text;
        let text = (!text.is_empty()).then_some(event::Part::Text { text });
        let [before_text, fields] = own.into_parts();
        let thoughts_first =
            (self.places.text).is_none_or(|text| self.places.reasoning < Some(text));
        let spoken = match thoughts_first {
            true => [reasoning, before_text, text],
            false => [before_text, text, reasoning],
        };
        let calls = self.calls.conclude()?.into_iter();
        let calls = calls.map(event::Part::ToolCall);
        let spoken = spoken.into_iter().flatten();
        let parts = spoken.chain(calls).chain(fields).collect();
        let answer = Answer {
            parts: Parts(parts),
            finish,
            usage: self.usage,
            model: self.model,
            first_byte: None,
        };
        Ok((answer, rest))
    }

    /// Notes the place of the new texts in the answer.
    fn place(&mut self, said: &mut DividedPiece) {
        self.places.take(said);
        said.places = self.places;
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.divider.weight() == 0 && self.calls.is_empty()
    }

    /// The part that counts. Beside a delta, the message repeats the earlier text.
    fn part(
        &self,
        delta: Option<MessagePart>,
        message: Option<MessagePart>,
    ) -> Option<MessagePart> {
        match (delta, message) {
            (Some(delta), Some(message)) => {
                let nothing_said = self.is_empty() && self.fields.is_empty();
                Some(if delta.is_empty() && nothing_said {
                    message
                } else {
                    delta
                })
            }
            (delta, message) => delta.or(message),
        }
    }

    /// About how many bytes it takes.
    fn weight(&self) -> usize {
        let thoughts = self.reasoning.len() + self.divider.weight();
        self.text.len() + self.calls.weight() + self.fields_weight.max(thoughts)
    }

    fn absorb_part(
        &mut self,
        part: MessagePart,
        said: &mut DividedPiece,
    ) -> Result<(), ModelError> {
        if let Some((source, thoughts)) = part.reasoning
            && *self.source.get_or_insert(source) == source
        {
            self.reasoning.push_str(&thoughts);
            said.reasoning.push_str(&thoughts);
        }
        let divided = self.divider.take(&part.text);
        self.reasoning.push_str(&divided.reasoning);
        said.reasoning.push_str(&divided.reasoning);
        self.text.push_str(&divided.text);
        said.text.push_str(&divided.text);
        for call in part.calls {
            self.calls.absorb(call)?;
        }
        self.fields_weight += opaque::fields_weight(&part.fields);
        if part.is_message && self.fields.is_empty() {
            self.fields = part.fields;
            self.fields.retain(|_, value| opaque::has_content(value));
        } else {
            opaque::merge_fields(&mut self.fields, part.fields).map_err(|TooMany| too_many())?;
        }
        if self.weight() > MAX_ANSWER_BYTES {
            // The count is of the pieces. The values that they were merged into may be much
            // smaller.
            self.fields_weight = opaque::fields_weight(&self.fields);
            self.calls.weigh();
        }
        if self.weight() > MAX_ANSWER_BYTES {
            return Err(too_large());
        }
        Ok(())
    }
}

impl formats::AnswerBuilder for ChatBuilder {
    fn absorb(&mut self, piece: Value) -> Result<Vec<Piece>, ModelError> {
        let chunk = Chunk::of(piece).map_err(|error| malformed(Chat::NAME, &error))?;
        Ok(self.absorb(chunk)?.into_pieces())
    }

    fn stage(&self) -> AnswerStage {
        match self.has_ended() {
            true => AnswerStage::Ended,
            false => AnswerStage::Open,
        }
    }

    fn conclude(self, end: AnswerEnd) -> Result<(Answer, Vec<Piece>), ModelError> {
        let (answer, rest) = self.conclude(end)?;
        Ok((answer, rest.into_pieces()))
    }
}

impl DividedPiece {
    fn into_pieces(self) -> Vec<Piece> {
        let reasoning = (Voice::Reasoning, self.places.reasoning, self.reasoning);
        let text = (Voice::Text, self.places.text, self.text);
        let said = [reasoning, text]
            .into_iter()
            .filter_map(|(voice, part, text)| {
                let part = part.filter(|_| !text.is_empty())?;
                Some(Piece { part, voice, text })
            });
        said.collect()
    }
}

#[cfg(test)]
mod tests;
