//! A runner's WebSocket messages, as frames of the link.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::SplitStream};
use prost::Message as _;
use proto::v1;
use shared_types::limits::MAX_HELLO_BYTES;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::{Error, Message, error::ProtocolError, protocol::CloseFrame};
use tonic::Status;

use super::{
    LinkSocket,
    doorstep::{Greeted, TooMuch},
};
use crate::{
    link::too_large_a_hello,
    ws::farewell::{violation, words},
};

/// Half of a connection, which its last word needs whole.
pub(super) struct ReadHalf {
    pub(super) stream: SplitStream<LinkSocket>,
    /// The close frame for a runner whose messages broke WebSocket's own rules.
    pub(super) violation: Option<CloseFrame>,
}

/// The frames of the runner. Once the link drops them, the half of the connection is given back.
pub(super) struct Inbound {
    stream: Option<SplitStream<LinkSocket>>,
    violation: Option<CloseFrame>,
    give_back: Option<oneshot::Sender<ReadHalf>>,
    greeted: Greeted,
}

impl Inbound {
    pub(super) fn of(
        stream: SplitStream<LinkSocket>,
        greeted: Greeted,
    ) -> (Self, oneshot::Receiver<ReadHalf>) {
        let (give_back, kept) = oneshot::channel();
        let inbound = Self {
            stream: Some(stream),
            violation: None,
            give_back: Some(give_back),
            greeted,
        };
        (inbound, kept)
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        if let (Some(stream), Some(give_back)) = (self.stream.take(), self.give_back.take()) {
            // A connection that is gone needs no last word.
            let violation = self.violation.take();
            let _ = give_back.send(ReadHalf { stream, violation });
        }
    }
}

impl Stream for Inbound {
    type Item = Result<v1::RunnerFrame, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        loop {
            let frame = match ready!(stream.poll_next_unpin(context)) {
                Some(Ok(Message::Binary(bytes))) => Some(this.decode(bytes)),
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Text(_) | Message::Frame(_))) => Some(Err(
                    Status::invalid_argument("a frame must be a binary message"),
                )),
                Some(Ok(Message::Close(_))) | None => None,
                Some(Err(error)) => {
                    this.violation = broken(&error, &this.greeted);
                    Some(Err(status(error, &this.greeted)))
                }
            };
            return Poll::Ready(frame);
        }
    }
}

impl Inbound {
    fn decode(&self, bytes: Bytes) -> Result<v1::RunnerFrame, Status> {
        if !self.greeted.is_set() && bytes.len() > MAX_HELLO_BYTES {
            return Err(too_large_a_hello());
        }
        self.greeted.set();
        v1::RunnerFrame::decode(bytes).map_err(|error| Status::internal(error.to_string()))
    }
}

/// The close frame for a broken message. Before the hello there is none, because the bound on it
/// says more.
fn broken(error: &Error, greeted: &Greeted) -> Option<CloseFrame> {
    match error {
        Error::Capacity(_) if !greeted.is_set() => None,
        error => violation(error),
    }
}

/// The gRPC status for a broken message.
fn status(error: Error, greeted: &Greeted) -> Status {
    match error {
        Error::Capacity(_) if !greeted.is_set() => too_large_a_hello(),
        Error::Capacity(_) => Status::out_of_range(words(&error)),
        Error::Io(error) if is_too_much(&error) => too_large_a_hello(),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
        | Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Io(_) => Status::unavailable("the connection broke"),
        error => Status::invalid_argument(error.to_string()),
    }
}

fn is_too_much(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<TooMuch>())
}
