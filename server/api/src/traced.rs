//! The span of every request, where traces are collected: part of the caller's trace, where the request says so
//! (`traceparent`).
//!
//! A request whose credential does not hold has none.

use std::sync::Arc;

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, StatusCode};
use shared_telemetry::traces::{self, Kind, Span};
use shared_types::{Clock, TraceContext};
use tonic::{Code, Status};

/// What asks whether the server works, every few seconds, is not work.
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
    let (method, began) = (request.method().clone(), clock.now());
    let response = next.run(request).await;
    let status = response.status();
    if !is_of_a_stranger(&response) {
        let name = format!("{method} {}", route.as_str());
        let has_failed = status.is_server_error();
        Span::new(own, name, (began, clock.now()))
            .of_kind(Kind::Server)
            .within(parent.map(|parent| parent.span))
            .with("http.request.method", method)
            .with("http.route", route.as_str())
            .with_number("http.response.status_code", Some(status.as_u16().into()))
            .failed(has_failed.then(|| status.as_str()))
            .record();
    }
    response
}

fn is_of_a_stranger(response: &Response) -> bool {
    let of_grpc = Status::from_header_map(response.headers());
    let of_grpc = of_grpc.map(|status| status.code());
    response.status() == StatusCode::UNAUTHORIZED || of_grpc == Some(Code::Unauthenticated)
}

/// The caller's span. What is none counts as none.
fn parent(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}
