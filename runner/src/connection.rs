//! One connection to the server, which lives and dies as one. It never reconnects unseen, so the
//! proof about its other end stays true for everything that is sent over it.
//!
//! It speaks HTTP/2 for gRPC, or HTTP/1.1 for the same messages in plain requests and a WebSocket.
//! With TLS the two ends agree on that (ALPN); without an agreement it is HTTP/1.1.

mod dial;
mod http1;
mod transport;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use shared_tls::{Recorder, TlsError, TlsSocket, Trust, client_config};
use shared_types::clean::peer_words;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

pub(crate) use self::{
    http1::{Http1, MAX_ANSWER_BYTES, WebSocket},
    transport::{Offer, Transport, Transports},
};
use crate::server_url::ServerUrl;

/// Time to find the server's addresses, and for the TCP and TLS handshakes, each.
pub(crate) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes in flight towards the runner, per stream and altogether.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Largest HTTP/2 frame that is taken, in bytes: a whole piece of input with its envelope.
const FRAME_BYTES: u32 = 128 * 1024;

/// The certificates that a connection may end at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    /// Any; the proof over it decides, see [`Trust::Record`].
    Any,
    /// One that the platform's roots vouch for.
    PlatformRoots,
}

/// One attempt's way to the server.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) url: ServerUrl,
    /// At least one, in the order in which they are dialled.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The transports that the connection may speak.
    pub(crate) offer: Offer,
}

/// An open connection.
pub(crate) struct ServerConnection {
    /// Speaks over exactly this connection; once it is lost every call fails.
    pub(crate) wire: Wire,
    /// SHA-256 of the certificate at the other end; `None` with plain text, and where the
    /// platform's roots vouched for it.
    pub(crate) certificate: Option<[u8; 32]>,
    /// The address that answered.
    pub(crate) address: SocketAddr,
}

/// The protocol of a connection.
pub(crate) enum Wire {
    Grpc(Channel),
    Http1(Http1),
}

impl Wire {
    /// The transport of a link over it.
    pub(crate) fn transport(&self) -> Transport {
        match self {
            Self::Grpc(_) => Transport::Grpc,
            Self::Http1(_) => Transport::WebSocket,
        }
    }
}

impl ServerConnection {
    /// Dials the server: the first of the addresses to answer.
    pub(crate) async fn open(
        route: &Route,
        accept: Accept,
        offer: Offer,
    ) -> Result<Self, ConnectError> {
        let url = &route.url;
        let unreachable = |source| ConnectError::Unreachable {
            url: url.to_string(),
            source,
        };
        let socket = within(HANDSHAKE_WITHIN, dial::dial(&route.addresses)).await;
        let socket = socket.map_err(unreachable)?;
        socket.set_nodelay(true).map_err(unreachable)?;
        let address = socket.peer_addr().map_err(unreachable)?;
        if !url.is_tls() {
            let wire = speak(url, socket, offer.without_agreement()).await?;
            return Ok(Self {
                wire,
                certificate: None,
                address,
            });
        }
        let recorder = Recorder::new();
        let trust = match accept {
            Accept::Any => Trust::Record(recorder.clone()),
            Accept::PlatformRoots => Trust::Platform,
        };
        let mut config = (*client_config(trust)?).clone();
        config.alpn_protocols = offer.protocols();
        let name = ServerName::try_from(url.host()).map_err(|_| {
            let reason = "its host is no name that a certificate can carry";
            unreachable(io::Error::new(io::ErrorKind::InvalidInput, reason))
        })?;
        let connector = TlsConnector::from(Arc::new(config));
        let handshake = connector.connect(name, TlsSocket::new(socket));
        let handshake = within(HANDSHAKE_WITHIN, handshake).await;
        let mut stream = handshake.map_err(|source| ConnectError::Handshake {
            url: url.to_string(),
            source,
        })?;
        let tls = stream.get_mut().1;
        // A whole frame, so that it leaves at once.
        tls.set_buffer_limit(Some(2 * FRAME_BYTES as usize));
        let transport = offer.agreed(tls.alpn_protocol());
        Ok(Self {
            wire: speak(url, stream, transport).await?,
            certificate: recorder.recorded(),
            address,
        })
    }
}

/// Speaks over this stream and no other.
async fn speak(
    url: &ServerUrl,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    transport: Transport,
) -> Result<Wire, ConnectError> {
    match transport {
        Transport::Grpc => Ok(Wire::Grpc(http2(url, stream).await?)),
        Transport::WebSocket => Ok(Wire::Http1(Http1::over(url, stream).await?)),
    }
}

async fn http2(
    url: &ServerUrl,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<Channel, ConnectError> {
    let mut once = Some(TokioIo::new(stream));
    let connector = tower::service_fn(move |_| {
        let stream = once.take();
        async { stream.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset)) }
    });
    // The dialled scheme is plain for tonic, which would start TLS of its own otherwise.
    let endpoint = Endpoint::from_shared(format!("http://{}", url.authority()))?
        .origin(url.origin())
        .max_frame_size(FRAME_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    Ok(endpoint.connect_with_connector(connector).await?)
}

/// The step, or a failure once it has taken too long.
pub(crate) async fn within<T>(
    time: Duration,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(time, step)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// A status as the other end sent it, with words that are fit to be shown: it is not proved yet who that is.
pub(crate) fn heard(status: Status) -> Status {
    Status::with_details_and_metadata(
        status.code(),
        peer_words(status.message()),
        Bytes::copy_from_slice(status.details()),
        status.metadata().clone(),
    )
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("cannot reach {url}: {source}")]
    Unreachable { url: String, source: io::Error },
    #[error("no TLS with {url}: {source}")]
    Handshake { url: String, source: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the server does not speak HTTP/2: {0}")]
    Http2(#[from] tonic::transport::Error),
    #[error("the server does not speak HTTP/1.1: {0}")]
    Http1(#[from] hyper::Error),
}
