//! The time limit of requests. A request that is not answered in time, mostly because its body does not come, is given
//! up. If its peer has no credential, its connection ends as well. The answer names the cause: the client while its
//! body is missing, else the server.
//!
//! The limit ends once the answer begins, so a link or a WebSocket may last longer.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use shared_api::Problem;
use tonic::Status;

use crate::{
    edge::serve::ConnectionPermit,
    rest::{Code, respond},
};

/// Answers for the rest of the routes unless they begin to within this time.
pub(crate) async fn in_time(
    State(within): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    let grpc = is_grpc(request.headers());
    let place = request.extensions().get::<ConnectionPermit>().cloned();
    let missing = Missing::default();
    let request = match grpc {
        true => request,
        false => request.map(|body| Body::new(missing.clone().of(body))),
    };
    let answered = tokio::time::timeout(within, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        if let Some(place) = place {
            place.was_late();
        }
        match grpc {
            true => Status::deadline_exceeded(format!(
                "the request was not whole or not done within {within:?}; try again"
            ))
            .into_http(),
            false => respond(missing.problem(within)),
        }
    })
}

/// True while more of a request's body is awaited.
#[derive(Debug, Clone, Default)]
struct Missing(Arc<AtomicBool>);

impl Missing {
    fn of(self, body: Body) -> Watched {
        Watched {
            body,
            missing: self,
        }
    }

    fn problem(&self, within: Duration) -> Problem {
        match self.0.load(Ordering::Relaxed) {
            true => Code::TooSlow.problem(format!(
                "the body of the request did not come within {within:?}; try again"
            )),
            false => Code::NotInTime.problem(format!(
                "the server did not finish within {within:?}; look whether it was done before you try again"
            )),
        }
    }
}

/// A body that tells whether more of it is waited for.
struct Watched {
    body: Body,
    missing: Missing,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.missing.0.store(polled.is_pending(), Ordering::Relaxed);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// True if a refusal has to be a gRPC answer.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests;
