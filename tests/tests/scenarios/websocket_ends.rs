//! How a WebSocket begins and ends, by the bytes of RFC 6455: no library stands between.

use shared_types::limits::{MAX_API_BODY_BYTES, MAX_FRAME_BYTES};
use tests::{
    gantry::{Gantry, PATIENCE},
    peer::Peer,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// The handshake of RFC 6455, 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const STREAM: &str = "/api/v1/stream";

/// The opcodes of RFC 6455, 5.2; the first is the bit of a last frame.
const LAST: u8 = 0x80;
const CONTINUED: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;

/// A frame of a client, under a mask that changes nothing.
fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
    announced(head, payload.len(), payload)
}

/// A frame that announces another length than it has.
fn announced(head: u8, length: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![head];
    match u8::try_from(length) {
        Ok(length @ ..=125) => bytes.push(0x80 | length),
        _ => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// A close frame's payload.
fn close(code: u16, reason: &str) -> Vec<u8> {
    frame(
        LAST | CLOSE,
        &[&code.to_be_bytes(), reason.as_bytes()].concat(),
    )
}

/// A handshake with these headers; returns the connection, and the head of the answer.
async fn handshake(
    gantry: &Gantry,
    path: &str,
    token: &str,
    version: &str,
    key: &str,
) -> (TcpStream, String) {
    let address = gantry.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("it listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: {version}\r\n\
         sec-websocket-key: {key}\r\n\r\n"
    );
    let asked = stream.write_all(request.as_bytes()).await;
    asked.expect("it can be written");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    (stream, String::from_utf8(head).expect("text"))
}

/// Sends this on a new WebSocket, and reads up to the close frame and the end behind it: its code,
/// and its reason.
async fn ended(gantry: &Gantry, path: &str, token: &str, said: &[u8]) -> (Option<u16>, String) {
    let (mut stream, head) = handshake(gantry, path, token, "13", KEY).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream.write_all(said).await.expect("it can be written");
    let last = async {
        loop {
            let head = stream.read_u8().await.expect("a close frame");
            let length = match stream.read_u8().await.expect("a length") {
                126 => u64::from(stream.read_u16().await.expect("a length")),
                127 => stream.read_u64().await.expect("a length"),
                short => short.into(),
            };
            let mut payload = vec![0; usize::try_from(length).expect("a length")];
            stream.read_exact(&mut payload).await.expect("a payload");
            if head == LAST | CLOSE {
                return payload;
            }
        }
    };
    let last = timeout(PATIENCE, last).await.expect("an end in time");
    let mut rest = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    end.expect("an end in time").expect("it ends in order");
    assert_eq!(rest, b"", "nothing comes behind a close frame");
    match last.split_first_chunk() {
        None => (None, String::new()),
        Some((code, reason)) => {
            let reason = String::from_utf8(reason.to_vec()).expect("text");
            (Some(u16::from_be_bytes(*code)), reason)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_is_answered_with_its_own_code() {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let token = peer.access_token().await;
    for (path, token) in [(STREAM, gantry.token()), (proto::http1::LINK, &token)] {
        for (said, code) in [
            (close(1000, "done"), Some(1000)),
            (close(1001, ""), Some(1001)),
            (close(4711, ""), Some(4711)),
            (frame(LAST | CLOSE, b""), None),
        ] {
            assert_eq!(ended(&gantry, path, token, &said).await.0, code, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_the_protocol_hears_the_code_of_the_standard() {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let token = peer.access_token().await;
    let mut unmasked = frame(LAST | TEXT, b"");
    unmasked[1] = 0;
    let both = [
        ("unmasked", unmasked, 1002),
        ("a reserved bit", frame(LAST | 0x40 | TEXT, b"{}"), 1002),
        ("a reserved opcode", frame(LAST | 3, b""), 1002),
        ("a reserved control", frame(LAST | 11, b""), 1002),
        ("nothing to continue", frame(LAST | CONTINUED, b"x"), 1002),
        (
            "another beginning",
            [frame(BINARY, b"x"), frame(LAST | BINARY, b"x")].concat(),
            1002,
        ),
        ("a ping in pieces", frame(PING, b""), 1002),
        ("a long ping", announced(LAST | PING, 126, &[0; 126]), 1002),
        ("a code that is none", close(999, ""), 1002),
        ("half a code", frame(LAST | CLOSE, b"\x03"), 1002),
        ("a text that is none", frame(LAST | TEXT, b"\xff"), 1007),
    ];
    for (what, said, code) in both {
        for (path, token) in [(STREAM, gantry.token()), (proto::http1::LINK, &token)] {
            let (heard, reason) = ended(&gantry, path, token, &said).await;
            assert_eq!(heard, Some(code), "{what} on {path}: {reason}");
        }
    }
    let large = announced(LAST | TEXT, MAX_API_BODY_BYTES + 1, b"");
    let (code, _) = ended(&gantry, STREAM, gantry.token(), &large).await;
    assert_eq!(code, Some(1009));
    // Before the hello its own bound says more.
    let large = announced(LAST | BINARY, MAX_FRAME_BYTES + 1, b"");
    let (code, reason) = ended(&gantry, proto::http1::LINK, &token, &large).await;
    assert_eq!(
        (code, reason.as_str()),
        (Some(4008), "a hello may have 64 KiB")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_wrong_is_refused_with_what_would_be_right() {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let token = peer.access_token().await;
    for (path, token) in [(STREAM, gantry.token()), (proto::http1::LINK, &token)] {
        let (_, head) = handshake(&gantry, path, token, "8", KEY).await;
        assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
        assert!(head.contains("sec-websocket-version: 13\r\n"), "{head}");
        for key in ["c2hvcnQ=", "no base64 at all!", ""] {
            let (_, head) = handshake(&gantry, path, token, "13", key).await;
            assert!(head.starts_with("HTTP/1.1 400 "), "{key:?}: {head}");
        }
    }
}
