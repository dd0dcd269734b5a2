//! Connections: accept, TLS, HTTP/1.1 and HTTP/2 on the same port, and a stop that lets requests end.
//!
//! A connection lives as long as it is used. One that never asks for anything, asks too slowly, or
//! does not take its answer is closed, whatever protocol it speaks; what outlives its request (a
//! link, a WebSocket) holds a [`Place`] and with it the connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use shared_tls::Socket;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::Limits;

/// Connections that may be open at once; more wait in the kernel's queue.
const CONNECTIONS: u32 = 16_384;
/// Requests that one HTTP/2 connection may have open.
const STREAMS_PER_CONNECTION: u32 = 256;
/// Largest HTTP/2 frame that is taken: a whole piece of output and what is said of it.
const FRAME_BYTES: u32 = 128 * 1024;
/// Bytes of an HTTP/1.1 request that are held before it is understood.
const HEADERS_BYTES: usize = 64 * 1024;
/// How long requests may go on after the server was asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Between attempts to accept while the system refuses.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where the server listens.
pub struct Door {
    /// The socket.
    pub listener: TcpListener,
    /// Ends TLS here; without it the port speaks plain text.
    pub tls: Option<Arc<ServerConfig>>,
    /// How patient it is with connections.
    pub limits: Limits,
}

/// Who is at the other end of a connection; an extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// A connection's place among those that may be open; an extension of every request. Whatever
/// goes on after the request was answered keeps it.
#[derive(Debug, Clone)]
pub struct Place(#[expect(dead_code, reason = "it is held, not read")] Arc<OwnedSemaphorePermit>);

/// Serves until `stop`, then lets what is under way end, for at most five seconds.
pub async fn serve(door: Door, routes: Router, stop: CancellationToken) {
    let acceptor = door.tls.map(TlsAcceptor::from);
    let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let mut refused = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = accept(&door.listener, &places) => accepted,
        };
        let (stream, peer, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: give the ones in use time to be closed, and do not
                // fill the disk with it.
                if !std::mem::replace(&mut refused, true) {
                    tracing::warn!(%error, "failed to accept a connection; trying again");
                }
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            }
        };
        refused = false;
        let connection = Connection {
            peer,
            place: Arc::new(place),
            routes: routes.clone(),
            limits: door.limits,
            stop: stop.clone(),
        };
        tokio::spawn(connection.serve(stream, acceptor.clone()));
    }
    let all_closed = places.acquire_many(CONNECTIONS);
    if timeout(STOP_WITHIN, all_closed).await.is_err() {
        tracing::warn!(
            connections = CONNECTIONS as usize - places.available_permits(),
            "connections were still open when the server stopped"
        );
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await;
    let place = place.expect("the places are never closed");
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

struct Connection {
    peer: SocketAddr,
    place: Arc<OwnedSemaphorePermit>,
    routes: Router,
    limits: Limits,
    stop: CancellationToken,
}

impl Connection {
    async fn serve(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        let peer = self.peer;
        match tls {
            None => self.serve_http(stream).await,
            Some(acceptor) => {
                let handshake = acceptor.accept(Socket::new(stream));
                match timeout(self.limits.first_request_within, handshake).await {
                    // Boxed, because every future that it passes through would keep room for it.
                    Ok(Ok(mut stream)) => {
                        // A whole frame, so that it leaves at once.
                        let unsent = 2 * FRAME_BYTES as usize;
                        stream.get_mut().1.set_buffer_limit(Some(unsent));
                        self.serve_http(Box::new(stream)).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                }
            }
        }
    }

    async fn serve_http(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self {
            peer,
            place,
            routes,
            limits,
            stop,
        } = self;
        let asked = Arc::new(Notify::new());
        let service = {
            let (asked, place) = (asked.clone(), Arc::downgrade(&place));
            routes.map_request(move |mut request: http::Request<hyper::body::Incoming>| {
                asked.notify_one();
                request.extensions_mut().insert(Peer(peer));
                let place = place.upgrade().map(Place);
                place.map(|place| request.extensions_mut().insert(place));
                request.map(axum::body::Body::new)
            })
        };
        let builder = builder(limits);
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = quiet(&asked, limits) => None,
            () = stop.cancelled() => None,
        };
        if ended.is_none() {
            connection.as_mut().graceful_shutdown();
        }
        while ended.is_none() {
            match timeout(limits.taken_within, connection.as_mut()).await {
                Ok(end) => ended = Some(end),
                Err(_) if Arc::strong_count(&place) > 1 => {}
                Err(_) => return tracing::debug!(%peer, "a connection took no answer"),
            }
        }
        if let Some(Err(error)) = ended {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}

/// Waits until the connection has not asked for anything for too long.
async fn quiet(asked: &Notify, limits: Limits) {
    let mut within = limits.first_request_within;
    while timeout(within, asked.notified()).await.is_ok() {
        within = limits.quiet_at_most;
    }
}

fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.first_request_within)
        .max_buf_size(HEADERS_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.keep_alive_every)
        .keep_alive_timeout(limits.keep_alive_within)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .max_frame_size(FRAME_BYTES)
        .initial_stream_window_size(2 * 1024 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024);
    builder
}

#[cfg(test)]
mod tests;
