//! The task that sends spans: in batches, patiently but not for ever.

use std::{pin::pin, time::Duration};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, trace_service_client::TraceServiceClient},
    common::v1::{InstrumentationScope, any_value::Value},
    resource::v1::Resource,
    trace::v1::{self as otlp, ResourceSpans, ScopeSpans},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};
use tonic::{
    Code,
    transport::{Channel, Endpoint},
};

use super::{
    TraceOptions,
    span::{Span, attribute},
};
use crate::Metric;

/// Spans that are sent at once, at most.
const BATCH: usize = 512;

/// The wait of the first span of a batch for others.
const GATHER_FOR: Duration = Duration::from_secs(1);

/// The longest time to connect.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// The longest time for the collector to take a batch.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// The most tries to send a batch to an absent collector before it is dropped: the collector may be restarting.
const ATTEMPTS: u32 = 3;

/// The pause between these tries.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An item that waits for the task.
pub(super) enum Queued {
    Span(Box<Span>),
    /// A mark: everything before it is to be sent, and then its caller is told.
    Flush(oneshot::Sender<()>),
}

pub(super) struct Exporter {
    client: TraceServiceClient<Channel>,
    endpoint: String,
    resource: Resource,
    sent: &'static Metric,
    dropped: &'static Metric,
    /// True if the last batch was taken.
    is_taken: bool,
}

/// Bounds the waits for the collector.
pub(super) fn patient(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECTED_WITHIN)
        .timeout(TAKEN_WITHIN)
}

impl Exporter {
    pub(super) fn new(collector: Endpoint, options: &TraceOptions) -> Self {
        let text = |key, text: &str| attribute(key, Value::StringValue(text.to_owned()));
        Self {
            client: TraceServiceClient::new(collector.connect_lazy()),
            endpoint: options.endpoint.clone(),
            resource: Resource {
                attributes: vec![
                    text("service.name", options.service),
                    text("service.version", options.version),
                    text("service.instance.id", &options.instance),
                ],
                ..Default::default()
            },
            sent: options.sent,
            dropped: options.dropped,
            is_taken: true,
        }
    }

    /// Runs until no task is left that could make a span.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Queued>) {
        let mut batch = Vec::new();
        let mut flushed = Vec::new();
        while let Some(first) = queue.recv().await {
            note(first, &mut batch, &mut flushed);
            let mut gathered = pin!(sleep(GATHER_FOR));
            while batch.len() < BATCH && flushed.is_empty() {
                tokio::select! {
                    queued = queue.recv() => match queued {
                        Some(queued) => note(queued, &mut batch, &mut flushed),
                        None => break,
                    },
                    () = &mut gathered => break,
                }
            }
            self.send(std::mem::take(&mut batch)).await;
            for waits in flushed.drain(..) {
                // A caller that stopped waiting needs no answer.
                let _ = waits.send(());
            }
        }
    }

    /// Sends a batch, or drops it.
    async fn send(&mut self, spans: Vec<otlp::Span>) {
        let count = spans.len() as u64;
        if count == 0 {
            return;
        }
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "gantry".to_owned(),
                        ..Default::default()
                    }),
                    spans,
                    ..Default::default()
                }],
                ..Default::default()
            }],
        };
        let mut attempt = 1;
        let not_taken = loop {
            match self.client.export(request.clone()).await {
                Ok(response) => {
                    let partly = response.into_inner().partial_success;
                    let refused = partly.map_or(0, |partly| partly.rejected_spans);
                    break u64::try_from(refused).unwrap_or(0).min(count);
                }
                // A collector that was down before gets no second try until it is up again.
                Err(status)
                    if status.code() == Code::Unavailable
                        && attempt < ATTEMPTS
                        && self.is_taken =>
                {
                    attempt += 1;
                    sleep(AGAIN_AFTER).await;
                }
                Err(status) => {
                    self.is_missed(&status);
                    break count;
                }
            }
        };
        if not_taken < count && !self.is_taken {
            tracing::info!(endpoint = self.endpoint, "the collector takes spans again");
            self.is_taken = true;
        }
        self.sent.add(&[], count - not_taken);
        self.dropped.add(&["not_taken"], not_taken);
    }

    /// Logs once that the collector is away, until it is back.
    fn is_missed(&mut self, status: &tonic::Status) {
        if self.is_taken {
            tracing::warn!(
                endpoint = self.endpoint,
                code = ?status.code(),
                error = status.message(),
                "spans are dropped until the collector takes them: start it, or name another one for traces"
            );
        }
        self.is_taken = false;
    }
}

fn note(queued: Queued, batch: &mut Vec<otlp::Span>, flushed: &mut Vec<oneshot::Sender<()>>) {
    match queued {
        Queued::Span(span) => batch.push(span.into_otlp()),
        Queued::Flush(waits) => flushed.push(waits),
    }
}
