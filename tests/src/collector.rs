//! A collector of traces: takes spans by OTLP over gRPC, and shows them as a tree.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
};
use tokio::{net::TcpListener, task::AbortHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::gantry::eventually;

/// A span that arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The program that sent it.
    pub service: String,
    /// The headers with which it was sent, and the attributes of that program.
    pub sender: String,
    /// The trace, in hexadecimal digits, as everything that follows.
    pub trace: String,
    /// The span itself.
    pub id: String,
    /// What it is part of; empty for the first one of a trace.
    pub parent: String,
    /// Earlier tries.
    pub links: Vec<String>,
    /// Its name.
    pub name: String,
    /// Its attributes, as text.
    pub attributes: BTreeMap<String, String>,
    /// Why it failed.
    pub failure: Option<String>,
    /// When it began and ended, in nanoseconds since 1970.
    pub times: [u64; 2],
}

/// A collector; it stops when it is dropped.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    serving: AbortHandle,
}

impl Collector {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let spans = Arc::default();
        let service = TraceServiceServer::new(Taking(Arc::clone(&spans)));
        let serving = tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Self {
            address,
            spans,
            serving: serving.abort_handle(),
        }
    }

    /// Its address, as programs are told.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The section of `gantry.toml` that names it.
    pub fn settings(&self) -> String {
        format!("[traces]\nendpoint = {:?}\n", self.url())
    }

    /// All spans that arrived, in the order of their beginnings.
    pub fn spans(&self) -> Vec<Span> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spans = spans.clone();
        spans.sort_by_key(|span| span.times);
        spans
    }

    /// Waits for a span of this name in a trace, and returns the first one.
    pub async fn span(&self, trace: &str, name: &str) -> Span {
        let arrived = || async {
            let mut spans = self.spans().into_iter();
            spans.find(|span| span.trace == trace && span.name == name)
        };
        eventually(&format!("a span {name:?} arrives"), arrived).await
    }

    /// The spans of a trace, each below what it is part of, with what is not an id.
    pub fn tree(&self, trace: &str) -> String {
        let spans = self.spans();
        let spans: Vec<_> = spans.iter().filter(|span| span.trace == trace).collect();
        let is_top = |span: &&&Span| !spans.iter().any(|other| other.id == span.parent);
        let mut text = String::new();
        for top in spans.iter().filter(is_top) {
            write_tree(&mut text, &spans, top, 0);
        }
        text
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn write_tree(text: &mut String, all: &[&Span], span: &Span, depth: usize) {
    let indent = "  ".repeat(depth);
    let failure = span.failure.as_deref().map(|why| format!(" FAILED: {why}"));
    let links = match span.links.len() {
        0 => String::new(),
        links => format!(" ({links} earlier)"),
    };
    let (name, service) = (&span.name, &span.service);
    let failure = failure.unwrap_or_default();
    writeln!(text, "{indent}{name} [{service}]{links}{failure}").expect("a text takes all");
    for below in all.iter().filter(|other| other.parent == span.id) {
        write_tree(text, all, below, depth + 1);
    }
}

struct Taking(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Taking {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let headers = format!("{:?}", request.metadata());
        for of_program in request.into_inner().resource_spans {
            let resource = of_program.resource.unwrap_or_default();
            let resource = texts(&resource.attributes);
            let spans = of_program.scope_spans.into_iter();
            let taken = spans.flat_map(|scope| scope.spans).map(|span| Span {
                service: resource.get("service.name").cloned().unwrap_or_default(),
                sender: format!("{headers} {resource:?}"),
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
                name: span.name,
                attributes: texts(&span.attributes),
                failure: span.status.map(|status| status.message),
                times: [span.start_time_unix_nano, span.end_time_unix_nano],
            });
            let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            spans.extend(taken);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| {
        let value = attribute.value.as_ref().and_then(|any| any.value.as_ref());
        let value = match value {
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::IntValue(number)) => number.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key.clone(), value)
    };
    attributes.iter().map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
