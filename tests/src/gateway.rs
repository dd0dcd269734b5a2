//! A gateway that speaks HTTP/2 and passes requests on, until it forbids them with a bare 403, as what
//! guards a network may: no word of gRPC, and nothing that the server has signed.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::body::Body;
use hyper::{
    Request, Response, StatusCode, body::Incoming, client::conn::http2::handshake,
    server::conn::http2, service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::AbortHandle,
};

use crate::before::Before;

/// The gateway; it listens until it is dropped.
pub struct Gateway {
    url: String,
    rule: watch::Sender<Option<&'static str>>,
    forbidden: Arc<AtomicU64>,
    serving: AbortHandle,
}

impl Gateway {
    /// A gateway on loopback before a server at this address, which speaks plain text.
    ///
    /// # Panics
    /// If loopback has no free port.
    pub async fn before(url: &str) -> Self {
        let Before {
            listener,
            url,
            target,
        } = Before::server(url).await;
        let (rule, forbidden) = (watch::Sender::new(None), Arc::new(AtomicU64::new(0)));
        let serving = serve(listener, target, rule.subscribe(), forbidden.clone());
        Self {
            url,
            rule,
            forbidden,
            serving: tokio::spawn(serving).abort_handle(),
        }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Cuts what it passes, and from now on forbids paths that end like this.
    pub fn forbid(&self, end: &'static str) {
        self.rule.send_replace(Some(end));
    }

    /// Forbids nothing any more.
    pub fn allow(&self) {
        self.rule.send_replace(None);
    }

    /// Requests that it has forbidden so far.
    pub fn forbidden(&self) -> u64 {
        self.forbidden.load(Ordering::Relaxed)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    rule: watch::Receiver<Option<&'static str>>,
    forbidden: Arc<AtomicU64>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (mut rule, forbidden) = (rule.clone(), forbidden.clone());
        rule.mark_unchanged();
        let forbids = *rule.borrow();
        let service = service_fn(move |request: Request<Incoming>| {
            let forbidden = forbidden.clone();
            async move {
                Ok::<_, Infallible>(match forbids {
                    Some(end) if request.uri().path().ends_with(end) => {
                        forbidden.fetch_add(1, Ordering::Relaxed);
                        bare(StatusCode::FORBIDDEN)
                    }
                    _ => pass_on(request, target).await,
                })
            }
        });
        let serving = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(client), service);
        tokio::spawn(async move {
            tokio::select! {
                // What is no HTTP/2 ends its connection.
                _ = serving => {}
                _ = rule.changed() => {}
            }
        });
    }
}

/// Asks the server on a connection of this request's own.
async fn pass_on(request: Request<Incoming>, target: SocketAddr) -> Response<Body> {
    let asked = async {
        let server = TokioIo::new(TcpStream::connect(target).await?);
        let (mut requests, connection) = handshake(TokioExecutor::new(), server).await?;
        tokio::spawn(connection);
        anyhow::Ok(requests.send_request(request).await?)
    };
    match asked.await {
        Ok(response) => response.map(Body::new),
        Err(_) => bare(StatusCode::BAD_GATEWAY),
    }
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
