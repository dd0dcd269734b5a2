//! An answer that grows from the events of a stream.
//!
//! An answer is a list of items. An event names its item by `output_index`; a proxy may change the ids from one event
//! to the next. The item of `response.output_item.done` is the one that goes back: in earlier events its encrypted
//! thoughts are not whole. Only `response.completed` or `response.incomplete` end an answer.

mod item;

use serde_json::{Map, Value};
use shared_types::{
    clean::clean_line,
    event::{Finish, Part, Parts, Usage},
};

use self::item::{Item, ItemKind};
use super::Responses;
use crate::{
    Answer, ModelError, Piece, Voice,
    formats::{
        self, AnswerEnd, AnswerStage, Format as _, MAX_ANSWER_BYTES, MAX_CALLS, broken,
        conversation::id_of_ours, malformed, tokens, too_large, too_many_calls,
    },
};

/// Most items of one answer. Each event is sought among them.
const MAX_ITEMS: usize = 1024;

/// Longest name of a model that is kept, in bytes.
const MAX_MODEL_BYTES: usize = 128;

/// Longest reason that is quoted, in characters.
const MAX_REASON: usize = 80;

/// Takes events and becomes an answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesBuilder {
    items: Vec<Item>,
    /// The names of the tools that it may ask for.
    tools: Vec<String>,
    /// So many parts of text and of thoughts have begun.
    begun: u32,
    /// About how many bytes the items take.
    weight: usize,
    end: Option<Finish>,
    usage: Usage,
    /// Which model says that it answers.
    model: String,
}

impl ResponsesBuilder {
    /// An answer that may ask for these tools.
    pub(super) fn new(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Takes an event.
    ///
    /// # Errors
    /// Fails if the answer outgrows its bounds, broke off, was withheld, or has not the form of the format.
    fn event(&mut self, mut event: Map<String, Value>) -> Result<Vec<Piece>, ModelError> {
        let mut said = Vec::new();
        let index = event.get("output_index").and_then(Value::as_u64);
        match text(&event, "type").as_str() {
            // One document, from a server that does not stream.
            _ if event.get("object").is_some_and(|kind| kind == "response") => {
                let status = text(&event, "status");
                self.end(&status, event, &mut said)?;
            }
            "" => return Err(form("an event has no type")),
            "response.created" | "response.in_progress" => {
                if let Some(Value::Object(response)) = event.get("response") {
                    self.note(response);
                }
            }
            "response.output_item.added" => {
                let item = object(event.remove("item"), "an item")?;
                self.begin(index, &item)?;
            }
            "response.output_item.done" => {
                let item = object(event.remove("item"), "an item")?;
                self.done(index, item, &mut said)?;
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.speak(index, ItemKind::Message, None, &event, &mut said)?;
            }
            "response.reasoning_summary_text.delta" => {
                self.speak(
                    index,
                    ItemKind::Reasoning,
                    Some("summary"),
                    &event,
                    &mut said,
                )?;
            }
            "response.reasoning_text.delta" => {
                self.speak(
                    index,
                    ItemKind::Reasoning,
                    Some("content"),
                    &event,
                    &mut said,
                )?;
            }
            "response.function_call_arguments.delta" => {
                let more = delta(&event)?;
                let place = self.place(index, &text(&event, "item_id"), ItemKind::Call)?;
                if !self.items[place].is_done {
                    self.weigh(more.len())?;
                    self.items[place].text.push_str(more);
                }
            }
            "response.function_call_arguments.done" => {
                let place = self.place(index, &text(&event, "item_id"), ItemKind::Call)?;
                let whole = text(&event, "arguments");
                if !self.items[place].is_done && !whole.is_empty() {
                    self.weigh(whole.len().saturating_sub(self.items[place].text.len()))?;
                    self.items[place].text = whole;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let status = text(&event, "type");
                let response = object(event.remove("response"), "the response")?;
                self.end(&status["response.".len()..], response, &mut said)?;
            }
            // Events for people who watch the vendor's own tools.
            _ => {}
        }
        Ok(said)
    }

    /// Notes the model of this response.
    fn note(&mut self, response: &Map<String, Value>) {
        let mut model = text(response, "model");
        model.truncate(model.floor_char_boundary(MAX_MODEL_BYTES));
        if !model.is_empty() {
            self.model = model;
        }
    }

    /// Takes the end of the response. It repeats the items; those that no event has brought count.
    fn end(
        &mut self,
        status: &str,
        mut response: Map<String, Value>,
        said: &mut Vec<Piece>,
    ) -> Result<(), ModelError> {
        let finish = finish(status, &response)?;
        self.note(&response);
        if let Some(Value::Array(items)) = response.remove("output") {
            for (index, item) in (0..).zip(items) {
                self.done(Some(index), object(Some(item), "an item")?, said)?;
            }
        }
        self.usage = response.get("usage").map(usage).unwrap_or_default();
        self.end = Some(finish);
        Ok(())
    }

    /// Takes the beginning of an item. A second beginning of the same one changes nothing.
    fn begin(&mut self, index: Option<u64>, fields: &Map<String, Value>) -> Result<(), ModelError> {
        let (kind, id) = (ItemKind::of(fields), text(fields, "id"));
        let is_it = |item: &Item| {
            item.kind == kind
                && match index {
                    Some(_) => item.index == index && (!item.is_done || item.has_id(&id)),
                    None => item.has_id(&id),
                }
        };
        if !self.items.iter().any(is_it) {
            let mut item = Item::new(kind, index, id);
            item.name_call(fields, &self.tools);
            self.push(item)?;
        }
        Ok(())
    }

    /// Takes a whole item. Once it is known, it is not taken again.
    fn done(
        &mut self,
        index: Option<u64>,
        fields: Map<String, Value>,
        said: &mut Vec<Piece>,
    ) -> Result<(), ModelError> {
        let (kind, id) = (ItemKind::of(&fields), text(&fields, "id"));
        let find = |is_it: &dyn Fn(&Item) -> bool| {
            let all = self.items.iter();
            all.enumerate()
                .rfind(|(_, item)| item.kind == kind && is_it(item))
                .map(|(place, _)| place)
        };
        let by_index = find(&|item| !item.is_done && index.is_some() && item.index == index);
        let place = match by_index.or_else(|| find(&|item| !item.is_done && item.has_id(&id))) {
            Some(place) => place,
            None => {
                let is_known = |item: &Item| {
                    item.is_done && (item.has_id(&id) || index.is_some() && item.index == index)
                };
                if find(&is_known).is_some() {
                    return Ok(());
                }
                self.push(Item::new(kind, index, id))?;
                self.items.len() - 1
            }
        };
        let item = &mut self.items[place];
        item.name_call(&fields, &self.tools);
        let rest = item.complete(fields)?;
        let weight = item.weight_of_fields();
        self.weigh(weight)?;
        self.say(place, &rest, said)
    }

    /// Takes more of a text or of thoughts.
    fn speak(
        &mut self,
        index: Option<u64>,
        kind: ItemKind,
        source: Option<&'static str>,
        event: &Map<String, Value>,
        said: &mut Vec<Piece>,
    ) -> Result<(), ModelError> {
        let more = delta(event)?;
        let place = self.place(index, &text(event, "item_id"), kind)?;
        let item = &mut self.items[place];
        if item.is_done || more.is_empty() {
            return Ok(());
        }
        let number = event
            .get("summary_index")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let Some(gap) = item.gap_before(source, number) else {
            return Ok(());
        };
        self.say(place, &format!("{gap}{more}"), said)
    }

    /// Adds this to what the item at this place says.
    fn say(&mut self, place: usize, more: &str, said: &mut Vec<Piece>) -> Result<(), ModelError> {
        let item = &mut self.items[place];
        if more.is_empty() || item.voice().is_none() {
            return Ok(());
        }
        self.weigh(more.len())?;
        let mut place = place;
        if self.items[place].part.is_none() {
            // Parts stand in the order in which they began to speak.
            if self.items[place + 1..]
                .iter()
                .any(|item| item.part.is_some())
            {
                let item = self.items.remove(place);
                self.items.push(item);
                place = self.items.len() - 1;
            }
            self.items[place].part = Some(self.begun);
            self.begun += 1;
        }
        let item = &mut self.items[place];
        item.text.push_str(more);
        if let (Some(part), Some(voice)) = (item.part, item.voice()) {
            let text = more.to_owned();
            said.push(Piece { part, voice, text });
        }
        Ok(())
    }

    /// The place of the item that an event is about. An event for an unknown item begins one.
    fn place(&mut self, index: Option<u64>, id: &str, kind: ItemKind) -> Result<usize, ModelError> {
        let is_it = |item: &Item| {
            item.kind == kind
                && match index {
                    Some(_) => item.index == index,
                    None => id.is_empty() && !item.is_done || item.has_id(id),
                }
        };
        if let Some(place) = self.items.iter().rposition(is_it) {
            return Ok(place);
        }
        self.push(Item::new(kind, index, id.to_owned()))?;
        Ok(self.items.len() - 1)
    }

    fn push(&mut self, item: Item) -> Result<(), ModelError> {
        let is_call = |item: &&Item| item.kind == ItemKind::Call;
        if item.kind == ItemKind::Call && self.items.iter().filter(is_call).count() == MAX_CALLS {
            return Err(too_many_calls());
        }
        if self.items.len() == MAX_ITEMS {
            return Err(broken("the answer has too many items"));
        }
        self.items.push(item);
        Ok(())
    }

    fn weigh(&mut self, more: usize) -> Result<(), ModelError> {
        self.weight = self.weight.saturating_add(more);
        match self.weight > MAX_ANSWER_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

impl formats::AnswerBuilder for ResponsesBuilder {
    fn absorb(&mut self, piece: Value) -> Result<Vec<Piece>, ModelError> {
        if self.end.is_some() {
            return Ok(Vec::new());
        }
        self.event(object(Some(piece), "an event")?)
    }

    fn stage(&self) -> AnswerStage {
        match self.end {
            Some(_) => AnswerStage::Over,
            None => AnswerStage::Open,
        }
    }

    fn conclude(mut self, end: AnswerEnd) -> Result<(Answer, Vec<Piece>), ModelError> {
        let Some(finish) = self.end else {
            return Err(broken("the answer broke off before its end"));
        };
        let mut rest = Vec::new();
        let spoken = (self.items.iter()).rposition(|item| item.voice() == Some(Voice::Text));
        if let Some(place) = spoken.filter(|_| end.torn) {
            self.say(
                place,
                char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]),
                &mut rest,
            )?;
        }
        let mut parts = Vec::new();
        let mut calls = 0;
        for item in self.items {
            if item.kind == ItemKind::Call {
                calls += 1;
            }
            item.into_parts(&id_of_ours(calls), &mut parts)?;
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

/// Reads the way in which a response ended.
///
/// # Errors
/// Fails if it failed, broke off or was withheld. The request is repeated where that can help.
fn finish(status: &str, response: &Map<String, Value>) -> Result<Finish, ModelError> {
    let details = response.get("incomplete_details");
    let reason = details.and_then(|details| details["reason"].as_str());
    match (status, reason) {
        ("completed", _) => Ok(Finish::Complete),
        ("incomplete", Some("max_output_tokens")) => Ok(Finish::Length),
        ("incomplete", Some("content_filter")) => Err(ModelError::Refused(
            "the model's provider withheld the answer (content filter): say it in other words"
                .to_owned(),
        )),
        // A failure with a reason is read before.
        ("failed", _) => Err(ModelError::Unavailable(
            "the model server could not answer, and gives no reason: try again later".to_owned(),
        )),
        (status, reason) => Err(broken(&format!(
            "the model server broke the answer off ({})",
            clean_line(reason.unwrap_or(status), MAX_REASON)
        ))),
    }
}

fn usage(usage: &Value) -> Usage {
    Usage {
        input: tokens(&usage["input_tokens"]),
        cached: tokens(&usage["input_tokens_details"]["cached_tokens"]),
        cache_written: tokens(&usage["input_tokens_details"]["cache_write_tokens"]),
        output: tokens(&usage["output_tokens"]),
        thoughts: tokens(&usage["output_tokens_details"]["reasoning_tokens"]),
    }
}

fn form(what: &str) -> ModelError {
    malformed(Responses::NAME, &what)
}

fn object(value: Option<Value>, what: &str) -> Result<Map<String, Value>, ModelError> {
    match value {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(form(&format!("{what} is no object"))),
    }
}

/// More of a text.
fn delta(event: &Map<String, Value>) -> Result<&str, ModelError> {
    let delta = event.get("delta").and_then(Value::as_str);
    delta.ok_or_else(|| form("a delta is no text"))
}

/// The text of a field; empty where it has none.
fn text(fields: &Map<String, Value>, name: &str) -> String {
    let text = fields.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
