use axum::{
    Extension,
    body::Body,
    http::StatusCode,
    middleware::from_fn_with_state,
    routing::{get, post},
};
use bytes::Bytes;
use shared_tls::{Recorder, Trust, client_config};
use shared_types::SessionId;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{Notify, mpsc},
    time::{Instant, advance, sleep},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::edge::in_time::in_time;

/// HTTP/2's preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// What the process may have open, as the port believes: half of it is for strangers.
const DESCRIPTORS: usize = 64;

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Served {
    async fn with(routes: Router) -> Self {
        Self::over(routes, None).await
    }

    async fn over(routes: Router, tls: Option<watch::Receiver<ServerTls>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let door = Door {
            listener,
            tls,
            limits: Limits::default(),
            client_address: None,
            descriptors: DESCRIPTORS,
        };
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(door, routes, stop.clone()));
        Self {
            address,
            stop,
            serving,
        }
    }

    async fn connect(&self, said: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(said).await.expect("it takes it");
        stream
    }

    /// A connection by TLS, and SHA-256 of the certificate that was presented on it.
    async fn connect_by_tls(&self) -> (TlsStream<TcpStream>, [u8; 32]) {
        let recorder = Recorder::new();
        let config = client_config(Trust::Record(recorder.clone())).expect("it needs no roots");
        let name = "localhost".try_into().expect("a name");
        let stream = self.connect(b"").await;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        (
            stream.expect("it is accepted"),
            recorder.recorded().expect("it was presented"),
        )
    }
}

/// Reads until the other end closes, or breaks off.
async fn until_closed(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    heard
}

async fn until_heard(stream: &mut (impl AsyncRead + Unpin), words: &str) {
    let mut heard = String::new();
    while !heard.contains(words) {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await.expect("it is open");
        assert!(read > 0, "closed after {heard:?}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_nothing_or_stops_in_the_middle_is_cut_off() {
    let served = Served::with(Router::new().route("/", get(async || "hello"))).await;
    for said in [
        b"".as_slice(),
        b"P",
        b"PRI * HTTP/2.0\r\n",
        b"GET / HTTP/1.1\r\nhost: ",
        PREFACE,
        &PREFACE[..PREFACE.len() - 4],
    ] {
        let stream = served.connect(said).await;
        let closed = timeout(Duration::from_secs(120), until_closed(stream)).await;
        assert!(closed.is_ok(), "{:?}", String::from_utf8_lossy(said));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_only_pings_is_cut_off_as_soon_as_a_silent_one() {
    let served = Served::with(Router::new()).await;
    let mut stream = served.connect(PREFACE).await;
    let began = Instant::now();
    while stream.write_all(PING).await.is_ok() {
        sleep(Duration::from_millis(500)).await;
    }
    let within = Limits::default().first_request_within + Duration::from_secs(1);
    assert!(began.elapsed() <= within, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_by_its_head_is_answered_and_closed_before_its_body_comes() {
    let routes = Router::new().route("/", post(async || StatusCode::UNAUTHORIZED));
    let served = Served::with(routes).await;
    let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 209715200\r\n\r\n";
    let began = Instant::now();
    let stream = served.connect(head).await;
    let answer = String::from_utf8(until_closed(stream).await).expect("text");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(began.elapsed() < Limits::default().taken_within);
}

#[tokio::test(start_paused = true)]
async fn an_answer_goes_on_for_as_long_as_some_of_it_is_taken() {
    const PIECE_BYTES: usize = 4 * 1024 * 1024;
    let answer = Bytes::from(vec![b'x'; 24 * PIECE_BYTES]);
    let routes = Router::new().route("/", get(async move || answer.clone()));
    let served = Served::with(routes).await;
    let mut stream = served.connect(ASK).await;
    // Time that is paused does not go on by itself while something blocks: the sockets are real.
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let blocked = tokio::task::spawn_blocking(move || is_over.recv());
    let mut piece = vec![0; PIECE_BYTES];
    for _ in 0..20 {
        stream.read_exact(&mut piece).await.expect("it goes on");
        advance(Limits::default().taken_within / 2).await;
    }
    let rest = until_closed(stream).await;
    assert!(rest.len() > 4 * PIECE_BYTES, "{} more", rest.len());
    drop(over);
    let _ = blocked.await;
}

#[tokio::test]
async fn what_readers_of_a_link_leave_unread_has_a_bound() {
    let page = Bytes::from(vec![b'x'; 16 * 1024 * 1024]);
    let shared = async move |Extension(place): Extension<ConnectionPermit>| {
        place.reads_by_link(SessionId::from_u128(1));
        page.clone()
    };
    let served = Served::with(Router::new().route("/", get(shared))).await;
    let mut first = served.connect(ASK).await;
    until_heard(&mut first, "200 OK").await;
    let mut second = served.connect(ASK).await;
    until_heard(&mut second, "429 Too Many").await;
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_was_too_slow_once_is_cut_off() {
    let answer_within = Limits::default().answer_within;
    let routes = Router::new()
        .route("/", post(async |_: String| "read"))
        .layer(from_fn_with_state(answer_within, in_time));
    let served = Served::with(routes).await;
    // POST / over plain text, by indices into the static table of HPACK.
    let ask: &[u8] = b"\0\0\x03\x01\x04\0\0\0\x01\x83\x86\x84";
    let begun: [(&[u8], &[u8]); 2] = [
        (&[PREFACE, ask].concat(), b"\0\0\x01\0\0\0\0\0\x01x"),
        (
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4000\r\n\r\n",
            b"x",
        ),
    ];
    for (said, byte) in begun {
        let stream = served.connect(said).await;
        let began = Instant::now();
        let (heard, mut dripping) = stream.into_split();
        let drip = async {
            while dripping.write_all(byte).await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::select! {
            _ = until_closed(heard) => {}
            () = drip => {}
        }
        let within = answer_within + Duration::from_secs(3);
        let words = String::from_utf8_lossy(said);
        assert!(began.elapsed() <= within, "{words}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_stranger_is_read_no_further_than_it_may_hold_and_a_peer_that_was_let_in_is() {
    let (begun, mut begins) = mpsc::channel(1);
    let let_in = Arc::new(Notify::new());
    let upload = {
        let let_in = let_in.clone();
        async move |Extension(place): Extension<ConnectionPermit>, body: Body| {
            begun.send(()).await.expect("the test waits");
            let_in.notified().await;
            place.let_in();
            let whole = axum::body::to_bytes(body, usize::MAX).await;
            whole.expect("a body").len().to_string()
        }
    };
    let served = Served::with(Router::new().route("/", post(upload))).await;
    let length = 64 * 1024 * 1024;
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    let stream = served.connect(head.as_bytes()).await;
    begins.recv().await.expect("it is asked");
    let (mut heard, mut said) = stream.into_split();
    let sending = tokio::spawn(async move {
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..length / piece.len() {
            said.write_all(&piece).await.expect("it goes on");
        }
        said
    });
    tokio::task::yield_now().await;
    assert!(!sending.is_finished(), "it waits to be let in");
    let_in.notify_one();
    let _said = sending.await.expect("all of it was sent");
    let mut answer = [0; 1024];
    let read = heard.read(&mut answer).await.expect("an answer");
    assert!(String::from_utf8_lossy(&answer[..read]).ends_with(&length.to_string()));
}

#[tokio::test]
async fn where_strangers_fill_the_port_the_oldest_goes_and_the_next_is_served() {
    let served = Served::with(Router::new().route("/", get(async || "hello"))).await;
    let mut strangers = Vec::new();
    for _ in 0..DESCRIPTORS {
        strangers.push(served.connect(b"").await);
    }
    let mut owner = served.connect(ASK).await;
    until_heard(&mut owner, "hello").await;
    assert_eq!(until_closed(strangers.remove(0)).await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_as_long_as_something_holds_its_place() {
    let (holding, mut held) = mpsc::channel(1);
    let hold = async move |Extension(place): Extension<ConnectionPermit>| {
        holding.send(place).await.expect("the test waits");
        Body::from_stream(futures_util::stream::pending::<Result<&str, std::io::Error>>())
    };
    let served = Served::with(Router::new().route("/", get(hold))).await;
    let mut stream = served.connect(ASK).await;
    let place = held.recv().await.expect("it is asked");
    until_heard(&mut stream, "200 OK").await;
    let mut byte = [0];
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, stream.read(&mut byte)).await.is_err());
    drop(place);
    let closed = timeout(hour, until_closed(stream)).await;
    assert!(
        closed.is_ok(),
        "nobody takes the answer, and nothing holds the place"
    );
}

#[tokio::test]
async fn a_stop_lets_a_request_that_is_under_way_end() {
    let (begun, mut begins) = mpsc::channel(1);
    let go_on = Arc::new(Notify::new());
    let slow = {
        let go_on = go_on.clone();
        async move || {
            begun.send(()).await.expect("the test waits");
            go_on.notified().await;
            "done"
        }
    };
    let served = Served::with(Router::new().route("/", get(slow))).await;
    let mut stream = served.connect(ASK).await;
    begins.recv().await.expect("it is asked");
    served.stop.cancel();
    go_on.notify_one();
    until_heard(&mut stream, "done").await;
    drop(stream);
    served.serving.await.expect("it ends");
}

#[tokio::test]
async fn a_request_knows_the_certificate_of_its_own_connection_also_after_another_one_came() {
    let certificates = [(); 2].map(|()| {
        let folder = tempfile::tempdir().expect("a folder");
        ServerTls::self_signed(folder.path(), &["localhost".to_owned()]).expect("it is made")
    });
    let [first, second] = certificates.each_ref().map(ServerTls::certificate_sha256);
    let [tls, renewed] = certificates;
    let certificate = watch::Sender::new(tls);
    let presented =
        async |Extension(Presented(certificate)): Extension<Presented>| words_of(certificate);
    let routes = Router::new().route("/", get(presented));
    let served = Served::over(routes, Some(certificate.subscribe())).await;
    let (mut old, seen) = served.connect_by_tls().await;
    assert_eq!(seen, first);
    said(&mut old, first).await;
    certificate.send_replace(renewed);
    let (mut new, seen) = served.connect_by_tls().await;
    assert_eq!(seen, second);
    said(&mut new, second).await;
    said(&mut old, first).await;
}

/// Asks on this connection, and holds the answer to the certificate.
async fn said(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), certificate: [u8; 32]) {
    stream.write_all(ASK).await.expect("it takes it");
    until_heard(stream, &words_of(certificate)).await;
}

fn words_of(certificate: [u8; 32]) -> String {
    let digest = shared_types::Digest::from_slice(&certificate);
    digest.expect("it has 32 bytes").to_string()
}
