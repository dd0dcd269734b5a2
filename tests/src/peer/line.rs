//! What carries a peer's link: a stream of gRPC, or a WebSocket.

use bytes::Bytes;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{BoxStream, SplitSink, SplitStream},
};
use prost::Message as _;
use proto::{
    http1,
    v1::{self, runner_link_client::RunnerLinkClient},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};
use tonic::{Code, Request, Status, transport::Channel};

use super::{FRAMES, connect};
use crate::fleet::Route;

/// What carries a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// A stream of gRPC.
    Grpc,
    /// A WebSocket.
    WebSocket,
}

impl Over {
    /// As the runner's option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::WebSocket => "websocket",
        }
    }
}

/// Where a link is opened.
#[derive(Clone)]
pub enum Line {
    /// On this connection.
    Grpc(Channel),
    /// On a connection of its own.
    WebSocket(Route),
}

/// A WebSocket of a link.
pub type Socket = WebSocketStream<Box<dyn Stream>>;

/// What a WebSocket is made of.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The server's frames, and the status at the end.
pub(super) type FromServer = BoxStream<'static, Result<v1::ServerFrame, Status>>;

impl Line {
    /// To the server at this address, which speaks plain text.
    pub async fn to(over: Over, url: &str) -> Self {
        match over {
            Over::Grpc => Self::Grpc(connect(url).await),
            Over::WebSocket => Self::WebSocket(Route::plain(url)),
        }
    }

    /// Opens a link with this access token, on which the runner says what comes out of `frames`.
    pub(super) async fn open(
        &self,
        token: &str,
        frames: mpsc::Receiver<v1::RunnerFrame>,
    ) -> Result<FromServer, Status> {
        match self {
            Self::Grpc(channel) => {
                let mut request = Request::new(ReceiverStream::new(frames));
                let bearer = format!("Bearer {token}").parse().expect("a header's value");
                request.metadata_mut().insert("authorization", bearer);
                let mut client = RunnerLinkClient::new(channel.clone());
                Ok(client.link(request).await?.into_inner().boxed())
            }
            Self::WebSocket(route) => {
                let (sink, stream) = websocket(route, token).await?.split();
                let (heard, from_server) = mpsc::channel(FRAMES);
                tokio::spawn(async move {
                    // The end shows on either side, and ends both.
                    tokio::select! {
                        () = write(sink, frames) => {}
                        () = read(stream, &heard) => {}
                    }
                });
                Ok(ReceiverStream::new(from_server).boxed())
            }
        }
    }
}

/// Opens a WebSocket for a link with this access token.
///
/// # Errors
/// The status with which the server refuses it.
pub async fn websocket(route: &Route, token: &str) -> Result<Socket, Status> {
    let lost = |error: anyhow::Error| Status::unavailable(format!("{error:#}"));
    let stream = route.socket().await.map_err(lost)?;
    let url = format!("ws://{}{}", route.authority(), http1::LINK);
    let mut request = url.into_client_request().expect("an address");
    let bearer = format!("Bearer {token}").parse().expect("a header's value");
    request.headers_mut().insert("authorization", bearer);
    // A test may hold thousands.
    let small = WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(4096);
    match client_async_with_config(request, stream, Some(small)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => {
            let said = Status::from_header_map(response.headers());
            Err(said.unwrap_or_else(|| Status::unavailable(response.status().to_string())))
        }
        Err(error) => Err(Status::unavailable(error.to_string())),
    }
}

/// What a message of the server says: a frame, nothing, or the status at the end.
fn frame(message: Result<Message, tungstenite::Error>) -> Result<Option<v1::ServerFrame>, Status> {
    match message {
        Ok(Message::Binary(bytes)) => {
            let frame = v1::ServerFrame::decode(bytes);
            Ok(Some(frame.expect("the server's frames are whole")))
        }
        Ok(Message::Close(Some(last))) => match http1::closed(last.code.into()) {
            Some(code) if code != Code::Ok => Err(Status::new(code, last.reason.as_str())),
            _ => Ok(None),
        },
        Ok(_) => Ok(None),
        Err(error) => Err(Status::unavailable(error.to_string())),
    }
}

async fn read(
    mut stream: SplitStream<Socket>,
    heard: &mpsc::Sender<Result<v1::ServerFrame, Status>>,
) {
    while let Some(message) = stream.next().await {
        let said = frame(message).transpose();
        let over = matches!(said, Some(Err(_)));
        if let Some(said) = said
            && (heard.send(said).await.is_err() || over)
        {
            return;
        }
    }
}

async fn write(mut sink: SplitSink<Socket, Message>, mut frames: mpsc::Receiver<v1::RunnerFrame>) {
    while let Some(frame) = frames.recv().await {
        let message = Message::Binary(Bytes::from(frame.encode_to_vec()));
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}

/// Runs each of these tests for each of what may carry a link; the attribute makes it one.
#[macro_export]
macro_rules! over_both {
    (#[$attribute:meta] $($test:ident,)*) => {
        mod over_grpc {
            $(#[$attribute]
            async fn $test() {
                super::$test($crate::peer::Over::Grpc).await;
            })*
        }
        mod over_a_websocket {
            $(#[$attribute]
            async fn $test() {
                super::$test($crate::peer::Over::WebSocket).await;
            })*
        }
    };
}
