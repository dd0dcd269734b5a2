//! The span of every request, where traces are collected. It is part of the caller's trace if the request says so
//! (`traceparent`).
//!
//! A request that is refused for its credential has no span, and no caller chooses the name of a span.

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, Method, StatusCode};
use shared_telemetry::traces::{self, REQUESTS};
use shared_types::TraceContext;
use tonic::{Code, Status};
use tracing::{Span, field::Empty, info_span};

/// Requests that check every few seconds if the server works; they are not traced.
const UNTRACED: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// The span of a request, for those who carry it out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfRequest(pub(crate) TraceContext);

/// Ends the span once the answer begins. A span without the status of an answer is not sent.
pub(crate) async fn traced(mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.filter(|route| traces::is_on() && !UNTRACED.contains(&route.as_str()));
    let Some(route) = route else {
        return next.run(request).await;
    };
    let rpc = Rpc::of(route.as_str(), request.uri().path());
    let span = match &rpc {
        Some(rpc) => rpc.span(),
        None => span(known(request.method()), route.as_str()),
    };
    if let Some(own) = traces::place(&span, parent(request.headers())) {
        request.extensions_mut().insert(OfRequest(own));
    }
    // The span never becomes the current one: a task that outlives the answer would keep it open.
    let response = next.run(request).await;
    let ended = Status::from_header_map(response.headers()).map(|status| status.code());
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED || ended == Some(Code::Unauthenticated) {
        return response;
    }
    span.record("http.response.status_code", status.as_u16() as i64);
    if rpc.is_some() {
        end_rpc(&span, ended);
    } else if status.is_server_error() {
        span.record("otel.status_description", status.as_str());
    }
    response
}

fn span(method: &str, route: &str) -> Span {
    info_span!(
        target: REQUESTS,
        parent: None,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// A call of gRPC, named as OpenTelemetry's conventions for RPC have it.
struct Rpc {
    service: String,
    method: &'static str,
}

/// The methods of all services.
const METHODS: [&str; 4] = ["Identify", "Enrol", "Authenticate", "Link"];

impl Rpc {
    /// The services of gRPC are the only routes that end like this. A caller may make up methods.
    fn of(route: &str, path: &str) -> Option<Self> {
        let service = route.strip_prefix('/')?.strip_suffix("/{*rest}")?;
        Some(Self {
            service: service.to_owned(),
            method: METHODS
                .into_iter()
                .find(|method| {
                    path.strip_suffix(method)
                        .is_some_and(|rest| rest.ends_with('/'))
                })
                .unwrap_or("_OTHER"),
        })
    }

    fn span(&self) -> Span {
        let Self { service, method } = self;
        info_span!(
            target: REQUESTS,
            parent: None,
            "call",
            otel.name = format!("{service}/{method}"),
            otel.kind = "server",
            rpc.system = "grpc",
            rpc.service = service,
            rpc.method = method,
            rpc.grpc.status_code = Empty,
            http.response.status_code = Empty,
            otel.status_description = Empty,
        )
    }
}

/// Without a status in the head of the answer, the call continues or has ended well.
fn end_rpc(span: &Span, ended: Option<Code>) {
    let Some(code) = ended else { return };
    span.record("rpc.grpc.status_code", code as i64);
    let is_servers = matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    );
    if is_servers {
        span.record("otel.status_description", (code as i32).to_string());
    }
}

/// The method, where it is one of those that are served; a caller may make up others.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        // The name that the conventions for HTTP spans demand.
        _ => "_OTHER",
    }
}

/// The span of the caller. An invalid header counts as none.
fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}
