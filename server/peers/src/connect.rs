//! The way to other servers.

use std::{error::Error as _, io, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::ready};
use http::Uri;
use hyper_util::rt::TokioIo;
use proto::peer_v1::{FollowRequest, peer_client};
use server_app::{FollowError, Peer, PeerCalls, Pieces, SessionKey};
use shared_tls::peer::PeerTls;
use shared_types::{Clock, ReplicaId};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

use crate::{
    CONNECT_WITHIN, MAX_MESSAGE_BYTES, PING_EVERY, PING_WITHIN, UNREAD_PER_CALL_BYTES,
    UNREAD_PER_PEER_BYTES, listen::since_1970, wire::piece,
};

/// Stands for the other end, which the connector finds by itself.
const NOWHERE: &str = "http://peer";

/// Calls other servers with the certificates of this one.
pub struct PeerClient {
    tls: PeerTls,
    clock: Arc<dyn Clock>,
}

impl PeerClient {
    /// Shows certificates of these.
    pub fn new(tls: PeerTls, clock: Arc<dyn Clock>) -> Self {
        Self { tls, clock }
    }
}

impl PeerCalls for PeerClient {
    fn at(&self, replica: ReplicaId, address: &str) -> Arc<dyn Peer> {
        let dial = Arc::new(Dial {
            tls: self.tls.clone(),
            clock: self.clock.clone(),
            replica: replica.to_string(),
            address: address.to_owned(),
        });
        let connector = service_fn(move |_: Uri| {
            let dial = dial.clone();
            async move { dial.connect().await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static(NOWHERE)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WITHIN)
            .initial_stream_window_size(UNREAD_PER_CALL_BYTES)
            .initial_connection_window_size(UNREAD_PER_PEER_BYTES)
            .connect_with_connector_lazy(connector);
        Arc::new(ConnectedPeer { channel })
    }
}

/// The way to one server.
struct Dial {
    tls: PeerTls,
    clock: Arc<dyn Clock>,
    replica: String,
    address: String,
}

impl Dial {
    async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let (config, name) = self
            .tls
            .client_config(&self.replica, since_1970(&*self.clock))
            .map_err(io::Error::other)?;
        let connect = async {
            let stream = TcpStream::connect(&self.address).await?;
            stream.set_nodelay(true)?;
            TlsConnector::from(config).connect(name, stream).await
        };
        let connected = timeout(CONNECT_WITHIN, connect).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

struct ConnectedPeer {
    channel: Channel,
}

#[async_trait]
impl Peer for ConnectedPeer {
    async fn follow(&self, of: SessionKey) -> Result<Pieces, FollowError> {
        let mut client = peer_client::PeerClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        let request = FollowRequest {
            tenant: of.tenant.to_string(),
            session: of.session.to_string(),
        };
        let answer = client
            .follow(request)
            .await
            .map_err(|status| failed(&status))?;
        let pieces = answer.into_inner().filter_map(|message| {
            ready(match message {
                Ok(message) => piece(message).map(Ok),
                Err(status) => Some(Err(failed(&status))),
            })
        });
        Ok(pieces.boxed())
    }
}

/// The words of a failure, with those of its causes.
fn failed(status: &Status) -> FollowError {
    let mut words = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    FollowError(words)
}
