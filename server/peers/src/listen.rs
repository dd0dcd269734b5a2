//! The listener for other servers.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use proto::peer_v1::peer_server::PeerServer;
use server_app::App;
use shared_tls::peer::PeerTls;
use shared_types::Clock;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Server, server::Connected};

use crate::{
    CALLS_PER_PEER, CONNECT_WITHIN, MAX_MESSAGE_BYTES, PING_EVERY, PING_WITHIN,
    UNREAD_PER_CALL_BYTES, UNREAD_PER_PEER_BYTES, service::PeerService,
};

/// Connections at once, those in a handshake included; more wait in the kernel's queue.
const CONNECTIONS: usize = 256;
/// Connections that wait for the HTTP server.
const READY: usize = 16;
/// Between attempts to accept while the system refuses.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The longest time that calls may go on after the server was asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Answers the other servers of the database until `stop`.
pub async fn serve(
    listener: TcpListener,
    tls: PeerTls,
    app: Arc<App>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let (ready, connections) = mpsc::channel(READY);
    let accepting = stop.run_until_cancelled(accept(listener, tls, clock, ready));
    let service = PeerService {
        app,
        stop: stop.clone(),
    };
    let service = PeerServer::new(service).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let serving = Server::builder()
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_WITHIN))
        .max_concurrent_streams(CALLS_PER_PEER)
        .initial_stream_window_size(UNREAD_PER_CALL_BYTES)
        .initial_connection_window_size(UNREAD_PER_PEER_BYTES)
        .add_service(service)
        .serve_with_incoming_shutdown(
            ReceiverStream::new(connections),
            stop.clone().cancelled_owned(),
        );
    let serving = async {
        let stopped = async {
            stop.cancelled().await;
            sleep(STOP_WITHIN).await;
        };
        tokio::select! {
            served = serving => served,
            () = stopped => Ok(()),
        }
    };
    if let (_, Err(error)) = tokio::join!(accepting, serving) {
        tracing::error!(%error, "other servers are answered no longer");
    }
}

async fn accept(
    listener: TcpListener,
    tls: PeerTls,
    clock: Arc<dyn Clock>,
    ready: mpsc::Sender<io::Result<PeerConnection>>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection of another server");
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            }
        };
        let config = tls.server_config(since_1970(&*clock));
        let ready = ready.clone();
        tokio::spawn(async move {
            let handshake = async {
                stream.set_nodelay(true)?;
                let config = config.map_err(io::Error::other)?;
                TlsAcceptor::from(config).accept(stream).await
            };
            let done = timeout(CONNECT_WITHIN, handshake).await;
            match done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    let connection = PeerConnection {
                        stream,
                        _place: place,
                    };
                    let _ = ready.send(Ok(connection)).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection is not one of another server's");
                }
            }
        });
    }
}

pub(crate) fn since_1970(clock: &dyn Clock) -> Duration {
    let micros = u64::try_from(clock.now().as_micros()).unwrap_or_default();
    Duration::from_micros(micros)
}

/// A connection of another server that has shown its certificate.
struct PeerConnection {
    stream: TlsStream<TcpStream>,
    _place: OwnedSemaphorePermit,
}

impl Connected for PeerConnection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for PeerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl AsyncWrite for PeerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
