//! What ends TLS between a runner and its server: it reads every call of enrolment, keeps what it read,
//! and changes messages as a test wants. It speaks HTTP/2 and HTTP/1.1.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode, Version,
    body::Incoming,
    client::conn,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use crate::before::Before;

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// From the runner.
    Server,
    /// From the server.
    Runner,
}

/// Changes a message of a call: the end of its path, in lower case, says of which.
pub type Change = Arc<dyn Fn(To, &str, &mut Vec<u8>) + Send + Sync>;

/// What it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/2, for gRPC.
    Http2,
    /// HTTP/1.1 and nothing newer.
    Http1,
}

/// A call as it passed.
#[derive(Debug, Clone)]
pub struct Call {
    /// The end of its path, in lower case.
    pub name: String,
    /// The request's message, and all of its head.
    pub request: Vec<u8>,
    /// The same of the answer.
    pub answer: Vec<u8>,
}

/// It listens until it is dropped.
pub struct Interposer {
    url: String,
    calls: Arc<Mutex<Vec<Call>>>,
    serving: AbortHandle,
}

impl Interposer {
    /// One on loopback before a server at this address, which speaks plain text.
    ///
    /// # Panics
    /// If loopback has no free port.
    pub async fn before(url: &str, speaks: Speaks, change: Change) -> Self {
        let Before {
            listener,
            url,
            target,
        } = Before::server(url).await;
        let calls = Arc::default();
        let way = Way {
            speaks,
            target,
            change,
            calls: Arc::clone(&calls),
        };
        Self {
            url,
            calls,
            serving: tokio::spawn(serve(listener, way)).abort_handle(),
        }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What has passed so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("no panic").clone()
    }
}

impl Drop for Interposer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Clone)]
struct Way {
    speaks: Speaks,
    target: SocketAddr,
    change: Change,
    calls: Arc<Mutex<Vec<Call>>>,
}

async fn serve(listener: TcpListener, way: Way) {
    while let Ok((client, _)) = listener.accept().await {
        let (client, speaks, way) = (TokioIo::new(client), way.speaks, way.clone());
        let service = service_fn(move |request| {
            let way = way.clone();
            async move { Ok::<_, Infallible>(way.pass(request).await.unwrap_or_else(nobody)) }
        });
        // What it does not speak ends its connection.
        match speaks {
            Speaks::Http2 => {
                let serving = http2::Builder::new(TokioExecutor::new());
                let serving = serving.serve_connection(client, service);
                tokio::spawn(async { drop(serving.await) });
            }
            Speaks::Http1 => {
                let serving = http1::Builder::new().serve_connection(client, service);
                tokio::spawn(async { drop(serving.await) });
            }
        }
    }
}

impl Way {
    /// Passes a call on, on a connection of its own.
    async fn pass(&self, request: Request<Incoming>) -> anyhow::Result<Response<Body>> {
        let (mut head, body) = request.into_parts();
        let end = head.uri.path().rsplit('/').next();
        let name = end.unwrap_or_default().to_lowercase();
        let body = body.collect().await?.to_bytes();
        let is_grpc = head.version == Version::HTTP_2;
        let (read, body) = self.changed(To::Server, &name, is_grpc, &body);
        let request_read = [format!("{head:?}").into_bytes(), read].concat();
        head.headers.remove(CONTENT_LENGTH);
        let asked = Request::from_parts(head, Full::new(body));
        let response = self.ask(asked).await?;

        let (mut head, body) = response.into_parts();
        let collected = body.collect().await?;
        let trailers = collected.trailers().cloned();
        let body = collected.to_bytes();
        let is_message = head.headers.contains_key(CONTENT_TYPE) && !body.is_empty();
        let (read, body) = match is_message {
            true => self.changed(To::Runner, &name, is_grpc, &body),
            false => (body.to_vec(), body),
        };
        let said = format!("{head:?} {trailers:?}").into_bytes();
        self.calls.lock().expect("no panic").push(Call {
            name,
            request: request_read,
            answer: [said, read].concat(),
        });
        head.headers.remove(CONTENT_LENGTH);
        let body = Full::new(body);
        let body = match trailers {
            Some(trailers) => Body::new(body.with_trailers(async { Some(Ok(trailers)) })),
            None => Body::new(body),
        };
        Ok(Response::from_parts(head, body))
    }

    /// The message that came, and the body that goes on.
    fn changed(&self, to: To, name: &str, is_grpc: bool, body: &Bytes) -> (Vec<u8>, Bytes) {
        let prefix = if is_grpc { PREFIX_BYTES } else { 0 };
        let came = body.get(prefix..).unwrap_or_default().to_vec();
        let mut message = came.clone();
        (self.change)(to, name, &mut message);
        let goes = match is_grpc {
            true => [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat(),
            false => message,
        };
        (came, goes.into())
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        let server = TokioIo::new(TcpStream::connect(self.target).await?);
        Ok(match self.speaks {
            Speaks::Http2 => {
                let (mut requests, connection) =
                    conn::http2::handshake(TokioExecutor::new(), server).await?;
                tokio::spawn(connection);
                requests.send_request(request).await?
            }
            Speaks::Http1 => {
                let (mut requests, connection) = conn::http1::handshake(server).await?;
                tokio::spawn(connection);
                requests.send_request(request).await?
            }
        })
    }
}

fn nobody(_: anyhow::Error) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
