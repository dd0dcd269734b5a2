//! A gateway that speaks HTTP/2 and passes requests on, until it forbids them with a bare 403, as what
//! guards a network may: no word of gRPC, and nothing that the server has signed; or until it withholds
//! them, as a network may for any time.

use std::{
    convert::Infallible,
    future::pending,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
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
use tonic::Status;

use crate::before::Before;

/// The gateway; it listens until it is dropped.
pub struct Gateway {
    url: String,
    target: SocketAddr,
    rule: watch::Sender<Rule>,
    forbidden: Arc<AtomicU64>,
    held: Held,
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
        let (rule, forbidden) = (watch::Sender::new(Rule::Pass), Arc::new(AtomicU64::new(0)));
        let held = Arc::default();
        let counted = (forbidden.clone(), Arc::clone(&held));
        let serving = serve(listener, target, rule.subscribe(), counted);
        Self {
            url,
            target,
            rule,
            forbidden,
            held,
            serving: tokio::spawn(serving).abort_handle(),
        }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Cuts what it passes, and from now on forbids paths that end like this.
    pub fn forbid(&self, end: &'static str) {
        self.rule.send_replace(Rule::Forbid(end));
    }

    /// Cuts what it passes, and from now on withholds requests to paths that end like this: each is
    /// taken whole, and neither passed on nor answered.
    pub fn withhold(&self, end: &'static str) {
        self.rule.send_replace(Rule::Withhold(end));
    }

    /// Cuts what it passes, and forbids and withholds nothing any more.
    pub fn allow(&self) {
        self.rule.send_replace(Rule::Pass);
    }

    /// Requests that it withholds.
    pub fn withheld(&self) -> usize {
        self.held.lock().expect("no panic").len()
    }

    /// Passes on what it withholds, whole and in order; returns the statuses with which the server
    /// refused it.
    pub async fn release(&self) -> Vec<Status> {
        let held = std::mem::take(&mut *self.held.lock().expect("no panic"));
        let mut refused = Vec::new();
        for request in held {
            let answer = pass_on(request.map(Full::new), self.target).await;
            refused.extend(Status::from_header_map(answer.headers()));
        }
        refused
    }

    /// Requests that it has forbidden so far.
    pub fn forbidden(&self) -> u64 {
        self.forbidden.load(Ordering::Relaxed)
    }
}

/// Requests that were taken whole, and are not passed on yet.
type Held = Arc<Mutex<Vec<Request<Bytes>>>>;

/// What becomes of requests.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Pass,
    /// To paths that end like this.
    Forbid(&'static str),
    Withhold(&'static str),
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    rule: watch::Receiver<Rule>,
    (forbidden, held): (Arc<AtomicU64>, Held),
) {
    while let Ok((client, _)) = listener.accept().await {
        let (mut rule, forbidden, held) = (rule.clone(), forbidden.clone(), Arc::clone(&held));
        rule.mark_unchanged();
        let now = *rule.borrow();
        let service = service_fn(move |request: Request<Incoming>| {
            let (forbidden, held) = (forbidden.clone(), Arc::clone(&held));
            async move {
                let is_to = |end: &str| request.uri().path().ends_with(end);
                Ok::<_, Infallible>(match now {
                    Rule::Forbid(end) if is_to(end) => {
                        forbidden.fetch_add(1, Ordering::Relaxed);
                        bare(StatusCode::FORBIDDEN)
                    }
                    Rule::Withhold(end) if is_to(end) => {
                        let (head, body) = request.into_parts();
                        if let Ok(body) = body.collect().await {
                            let whole = Request::from_parts(head, body.to_bytes());
                            held.lock().expect("no panic").push(whole);
                        }
                        pending().await
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
async fn pass_on<B>(request: Request<B>, target: SocketAddr) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
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
