//! One request to the model server, over a connection of its own, which ends with it.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use shared_link::runner::{AskFailure, AskFailureKind};
use shared_tls::{Trust, client_config};
use shared_types::{TraceContext, clean::peer_words};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::Host;

use super::{
    ModelServer, ModelServerTarget,
    key::{ModelServerKey, Redactor},
};

/// Time for a connection, TLS included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The longest silence of the model server. The Gantry server gives up earlier, and ends the ask then.
pub(super) const SILENT_AT_MOST: Duration = Duration::from_secs(60 * 60);

/// An answer that has begun. Dropping it ends the request.
pub(super) struct ModelReply {
    pub(super) response: Response<Incoming>,
    pub(super) redactor: Redactor,
    _connection: AbortOnDropHandle<()>,
}

impl ModelServer {
    /// Sends a request to this path below the address. Returns the answer once its head has come.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        trace: Option<TraceContext>,
    ) -> Result<ModelReply, AskFailure> {
        let target = &*self.0;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", target.path))
            .header(header::HOST, format!("{}:{}", target.host, target.port))
            .header(header::ACCEPT_ENCODING, "identity")
            .header(
                header::USER_AGENT,
                concat!("gantry-runner/", env!("CARGO_PKG_VERSION")),
            );
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(trace) = trace {
            request = request.header("traceparent", trace.to_string());
        }
        let request = request.body(Full::new(body));
        let mut request = request.map_err(|error| failed(AskFailureKind::Invalid, &error))?;
        if let Some(key) = target.key.as_ref().and_then(ModelServerKey::header) {
            request.headers_mut().insert(header::AUTHORIZATION, key);
        }
        let connecting = timeout(CONNECT_WITHIN, target.connect()).await;
        let stream = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = stream.map_err(|error| failed(AskFailureKind::Unreachable, &error))?;
        let broken = |error: hyper::Error| failed(AskFailureKind::Broken, &error);
        let (mut requests, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = tokio::spawn(async move { drop(connection.await) });
        let connection = AbortOnDropHandle::new(connection);
        let response = timeout(SILENT_AT_MOST, requests.send_request(request)).await;
        let response = response.map_err(|_| silent())?.map_err(broken)?;
        // The key could not be taken out of it.
        let encoding = response.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(AskFailure {
                kind: AskFailureKind::Unsupported,
                reason: "its model server compresses answers: turn that off there".to_owned(),
            });
        }
        Ok(ModelReply {
            response,
            redactor: Redactor::new(target.key.as_ref()),
            _connection: connection,
        })
    }
}

impl ModelReply {
    /// The next bytes of the body, without the key; none at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, AskFailure> {
        loop {
            let frame = timeout(SILENT_AT_MOST, self.response.body_mut().frame()).await;
            let Some(frame) = frame.map_err(|_| silent())? else {
                let last = self.redactor.finish();
                return Ok((!last.is_empty()).then_some(last));
            };
            let frame = frame.map_err(|error| failed(AskFailureKind::Broken, &error))?;
            let data = frame.into_data().unwrap_or_default();
            let data = self.redactor.take(data);
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }
}

/// A connection, encrypted or not.
trait ModelStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ModelStream for T {}

impl ModelServerTarget {
    async fn connect(&self) -> io::Result<Box<dyn ModelStream>> {
        let host = match &self.host {
            // Without its brackets.
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        };
        let socket = TcpStream::connect((host.as_str(), self.port)).await?;
        socket.set_nodelay(true)?;
        if !self.is_tls {
            return Ok(Box::new(socket));
        }
        let config = client_config(Trust::Platform).map_err(io::Error::other)?;
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let stream = TlsConnector::from(config).connect(name, socket).await?;
        Ok(Box::new(stream))
    }
}

fn silent() -> AskFailure {
    AskFailure {
        kind: AskFailureKind::Silent,
        reason: format!("nothing came for {} min", SILENT_AT_MOST.as_secs() / 60),
    }
}

/// The failure with the innermost cause: the outer ones may tell an address.
pub(super) fn failed(kind: AskFailureKind, error: &dyn std::error::Error) -> AskFailure {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    AskFailure {
        kind,
        reason: peer_words(&cause.to_string()),
    }
}
