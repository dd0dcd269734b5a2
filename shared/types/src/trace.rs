//! The place of a piece of work in a trace (W3C Trace Context, <https://www.w3.org/TR/trace-context/>).
//!
//! The ids of the spans of turns, tool calls and operations are derived from the ids of these. So every
//! process knows the parent of a span without having made it, also after a restart. A span that is reported
//! twice is one span.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Epoch, OperationId, TurnId};

/// The number of a trace; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The number of a span within its trace; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A span of a trace, as it is passed on: a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span that is the parent of what comes.
    pub span: SpanId,
    /// True if the trace is collected.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a traceparent that looks like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct NotATraceparent;

impl TraceId {
    /// The one of these bytes; all zeros name nothing, and become another one.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(unless_zero(bytes))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// The one of these bytes; all zeros name nothing, and become another one.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(unless_zero(bytes))
    }

    /// The span of a turn.
    pub fn of_turn(turn: TurnId) -> Self {
        Self::derived(format_args!("turn {turn}"))
    }

    /// The span of a model call: the `attempt`-th, from 1, that this worker makes for the step.
    pub fn of_model_call(turn: TurnId, step: u32, epoch: Epoch, attempt: u32) -> Self {
        Self::derived(format_args!("model {turn} {step} {} {attempt}", epoch.0))
    }

    /// The span of a tool call.
    pub fn of_tool_call(turn: TurnId, step: u32, ordinal: u32) -> Self {
        Self::derived(format_args!("tool {turn} {step} {ordinal}"))
    }

    /// The span of an operation, as the server sees it.
    pub fn of_operation(operation: OperationId) -> Self {
        Self::derived(format_args!("operation {operation}"))
    }

    /// The span of an operation, as its runner sees it.
    pub fn of_runner(operation: OperationId) -> Self {
        Self::derived(format_args!("runner {operation}"))
    }

    /// The span of an operation's process.
    pub fn of_process(operation: OperationId) -> Self {
        Self::derived(format_args!("process {operation}"))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }

    fn derived(of: fmt::Arguments<'_>) -> Self {
        let digest = Sha256::digest(format!("gantry.span.v1 {of}"));
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        Self::from_bytes(bytes)
    }
}

impl TraceContext {
    /// Another span of the same trace.
    pub fn with(self, span: SpanId) -> Self {
        Self { span, ..self }
    }
}

/// All zeros name nothing.
fn unless_zero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if bytes == [0; N] {
        bytes[N - 1] = 1;
    }
    bytes
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Small hexadecimal digits, not all of them 0.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

impl FromStr for TraceContext {
    type Err = NotATraceparent;

    /// Of a later version the fields of this one count.
    fn from_str(text: &str) -> Result<Self, NotATraceparent> {
        let parsed = || {
            let mut parts = text.split('-');
            let [version] = match parts.next()? {
                "00" => [0],
                later => from_hex(later)?,
            };
            let trace = from_hex(parts.next()?).filter(|bytes| *bytes != [0; 16])?;
            let span = from_hex(parts.next()?).filter(|bytes| *bytes != [0; 8])?;
            let [flags] = from_hex(parts.next()?)?;
            let is_whole = version != 0 || parts.next().is_none();
            (version != 0xff && is_whole).then_some(Self {
                trace: TraceId(trace),
                span: SpanId(span),
                sampled: flags & 1 == 1,
            })
        };
        parsed().ok_or(NotATraceparent)
    }
}

impl Serialize for TraceContext {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written_as_in_the_standard() {
        let context: TraceContext = EXAMPLE.parse().expect("it is one");
        assert!(context.sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let later = format!("cc{}-what-comes", &EXAMPLE[2..]);
        assert_eq!(later.parse(), Ok(context), "a later version");
        let other_flags = EXAMPLE.replace("-01", "-02");
        let unsampled: TraceContext = other_flags.parse().expect("it is one");
        assert!(!unsampled.sampled);
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let zero = |part: &str| EXAMPLE.replace(part, &"0".repeat(part.len()));
        for wrong in [
            String::new(),
            EXAMPLE[..54].to_owned(),
            format!("{EXAMPLE}-more"),
            format!("ff{}", &EXAMPLE[2..]),
            EXAMPLE.to_uppercase(),
            EXAMPLE.replace('4', "g"),
            EXAMPLE.replace("4bf9", "é4b"),
            zero("4bf92f3577b34da6a3ce929d0e0e4736"),
            zero("00f067aa0ba902b7"),
        ] {
            assert_eq!(
                wrong.parse::<TraceContext>(),
                Err(NotATraceparent),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_spans_of_an_operation_are_its_own() {
        let [one, other] = [1, 2].map(OperationId::from_u128);
        assert_eq!(SpanId::of_operation(one), SpanId::of_operation(one));
        assert_ne!(SpanId::of_operation(one), SpanId::of_operation(other));
        assert_ne!(SpanId::of_operation(one), SpanId::of_runner(one));
        assert_ne!(SpanId::of_runner(one), SpanId::of_process(one));
    }
}
