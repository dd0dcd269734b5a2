//! A call as it grows: whole in one part, or in parts that each bring pieces of its arguments.

use serde_json::{Map, Value};
use shared_types::event::ToolCall;

use super::{form, pieces};
use crate::{ModelError, formats::conversation::meant};

/// A call.
#[derive(Debug, Default)]
pub(super) struct GrowingCall {
    id: String,
    name: String,
    arguments: Map<String, Value>,
    /// Pieces of arguments, each with the path of its place.
    pieces: Vec<Value>,
    /// The fields of the call that are not of the wire format.
    function: Map<String, Value>,
    /// The fields of the part beside the call, such as a signature.
    fields: Map<String, Value>,
    /// True if more of it follows.
    goes_on: bool,
}

impl GrowingCall {
    /// The call of this part.
    ///
    /// # Errors
    /// Fails if it has not the form of the format.
    pub(super) fn of(mut part: Map<String, Value>, tools: &[String]) -> Result<Self, ModelError> {
        let Some(Value::Object(mut function)) = part.remove("functionCall") else {
            return Err(form("a call is no object"));
        };
        function.retain(|_, value| !value.is_null());
        let arguments = match function.remove("args") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(form("the arguments of a call are no object")),
        };
        let pieces = match function.remove("partialArgs") {
            None => Vec::new(),
            Some(Value::Array(pieces)) => pieces,
            Some(_) => return Err(form("the pieces of arguments are no list")),
        };
        let goes_on = function.remove("willContinue") == Some(Value::Bool(true));
        let name = match function.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => meant(tools, name),
            _ => String::new(),
        };
        // The vendor's own id stays with its fields. So it is known later that it wants the id back.
        let id = function.get("id").and_then(Value::as_str);
        Ok(Self {
            id: id.unwrap_or_default().to_owned(),
            name,
            arguments,
            pieces,
            function,
            fields: part,
            goes_on,
        })
    }

    pub(super) fn is_nameless(&self) -> bool {
        self.name.is_empty()
    }

    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// True if the next one is more of this call.
    pub(super) fn takes(&self, next: &Self) -> bool {
        self.goes_on && (next.name.is_empty() || next.has_its_id(self) && next.name == self.name)
    }

    /// True if the other one is this call once more, whole.
    pub(super) fn is_repeated_by(&self, other: &Self) -> bool {
        other.has_its_id(self)
            && (&self.name, &self.arguments, &self.pieces)
                == (&other.name, &other.arguments, &other.pieces)
    }

    fn has_its_id(&self, other: &Self) -> bool {
        !self.id.is_empty() && self.id == other.id
    }

    /// Takes more of the call.
    pub(super) fn absorb(&mut self, next: Self) {
        self.arguments.extend(next.arguments);
        self.pieces.extend(next.pieces);
        self.function.extend(next.function);
        self.fields.extend(next.fields);
        self.goes_on = next.goes_on;
    }

    /// The call, whole. `id_of_ours` is its id where the vendor gave none.
    ///
    /// # Errors
    /// Fails if a piece of its arguments has no place in them.
    pub(super) fn conclude(
        self,
        id_of_ours: impl FnOnce() -> String,
    ) -> Result<ToolCall, ModelError> {
        let arguments = pieces::placed(self.arguments, self.pieces)?;
        let mut opaque = self.fields;
        if !self.function.is_empty() {
            opaque.insert("functionCall".to_owned(), self.function.into());
        }
        Ok(ToolCall {
            vendor_id: match self.id.is_empty() {
                true => id_of_ours(),
                false => self.id,
            },
            name: self.name,
            arguments: arguments.to_string(),
            opaque,
        })
    }
}
