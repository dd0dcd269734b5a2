//! Traces: spans, sent to a collector by OTLP over gRPC if the operator names one.
//!
//! The program that durably stores an end makes its span, from the stored times. So a crash loses only the spans that
//! waited, and no span is made twice. The span of a request is one of the crate `tracing`, from its beginning to its
//! answer. A span has ids, kinds, times and counts: never arguments, output, messages or secrets.
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

use opentelemetry::{
    Context,
    trace::{self as otel, TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_sdk::trace::{IdGenerator, Sampler, SdkTracer, SdkTracerProvider, SpanLimits};
use shared_types::{Entropy, SpanId, TraceContext, TraceId};
use tokio::time::timeout;
use tonic::transport::{Endpoint, Uri};
use tracing::{Level, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

use self::queue::SpanQueue;
pub use self::span::Span;
use crate::{Metric, TelemetryError};

/// The target of the `tracing` spans of requests. No other `tracing` span or event goes to the collector.
pub const REQUESTS: &str = "gantry::requests";

/// The attribute without which the span of a request is not sent: an answer has been given that a trace may show.
const ANSWERED: &str = "http.response.status_code";

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
    queue: SpanQueue,
    requests: SdkTracer,
}

/// Begins to collect spans, and to send them from the runtime that runs now. Spans of requests need it before the logs
/// are set up.
///
/// # Errors
/// If the address makes no sense, or if this process collects spans already.
pub fn install_traces(
    options: &TraceOptions,
    entropy: Arc<dyn Entropy>,
) -> Result<(), TelemetryError> {
    let queue = SpanQueue::start(collector(&options.endpoint)?, options);
    let own = Sampler::TraceIdRatioBased(options.sample);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(queue.clone())
        .with_sampler(Sampler::ParentBased(Box::new(own)))
        .with_id_generator(Ids(entropy))
        .with_span_limits(SpanLimits::default())
        .build();
    let requests = provider.tracer(SCOPE);
    let installed = TRACES.set(Traces { queue, requests });
    installed.map_err(|_| TelemetryError::Repeated("traces"))
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

/// Makes the span of a request, of the target [`REQUESTS`], part of the caller's trace, or else the first one of a new
/// trace. Returns its own place; `None` if no spans are collected.
pub fn place(request: &tracing::Span, caller: Option<TraceContext>) -> Option<TraceContext> {
    if let Some(caller) = caller {
        let caller = Context::new().with_remote_span_context(span::place(caller));
        // An error says that no spans are collected, as the context below does.
        let _ = request.set_parent(caller);
    }
    let own = request.context();
    let own = own.span().span_context().clone();
    own.is_valid().then(|| TraceContext {
        trace: TraceId::from_bytes(own.trace_id().to_bytes()),
        span: SpanId::from_bytes(own.span_id().to_bytes()),
        sampled: own.is_sampled(),
    })
}

/// Takes the spans of requests out of the spans of `tracing`, if spans are collected.
pub(crate) fn layer<S>() -> Option<impl Layer<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let traces = TRACES.get()?;
    let layer = OpenTelemetryLayer::new(traces.requests.clone())
        .with_context_activation(false)
        .with_tracked_inactivity(false)
        .with_location(false)
        .with_threads(false)
        .with_target(false);
    Some(layer.with_filter(Targets::new().with_target(REQUESTS, Level::INFO)))
}

/// Waits a short while until the collector has the waiting spans; for a program that ends.
pub async fn flush() {
    if let Some(traces) = TRACES.get() {
        let _ = timeout(FLUSH_WITHIN, traces.queue.flush()).await;
    }
}

/// Makes the ids of requests' spans.
#[derive(Debug)]
struct Ids(Arc<dyn Entropy>);

impl Ids {
    fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }
}

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> otel::TraceId {
        otel::TraceId::from_bytes(*TraceId::from_bytes(self.random()).as_bytes())
    }

    fn new_span_id(&self) -> otel::SpanId {
        otel::SpanId::from_bytes(*SpanId::from_bytes(self.random()).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Timestamp, entropy::SeededEntropy};
    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::{queue::SPANS_WAITING, *};
    use crate::server;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

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
        assert!(layer::<Registry>().is_none(), "no collector is named yet");
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
        let context: TraceContext = CALLER.parse().expect("a traceparent");
        let now = Timestamp::from_micros(0);
        for _ in 0..SPANS_WAITING + 3 {
            Span::new(context, "work", (now, now)).record();
        }
        let unsampled = TraceContext {
            sampled: false,
            ..context
        };
        Span::new(unsampled, "work", (now, now)).record();
        let are_dropped = |count: u32| {
            let page = metrics.render();
            let dropped = format!("gantry_trace_spans_dropped_total{{reason=\"full\"}} {count}\n");
            assert!(page.contains(&dropped), "{page}");
        };
        are_dropped(3);

        // Spans of requests go the same way, once they are answered.
        let _default = tracing::subscriber::set_default(Registry::default().with(layer()));
        let request = || {
            tracing::info_span!(
                target: REQUESTS,
                "request",
                http.response.status_code = tracing::field::Empty
            )
        };
        let (answered, unanswered, not_collected) = (request(), request(), request());
        let own = place(&answered, None).expect("spans are collected");
        assert!(own.sampled && own.trace != context.trace, "{own}");
        let own = place(&unanswered, Some(context)).expect("spans are collected");
        assert!(own.sampled && own.trace == context.trace, "{own}");
        assert_ne!(own.span, context.span);
        let own = place(&not_collected, Some(unsampled)).expect("spans are collected");
        assert!(!own.sampled && own.trace == context.trace, "{own}");
        for answered in [answered, not_collected] {
            answered.record("http.response.status_code", 200);
        }
        drop(unanswered);
        are_dropped(4);
    }
}
