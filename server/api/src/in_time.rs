//! A request that is not answered in time, mostly because its body does not come, is given up.
//! What goes on after its answer began (a link, a WebSocket) is not meant.

use std::time::Duration;

use axum::{extract::Request, http::header, middleware::Next, response::Response};
use shared_api::Problem;
use tonic::Status;

use crate::rest::respond;

/// How long a request may take until its answer begins.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub(crate) async fn in_time(request: Request, next: Next) -> Response {
    let media_type = request.headers().get(header::CONTENT_TYPE);
    let grpc =
        media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"));
    let answered = tokio::time::timeout(ANSWER_WITHIN, next.run(request)).await;
    answered.unwrap_or_else(|_| too_slow(grpc))
}

fn too_slow(grpc: bool) -> Response {
    let detail = "the request was not whole or not done within 30 s; try again";
    if grpc {
        return Status::deadline_exceeded(detail).into_http();
    }
    respond(Problem {
        code: "too_slow".to_owned(),
        status: 408,
        detail: detail.to_owned(),
    })
}

#[cfg(test)]
mod tests;
