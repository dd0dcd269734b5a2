//! Traces: spans, sent to a collector by OTLP over gRPC if the operator names one.
//!
//! The program that durably stores an end makes its span, from the stored times. So a crash loses only the spans that
//! waited, and no span is made twice. A span has ids, kinds, times and counts: never arguments, output, messages or
//! secrets.
//!
//! Nothing waits for a collector. Spans go through one bounded queue. A span that finds no room there, or that the
//! collector does not take, is dropped and counted.
//!
//! The libraries of OpenTelemetry read settings from the environment. Each is set here, so that only ours count.

mod queue;
mod span;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

pub use opentelemetry::trace::SpanKind as Kind;
use shared_types::{Entropy, SpanId, TraceContext, TraceId};
use tokio::time::timeout;
use tonic::transport::{Endpoint, Uri};

use self::queue::Queue;
pub use self::span::Span;
use crate::{Metric, TelemetryError};

/// The name of all that makes spans here.
const SCOPE: &str = "gantry";

/// The longest wait of an ending program for the collector to take the waiting spans.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);

/// The spans' way to the collector, once it is installed.
static TRACES: OnceLock<Traces> = OnceLock::new();

/// The collector of spans, and the identity of this process in them.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The collector's address, such as `http://127.0.0.1:4317`.
    pub endpoint: String,
    /// The part of the traces begun here that is collected, from 0 to 1. Traces that other programs began are collected
    /// if those say so.
    pub sample: f64,
    /// The program (`service.name`).
    pub service: &'static str,
    /// Its version (`service.version`).
    pub version: &'static str,
    /// Its process or machine (`service.instance.id`).
    pub instance: String,
    /// Counts the spans that were sent.
    pub sent: &'static Metric,
    /// Counts the spans that were dropped, by reason.
    pub dropped: &'static Metric,
}

struct Traces {
    queue: Queue,
    sample: f64,
    entropy: Arc<dyn Entropy>,
}

/// Begins to collect spans, and to send them from the runtime that runs now.
///
/// # Errors
/// If the address makes no sense, or if this process collects spans already.
pub fn install_traces(
    options: &TraceOptions,
    entropy: Arc<dyn Entropy>,
) -> Result<(), TelemetryError> {
    let traces = Traces {
        queue: Queue::start(collector(&options.endpoint)?, options),
        sample: options.sample,
        entropy,
    };
    (TRACES.set(traces)).map_err(|_| TelemetryError::Repeated("traces"))
}

/// The collector at this address.
///
/// # Errors
/// If spans cannot be sent to it.
pub fn collector(endpoint: &str) -> Result<Endpoint, TelemetryError> {
    let wrong = |reason| TelemetryError::Endpoint {
        endpoint: endpoint.to_owned(),
        reason,
    };
    let uri: Uri = endpoint
        .parse()
        .map_err(|_| wrong("it is no address of the web"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(wrong(
                "only plain http is spoken: send to a collector on this machine or in this network, which ends TLS",
            ));
        }
        _ => return Err(wrong("it does not begin with http://")),
    }
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err(TelemetryError::Endpoint {
            // It may have a password.
            endpoint: "what was set".to_owned(),
            reason: "it has a user's name, and spans are sent without one",
        });
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("it has a path"));
    }
    Ok(Endpoint::from(uri))
}

/// True if this process collects spans.
pub fn is_on() -> bool {
    TRACES.get().is_some()
}

/// A new span: of this trace, else the first one of a new trace. None if no spans are collected.
pub fn begin(parent: Option<TraceContext>) -> Option<TraceContext> {
    let traces = TRACES.get()?;
    let span = SpanId::random(&*traces.entropy);
    Some(match parent {
        Some(parent) => parent.with(span),
        None => {
            let trace = TraceId::random(&*traces.entropy);
            TraceContext {
                trace,
                span,
                sampled: trace.fraction() < traces.sample,
            }
        }
    })
}

/// Waits a short while until the collector has the waiting spans; for a program that ends.
pub async fn flush() {
    if let Some(traces) = TRACES.get() {
        let _ = timeout(FLUSH_WITHIN, traces.queue.flush()).await;
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Timestamp, entropy::SeededEntropy};

    use super::{queue::SPANS_WAITING, *};
    use crate::server;

    #[test]
    fn a_collector_has_an_address_without_a_path() {
        for right in ["http://127.0.0.1:4317", "http://otel-collector:4317/"] {
            collector(right).expect("it is an address");
        }
        for wrong in [
            "",
            "127.0.0.1:4317",
            "https://collector:4317",
            "http://c/v1/traces",
        ] {
            let error = collector(wrong).expect_err("it is none");
            assert!(
                error.to_string().contains("http://127.0.0.1:4317"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn spans_that_find_no_room_are_dropped_and_counted_and_nobody_waits() {
        assert_eq!(begin(None), None, "no collector is named yet");
        let metrics = crate::install_metrics(server::ALL, "1").expect("the first time");
        let options = TraceOptions {
            endpoint: "http://127.0.0.1:1".to_owned(),
            sample: 1.0,
            service: "a test",
            version: "1",
            instance: String::new(),
            sent: &server::SPANS_SENT,
            dropped: &server::SPANS_DROPPED,
        };
        install_traces(&options, Arc::new(SeededEntropy::new(1))).expect("the first time");
        // The task that sends them has its turn only where this one waits, and it does not.
        let context = begin(None).expect("traces are collected");
        let now = Timestamp::from_micros(0);
        for _ in 0..SPANS_WAITING + 3 {
            Span::new(context, "work", (now, now)).record();
        }
        let unsampled = TraceContext {
            sampled: false,
            ..context
        };
        Span::new(unsampled, "work", (now, now)).record();
        let page = metrics.render();
        let dropped = "gantry_trace_spans_dropped_total{reason=\"full\"} 3\n";
        assert!(page.contains(dropped), "{page}");
    }
}
