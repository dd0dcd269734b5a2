//! The carrier of the frames of one link: a stream of gRPC, or a WebSocket with one frame in each
//! binary message (see [`proto::http1`]). A link ends with a status either way.

use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{self, SplitSink, SplitStream},
};
use http::HeaderValue;
use prost::Message as _;
use proto::{
    http1,
    sealing::{KeyPlace, Sealer},
    v1::{self, runner_link_client::RunnerLinkClient},
};
use shared_link::runner::LinkEndReason;
use shared_types::{
    Entropy,
    limits::{HELLO_WITHIN, MAX_FRAME_BYTES},
};
use tokio::{sync::mpsc, time::timeout};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Request, Status, Streaming, metadata::MetadataValue, transport::Channel};

use super::LinkError;
use crate::connection::{Http1, WebSocket, Wire, heard};

/// The server's frames on a link. Dropping it hangs up.
pub(super) enum ServerFrames {
    Grpc(Box<Streaming<v1::ServerFrame>>),
    WebSocket {
        stream: Box<SplitStream<WebSocket>>,
        /// The task that sends the runner's frames.
        _writer: AbortOnDropHandle<()>,
    },
}

/// The runner's frames, sealed as they leave: behind every queue, so that seals are in the order of
/// the frames.
pub(super) struct Outgoing {
    waiting: mpsc::Receiver<v1::RunnerFrame>,
    sealer: Sealer<v1::RunnerFrame>,
}

impl Outgoing {
    /// The frames from `waiting`, sealed with the key that will be there.
    pub(super) fn new(
        waiting: mpsc::Receiver<v1::RunnerFrame>,
        key: KeyPlace<v1::RunnerFrame>,
    ) -> Self {
        let sealer = Sealer::new(key);
        Self { waiting, sealer }
    }

    /// The next frame; nothing where the runner says no more, or may not say it yet.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<v1::RunnerFrame>> {
        let frame = ready!(self.waiting.poll_recv(context));
        Poll::Ready(frame.and_then(|frame| self.sealer.seal(frame)))
    }
}

/// Opens a link, on which the runner says what comes out of `outgoing`.
pub(super) async fn open(
    wire: Wire,
    token: &str,
    outgoing: Outgoing,
    entropy: &dyn Entropy,
) -> Result<ServerFrames, LinkError> {
    let bearer = HeaderValue::try_from(format!("Bearer {token}"));
    let mut bearer = bearer.map_err(|_| LinkError::AccessToken)?;
    bearer.set_sensitive(true);
    let opened = async {
        match wire {
            Wire::Grpc(channel) => call(channel, bearer, outgoing).await,
            Wire::Http1(connection) => upgrade(connection, bearer, outgoing, entropy).await,
        }
    };
    let opened = timeout(HELLO_WITHIN, opened).await;
    let opened = opened.map_err(|_| LinkEndReason::Silent(HELLO_WITHIN))?;
    opened.map_err(|status| LinkError::of(heard(status)))
}

impl ServerFrames {
    /// The next frame; nothing at the end of the link. What was dropped while it waited is not lost.
    ///
    /// # Errors
    /// The status with which the server ended the link, or what became of the connection.
    pub(super) async fn next(&mut self) -> Result<Option<v1::ServerFrame>, Status> {
        self.receive().await.map_err(heard)
    }

    async fn receive(&mut self) -> Result<Option<v1::ServerFrame>, Status> {
        let stream = match self {
            Self::Grpc(stream) => return stream.message().await,
            Self::WebSocket { stream, .. } => stream,
        };
        loop {
            return match stream.next().await {
                Some(Ok(Message::Binary(bytes))) => decode(bytes).map(Some),
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Close(Some(last)))) => match http1::closed(last.code.into()) {
                    Some(code) if code != Code::Ok => Err(Status::new(code, last.reason.as_str())),
                    _ => Ok(None),
                },
                Some(Ok(Message::Close(None))) | None => Ok(None),
                Some(Ok(Message::Text(_) | Message::Frame(_))) => Err(Status::internal(
                    "the server sent something else than binary messages",
                )),
                Some(Err(error)) => Err(lost(&error)),
            };
        }
    }
}

async fn call(
    channel: Channel,
    bearer: HeaderValue,
    mut outgoing: Outgoing,
) -> Result<ServerFrames, Status> {
    let mut request = Request::new(stream::poll_fn(move |context| outgoing.poll(context)));
    let bearer = MetadataValue::try_from(bearer.as_bytes());
    let mut bearer = bearer.map_err(|_| Status::internal("the access token is no header"))?;
    bearer.set_sensitive(true);
    request.metadata_mut().insert("authorization", bearer);
    let mut client = RunnerLinkClient::new(channel).max_decoding_message_size(MAX_FRAME_BYTES);
    let stream = client.link(request).await?.into_inner();
    Ok(ServerFrames::Grpc(Box::new(stream)))
}

async fn upgrade(
    connection: Http1,
    bearer: HeaderValue,
    outgoing: Outgoing,
    entropy: &dyn Entropy,
) -> Result<ServerFrames, Status> {
    let socket = connection.upgrade(http1::LINK, bearer, entropy).await?;
    let (sink, stream) = socket.split();
    let writer = tokio::spawn(write(sink, outgoing));
    Ok(ServerFrames::WebSocket {
        stream: Box::new(stream),
        _writer: AbortOnDropHandle::new(writer),
    })
}

/// Sends the runner's frames until no more come; then the link ends in order. Where nothing can be
/// sent any more, the runner sees it, because the receiver of its frames is gone.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut outgoing: Outgoing) {
    while let Some(frame) = poll_fn(|context| outgoing.poll(context)).await {
        let message = Message::Binary(frame.encode_to_vec().into());
        let more = !outgoing.waiting.is_empty();
        let sent = match more {
            true => sink.feed(message).await,
            false => sink.send(message).await,
        };
        if sent.is_err() {
            return;
        }
    }
    // A connection that is gone needs no goodbye.
    let _ = sink.send(Message::Close(None)).await;
}

fn decode(bytes: Bytes) -> Result<v1::ServerFrame, Status> {
    v1::ServerFrame::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

fn lost(error: &Error) -> Status {
    Status::unavailable(error.to_string())
}
