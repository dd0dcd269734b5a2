//! A proxy that knows HTTP/1.1 and nothing newer: it passes requests on one by one, and what
//! becomes of a connection that both ends upgrade.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::future::{BoxFuture, FutureExt as _};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::handshake,
    server::conn::http1,
    service::service_fn,
    upgrade::{OnUpgrade, Upgraded, on},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::before::Before;

/// What becomes of the two ends of a connection that both have upgraded.
pub(crate) type Couple = Arc<dyn Fn(Upgraded, Upgraded) -> BoxFuture<'static, ()> + Send + Sync>;

/// The proxy; it listens until it is dropped.
pub struct Http1Proxy {
    url: String,
    upgraded: Arc<AtomicU64>,
    serving: AbortHandle,
}

impl Http1Proxy {
    /// A proxy on loopback before a server at this address, which speaks plain text.
    ///
    /// # Panics
    /// If loopback has no free port.
    pub async fn before(url: &str) -> Self {
        Self::coupling(url, Arc::new(|near, far| copy(near, far).boxed())).await
    }

    /// The same, where this becomes of what both ends have upgraded.
    pub(crate) async fn coupling(url: &str, couple: Couple) -> Self {
        let Before {
            listener,
            url,
            target,
        } = Before::server(url).await;
        let upgraded = Arc::new(AtomicU64::new(0));
        let serving = tokio::spawn(serve(listener, target, upgraded.clone(), couple));
        Self {
            url,
            upgraded,
            serving: serving.abort_handle(),
        }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connections that both ends have upgraded so far.
    pub fn upgraded(&self) -> u64 {
        self.upgraded.load(Ordering::Relaxed)
    }
}

impl Drop for Http1Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    upgraded: Arc<AtomicU64>,
    couple: Couple,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (upgraded, couple) = (upgraded.clone(), couple.clone());
        let service = service_fn(move |request| {
            let (upgraded, couple) = (upgraded.clone(), couple.clone());
            async move { Ok::<_, Infallible>(pass_on(request, target, upgraded, couple).await) }
        });
        let serving = http1::Builder::new()
            .serve_connection(TokioIo::new(client), service)
            .with_upgrades();
        // What is no HTTP/1.1 ends its connection.
        tokio::spawn(async { drop(serving.await) });
    }
}

/// Asks the server on a connection of this request's own.
async fn pass_on(
    mut request: Request<Incoming>,
    target: SocketAddr,
    upgraded: Arc<AtomicU64>,
    couple: Couple,
) -> Response<axum::body::Body> {
    let near = on(&mut request);
    let asked = async {
        let server = TokioIo::new(TcpStream::connect(target).await?);
        let (mut requests, connection) = handshake(server).await?;
        tokio::spawn(connection.with_upgrades());
        anyhow::Ok(requests.send_request(request).await?)
    };
    let mut response = match asked.await {
        Ok(response) => response,
        Err(_) => {
            let mut nobody = Response::new(axum::body::Body::empty());
            *nobody.status_mut() = StatusCode::BAD_GATEWAY;
            return nobody;
        }
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let far = on(&mut response);
        tokio::spawn(both(near, far, upgraded, couple));
    }
    response.map(axum::body::Body::new)
}

async fn both(near: OnUpgrade, far: OnUpgrade, upgraded: Arc<AtomicU64>, couple: Couple) {
    let (Ok(near), Ok(far)) = tokio::join!(near, far) else {
        return;
    };
    upgraded.fetch_add(1, Ordering::Relaxed);
    couple(near, far).await;
}

async fn copy(near: Upgraded, far: Upgraded) {
    let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    // It ends as either end wishes.
    let _ = copy_bidirectional(&mut near, &mut far).await;
}
