//! Tool calls as they grow out of the pieces of a stream.
//!
//! The index says which call a piece belongs to. But some servers give every call the index 0,
//! or none, and ids may be empty, repeated, or new in each piece. So a piece with a name decides:
//! another name or another id begins a call, and so does the same name once the call before it
//! is whole.

use serde_json::{Map, Value};
use shared_types::event::ToolCall;

use super::{
    arguments::{is_object, mended},
    opaque::{self, TooMany},
    wire::CallPart,
};
use crate::{
    ModelError,
    formats::{
        MAX_CALLS, broken,
        conversation::{id_of_ours, meant},
        too_many_calls,
    },
};

/// The calls of an answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<GrowingCall>,
    weight: usize,
    /// The names of the tools that it may ask for.
    tools: Vec<String>,
}

#[derive(Debug, Default)]
struct GrowingCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    fields: Map<String, Value>,
    /// True if it may be the call before it, named again.
    is_doubtful: bool,
}

/// The effect of a piece.
enum CallStep {
    GoesOn(usize),
    Begins { is_doubtful: bool },
}

impl Calls {
    pub(super) fn of(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            ..Self::default()
        }
    }

    /// True if the arguments of all calls are complete.
    pub(super) fn are_whole(&self) -> bool {
        self.calls.iter().all(|call| {
            let arguments = &call.arguments;
            arguments.trim().is_empty() || is_object(arguments) || mended(arguments).is_some()
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The most bytes that they take, about.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Weighs the merged values again.
    pub(super) fn weigh(&mut self) {
        self.weight = self.calls.iter().map(GrowingCall::weight).sum();
    }

    /// Takes a piece.
    ///
    /// # Errors
    /// Fails if there are too many.
    pub(super) fn absorb(&mut self, part: CallPart) -> Result<(), ModelError> {
        let weight = part.id.len()
            + part.name.len()
            + part.arguments.len()
            + opaque::fields_weight(&part.fields);
        let place = match self.step(&part) {
            CallStep::GoesOn(place) => place,
            CallStep::Begins { .. } if self.calls.len() == MAX_CALLS => {
                return Err(too_many_calls());
            }
            CallStep::Begins { is_doubtful } => {
                self.calls.push(GrowingCall {
                    index: part.index,
                    is_doubtful,
                    ..GrowingCall::default()
                });
                self.calls.len() - 1
            }
        };
        self.weight += weight;
        self.calls[place].absorb(part)
    }

    /// The calls. One without an id gets one.
    ///
    /// # Errors
    /// Fails if a call has no name.
    pub(super) fn conclude(self) -> Result<Vec<ToolCall>, ModelError> {
        // Some servers give one id to calls of several tools: it says nothing then.
        let first = self
            .calls
            .first()
            .map(|call| (call.id.clone(), call.name.clone()));
        let ids_tell = self.calls.iter().all(|call| {
            first
                .as_ref()
                .is_none_or(|(id, name)| call.id != *id || call.name == *name)
        });
        let mut calls: Vec<GrowingCall> = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            if call.is_repetition_of(calls.last()) {
                continue;
            }
            calls.pop_if(|before| ids_tell && before.is_announcement_of(&call));
            calls.push(call);
        }
        if calls.iter().any(|call| call.name.is_empty()) {
            return Err(broken("the answer asks for a tool without naming it"));
        }
        let calls = calls.into_iter().enumerate().map(|(place, call)| ToolCall {
            vendor_id: match call.id.as_str() {
                "" => id_of_ours(place),
                _ => call.id,
            },
            name: meant(&self.tools, call.name),
            arguments: mended(&call.arguments).unwrap_or(call.arguments),
            opaque: call.fields,
        });
        Ok(calls.collect())
    }

    fn step(&self, part: &CallPart) -> CallStep {
        let place = match part.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == part.index),
            None => self.calls.len().checked_sub(1),
        };
        let Some(place) = place else {
            return CallStep::Begins { is_doubtful: false };
        };
        let call = &self.calls[place];
        if part.name.is_empty() || call.name.is_empty() {
            return CallStep::GoesOn(place);
        }
        let has_other_id = !part.id.is_empty() && !call.id.is_empty() && part.id != call.id;
        if has_other_id {
            return CallStep::Begins { is_doubtful: false };
        }
        if part.name == call.name {
            return match call.is_whole() {
                true => CallStep::Begins { is_doubtful: true },
                // A server that repeats the name with each piece.
                false => CallStep::GoesOn(place),
            };
        }
        if call.arguments.is_empty() && self.is_more_of_a_name(&call.name, &part.name) {
            return CallStep::GoesOn(place);
        }
        // A server that counts its calls may send a name in parts.
        match part.index {
            Some(1..) if !call.is_whole() => CallStep::GoesOn(place),
            _ => CallStep::Begins { is_doubtful: false },
        }
    }
}

impl Calls {
    /// True if the second piece continues the name of a tool, and is no name itself.
    fn is_more_of_a_name(&self, begun: &str, piece: &str) -> bool {
        let is_tool = self.tools.iter().any(|tool| tool == piece);
        let joined = format!("{begun}{piece}");
        !is_tool && self.tools.iter().any(|tool| tool.starts_with(&joined))
    }
}

impl GrowingCall {
    fn absorb(&mut self, part: CallPart) -> Result<(), ModelError> {
        if self.id.is_empty() {
            self.id = part.id;
        }
        if self.name != part.name {
            self.name.push_str(&part.name);
        }
        self.arguments.push_str(&part.arguments);
        opaque::merge_fields(&mut self.fields, part.fields).map_err(|TooMany| too_many())
    }

    fn weight(&self) -> usize {
        let texts = self.id.len() + self.name.len() + self.arguments.len();
        texts + opaque::fields_weight(&self.fields)
    }

    /// True if its arguments are complete.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    /// True if it announces the next call, before that had arguments.
    fn is_announcement_of(&self, call: &Self) -> bool {
        let is_same = !self.id.is_empty()
            && (self.index, &self.id, &self.name) == (call.index, &call.id, &call.name);
        call.is_doubtful && is_same && self.arguments.trim() == "{}"
    }

    /// True if it repeats the call before it: without arguments, or complete under the same id.
    fn is_repetition_of(&self, before: Option<&Self>) -> bool {
        let is_same = |before: &Self| {
            !self.id.is_empty()
                && (self.index, &self.id, &self.name, &self.arguments)
                    == (before.index, &before.id, &before.name, &before.arguments)
        };
        self.is_doubtful && (self.arguments.is_empty() || before.is_some_and(is_same))
    }
}

/// The error for a field with too many entries.
pub(super) fn too_many() -> ModelError {
    broken("the answer has a list of too many entries")
}
