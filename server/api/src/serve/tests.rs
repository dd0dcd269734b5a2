use axum::{Extension, body::Body, routing::get};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use super::*;

/// HTTP/2's preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Served {
    async fn with(routes: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let door = Door {
            listener,
            tls: None,
            limits: Limits::default(),
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
}

/// Reads until the other end closes, or breaks off.
async fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard).await;
    heard
}

async fn until_heard(stream: &mut TcpStream, words: &str) {
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
async fn a_connection_is_kept_for_as_long_as_something_holds_its_place() {
    let (holding, mut held) = mpsc::channel(1);
    let hold = async move |Extension(place): Extension<Place>| {
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
