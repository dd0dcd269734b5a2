//! A span, and its form for the collector.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{self as otlp, span::SpanKind, status::StatusCode},
};
use shared_types::{SpanId, Timestamp, TraceContext};

/// Longest text of an attribute, in bytes; more of it is cut off.
const MAX_TEXT_BYTES: usize = 256;

/// The side of a call that a span tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Something within a program.
    #[default]
    Internal,
    /// A request that came.
    Server,
    /// A request that was made.
    Client,
}

/// A piece of work that is over.
#[derive(Debug, Clone)]
#[must_use = "it is told by `record`"]
pub struct Span {
    context: TraceContext,
    parent: Option<SpanId>,
    name: String,
    kind: Kind,
    begin: Timestamp,
    end: Timestamp,
    attributes: Vec<KeyValue>,
    links: Vec<SpanId>,
    failure: Option<String>,
}

impl Span {
    /// The work from `begin` to `end`; `context` is its own place.
    pub fn new(
        context: TraceContext,
        name: impl Into<String>,
        (begin, end): (Timestamp, Timestamp),
    ) -> Self {
        Self {
            context,
            parent: None,
            name: name.into(),
            kind: Kind::default(),
            begin: begin.min(end),
            end,
            attributes: Vec::new(),
            links: Vec::new(),
            failure: None,
        }
    }

    /// Sets the work that it was part of.
    pub fn within(self, parent: Option<SpanId>) -> Self {
        Self { parent, ..self }
    }

    /// Sets its kind.
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// Links it to the earlier try of the same work, a span of the same trace.
    pub fn after(mut self, earlier: Option<SpanId>) -> Self {
        self.links.extend(earlier);
        self
    }

    /// Adds an attribute.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        let mut text = value.to_string();
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.shrink_to_fit();
        self.attributes
            .push(attribute(key, Value::StringValue(text)));
        self
    }

    /// Adds a number as an attribute, if it is known.
    pub fn with_number(mut self, key: &'static str, value: Option<i64>) -> Self {
        let number = value.map(|number| attribute(key, Value::IntValue(number)));
        self.attributes.extend(number);
        self
    }

    /// Marks it as failed, for this reason of a closed set.
    pub fn failed(self, why: Option<&str>) -> Self {
        Self {
            failure: why.map(str::to_owned),
            ..self
        }
    }

    /// Sends it, if its trace is collected; waits for nothing.
    pub fn record(self) {
        if self.context.sampled {
            super::queue(self);
        }
    }

    pub(super) fn into_otlp(self) -> otlp::Span {
        let trace_id = self.context.trace.as_bytes().to_vec();
        let link = |span: SpanId| otlp::span::Link {
            trace_id: trace_id.clone(),
            span_id: span.as_bytes().to_vec(),
            ..Default::default()
        };
        let kind = match self.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
        };
        let parent = self.parent.map(|parent| parent.as_bytes().to_vec());
        otlp::Span {
            span_id: self.context.span.as_bytes().to_vec(),
            parent_span_id: parent.unwrap_or_default(),
            name: self.name,
            kind: kind.into(),
            start_time_unix_nano: nanoseconds(self.begin),
            end_time_unix_nano: nanoseconds(self.end),
            attributes: self.attributes,
            links: self.links.into_iter().map(link).collect(),
            status: self.failure.map(|message| otlp::Status {
                message,
                code: StatusCode::Error.into(),
            }),
            trace_id,
            ..Default::default()
        }
    }
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Default::default()
    }
}

fn nanoseconds(at: Timestamp) -> u64 {
    let micros = u64::try_from(at.as_micros()).unwrap_or(0);
    micros.saturating_mul(1000)
}
