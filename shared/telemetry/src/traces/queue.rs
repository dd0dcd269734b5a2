//! The bounded queue of spans, and the task that sends them in batches.
//!
//! The library's own processor of batches drops spans without a count that a metric could show, and has a thread.

use std::{pin::pin, time::Duration};

use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{self as sdk, SpanData, SpanExporter as _, SpanProcessor},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tonic::transport::Endpoint;

use super::{ANSWERED, TraceOptions};
use crate::Metric;

/// Spans that wait to be sent; more are dropped.
pub(super) const SPANS_WAITING: usize = 4096;

/// Spans that are sent at once, at most.
const BATCH: usize = 512;

/// The wait of the first span of a batch for others.
const GATHER_FOR: Duration = Duration::from_secs(1);

/// The longest time for the collector to take a batch, with all tries.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// The most tries to send a batch after the first one: the collector may be restarting.
const MORE_TRIES: usize = 2;

/// The pause between these tries.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An item that waits for the task.
enum Queued {
    Span(Box<SpanData>),
    /// A mark. The exporter sends everything before it, and then answers its caller.
    Flush(oneshot::Sender<()>),
}

/// The way of spans to the task that sends them.
#[derive(Debug, Clone)]
pub(super) struct SpanQueue {
    waiting: mpsc::Sender<Queued>,
    dropped: &'static Metric,
}

impl SpanQueue {
    /// Starts the task, on the runtime that runs now.
    pub(super) fn start(collector: Endpoint, options: &TraceOptions) -> Self {
        let (waiting, queue) = mpsc::channel(SPANS_WAITING);
        // Detached on purpose: it ends with the process, and `flush` waits for the remaining spans.
        tokio::spawn(Sending::new(collector, options).run(queue));
        let dropped = options.dropped;
        Self { waiting, dropped }
    }

    /// Adds a span, or drops it.
    pub(super) fn push(&self, span: SpanData) {
        let queued = Queued::Span(Box::new(span));
        if self.waiting.try_send(queued).is_err() {
            self.dropped.add(&["full"], 1);
        }
    }

    /// Waits until the collector has the spans that wait.
    pub(super) async fn flush(&self) {
        let (sent, done) = oneshot::channel();
        let _ = self.waiting.send(Queued::Flush(sent)).await;
        let _ = done.await;
    }
}

/// Takes the spans of requests.
impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut sdk::Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let is_answered = |attribute: &KeyValue| attribute.key.as_str() == ANSWERED;
        if span.attributes.iter().any(is_answered) {
            self.push(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

struct Sending {
    exporter: SpanExporter,
    endpoint: String,
    sent: &'static Metric,
    dropped: &'static Metric,
    /// True if the last batch was taken.
    is_taken: bool,
}

impl Sending {
    fn new(collector: Endpoint, options: &TraceOptions) -> Self {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_channel(collector.connect_timeout(TAKEN_WITHIN).connect_lazy())
            .with_timeout(TAKEN_WITHIN)
            .with_retry_policy(
                RetryPolicy::disabled()
                    .with_max_retries(MORE_TRIES)
                    .with_initial_delay(AGAIN_AFTER)
                    .with_max_delay(AGAIN_AFTER),
            )
            // The library adds headers from the environment.
            .with_interceptor(|mut request: tonic::Request<()>| {
                request.metadata_mut().clear();
                Ok(request)
            })
            .build()
            .expect("a channel is all that it takes");
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", options.service),
            KeyValue::new("service.version", options.version),
            KeyValue::new("service.instance.id", options.instance.clone()),
        ]);
        exporter.set_resource(&resource.build());
        Self {
            exporter,
            endpoint: options.endpoint.clone(),
            sent: options.sent,
            dropped: options.dropped,
            is_taken: true,
        }
    }

    /// Runs until no task is left that could make a span.
    async fn run(mut self, mut queue: mpsc::Receiver<Queued>) {
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

    /// Sends a batch, or drops it. A batch that the collector takes in part counts as sent.
    async fn send(&mut self, batch: Vec<SpanData>) {
        let count = batch.len() as u64;
        if count == 0 {
            return;
        }
        let taken = timeout(TAKEN_WITHIN, self.exporter.export(batch)).await;
        let taken = taken.unwrap_or(Err(OTelSdkError::Timeout(TAKEN_WITHIN)));
        let (was_taken, endpoint) = (self.is_taken, &self.endpoint);
        self.is_taken = taken.is_ok();
        match taken {
            Ok(()) => {
                self.sent.add(&[], count);
                if !was_taken {
                    tracing::info!(endpoint, "the collector takes spans again");
                }
            }
            Err(error) => {
                self.dropped.add(&["not_taken"], count);
                if was_taken {
                    tracing::warn!(
                        endpoint,
                        %error,
                        "spans are dropped until the collector takes them: start it, or name another one for traces"
                    );
                }
            }
        }
    }
}

fn note(queued: Queued, batch: &mut Vec<SpanData>, flushed: &mut Vec<oneshot::Sender<()>>) {
    match queued {
        Queued::Span(span) => batch.push(*span),
        Queued::Flush(waits) => flushed.push(waits),
    }
}
