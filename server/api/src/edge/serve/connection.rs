//! One connection from its first byte to its last, whatever protocol it speaks.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{
        HeaderName, HeaderValue, Request, Response, StatusCode,
        header::{AUTHORIZATION, CONNECTION, COOKIE, RETRY_AFTER},
    },
    response::IntoResponse as _,
};
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use shared_tls::TlsSocket;
use shared_types::{CredentialId, SessionId};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{Notify, OwnedSemaphorePermit},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::{
    Peer, Presented, address,
    answers::{AnswerReader, Answers, SMALL_BYTES},
    doorway::Doorway,
    visit::{Visit, VisitUnderWay},
};
use crate::{
    Limits,
    rest::{Code, respond},
};

/// Requests that one HTTP/2 connection may have open. Hyper cannot raise it later, so it is what
/// strangers may have as well; clients queue the rest, or open another connection.
const STREAMS_PER_CONNECTION: u32 = 16;
/// The largest HTTP/2 frame to accept: a whole piece of output with its message.
const FRAME_BYTES: u32 = 128 * 1024;
/// Bytes of an HTTP/1.1 request that are held before it is understood.
const HEADERS_BYTES: usize = 64 * 1024;
/// Memory that a request takes while it is under way, beside its headers and its body.
const REQUEST_BYTES: usize = 2 * 1024;
/// Memory that a header takes beside its text.
const HEADER_BYTES: usize = 128;
/// The longest time for the last words to a peer without a request.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);
/// The bytes that a peer has to take within [`Limits::taken_within`] so that an answer continues. They are more than
/// the pings of an HTTP/2 connection that is otherwise silent.
const PROGRESS_BYTES: usize = 32 * 1024;

/// A connection's place among those that may be open; an extension of every request. A task that outlives its request
/// keeps it.
#[derive(Debug, Clone)]
pub struct ConnectionPermit {
    seat: Arc<ConnectionSeat>,
    /// The request's own, where a proxy names the address that it comes from.
    request: Option<Arc<Visit>>,
    /// The reader of the answer, once the request was found to be permitted.
    reader: Arc<OnceLock<AnswerReader>>,
}

#[derive(Debug)]
struct ConnectionSeat {
    visit: Arc<Visit>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    pub(super) fn new(permit: OwnedSemaphorePermit, visit: Arc<Visit>) -> Self {
        let seat = Arc::new(ConnectionSeat {
            visit,
            _permit: permit,
        });
        Self {
            seat,
            request: None,
            reader: Arc::default(),
        }
    }

    /// A credential that holds was shown: from here on the connection is no stranger.
    pub fn let_in(&self) {
        self.seat.visit.let_in();
        if let Some(request) = &self.request {
            request.let_in();
        }
    }

    /// This credential was shown, and holds.
    pub(crate) fn let_in_as(&self, credential: CredentialId) {
        let _ = self.reader.set(AnswerReader::Credential(credential));
        self.let_in();
    }

    /// Notes that a valid link to this session was shown. The connection stays a stranger.
    pub(crate) fn reads_by_link(&self, session: SessionId) {
        let _ = self.reader.set(AnswerReader::Link(session));
    }

    /// A runner is there whose access token holds: it may say hello, and nothing else yet.
    pub(crate) fn may_greet(&self) {
        self.seat.visit.may_greet();
    }

    /// The request was not answered in time: a stranger gets no second one.
    pub(crate) fn was_late(&self) {
        self.seat.visit.was_late();
    }
}

pub(super) struct ClientConnection {
    pub(super) peer: SocketAddr,
    pub(super) presented: Option<Presented>,
    pub(super) client_address: Option<HeaderName>,
    pub(super) place: ConnectionPermit,
    pub(super) answers: Arc<Answers>,
    pub(super) visit: Arc<Visit>,
    pub(super) routes: Router,
    pub(super) limits: Limits,
    pub(super) stop: CancellationToken,
}

impl ClientConnection {
    pub(super) async fn serve(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let _ = stream.set_nodelay(true);
        let peer = self.peer;
        let first_request_by = Instant::now() + self.limits.first_request_within;
        let stream = Doorway::new(stream, self.visit.clone(), self.limits.taken_within);
        match tls {
            None => self.serve_http(stream, first_request_by).await,
            Some(acceptor) => {
                let handshake = acceptor.accept(TlsSocket::new(stream));
                match timeout_at(first_request_by, handshake).await {
                    // Boxed, because every future that it passes through would keep room for it.
                    Ok(Ok(mut stream)) => {
                        // A whole frame, so that it leaves at once.
                        let unsent = 2 * FRAME_BYTES as usize;
                        stream.get_mut().1.set_buffer_limit(Some(unsent));
                        self.serve_http(Box::new(stream), first_request_by).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
                }
            }
        }
    }

    async fn serve_http(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        first_request_by: Instant,
    ) {
        let Self {
            peer,
            presented,
            client_address,
            place: ConnectionPermit { seat, .. },
            answers,
            visit,
            routes,
            limits,
            stop,
        } = self;
        let asked = Arc::new(Notify::new());
        let service = {
            let (asked, seat) = (asked.clone(), Arc::downgrade(&seat));
            hyper::service::service_fn(move |mut request: Request<Incoming>| {
                asked.notify_one();
                if let Some(presented) = presented {
                    request.extensions_mut().insert(presented);
                }
                let named = client_address.as_ref();
                let named = named.and_then(|name| address::named(request.headers(), name));
                let entering = seat
                    .upgrade()
                    .map(|seat| Entering::of(seat, &request, named));
                let peer = named.map_or(peer, |address| SocketAddr::new(address, peer.port()));
                answer(
                    routes.clone(),
                    answers.clone(),
                    request,
                    Peer(peer),
                    entering,
                )
            })
        };
        let builder = builder(limits);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            quiet = quiet(&asked, first_request_by, limits) => match quiet {
                Quiet::NeverAsked => return tracing::debug!(%peer, "a connection asked for nothing"),
                Quiet::Since => None,
            },
            () = visit.is_to_end() => None,
            () = stop.cancelled() => None,
        };
        if ended.is_none() {
            connection.as_mut().graceful_shutdown();
        }
        while ended.is_none() {
            if visit.is_cut_off() {
                return tracing::debug!(%peer, "a stranger was cut off to make room");
            }
            let patient = visit.is_let_in() || visit.is_being_answered() && !visit.is_late();
            let taken_before = visit.taken();
            let within = if patient {
                limits.taken_within
            } else {
                GOODBYE_WITHIN
            };
            tokio::select! {
                now = timeout(within, connection.as_mut()) => match now {
                    Ok(end) => ended = Some(end),
                    Err(_) if Arc::strong_count(&seat) > 1 && !visit.is_late() => {}
                    Err(_) if patient && visit.taken() - taken_before >= PROGRESS_BYTES => {}
                    Err(_) => return tracing::debug!(%peer, "a connection took no answer"),
                },
                () = visit.is_to_end() => {}
            }
        }
        if let Some(Err(error)) = ended {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}

/// A request on arrival, with the place and the memory that it counts for.
struct Entering {
    place: ConnectionPermit,
    under_way: VisitUnderWay,
}

impl Entering {
    fn of(seat: Arc<ConnectionSeat>, request: &Request<Incoming>, named: Option<IpAddr>) -> Self {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| HEADER_BYTES + name.as_str().len() + value.len());
        let under_way = seat.visit.asks(REQUEST_BYTES + headers.sum::<usize>());
        let request = named.map(|address| seat.visit.of_request(address));
        Self {
            place: ConnectionPermit {
                seat,
                request,
                reader: Arc::default(),
            },
            under_way,
        }
    }
}

async fn answer(
    routes: Router,
    answers: Arc<Answers>,
    mut request: Request<Incoming>,
    peer: Peer,
    entering: Option<Entering>,
) -> Result<Response<TrackedBody>, Infallible> {
    request.extensions_mut().insert(peer);
    let Some(Entering { place, under_way }) = entering else {
        // The answer reaches no client: the connection is gone.
        return Ok(too_many().map(TrackedBody::alone));
    };
    let has_body = !request.body().is_end_stream();
    let (seat, of_address) = (place.seat.clone(), place.request.clone());
    let reader = place.reader.clone();
    let _turn = seat.visit.turn(shows_credential(&request)).await;
    request.extensions_mut().insert(place);
    // On the heap, so that a request that waits takes little.
    let answered = Box::pin(routes.oneshot(request.map(Body::new)));
    let response = match of_address {
        None => answered.await?,
        Some(of_address) => {
            let _busy = of_address.asks(0);
            tokio::select! {
                response = answered => response?,
                () = of_address.is_to_end() => too_many(),
            }
        }
    };
    let response = match reader.get() {
        // On the heap, so that a request that waits takes no room for it.
        Some(reader) if is_large(&response) => Box::pin(counted(response, *reader, &answers)).await,
        _ => response,
    };
    let mut response = response.map(|inner| TrackedBody {
        inner,
        under_way: Some(under_way),
    });
    // The rest of the body is not read, so no other request can follow it.
    if has_body && response.status().is_client_error() && !seat.visit.is_let_in() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    Ok(response)
}

/// True if a request shows something like a credential.
fn shows_credential<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let query = request.uri().query().unwrap_or_default();
    headers.contains_key(AUTHORIZATION) || headers.contains_key(COOKIE) || query.contains("ticket=")
}

/// True if an answer is larger than the buffers of its connection.
fn is_large(response: &Response<Body>) -> bool {
    let bytes = response.body().size_hint().exact();
    bytes.is_some_and(|bytes| bytes > SMALL_BYTES as u64)
}

/// Counts a large answer as unread, or refuses it. Only requests that read have large answers, so that a second request
/// does nothing twice.
async fn counted(
    response: Response<Body>,
    reader: AnswerReader,
    answers: &Answers,
) -> Response<Body> {
    let (head, body) = response.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match answers.waits(reader, body) {
        Some(body) => Response::from_parts(head, Body::from(body)),
        None => refused(
            "too many answers to you wait to be read; read those, and ask again in a second",
        ),
    }
}

fn too_many() -> Response<Body> {
    refused("too many requests without a credential come from your address; try again in a second")
}

/// An answer to a peer that has too much of something.
fn refused(detail: &str) -> Response<Body> {
    let mut response = respond(Code::TooMany.problem(detail));
    let a_second = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, a_second);
    response
}

/// The body of an answer; its request is under way until all of it was handed over.
struct TrackedBody {
    inner: Body,
    under_way: Option<VisitUnderWay>,
}

impl TrackedBody {
    fn alone(inner: Body) -> Self {
        Self {
            inner,
            under_way: None,
        }
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
        if frame.is_none() {
            this.under_way = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The reason why a connection counts as quiet.
enum Quiet {
    /// It never asked for anything.
    NeverAsked,
    /// It asked, some time ago.
    Since,
}

/// Waits until the connection has not asked for anything for too long.
async fn quiet(asked: &Notify, first_request_by: Instant, limits: Limits) -> Quiet {
    if timeout_at(first_request_by, asked.notified())
        .await
        .is_err()
    {
        return Quiet::NeverAsked;
    }
    while timeout(limits.quiet_at_most, asked.notified())
        .await
        .is_ok()
    {}
    Quiet::Since
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
