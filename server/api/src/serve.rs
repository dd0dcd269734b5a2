//! Connections: accept, TLS, HTTP/1.1 and HTTP/2 on the same port, and a stop that lets requests end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

/// Connections that may be open at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 16_384;
/// A connection that does not say what it wants within this time is closed.
const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(10);
/// How often a quiet HTTP/2 connection is asked whether it lives, and how long it may take to answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(20));
/// Requests that one HTTP/2 connection may have open.
const STREAMS_PER_CONNECTION: u32 = 256;
/// How long requests may go on after the server was asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Where the server listens.
pub struct Door {
    /// The socket.
    pub listener: TcpListener,
    /// Ends TLS here; without it the port speaks plain text.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Who is at the other end of a connection; an extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Serves until `stop`, then lets what is under way end, for at most five seconds.
pub async fn serve(door: Door, routes: Router, stop: CancellationToken) {
    let acceptor = door.tls.map(TlsAcceptor::from);
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            accepted = door.listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: give the ones in use time to be closed.
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, routes, stop) = (acceptor.clone(), routes.clone(), stop.clone());
        connections.spawn(async move {
            serve_connection(stream, peer, acceptor, routes, stop).await;
            drop(permit);
        });
    }
    connections.close();
    if timeout(STOP_WITHIN, connections.wait()).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections were still open when the server stopped"
        );
    }
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    routes: Router,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    if !matches!(
        timeout(FIRST_BYTES_WITHIN, stream.peek(&mut [0])).await,
        Ok(Ok(1))
    ) {
        return;
    }
    match tls {
        None => serve_http(stream, peer, routes, stop).await,
        Some(acceptor) => match timeout(FIRST_BYTES_WITHIN, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(stream, peer, routes, stop).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
        },
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    routes: Router,
    stop: CancellationToken,
) {
    let service = TowerToHyperService::new(routes.map_request(
        move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            request.map(axum::body::Body::new)
        },
    ));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_BYTES_WITHIN);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .initial_stream_window_size(2 * 1024 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024)
        .enable_connect_protocol();
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}
