//! context_edit: the model shortens an old result in its own view of the conversation.

use shared_types::Effect;

use super::{Arguments, Ask, BadArguments, Handle, Kind, Parameter, Tool};

/// Longest text in place of a result, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A change of an old result as the model is sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextAsk {
    /// The number of the call, from 1.
    pub call: u32,
    /// The change.
    pub change: ContextChangeAsk,
}

/// The ways to change a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextChangeAsk {
    /// This text in place of it; empty to leave it out.
    Replace(String),
    /// Only its lines that match this regular expression.
    Keep(String),
}

/// Shortens an old result.
#[derive(Debug, Clone, Copy)]
pub struct ContextEditTool;

impl Tool for ContextEditTool {
    fn name(&self) -> &str {
        "context_edit"
    }

    fn description(&self) -> &str {
        "Makes room in this conversation: puts a shorter text of yours in place of an old result, or keeps only its lines \
         that match a pattern. An empty text leaves it out. The result stays stored, and recall returns it. The newest \
         results and what the user said cannot be changed."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "of",
                Kind::Text {
                    empty: false,
                    at_most: 16,
                    instead: "give one name such as r7",
                },
                "The name of the result, such as r7.",
            ),
            Parameter::optional(
                "text",
                Kind::Text {
                    empty: true,
                    at_most: MAX_TEXT_BYTES,
                    instead: "write a shorter one",
                },
                "The text to stand in its place; default empty.",
            ),
            Parameter::optional(
                "keep",
                Kind::PATTERN,
                "A regular expression: only lines that match it are kept, in place of text.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let call = match arguments.text("of").parse()? {
            Handle::Result(call) => call,
            Handle::Message(_) | Handle::Steer(..) => {
                return Err(BadArguments::new("what a person said cannot be changed"));
            }
        };
        let change = match (arguments.text("keep"), arguments.text("text")) {
            ("", text) => ContextChangeAsk::Replace(text.to_owned()),
            (keep, "") => ContextChangeAsk::Keep(keep.to_owned()),
            _ => return Err(BadArguments::new("give text or keep, not both")),
        };
        Ok(Ask::Context(ContextAsk { call, change }))
    }
}
