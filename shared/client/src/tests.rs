//! The client against a server that the test itself plays, over real sockets.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use shared_api::{ClientMessage, Live, ServerMessage};
use shared_types::{
    Event, SessionEvent, SessionId, Timestamp, TurnId, entropy::SeededEntropy, event::EventBody,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async, tungstenite::Message};

use crate::{Client, ClientError, Followed, Options, PING_EVERY, Trust};

const SESSION: SessionId = SessionId::from_u128(1);

const PROBLEM: &str = "content-type: application/problem+json\r\n";

const UNAUTHENTICATED: &str =
    r#"{"code":"unauthenticated","status":401,"detail":"the token does not hold: sign in again"}"#;

pub(crate) async fn server() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let client = Client::new(Options {
        server: format!("http://{address}").parse().expect("an address"),
        token: Some("gantry_user_secret".into()),
        trust: Trust::Platform,
        plain_text_allowed: false,
        ping_every: PING_EVERY,
        entropy: Arc::new(SeededEntropy::new(1)),
    });
    (listener, client.expect("the options are good"))
}

/// Answers one request on a connection of its own, and gives what was asked.
pub(crate) async fn answer(
    listener: &TcpListener,
    status: &str,
    headers: &str,
    body: &str,
) -> String {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let headers = format!("connection: close\r\n{headers}");
    answer_on(&mut stream, status, &headers, body).await
}

/// Answers the next request of a connection, and gives what was asked.
pub(crate) async fn answer_on(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &str,
) -> String {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.expect("a request");
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, sent)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1).map_or(0, |rest| {
            let digits = rest.lines().next().unwrap_or_default();
            digits.parse().expect("a length")
        });
        if sent.len() >= length {
            break;
        }
    }
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    stream
        .write_all(answer.as_bytes())
        .await
        .expect("it is taken");
    String::from_utf8(request).expect("requests are text")
}

#[expect(
    clippy::result_large_err,
    reason = "the library's callback is typed so"
)]
async fn socket(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = listener.accept().await.expect("a connection");
    let accept = |request: &tokio_tungstenite::tungstenite::handshake::server::Request,
                  response| {
        assert_eq!(request.uri().path(), "/api/v1/stream");
        assert_eq!(
            request.headers()["authorization"],
            "Bearer gantry_user_secret"
        );
        Ok(response)
    };
    accept_hdr_async(stream, accept).await.expect("a WebSocket")
}

async fn subscribed_after(socket: &mut WebSocketStream<TcpStream>) -> u64 {
    let message = socket
        .next()
        .await
        .expect("a message")
        .expect("it is whole");
    match serde_json::from_str(message.to_text().expect("text")).expect("ours") {
        ClientMessage::Subscribe { session, after } if session == SESSION => after,
        other => panic!("{other:?} is no subscription"),
    }
}

async fn say(socket: &mut WebSocketStream<TcpStream>, messages: &[ServerMessage]) {
    for message in messages {
        let text = serde_json::to_string(message).expect("messages are JSON");
        socket.send(Message::text(text)).await.expect("it is taken");
    }
}

fn event(seq: u64) -> ServerMessage {
    let created = Event::SessionCreated {
        title: String::new(),
        model: String::new(),
        directory: String::new(),
    };
    ServerMessage::Event {
        session: SESSION,
        event: Box::new(SessionEvent {
            seq,
            at: Timestamp::from_micros(0),
            body: EventBody::Known(created),
        }),
    }
}

fn caught_up(seq: u64) -> ServerMessage {
    ServerMessage::CaughtUp {
        session: SESSION,
        seq,
    }
}

fn text(offset: u64, text: &str) -> ServerMessage {
    ServerMessage::Live {
        session: SESSION,
        live: Live::Text {
            turn: TurnId::from_u128(1),
            step: 1,
            attempt: 1,
            part: 0,
            offset,
            text: text.into(),
        },
    }
}

/// An item in one word.
async fn heard(follow: &mut crate::Follow) -> String {
    match follow.next().await.expect("an item").expect("no error") {
        Followed::Event(event) => event.seq.to_string(),
        Followed::Live(Live::Text { text, .. }) => text,
        Followed::Live(_) => "live".into(),
        Followed::CaughtUp { .. } => "caught up".into(),
        Followed::Lost { .. } => "lost".into(),
        Followed::Recovered => "recovered".into(),
    }
}

#[tokio::test]
async fn a_follower_goes_on_where_a_lost_connection_left_it() {
    let (listener, client) = server().await;
    let mut follow = client.follow(SESSION, 0);

    let mut first = socket(&listener).await;
    assert_eq!(subscribed_after(&mut first).await, 0);
    say(
        &mut first,
        &[event(1), event(2), caught_up(2), text(0, "Hel")],
    )
    .await;
    for expected in ["1", "2", "caught up", "Hel"] {
        assert_eq!(heard(&mut follow).await, expected);
    }
    drop(first);
    assert_eq!(heard(&mut follow).await, "lost");

    // A connection that fails before it has caught up is not a recovery.
    let mut second = socket(&listener).await;
    assert_eq!(subscribed_after(&mut second).await, 2);
    drop(second);

    let mut third = socket(&listener).await;
    assert_eq!(subscribed_after(&mut third).await, 2);
    say(
        &mut third,
        &[
            text(0, "Hello"),
            event(2),
            event(3),
            caught_up(3),
            text(5, "."),
        ],
    )
    .await;
    for expected in ["recovered", "3", "caught up", "lo", "."] {
        assert_eq!(heard(&mut follow).await, expected);
    }
}

fn reconnect(within_ms: u32) -> ServerMessage {
    ServerMessage::Reconnect { within_ms }
}

#[tokio::test]
async fn a_server_that_asks_to_connect_again_soon_is_followed_on_without_a_word_of_it() {
    let (listener, client) = server().await;
    let mut follow = client.follow(SESSION, 0);
    let mut first = socket(&listener).await;
    subscribed_after(&mut first).await;
    say(&mut first, &[event(1), caught_up(1), reconnect(500)]).await;
    let mut second = socket(&listener).await;
    assert_eq!(subscribed_after(&mut second).await, 1);
    say(&mut second, &[event(2), caught_up(2), reconnect(500)]).await;
    for expected in ["1", "caught up", "2", "caught up"] {
        assert_eq!(heard(&mut follow).await, expected);
    }
    // Where nobody answers then, the connection is lost as any other.
    drop(listener);
    assert_eq!(heard(&mut follow).await, "lost");
}

#[tokio::test]
async fn a_server_that_asks_to_stay_away_for_long_is_told_of() {
    let (listener, client) = server().await;
    let mut follow = client.follow(SESSION, 0);
    let mut first = socket(&listener).await;
    subscribed_after(&mut first).await;
    say(&mut first, &[event(1), reconnect(60_000)]).await;
    assert_eq!(heard(&mut follow).await, "1");
    match follow.next().await {
        Some(Ok(Followed::Lost { reason })) => {
            assert_eq!(reason, "the server asks to connect again");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_gap_is_filled_by_subscribing_again() {
    let (listener, client) = server().await;
    let mut follow = client.follow(SESSION, 0);
    let mut first = socket(&listener).await;
    subscribed_after(&mut first).await;
    say(&mut first, &[event(1), event(3)]).await;
    let mut second = socket(&listener).await;
    assert_eq!(subscribed_after(&mut second).await, 1);
    say(&mut second, &[event(2), event(3), caught_up(3)]).await;
    for expected in ["1", "lost", "recovered", "2", "3", "caught up"] {
        assert_eq!(heard(&mut follow).await, expected);
    }
}

#[tokio::test]
async fn a_credential_that_does_not_hold_ends_the_following() {
    let (listener, client) = server().await;
    let mut follow = client.follow(SESSION, 0);
    answer(&listener, "401 Unauthorized", PROBLEM, UNAUTHENTICATED).await;
    let error = follow
        .next()
        .await
        .expect("an item")
        .expect_err("it is refused");
    assert!(error.is_unauthenticated(), "{error:?}");
    assert_eq!(follow.next().await, None);
}

#[tokio::test]
async fn a_follower_that_is_dropped_closes_its_connection() {
    let (listener, client) = server().await;
    let follow = client.follow(SESSION, 0);
    let mut first = socket(&listener).await;
    subscribed_after(&mut first).await;
    drop(follow);
    assert!(!matches!(first.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn a_message_is_sent_again_under_the_same_key() {
    let (listener, client) = server().await;
    let accepted = r#"{"turn":"trn_00000000000000000000000001","seq":2}"#;
    let (sent, requests) = tokio::join!(client.send(SESSION, "hello", "key-1"), async {
        let first = answer(&listener, "502 Bad Gateway", "", "<html>").await;
        (first, answer(&listener, "202 Accepted", "", accepted).await)
    });
    assert_eq!(sent.expect("it is accepted").seq, 2);
    let body = |request: &str| request.split("\r\n\r\n").nth(1).map(str::to_owned);
    assert_eq!(body(&requests.0), body(&requests.1));
    assert!(
        requests.1.contains(r#""client_id":"key-1""#),
        "{}",
        requests.1
    );
    assert!(
        requests
            .1
            .contains("authorization: Bearer gantry_user_secret")
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_apart_and_never_names_the_token() {
    let (listener, client) = server().await;
    let (refused, _) = tokio::join!(
        client.me(),
        answer(&listener, "401 Unauthorized", PROBLEM, UNAUTHENTICATED)
    );
    let (foreign, _) = tokio::join!(client.me(), answer(&listener, "200 OK", "", "<html>"));
    let away = "location: http://127.0.0.1:1/\r\n";
    let (redirected, _) = tokio::join!(client.me(), answer(&listener, "302 Found", away, ""));
    let switched = answer(&listener, "101 Switching Protocols", "", "");
    let (switched, _) = tokio::join!(client.delete_session(SESSION), switched);
    assert!(matches!(switched, Err(ClientError::Protocol { .. })));
    drop(listener);
    let gone = client.me().await;
    let errors = [refused, foreign, redirected, gone].map(|result| result.expect_err("it failed"));
    assert!(matches!(
        errors,
        [
            ClientError::Refused(_),
            ClientError::Protocol { .. },
            ClientError::Protocol { .. },
            ClientError::Unreachable { .. }
        ]
    ));
    for error in errors {
        assert!(
            !format!("{error} {error:?} {client:?}").contains("secret"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn only_the_pinned_certificate_is_talked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificate =
        shared_tls::ServerTls::self_signed(folder.path(), &[]).expect("a certificate");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let acceptor = tokio_rustls::TlsAcceptor::from(certificate.config());
    let client = |trust| {
        Client::new(Options {
            server: format!("https://{address}").parse().expect("an address"),
            token: Some("gantry_user_secret".into()),
            trust,
            plain_text_allowed: false,
            ping_every: PING_EVERY,
            entropy: Arc::new(SeededEntropy::new(1)),
        })
        .expect("the options are good")
    };
    let accept = async || {
        let (stream, _) = listener.accept().await.expect("a connection");
        acceptor.accept(stream).await
    };

    let pin = certificate.certificate_sha256();
    let mut follow = client(Trust::Pinned(pin)).follow(SESSION, 0);
    let stream = accept().await.expect("it trusts us");
    let mut socket = tokio_tungstenite::accept_async(stream)
        .await
        .expect("a WebSocket");
    assert!(socket.next().await.is_some_and(|message| message.is_ok()));

    let stranger = client(Trust::Pinned([7; 32]));
    let mut follow_stranger = stranger.follow(SESSION, 0);
    let (asked, _) = tokio::join!(stranger.me(), async { (accept().await, accept().await) });
    assert!(
        matches!(asked, Err(ClientError::Untrusted { .. })),
        "{asked:?}"
    );
    let ended = follow_stranger.next().await;
    assert!(
        matches!(ended, Some(Err(ClientError::Untrusted { .. }))),
        "{ended:?}"
    );
    // Without a word: neither the WebSocket nor TLS is closed as it should be.
    drop(socket);
    match follow.next().await {
        Some(Ok(Followed::Lost { reason })) => assert_eq!(reason, "it closed the connection"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_is_not_ready_says_why_and_anything_else_is_no_server() {
    let (listener, client) = server().await;
    for (status, said) in [
        ("200 OK", Ok(None)),
        (
            "503 Service Unavailable",
            Ok(Some("the server stops".to_owned())),
        ),
        ("404 Not Found", Err(())),
    ] {
        let (asked, heard) = tokio::join!(
            answer(&listener, status, "", "the server stops\n"),
            client.not_ready()
        );
        assert!(asked.starts_with("GET /readyz "), "{asked}");
        assert!(!asked.contains("secret"), "{asked}");
        assert_eq!(heard.map_err(drop), said);
    }
}
