//! The span of every request, where traces are collected. It is part of the caller's trace if the request says so
//! (`traceparent`).
//!
//! A request that is refused for its credential has no span, and no caller chooses the name of a span.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, Method, StatusCode};
use shared_telemetry::traces::{self, Kind, Span};
use shared_types::{Clock, Timestamp, TraceContext};
use tonic::{Code, Status};

/// Requests that check every few seconds if the server works; they are not traced.
const UNTRACED: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// The span of a request, for those who carry it out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfRequest(pub(crate) TraceContext);

/// Makes the span once the answer begins.
pub(crate) async fn traced(
    State(clock): State<Arc<dyn Clock>>,
    mut request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.filter(|route| !UNTRACED.contains(&route.as_str()));
    let Some(route) = route else {
        return next.run(request).await;
    };
    let parent = parent(request.headers());
    let Some(own) = traces::begin(parent) else {
        return next.run(request).await;
    };
    request.extensions_mut().insert(OfRequest(own));
    let rpc = Rpc::of(route.as_str(), request.uri().path());
    let (method, began) = (known(request.method()), clock.now());
    let response = next.run(request).await;
    let status = response.status();
    if !is_of_a_stranger(&response) {
        let times = (began, clock.now());
        let span = match rpc {
            Some(rpc) => rpc.span(own, times, &response),
            None => {
                let name = format!("{method} {}", route.as_str());
                let has_failed = status.is_server_error();
                Span::new(own, name, times)
                    .with("http.request.method", method)
                    .with("http.route", route.as_str())
                    .with_number("http.response.status_code", Some(status.as_u16().into()))
                    .failed(has_failed.then(|| status.as_str()))
            }
        };
        span.of_kind(Kind::Server)
            .within(parent.map(|parent| parent.span))
            .record();
    }
    response
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

    fn span(self, own: TraceContext, times: (Timestamp, Timestamp), response: &Response) -> Span {
        let ended = Status::from_header_map(response.headers()).map(|status| status.code());
        let Self { service, method } = self;
        let is_servers = matches!(
            ended,
            Some(
                Code::Unknown
                    | Code::DeadlineExceeded
                    | Code::Unimplemented
                    | Code::Internal
                    | Code::Unavailable
                    | Code::DataLoss
            )
        );
        let why = ended.map(|code| (code as i32).to_string());
        let name = format!("{service}/{method}");
        Span::new(own, name, times)
            .with("rpc.system", "grpc")
            .with("rpc.service", service)
            .with("rpc.method", method)
            // Without a status in the head of the answer, the call continues or has ended well.
            .with_number(
                "rpc.grpc.status_code",
                ended.map(|code| (code as i32).into()),
            )
            .failed(why.as_deref().filter(|_| is_servers))
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

fn is_of_a_stranger(response: &Response) -> bool {
    let of_grpc = Status::from_header_map(response.headers());
    let of_grpc = of_grpc.map(|status| status.code());
    response.status() == StatusCode::UNAUTHORIZED || of_grpc == Some(Code::Unauthenticated)
}

/// The span of the caller. An invalid header counts as none.
fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}
