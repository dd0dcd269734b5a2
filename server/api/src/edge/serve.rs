//! Connections: accept, TLS, HTTP/1.1 and HTTP/2 on the same port, and a stop that lets requests end.
//!
//! A connection lives as long as it is used. The server closes one that never sends a request, sends it too slowly, or
//! does not read its answer, in every protocol. A task that outlives its request (a link, a WebSocket) holds a
//! [`ConnectionPermit`], and with it the connection.
//!
//! Until a connection has shown a valid credential, it is a *stranger*. Strangers share a part of the descriptors and a
//! budget of memory (`strangers`), and the server reads from them only within it (`doorway`). Unread answers to
//! requests with a credential or a link to a session have a budget as well (`answers`).

mod address;
mod answers;
mod connection;
mod doorway;
mod strangers;
mod visit;

pub use connection::ConnectionPermit;
pub(crate) use strangers::network;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::HeaderName;
use shared_tls::ServerTls;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::{
    answers::Answers,
    connection::ClientConnection,
    strangers::{StrangerBounds, Strangers},
    visit::Visit,
};
use crate::Limits;

/// Connections that may be open at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 16_384;
/// Of four descriptors three are for connections, and one for the server's own files.
const DESCRIPTORS_FOR_CONNECTIONS: Fraction = Fraction { of: 4, taken: 3 };
/// Of two connections one may be a stranger's: the other half is for peers that were let in.
const CONNECTIONS_FOR_STRANGERS: Fraction = Fraction { of: 2, taken: 1 };
/// The longest time that requests may go on after the server was asked to stop.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// Between attempts to accept while the system refuses.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The place where the server listens, and its rules for connections.
pub struct Door {
    /// The socket.
    pub listener: TcpListener,
    /// Ends TLS here; without it the port speaks plain text. A connection keeps the certificate that was there when it
    /// was accepted.
    pub tls: Option<watch::Receiver<ServerTls>>,
    /// The time limits and bounds of connections.
    pub limits: Limits,
    /// The header in which a proxy names the address of its client, where every connection comes
    /// from such a proxy.
    pub client_address: Option<HeaderName>,
    /// Files and connections that the process may have open at once.
    pub descriptors: usize,
}

/// The address of a connection's peer; an extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// SHA-256 of the certificate that was presented on a connection; an extension of every request that came
/// over TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presented(pub(crate) [u8; 32]);

/// Serves until `stop`. Requests that are under way may then end, for at most five seconds.
pub async fn serve(door: Door, routes: Router, stop: CancellationToken) {
    let connections = CONNECTIONS.min(part(door.descriptors, DESCRIPTORS_FOR_CONNECTIONS));
    let places = Arc::new(Semaphore::new(connections));
    let strangers = Strangers::new(StrangerBounds {
        strangers: part(connections, CONNECTIONS_FOR_STRANGERS),
        per_address: door.limits.strangers_per_address,
        bytes: door.limits.strangers_hold_bytes,
    });
    let answers = Arc::new(Answers::default());
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
                // Out of descriptors, mostly: make one free, give those in use time to be closed,
                // and do not fill the disk with it.
                if !std::mem::replace(&mut refused, true) {
                    tracing::warn!(%error, "failed to accept a connection; trying again");
                }
                strangers.shed_one();
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            }
        };
        refused = false;
        // Behind a proxy that names addresses, its requests are counted and not its connections.
        let counted = door.client_address.is_none().then(|| peer.ip());
        let visit = Visit::of_connection(strangers.clone(), counted);
        let tls = door.tls.as_ref().map(|tls| {
            let tls = tls.borrow();
            let presented = Presented(tls.certificate_sha256());
            (TlsAcceptor::from(tls.config()), presented)
        });
        let (acceptor, presented) = tls.unzip();
        let connection = ClientConnection {
            peer,
            presented,
            client_address: door.client_address.clone(),
            place: ConnectionPermit::new(place, visit.clone()),
            answers: answers.clone(),
            visit,
            routes: routes.clone(),
            limits: door.limits,
            stop: stop.clone(),
        };
        tokio::spawn(connection.serve(stream, acceptor));
    }
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let all_closed = places.acquire_many(all);
    if timeout(STOP_WITHIN, all_closed).await.is_err() {
        tracing::warn!(
            connections = connections - places.available_permits(),
            "connections were still open when the server stopped"
        );
    }
}

/// A part of a number, and at least one.
fn part(whole: usize, fraction: Fraction) -> usize {
    (whole / fraction.of * fraction.taken).max(1)
}

/// So many `taken` out of `of` equal parts.
#[derive(Clone, Copy)]
struct Fraction {
    of: usize,
    taken: usize,
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

#[cfg(test)]
mod tests;
