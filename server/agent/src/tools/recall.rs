//! recall: read again what the conversation does not show any more.

use shared_sandbox::OutputStream;
use shared_types::Effect;

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Tool};

/// The bytes that are returned if the model asks for no number.
const DEFAULT_BYTES: u64 = 8 * 1024;

/// Most bytes that are returned at once.
const MAX_BYTES: u64 = 10 * 1024;

/// The largest offset; numbers in JSON are exact up to here.
const MAX_OFFSET: u64 = (1 << 53) - 1;

/// The part of a conversation that is wanted back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallAsk {
    /// The thing to look at; all of the conversation where a pattern alone is given.
    pub of: Option<Handle>,
    /// The stream of a command.
    pub stream: OutputStream,
    /// The first byte wanted.
    pub offset: u64,
    /// Most bytes that are returned.
    pub limit: usize,
    /// Only lines that match this regular expression.
    pub pattern: Option<String>,
}

/// The name of a part of the conversation. Names never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    /// The result of the conversation's n-th call, from 1: `r7`.
    Result(u32),
    /// The n-th message of a person that started a turn, from 1: `m3`.
    Message(u32),
    /// The n-th message, from 1, that joined the turn of such a message while it worked: `m3.1`.
    Steer(u32, u32),
}

impl std::fmt::Display for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Result(number) => write!(f, "r{number}"),
            Self::Message(number) => write!(f, "m{number}"),
            Self::Steer(message, number) => write!(f, "m{message}.{number}"),
        }
    }
}

impl std::str::FromStr for Handle {
    type Err = BadArguments;

    fn from_str(text: &str) -> Result<Self, BadArguments> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
        let handle = match text.split_at_checked(1) {
            Some(("r", digits)) => number(digits).map(Self::Result),
            Some(("m", digits)) => match digits.split_once('.') {
                Some((message, steer)) => number(message)
                    .zip(number(steer))
                    .map(|(message, steer)| Self::Steer(message, steer)),
                None => number(digits).map(Self::Message),
            },
            _ => None,
        };
        handle.ok_or_else(|| {
            BadArguments::new(format!(
                "{:?} is no name of a result or a message; they are called r1, r2, … and m1, m2, …",
                super::arguments::shortened(text)
            ))
        })
    }
}

/// A part of the result of this call, and the way to the rest.
pub(crate) fn excerpt_of(part: &str, number: u32) -> String {
    let handle = Handle::Result(number);
    let line_end = if part.ends_with('\n') { "" } else { "\n" };
    format!(
        "{part}{line_end}[an excerpt of {handle}; recall {{\"of\":\"{handle}\"}} {EXCERPT_ENDS}"
    )
}

/// True for a text from [`excerpt_of`].
pub(crate) fn is_excerpt(text: &str) -> bool {
    text.ends_with(EXCERPT_ENDS)
}

/// The end of a text that is an excerpt.
const EXCERPT_ENDS: &str = "shows more, from an offset or by a pattern]";

/// Returns results and messages from the log, whatever the model is still sent of them.
#[derive(Debug, Clone, Copy)]
pub struct RecallTool;

impl Tool for RecallTool {
    fn name(&self) -> &str {
        "recall"
    }

    fn description(&self) -> &str {
        "Returns the bytes of a result (r7) or of a person's message (m3) of this conversation that are not shown in \
         full any more, from an offset on; or the lines of it that match a pattern, each behind its offset. Without of, \
         the pattern is looked for in the whole conversation."
    }

    fn guidance(&self) -> Option<&str> {
        Some(
            "What is left out of this conversation is not lost: get it back with recall instead of doing it again.",
        )
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::optional(
                "of",
                Kind::Text {
                    empty: false,
                    at_most: 16,
                    instead: "give one name such as r7",
                },
                "The name of the result or message, such as r7 or m3.",
            ),
            Parameter::optional(
                "offset",
                Kind::Number {
                    from: 0,
                    to: MAX_OFFSET,
                },
                "The first byte wanted; default 0.",
            ),
            Parameter::optional(
                "limit",
                Kind::Number {
                    from: 1,
                    to: MAX_BYTES,
                },
                "At most this many bytes; default 8192, at most 10240.",
            ),
            Parameter::optional(
                "pattern",
                Kind::PATTERN,
                "A regular expression, matched line by line.",
            ),
            Parameter::optional(
                "stderr",
                Kind::Flag,
                "Of a command, whether stderr is wanted in place of stdout; default false.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let text = |name| Some(arguments.text(name)).filter(|text| !text.is_empty());
        let of = text("of").map(str::parse).transpose()?;
        let pattern = text("pattern").map(str::to_owned);
        if of.is_none() && pattern.is_none() {
            return Err(BadArguments::new(
                "say which result or message is wanted, or a pattern",
            ));
        }
        let limit = arguments.number("limit").unwrap_or(DEFAULT_BYTES);
        Ok(Ask::Recall(RecallAsk {
            of,
            stream: match arguments.flag("stderr") {
                true => OutputStream::Stderr,
                false => OutputStream::Stdout,
            },
            offset: arguments.number("offset").unwrap_or(0),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            pattern,
        }))
    }
}
