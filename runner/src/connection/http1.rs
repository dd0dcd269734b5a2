//! A connection that speaks HTTP/1.1: calls as bodies of `POST`, one after the other, and at last a
//! WebSocket. See [`proto::http1`].

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use prost::Message;
use proto::http1;
use shared_types::{Entropy, limits::MAX_FRAME_BYTES};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};
use tonic::{Code, Status};

use super::ConnectError;
use crate::server_url::ServerUrl;

/// The largest answer to a call, in bytes: the server is not known yet.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Bytes of a WebSocket that are read or gathered at once: a piece of output with its envelope.
const BUFFER_BYTES: usize = 68 * 1024;

/// See the module.
pub(crate) struct Http1 {
    requests: SendRequest<Full<Bytes>>,
    host: HeaderValue,
}

/// The stream of a link.
pub(crate) type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

impl Http1 {
    /// Speaks over this stream and no other.
    pub(super) async fn over(
        url: &ServerUrl,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, ConnectError> {
        let (requests, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection, or once no caller can use it any more.
        tokio::spawn(connection.with_upgrades());
        let host = HeaderValue::from_str(&url.authority());
        let host = host.expect("a host and a port are a header's value");
        Ok(Self { requests, host })
    }

    /// Sends a message and waits for the one that answers it.
    pub(crate) async fn call<T: Message + Default>(
        &mut self,
        path: &str,
        message: &impl Message,
    ) -> Result<T, Status> {
        let mut request = self.request(Method::POST, path, message.encode_to_vec())?;
        let media_type = HeaderValue::from_static(http1::MEDIA_TYPE);
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, media_type);
        let response = self.send(request).await?;
        let is_ours = response.status() == StatusCode::OK
            && response
                .headers()
                .get(header::CONTENT_TYPE)
                .is_some_and(|media_type| media_type == http1::MEDIA_TYPE);
        if !is_ours {
            return Err(refusal(&response));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
        let body = body.collect().await;
        let body = body.map_err(|error| Status::unavailable(error.to_string()))?;
        T::decode(body.to_bytes()).map_err(|error| Status::internal(error.to_string()))
    }

    /// The answer to a plain request, of at most so many bytes.
    pub(crate) async fn get(&mut self, path: &str, at_most: usize) -> Result<Bytes, Status> {
        let body = self.begin_get(path).await?.0;
        let body = Limited::new(body, at_most).collect().await;
        let body = body.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(body.to_bytes())
    }

    /// The answer to a plain request, as it comes.
    pub(crate) async fn begin_get(&mut self, path: &str) -> Result<Pieces, Status> {
        let response = self
            .send(self.request(Method::GET, path, Vec::new())?)
            .await?;
        match response.status() {
            StatusCode::OK => Ok(Pieces(response.into_body())),
            other => Err(Status::unavailable(format!("the answer was {other}"))),
        }
    }

    /// Makes the connection a WebSocket at this path.
    pub(crate) async fn upgrade(
        mut self,
        path: &str,
        bearer: HeaderValue,
        entropy: &dyn Entropy,
    ) -> Result<WebSocket, Status> {
        let mut key = [0; 16];
        entropy.fill(&mut key);
        let key = STANDARD.encode(key);
        let mut request = self.request(Method::GET, path, Vec::new())?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, bearer);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        let version = HeaderValue::from_static("13");
        headers.insert(header::SEC_WEBSOCKET_VERSION, version);
        let value = HeaderValue::from_str(&key).expect("base64 is a header's value");
        headers.insert(header::SEC_WEBSOCKET_KEY, value);
        let response = self.send(request).await?;
        let accept = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
        let accepted = derive_accept_key(key.as_bytes());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS
            || accept.is_none_or(|accept| *accept != accepted)
        {
            return Err(refusal(&response));
        }
        let connection = hyper::upgrade::on(response).await.map_err(lost)?;
        let limits = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES)
            .max_write_buffer_size(2 * MAX_FRAME_BYTES)
            .max_message_size(Some(MAX_FRAME_BYTES))
            .max_frame_size(Some(MAX_FRAME_BYTES));
        let connection = TokioIo::new(connection);
        Ok(WebSocketStream::from_raw_socket(connection, Role::Client, Some(limits)).await)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, Status> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .body(Full::from(body));
        request.map_err(|error| Status::internal(error.to_string()))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Status> {
        self.requests.ready().await.map_err(lost)?;
        self.requests.send_request(request).await.map_err(lost)
    }
}

/// An answer that is taken piece by piece.
pub(crate) struct Pieces(Incoming);

impl Pieces {
    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        while let Some(frame) = self.0.frame().await {
            let data = frame.map_err(lost)?.into_data();
            if let Ok(data) = data {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

fn lost(error: hyper::Error) -> Status {
    Status::unavailable(error.to_string())
}

/// The status in an answer that is not the wanted one: the server's, or that the answer is
/// another's.
fn refusal(response: &Response<Incoming>) -> Status {
    let said = Status::from_header_map(response.headers());
    let said = said.filter(|status| status.code() != Code::Ok);
    said.unwrap_or_else(|| Status::unavailable(format!("the answer was {}", response.status())))
}
