//! One item of an answer as it grows.

use serde_json::{Map, Value};
use shared_types::event::{Part, ToolCall};

use super::{form, text};
use crate::{
    ModelError, Voice,
    formats::{broken, conversation::meant},
};

/// A kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// Words for the reader.
    Message,
    /// Thoughts.
    Reasoning,
    /// A request to a tool of ours.
    Call,
    /// Any other, which only the vendor can read.
    Other,
}

impl ItemKind {
    pub(super) fn of(item: &Map<String, Value>) -> Self {
        match item.get("type").and_then(Value::as_str) {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            _ => Self::Other,
        }
    }
}

/// An item of an answer.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) index: Option<u64>,
    id: String,
    /// True once the whole item has come. Nothing is added to it then.
    pub(super) is_done: bool,
    /// Its place among the parts of text and of thoughts, once it has said something.
    pub(super) part: Option<u32>,
    /// The words, the thoughts, or the arguments of a call.
    pub(super) text: String,
    name: String,
    call_id: String,
    /// The field that first held the thoughts, and the number of the part of it that grows.
    source: Option<(&'static str, u64)>,
    /// The vendor's own fields, once the item is whole.
    fields: Map<String, Value>,
}

impl Item {
    pub(super) fn new(kind: ItemKind, index: Option<u64>, id: String) -> Self {
        Self {
            kind,
            index,
            id,
            is_done: false,
            part: None,
            text: String::new(),
            name: String::new(),
            call_id: String::new(),
            source: None,
            fields: Map::new(),
        }
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        !id.is_empty() && self.id == id
    }

    /// The voice of the item; `None` for one that says nothing.
    pub(super) fn voice(&self) -> Option<Voice> {
        match self.kind {
            ItemKind::Message => Some(Voice::Text),
            ItemKind::Reasoning => Some(Voice::Reasoning),
            ItemKind::Call | ItemKind::Other => None,
        }
    }

    /// Takes the name and the id of a call from these fields.
    pub(super) fn name_call(&mut self, fields: &Map<String, Value>, tools: &[String]) {
        if self.kind != ItemKind::Call {
            return;
        }
        let (name, call_id) = (text(fields, "name"), text(fields, "call_id"));
        if !name.is_empty() {
            self.name = meant(tools, name);
        }
        if !call_id.is_empty() {
            self.call_id = call_id;
        }
    }

    /// The space before more of this part of the thoughts; `None` if the same thoughts stand in another field.
    pub(super) fn gap_before(
        &mut self,
        source: Option<&'static str>,
        number: u64,
    ) -> Option<&'static str> {
        let Some(source) = source else {
            return Some("");
        };
        let (known, before) = *self.source.get_or_insert((source, number));
        if known != source {
            return None;
        }
        self.source = Some((source, number));
        Some(match before == number {
            true => "",
            false => GAP,
        })
    }

    /// Takes the whole item; returns the part of its text that was not said before. Text that was said otherwise
    /// stays as it was said.
    ///
    /// # Errors
    /// Fails if its content has not the form of the format.
    pub(super) fn complete(
        &mut self,
        mut fields: Map<String, Value>,
    ) -> Result<String, ModelError> {
        self.is_done = true;
        let whole = match self.kind {
            ItemKind::Message => joined(fields.remove("content").as_ref(), "")?,
            ItemKind::Reasoning => {
                let summary = joined(fields.get("summary"), GAP)?;
                match summary.is_empty() {
                    true => joined(fields.get("content"), GAP)?,
                    false => summary,
                }
            }
            ItemKind::Call => {
                match fields.remove("arguments") {
                    Some(Value::String(arguments)) if arguments.is_empty() => {}
                    Some(Value::String(arguments)) => self.text = arguments,
                    Some(Value::Null) | None => {}
                    Some(other) => self.text = other.to_string(),
                }
                for ours in ["type", "call_id", "name"] {
                    fields.remove(ours);
                }
                String::new()
            }
            ItemKind::Other => String::new(),
        };
        if self.kind != ItemKind::Other {
            // An absent field, which some servers do not take back.
            fields.retain(|_, value| !value.is_null());
        }
        self.fields = fields;
        let rest = whole.strip_prefix(self.text.as_str());
        Ok(rest.unwrap_or_default().to_owned())
    }

    /// About how many bytes the vendor's own fields take, and arguments that came whole.
    pub(super) fn weight_of_fields(&self) -> usize {
        let fields = serde_json::to_string(&self.fields).map_or(0, |text| text.len());
        match self.kind {
            ItemKind::Call => fields + self.text.len(),
            _ => fields,
        }
    }

    /// Adds the parts that record the item.
    ///
    /// # Errors
    /// Fails if it is a call without a name.
    pub(super) fn into_parts(
        self,
        id_of_ours: &str,
        parts: &mut Vec<Part>,
    ) -> Result<(), ModelError> {
        let Self { text, fields, .. } = self;
        match self.kind {
            ItemKind::Message if text.is_empty() => {}
            ItemKind::Message => {
                if fields.contains_key("id") || fields.contains_key("phase") {
                    parts.push(Part::Opaque { fields });
                }
                parts.push(Part::Text { text });
            }
            ItemKind::Reasoning => {
                if !text.is_empty() {
                    let signature = None;
                    parts.push(Part::Reasoning { text, signature });
                }
                // Thoughts that are not whole cannot go back.
                if self.is_done {
                    parts.push(Part::Opaque { fields });
                }
            }
            ItemKind::Call if self.name.is_empty() => {
                return Err(broken("the answer has a call without a name"));
            }
            ItemKind::Call => parts.push(Part::ToolCall(ToolCall {
                vendor_id: match self.call_id.is_empty() {
                    true => id_of_ours.to_owned(),
                    false => self.call_id,
                },
                name: self.name,
                arguments: text,
                opaque: fields,
            })),
            ItemKind::Other if self.is_done => parts.push(Part::Opaque { fields }),
            ItemKind::Other => {}
        }
        Ok(())
    }
}

/// The space between two parts of the thoughts.
const GAP: &str = "\n\n";

/// The texts of a list of content. A refusal is the model's own words when it declines.
fn joined(content: Option<&Value>, gap: &str) -> Result<String, ModelError> {
    let content = match content {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::Array(content)) => content,
        Some(_) => return Err(form("the content of an item is no list")),
    };
    let texts = content
        .iter()
        .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
    Ok(texts.join(gap))
}
