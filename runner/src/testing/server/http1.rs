//! The server double where only HTTP/1.1 passes: calls as bodies of `POST`, and a WebSocket.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::{SinkExt as _, Stream, StreamExt as _, stream::SplitSink};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn, upgrade::Upgraded};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use prost::Message as _;
use proto::{
    http1,
    v1::{self, enrolment_server::Enrolment as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role},
    },
};
use tonic::Status;

use super::State;
use crate::connection::Transport;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Speaks HTTP/1.1 and nothing else.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    state: Arc<State>,
) {
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(answer(state, request).await) }
    });
    let _ = auto::Builder::new(TokioExecutor::new())
        .http1_only()
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    if path == http1::LINK {
        return upgrade(state, request);
    }
    let body = request.into_body().collect().await;
    let body = body.expect("a whole request").to_bytes();
    let answered = match path.as_str() {
        http1::IDENTIFY => {
            let asked = v1::IdentifyRequest::decode(body).expect("a message");
            let reply = state.identify(tonic::Request::new(asked)).await;
            reply.map(|reply| reply.into_inner().encode_to_vec())
        }
        http1::ENROL => {
            let asked = v1::EnrolRequest::decode(body).expect("a message");
            let reply = state.enrol(tonic::Request::new(asked)).await;
            reply.map(|reply| reply.into_inner().encode_to_vec())
        }
        http1::AUTHENTICATE => {
            let asked = v1::AuthenticateRequest::decode(body).expect("a message");
            let reply = state.authenticate(tonic::Request::new(asked)).await;
            reply.map(|reply| reply.into_inner().encode_to_vec())
        }
        other => panic!("nobody asks for {other}"),
    };
    match answered {
        Ok(body) => {
            let mut response = Response::new(Full::from(body));
            let media_type = HeaderValue::from_static(http1::MEDIA_TYPE);
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, media_type);
            response
        }
        Err(status) => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = StatusCode::FORBIDDEN;
            let told = status.add_header(response.headers_mut());
            told.expect("a message that a header can carry");
            response
        }
    }
}

fn upgrade(state: Arc<State>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let headers = request.headers();
    assert_eq!(
        headers[header::AUTHORIZATION],
        format!("Bearer {}", super::ACCESS_TOKEN)
    );
    let accept = derive_accept_key(headers[header::SEC_WEBSOCKET_KEY].as_bytes());
    tokio::spawn(async move {
        let connection = hyper::upgrade::on(request).await.expect("a WebSocket");
        let connection = TokioIo::new(connection);
        let socket = WebSocketStream::from_raw_socket(connection, Role::Server, None).await;
        let (sink, stream) = socket.split();
        let (to_runner, frames) = mpsc::channel(8);
        tokio::spawn(write(sink, frames));
        let from_runner = frames_of(stream).boxed();
        state
            .linked(Transport::WebSocket, from_runner, to_runner)
            .await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, accept);
    response.body(Full::default()).expect("an answer")
}

fn frames_of(
    stream: impl Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>>,
) -> impl Stream<Item = Result<v1::RunnerFrame, Status>> {
    stream.filter_map(async |message| match message {
        Ok(Message::Binary(bytes)) => Some(Ok(v1::RunnerFrame::decode(bytes).expect("a frame"))),
        Ok(_) => None,
        Err(error) => Some(Err(Status::unavailable(error.to_string()))),
    })
}

/// Sends frames until the last of them is a status, or the test drops its end.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut frames: mpsc::Receiver<Result<v1::ServerFrame, Status>>,
) {
    let mut last = None;
    while let Some(frame) = frames.recv().await {
        match frame {
            Ok(frame) => {
                let message = Message::Binary(frame.encode_to_vec().into());
                let _ = sink.send(message).await;
            }
            Err(status) => {
                let (code, reason) = http1::close(status.code(), status.message());
                last = Some(CloseFrame {
                    code: code.into(),
                    reason: reason.into(),
                });
                break;
            }
        }
    }
    let _ = sink.send(Message::Close(last)).await;
}
