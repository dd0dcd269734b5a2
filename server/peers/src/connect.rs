//! The way to other servers.

use std::{error::Error as _, io, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::ready, stream};
use http::Uri;
use hyper_util::rt::TokioIo;
use proto::{
    peer_v1::{BorrowOrder, FollowRequest, Link, borrow_answer, borrow_order, peer_client},
    v1::ServerFrame,
};
use server_app::{
    FollowError, LentAnswer, LentAnswers, LinkHolder, NotLent, Peer, PeerCalls, Pieces, SessionKey,
};
use shared_tls::peer::PeerTls;
use shared_types::{Clock, ReplicaId};
use tokio::{net::TcpStream, sync::mpsc, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
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

impl ConnectedPeer {
    fn client(&self) -> peer_client::PeerClient<Channel> {
        peer_client::PeerClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[async_trait]
impl Peer for ConnectedPeer {
    async fn follow(&self, of: SessionKey) -> Result<Pieces, FollowError> {
        let mut client = self.client();
        let request = FollowRequest {
            tenant: of.tenant.to_string(),
            session: of.session.to_string(),
        };
        let answer = client
            .follow(request)
            .await
            .map_err(|status| FollowError(words(&status)))?;
        let pieces = answer.into_inner().filter_map(|message| {
            ready(match message {
                Ok(message) => piece(message).map(Ok),
                Err(status) => Some(Err(FollowError(words(&status)))),
            })
        });
        Ok(pieces.boxed())
    }

    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<ServerFrame>>,
    ) -> Result<LentAnswers, NotLent> {
        let frames = ReceiverStream::new(orders);
        let frames = frames.map(|frame| borrow_order::Kind::Frame(*frame));
        let named = borrow_order::Kind::Link(Link {
            tenant: link.tenant.to_string(),
            runner: link.runner.to_string(),
            generation: link.generation.0,
        });
        let orders = stream::once(ready(named)).chain(frames);
        let orders = orders.map(|kind| BorrowOrder { kind: Some(kind) });
        let answers = self.client().borrow(orders).await;
        let mut answers = answers.map_err(not_lent)?.into_inner();
        match answers
            .message()
            .await
            .map_err(not_lent)?
            .and_then(|first| first.kind)
        {
            Some(borrow_answer::Kind::Lent(_)) => {}
            _ => return Err(NotLent("it answers something else".to_owned())),
        }
        let answers = answers.scan((), |(), answer| {
            let answer = answer.inspect_err(|status| {
                tracing::debug!(why = words(status), "a borrowed link is over");
            });
            ready(answer.ok())
        });
        let answers = answers.filter_map(|answer| {
            ready(match answer.kind {
                Some(borrow_answer::Kind::Frame(frame)) => Some(LentAnswer::Frame(frame)),
                Some(borrow_answer::Kind::Superseded(id)) => {
                    id.parse().ok().map(LentAnswer::Superseded)
                }
                // Of a newer release.
                Some(borrow_answer::Kind::Lent(_)) | None => None,
            })
        });
        Ok(answers.boxed())
    }
}

fn not_lent(status: Status) -> NotLent {
    NotLent(words(&status))
}

/// The words of a failure, with those of its causes.
fn words(status: &Status) -> String {
    let mut words = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
