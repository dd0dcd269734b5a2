//! A span of work that is over, with the ids and times that are stored of it.

use std::time::{Duration, SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{self as otel, Link, SpanContext, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_sdk::trace::SpanData;
use shared_types::{SpanId, Timestamp, TraceContext};

use super::SCOPE;

/// Longest text of an attribute, in bytes; more of it is cut off.
const MAX_TEXT_BYTES: usize = 256;

/// A piece of work that is over.
#[derive(Debug, Clone)]
#[must_use = "it is told by `record`"]
pub struct Span(SpanData);

impl Span {
    /// The work from `begin` to `end`; `context` is its own place.
    pub fn new(
        context: TraceContext,
        name: impl Into<String>,
        (begin, end): (Timestamp, Timestamp),
    ) -> Self {
        Self(SpanData {
            span_context: place(context),
            parent_span_id: otel::SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into().into(),
            start_time: time(begin.min(end)),
            end_time: time(end),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder(SCOPE).build(),
        })
    }

    /// Sets the work that it was part of.
    pub fn within(mut self, parent: SpanId) -> Self {
        self.0.parent_span_id = id(parent);
        self
    }

    /// Marks it as a request to another program.
    pub fn of_client(mut self) -> Self {
        self.0.span_kind = SpanKind::Client;
        self
    }

    /// Links it to the earlier try of the same work, a span of the same trace.
    pub fn after(mut self, earlier: Option<SpanId>) -> Self {
        let own = &self.0.span_context;
        let (trace, flags) = (own.trace_id(), own.trace_flags());
        let link = earlier
            .map(|earlier| SpanContext::new(trace, id(earlier), flags, true, TraceState::NONE))
            .map(Link::with_context);
        self.0.links.links.extend(link);
        self
    }

    /// Adds an attribute.
    pub fn with(self, key: &'static str, value: impl ToString) -> Self {
        let mut text = value.to_string();
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.shrink_to_fit();
        self.with_value(key, Some(text))
    }

    /// Adds a number as an attribute, if it is known.
    pub fn with_number(self, key: &'static str, value: Option<i64>) -> Self {
        self.with_value(key, value)
    }

    fn with_value(mut self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        let attribute = value.map(|value| KeyValue::new(key, value));
        self.0.attributes.extend(attribute);
        self
    }

    /// Marks it as failed, for this reason of a closed set.
    pub fn failed(mut self, why: Option<&str>) -> Self {
        self.0.status = why.map_or(Status::Unset, |why| Status::error(why.to_owned()));
        self
    }

    /// Sends it, if its trace is collected; waits for nothing.
    pub fn record(self) {
        if let Some(traces) = super::TRACES.get()
            && self.0.span_context.is_sampled()
        {
            traces.queue.push(self.0);
        }
    }
}

/// A place in a trace, as the library names it.
pub(super) fn place(context: TraceContext) -> SpanContext {
    SpanContext::new(
        otel::TraceId::from_bytes(*context.trace.as_bytes()),
        id(context.span),
        TraceFlags::default().with_sampled(context.sampled),
        true,
        TraceState::NONE,
    )
}

fn id(span: SpanId) -> otel::SpanId {
    otel::SpanId::from_bytes(*span.as_bytes())
}

fn time(at: Timestamp) -> SystemTime {
    let micros = u64::try_from(at.as_micros()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}
