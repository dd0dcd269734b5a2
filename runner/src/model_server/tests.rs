use std::{fs, os::unix::fs::OpenOptionsExt as _};

use bytes::Bytes;
use proto::v1::{
    self,
    model_answer::{Part, failure::Kind},
    runner_frame,
};
use shared_link::runner::{AskKind, ModelOrder, ModelsReport};
use shared_types::limits::MODEL_WINDOW_BYTES;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

use super::*;
use crate::testing::SOON;

const BODY: &[u8] = b"{\"model\":\"m\"}";

/// A model server of this machine, byte by byte.
struct Played(TcpListener);

impl Played {
    async fn start() -> (Self, ModelServer) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = ModelServer::new(&format!("http://{address}/v1"), None);
        (Self(listener), server.expect("an address"))
    }

    /// The next request, with the bytes that were read of it.
    async fn asked(&self, until: &str) -> (TcpStream, String) {
        let (mut stream, _) = self.0.accept().await.expect("a connection");
        let (mut read, mut buffer) = (String::new(), [0; 1024]);
        while !read.ends_with(until) {
            let bytes = stream.read(&mut buffer).await.expect("it is open");
            assert!(bytes > 0, "it ended: {read}");
            read.push_str(&String::from_utf8_lossy(&buffer[..bytes]));
        }
        (stream, read)
    }
}

/// The asks of a link, and the frames that leave on it.
fn asks_over(server: Option<ModelServer>) -> (Asks, mpsc::Receiver<v1::RunnerFrame>) {
    let (outgoing, sent) = mpsc::channel(8);
    (Asks::new(server, outgoing), sent)
}

fn part(frame: Option<v1::RunnerFrame>) -> (u64, Part) {
    match frame.and_then(|frame| frame.kind) {
        Some(runner_frame::Kind::ModelAnswer(answer)) => {
            (answer.ask, answer.part.expect("a piece"))
        }
        other => panic!("no piece of an answer: {other:?}"),
    }
}

async fn next(sent: &mut mpsc::Receiver<v1::RunnerFrame>) -> Part {
    part(timeout(SOON, sent.recv()).await.expect("a frame in time")).1
}

fn ask(asks: &mut Asks, number: u64) -> Option<v1::RunnerFrame> {
    let begun = asks.order(begin(number, BODY.len() as u64));
    let data = Bytes::from_static(BODY);
    begun.or_else(|| asks.order(ModelOrder::Body { ask: number, data }))
}

fn begin(ask: u64, body_bytes: u64) -> ModelOrder {
    ModelOrder::Begin {
        ask,
        kind: Some(AskKind::ChatCompletions),
        body_bytes,
        trace: None,
    }
}

fn refused(frame: Option<v1::RunnerFrame>) -> Kind {
    match part(frame).1 {
        Part::Failed(failure) => failure.kind(),
        other => panic!("it is not refused: {other:?}"),
    }
}

#[tokio::test]
async fn an_answer_streams_within_its_credit_and_redirects_are_not_followed() {
    let (played, server) = Played::start().await;
    let (mut asks, mut sent) = asks_over(Some(server));
    assert!(ask(&mut asks, 1).is_none());
    let (mut stream, request) = played.asked(std::str::from_utf8(BODY).expect("text")).await;
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    let length = MODEL_WINDOW_BYTES + 7;
    let head = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nretry-after: 3\r\nx-other: 1\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("it is open");
    let Part::Head(head) = next(&mut sent).await else {
        panic!("no head");
    };
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|header| header.name.as_str())
        .collect();
    assert_eq!((head.status, headers), (302, vec!["retry-after"]));
    let body = vec![b'x'; length as usize];
    let sending = tokio::spawn(async move { stream.write_all(&body).await.map(|()| stream) });
    let mut came = 0;
    while came < MODEL_WINDOW_BYTES {
        let Part::Data(data) = next(&mut sent).await else {
            panic!("no data");
        };
        came += data.len() as u64;
    }
    assert_eq!(came, MODEL_WINDOW_BYTES);
    let _stream = sending.await.expect("no panic").expect("it is taken");
    assert!(sent.is_empty(), "it waits for credit");
    asks.order(ModelOrder::Credit {
        ask: 1,
        up_to: length,
    });
    assert!(matches!(next(&mut sent).await, Part::Data(data) if data.len() == 7));
    assert!(matches!(next(&mut sent).await, Part::End(_)));
}

#[tokio::test]
async fn an_ask_that_is_dropped_ends_its_request_and_so_does_the_end_of_the_link() {
    let (played, server) = Played::start().await;
    let (mut asks, _sent) = asks_over(Some(server));
    for number in [1, 2] {
        assert!(ask(&mut asks, number).is_none());
        let (mut stream, _) = played.asked("}").await;
        if number == 1 {
            asks.order(ModelOrder::Drop { ask: 1 });
        } else {
            asks = asks_over(None).0;
        }
        let ended = timeout(SOON, stream.read(&mut [0; 1]))
            .await
            .expect("in time");
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_runner_takes_a_bounded_number_of_asks_and_of_bytes() {
    let (played, server) = Played::start().await;
    let (mut asks, _sent) = asks_over(Some(server));
    for number in 1..=8 {
        assert!(ask(&mut asks, number).is_none());
    }
    assert_eq!(refused(ask(&mut asks, 9)), Kind::Busy);
    asks.order(ModelOrder::Drop { ask: 1 });
    assert!(ask(&mut asks, 10).is_none(), "there is room");
    for number in 2..=10 {
        asks.order(ModelOrder::Drop { ask: number });
    }
    let most = 32 * 1024 * 1024;
    assert_eq!(refused(asks.order(begin(11, most + 1))), Kind::Invalid);
    assert!(asks.order(begin(12, most)).is_none());
    assert!(asks.order(begin(13, most)).is_none());
    assert_eq!(refused(asks.order(begin(14, 1))), Kind::Busy);
    let data = Bytes::from_static(BODY);
    asks.order(ModelOrder::Drop { ask: 12 });
    assert!(asks.order(begin(15, 1)).is_none());
    assert_eq!(
        refused(asks.order(ModelOrder::Body { ask: 15, data })),
        Kind::Invalid
    );
    drop(played);
}

#[tokio::test]
async fn what_cannot_be_asked_is_said_without_an_address() {
    let (mut without, _sent) = asks_over(None);
    assert_eq!(refused(ask(&mut without, 1)), Kind::Unsupported);
    let (played, server) = Played::start().await;
    let port = played
        .0
        .local_addr()
        .expect("an address")
        .port()
        .to_string();
    drop(played);
    let (mut asks, mut sent) = asks_over(Some(server));
    assert!(ask(&mut asks, 1).is_none());
    let Part::Failed(failure) = next(&mut sent).await else {
        panic!("nothing listens there");
    };
    assert_eq!(failure.kind(), Kind::Unreachable);
    assert!(!failure.reason.contains(&port), "{}", failure.reason);
}

#[tokio::test]
async fn the_models_are_reported_when_they_change_and_stay_known_while_they_cannot_be_listed() {
    let (played, server) = Played::start().await;
    let known = KnownModels::of(server);
    let mut report = known.report.clone();
    let list = r#"{"data":[{"id":"qwen3:8b"},{"id":"a,b"}]}"#;
    let (mut stream, request) = played.asked("\r\n\r\n").await;
    assert!(
        request.starts_with("GET /v1/models HTTP/1.1\r\n"),
        "{request}"
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}",
        list.len()
    );
    stream
        .write_all(answer.as_bytes())
        .await
        .expect("it is open");
    let seen = report
        .wait_for(Option::is_some)
        .await
        .expect("it looks")
        .clone();
    assert_eq!(
        seen,
        Some(ModelsReport::bounded(["qwen3:8b".to_owned()], ""))
    );
    drop((stream, played));
    known.look();
    let is_away =
        |seen: &Option<ModelsReport>| seen.as_ref().is_some_and(|seen| !seen.problem.is_empty());
    let seen = report
        .wait_for(is_away)
        .await
        .expect("it looks")
        .clone()
        .expect("a report");
    assert_eq!(seen.models, ["qwen3:8b"]);
    assert!(
        seen.problem.contains("check that it runs"),
        "{}",
        seen.problem
    );
}

#[test]
fn a_key_is_one_line_that_only_its_owner_may_read_and_travels_encrypted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, mode, text: &str| {
        let path = directory.path().join(name);
        let mut options = fs::File::options();
        let file = options.write(true).create_new(true).mode(mode).open(&path);
        io::Write::write_all(&mut file.expect("a file"), text.as_bytes()).expect("room");
        path
    };
    let here = "http://127.0.0.1:11434/v1";
    let good = file("good", 0o600, " sk-canary \n");
    let server = ModelServer::new(here, Some(&good)).expect("a key");
    assert!(!format!("{server:?}").contains("canary"));
    for (path, words) in [
        (file("open", 0o644, "sk-canary"), "chmod 600"),
        (file("empty", 0o600, "\n"), "has no key"),
        (file("lines", 0o600, "sk-canary\nmore"), "has no key"),
        (directory.path().join("missing"), "cannot read"),
    ] {
        let error = ModelServer::new(here, Some(&path))
            .expect_err("a refusal")
            .to_string();
        assert!(
            error.contains(words) && !error.contains("canary"),
            "{error}"
        );
    }
    let plain = ModelServer::new("http://10.0.0.1/v1", Some(&good));
    assert!(
        matches!(plain, Err(ModelServerError::PlainText)),
        "{plain:?}"
    );
    for (wrong, words) in [
        ("127.0.0.1:11434", "such as http"),
        ("ftp://127.0.0.1", "such as http"),
        ("http://me:hush@127.0.0.1/v1", "--model-key-file"),
        ("http://127.0.0.1/v1?key=hush", "--model-key-file"),
    ] {
        let error = ModelServer::new(wrong, None)
            .expect_err("a refusal")
            .to_string();
        assert!(error.contains(words) && !error.contains("hush"), "{error}");
    }
}
