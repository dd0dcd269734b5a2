//! A request that is not answered in time, mostly because its body does not come, is given up, and
//! with it the connection of a peer without a credential.
//! What goes on after its answer began (a link, a WebSocket) is not meant.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use tonic::Status;

use crate::{
    rest::{Code, respond},
    serve::Place,
};

/// Answers for the rest of the routes unless they begin to within this time.
pub(crate) async fn in_time(
    State(within): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    let grpc = is_grpc(request.headers());
    let place = request.extensions().get::<Place>().cloned();
    let answered = tokio::time::timeout(within, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        if let Some(place) = place {
            place.was_late();
        }
        too_slow(grpc, within)
    })
}

/// Whether a refusal has to speak gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"))
}

fn too_slow(grpc: bool, within: Duration) -> Response {
    let detail = format!("the request was not whole or not done within {within:?}; try again");
    if grpc {
        return Status::deadline_exceeded(detail).into_http();
    }
    respond(Code::TooSlow.problem(detail))
}

#[cfg(test)]
mod tests;
