//! Measures every request, by the door that it came to; the outermost layer, so that what other layers
//! refuse counts as well.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{HeaderMap, Method, header};
use shared_telemetry::server::{REQUEST_DURATION, REQUESTS};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::edge::in_time::is_grpc;

/// Marks an answer that waited on purpose: for new output, or for room for input. Its duration says nothing about the
/// server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited;

/// Counts the request once its answer begins, and how long that took.
pub(crate) async fn measured(request: Request, next: Next) -> Response {
    let surface = surface(&request);
    let began = Instant::now();
    let response = next.run(request).await;
    if response.extensions().get::<Waited>().is_none() {
        REQUEST_DURATION.record(&[surface], began.elapsed().as_secs_f64());
    }
    REQUESTS.add(&[surface, outcome(&response)], 1);
    response
}

fn surface(request: &Request) -> &'static str {
    if is_grpc(request.headers()) {
        return "grpc";
    }
    // HTTP/2 opens a WebSocket by CONNECT (RFC 8441).
    match request.method() == Method::CONNECT || is_upgrade(request.headers()) {
        true => "ws",
        false => "rest",
    }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    upgrade.is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn outcome(response: &Response) -> &'static str {
    // In the headers only where nothing else comes.
    if let Some(status) = Status::from_header_map(response.headers()) {
        return of_grpc(status.code());
    }
    match response.status() {
        status if status.is_server_error() => "failed",
        status if status.is_client_error() => "refused",
        _ => "ok",
    }
}

fn of_grpc(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Unknown
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => "failed",
        Code::Cancelled
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, name: header::HeaderName, value: &str) -> &'static str {
        let request = http::Request::builder().method(method).header(name, value);
        surface(&request.body(axum::body::Body::empty()).expect("a request"))
    }

    #[test]
    fn a_request_belongs_to_the_door_that_it_came_to() {
        let of_grpc = asked(Method::POST, header::CONTENT_TYPE, "application/grpc+proto");
        let of_ws = asked(Method::GET, header::UPGRADE, "WebSocket");
        let of_ws_2 = asked(Method::CONNECT, header::ACCEPT, "*/*");
        let of_rest = asked(Method::POST, header::CONTENT_TYPE, "application/json");
        assert_eq!(
            [of_grpc, of_ws, of_ws_2, of_rest],
            ["grpc", "ws", "ws", "rest"]
        );
    }

    #[test]
    fn an_answer_that_says_no_is_refused_and_one_that_cannot_be_given_failed() {
        let of_status = |status: u16| {
            let response = http::Response::builder().status(status);
            outcome(&response.body(axum::body::Body::empty()).expect("an answer"))
        };
        let outcomes = [101, 200, 304, 404, 429, 500, 503].map(of_status);
        let (ok, refused, failed) = ("ok", "refused", "failed");
        assert_eq!(outcomes, [ok, ok, ok, refused, refused, failed, failed]);
        let of_grpc = |status: Status| outcome(&status.into_http());
        assert_eq!(of_grpc(Status::unauthenticated("no")), "refused");
        assert_eq!(of_grpc(Status::internal("oh")), "failed");
    }
}
