//! Answers: a result at once, or a stream of events that ends with it.

use std::convert::Infallible;

use axum::{
    Json,
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::Instrument as _;

use super::{Client, calls, era::Era, methods::server_info, tools::Call};
use crate::{edge::measured::Waited, edge::seats::Seat};

/// Events that wait for a client that reads slowly.
const EVENTS_WAITING: usize = 4;

/// The way to the client of one call.
pub(super) struct Events(mpsc::Sender<Bytes>);

impl Events {
    /// Sends a message. A client that left gets nothing.
    pub(super) async fn send(&self, message: &Value) {
        let event = format!("event: message\ndata: {message}\n\n");
        let _ = self.0.send(event.into()).await;
    }

    /// Sends a sign of life, without waiting for room.
    pub(super) fn keep_alive(&self) {
        let _ = self.0.try_send(Bytes::from_static(b":\n\n"));
    }

    /// Waits until the client has left.
    pub(super) async fn left(&self) {
        self.0.closed().await;
    }
}

/// The answer with this result.
pub(super) fn answered(era: &Era, version: &str, id: &Value, result: Value) -> Response {
    Json(message(era, version, id, result)).into_response()
}

/// The answer to a call: it begins at once, and ends with the result of the tool.
pub(super) fn streamed(client: Client, id: Value, call: Box<Call>, seat: Seat) -> Response {
    let (sender, receiver) = mpsc::channel(EVENTS_WAITING);
    let events = Events(sender);
    let work = async move {
        let result = calls::carry_out(&client, &id, *call, &events).await;
        if let Some(result) = result {
            let message = message(&client.era, client.doors.version, &id, result);
            events.send(&message).await;
        }
        drop(seat);
    };
    tokio::spawn(work.in_current_span());
    let body = ReceiverStream::new(receiver).map(Ok::<_, Infallible>);
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    let mut response = (headers, Body::from_stream(body)).into_response();
    response.extensions_mut().insert(Waited);
    response
}

fn message(era: &Era, version: &str, id: &Value, mut result: Value) -> Value {
    if *era == Era::Modern {
        result["resultType"] = "complete".into();
        result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info(version);
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}
