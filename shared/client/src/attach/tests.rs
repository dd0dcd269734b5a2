//! An attached client against a server that the test itself plays, over real sockets.

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use shared_api::{BinaryFrame, Channel, Exec, OperationServerMessage, StartOperation, StreamName};
use shared_types::OperationId;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Bytes, Message,
        handshake::server::Request,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use super::QUEUE;
use crate::{
    Attach, Attached, ClientError, Piece,
    tests::{answer, answer_on, server},
};

const ID: OperationId = OperationId::from_u128(1);

const OPERATION: &str = r#"{"id":"op_00000000000000000000000001","title":"sort","kind":"exec",
    "runner":{"id":"run_00000000000000000000000001","name":"laptop"},"started_by":"ann",
    "placed_at":"2026-01-01T00:00:00Z","state":"open"}"#;

type Socket = WebSocketStream<TcpStream>;

/// Accepts a connection; gives what it asks for.
async fn socket(listener: &TcpListener) -> (Socket, String) {
    let (stream, _) = listener.accept().await.expect("a connection");
    socket_on(stream).await
}

/// The same on this connection.
#[expect(
    clippy::result_large_err,
    reason = "the library's callback is typed so"
)]
async fn socket_on(stream: TcpStream) -> (Socket, String) {
    let mut asked = String::new();
    let accept = |request: &Request, response| {
        assert_eq!(
            request.uri().path(),
            format!("/api/v1/operations/{ID}/stream")
        );
        asked = request.uri().query().unwrap_or_default().to_owned();
        Ok(response)
    };
    let mut socket = accept_hdr_async(stream, accept).await.expect("a WebSocket");
    let first = format!(r#"{{"type":"operation","operation":{OPERATION}}}"#);
    socket
        .send(Message::text(first))
        .await
        .expect("it is taken");
    (socket, asked)
}

async fn say(socket: &mut Socket, message: OperationServerMessage) {
    let text = serde_json::to_string(&message).expect("messages are JSON");
    socket.send(Message::text(text)).await.expect("it is taken");
}

async fn write(socket: &mut Socket, offset: u64, text: &'static str) {
    let frame = BinaryFrame {
        channel: Channel::Output(StreamName::Stdout),
        offset,
        data: Bytes::from_static(text.as_bytes()),
    };
    let frame = Message::Binary(frame.encode());
    socket.send(frame).await.expect("it is taken");
}

/// The next piece of input, or the message, as text.
async fn hear(socket: &mut Socket) -> String {
    match socket.next().await.expect("a message").expect("whole") {
        Message::Binary(data) => {
            let frame = BinaryFrame::decode(data).expect("ours");
            format!("{} {}", frame.offset, String::from_utf8_lossy(&frame.data))
        }
        message => message.into_text().expect("text").to_string(),
    }
}

/// An item in one word.
async fn heard(attach: &mut Attach) -> String {
    match attach.next().await.expect("an item").expect("no error") {
        Attached::Operation(operation) => operation.title,
        Attached::Output { data, .. } => String::from_utf8_lossy(&data).into_owned(),
        Attached::InputTaken { offset } => format!("taken {offset}"),
        Attached::Lost { .. } => "lost".into(),
        Attached::Recovered => "recovered".into(),
        Attached::Ended(_) => "ended".into(),
        other => format!("{other:?}"),
    }
}

fn exec() -> StartOperation {
    StartOperation {
        exec: Some(Exec {
            argv: Some(vec!["sort".to_owned()]),
            ..Exec::default()
        }),
        ..StartOperation::default()
    }
}

fn taken(offset: u64) -> OperationServerMessage {
    OperationServerMessage::InputTaken { offset }
}

#[tokio::test]
async fn a_start_whose_answer_is_lost_is_repeated_under_the_same_key() {
    let (listener, client) = server().await;
    let (mut attach, _controls) = client.start(exec());
    let first = answer(&listener, "502 Bad Gateway", "", "<html>").await;
    assert_eq!(heard(&mut attach).await, "lost");
    let second = answer(&listener, "201 Created", "", OPERATION).await;
    let key = |request: &str| {
        let mut lines = request.lines();
        lines
            .find(|line| line.starts_with("idempotency-key: "))
            .map(str::to_owned)
    };
    assert!(key(&first).is_some(), "{first}");
    assert_eq!(key(&first), key(&second));
    let (_socket, asked) = socket(&listener).await;
    assert_eq!(asked, "stdout=0&stderr=0");
    assert_eq!(heard(&mut attach).await, "recovered");
    assert_eq!(heard(&mut attach).await, "sort");
}

#[tokio::test]
async fn an_operation_is_followed_over_the_connection_that_started_it() {
    let (listener, client) = server().await;
    let (mut attach, _controls) = client.start(exec());
    let (mut stream, _) = listener.accept().await.expect("a connection");
    answer_on(&mut stream, "201 Created", "", OPERATION).await;
    let (_socket, asked) = socket_on(stream).await;
    assert_eq!(asked, "stdout=0&stderr=0");
    assert_eq!(heard(&mut attach).await, "sort");
    assert!(listener.accept().now_or_never().is_none());
}

#[tokio::test]
async fn an_answer_that_opens_no_web_socket_is_not_of_our_protocol() {
    for (status, headers) in [
        ("200 OK", ""),
        ("101 Switching Protocols", ""),
        (
            "101 Switching Protocols",
            "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        ),
    ] {
        let (listener, client) = server().await;
        let (mut attach, _controls) = client.attach(ID, 0, 0);
        answer(&listener, status, headers, "").await;
        let error = attach.next().await.expect("an item");
        assert!(
            matches!(error, Err(ClientError::Protocol { .. })),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_server_that_was_never_reached_is_an_error_at_once() {
    let (listener, client) = server().await;
    drop(listener);
    for (mut attach, _controls) in [client.start(exec()), client.attach(ID, 0, 0)] {
        let error = attach
            .next()
            .await
            .expect("an item")
            .expect_err("it is gone");
        assert!(
            matches!(error, ClientError::Unreachable { .. }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn after_a_cut_output_goes_on_behind_what_came_and_input_from_what_was_taken() {
    let (listener, client) = server().await;
    let (mut attach, controls) = client.attach(ID, 0, 0);
    let (mut first, asked) = socket(&listener).await;
    assert_eq!(asked, "stdout=0&stderr=0");
    say(&mut first, taken(0)).await;
    write(&mut first, 0, "Hel").await;
    for expected in ["sort", "taken 0", "Hel"] {
        assert_eq!(heard(&mut attach).await, expected);
    }
    let input = |text: &'static str, end| Piece {
        at: None,
        data: Bytes::from_static(text.as_bytes()),
        end,
    };
    controls
        .room()
        .await
        .expect("it is open")
        .fill(input("abc", false));
    assert_eq!(hear(&mut first).await, "0 abc");
    drop(first);
    assert_eq!(heard(&mut attach).await, "lost");
    // What is typed meanwhile is held.
    controls
        .room()
        .await
        .expect("it is open")
        .fill(input("de", true));

    let (mut second, asked) = socket(&listener).await;
    assert_eq!(asked, "stdout=3&stderr=0");
    say(&mut second, taken(2)).await;
    assert_eq!(hear(&mut second).await, "2 c");
    assert_eq!(hear(&mut second).await, "3 de");
    assert_eq!(
        hear(&mut second).await,
        r#"{"type":"input_end","offset":5}"#
    );
    write(&mut second, 0, "Hello").await;
    let end = format!(r#"{{"type":"ended","operation":{OPERATION}}}"#);
    second.send(Message::text(end)).await.expect("it is taken");
    for expected in ["recovered", "sort", "taken 2", "lo", "ended"] {
        assert_eq!(heard(&mut attach).await, expected);
    }
    assert_eq!(attach.next().await, None);
}

#[tokio::test]
async fn a_consumer_that_stands_still_holds_no_connection_and_misses_nothing() {
    let (listener, client) = server().await;
    let (mut attach, _controls) = client.attach(ID, 0, 0);
    let (mut first, _) = socket(&listener).await;
    let pieces = QUEUE as u64 + 4;
    for offset in 0..pieces {
        write(&mut first, offset, "x").await;
    }
    tokio::time::pause();
    while first.next().await.is_some_and(|message| message.is_ok()) {}
    tokio::time::resume();
    assert_eq!(heard(&mut attach).await, "sort");
    let server = async {
        let (mut second, asked) = socket(&listener).await;
        let have: u64 = asked[7..]
            .split('&')
            .next()
            .expect("it asks")
            .parse()
            .expect("a number");
        assert!(have < pieces, "{asked}");
        for offset in have..pieces {
            write(&mut second, offset, "x").await;
        }
        second
    };
    let mut output = String::new();
    let consumer = async {
        while output.len() < pieces as usize {
            let word = heard(&mut attach).await;
            assert!(["x", "sort"].contains(&word.as_str()), "{word}");
            output.push_str(word.trim_start_matches("sort"));
        }
    };
    let (_second, ()) = tokio::join!(server, consumer);
}

#[tokio::test]
async fn an_operation_that_cannot_be_followed_any_more_is_an_error() {
    let (listener, client) = server().await;
    let (mut attach, _controls) = client.attach(ID, 0, 0);
    let (mut first, _) = socket(&listener).await;
    let problem = shared_api::Problem::new("conflict", 409, "it has another reader");
    say(&mut first, OperationServerMessage::Problem { problem }).await;
    let close = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    first.close(Some(close)).await.expect("it is taken");
    assert_eq!(heard(&mut attach).await, "sort");
    assert!(heard(&mut attach).await.contains("another reader"));
    let error = attach.next().await.expect("an item").expect_err("refused");
    assert_eq!(error.to_string(), "it has another reader");
}

#[tokio::test]
async fn a_server_that_asks_to_connect_again_soon_is_attached_to_anew_without_a_word_of_it() {
    let (listener, client) = server().await;
    let (mut attach, controls) = client.attach(ID, 0, 0);
    let (mut first, _) = socket(&listener).await;
    say(&mut first, taken(0)).await;
    write(&mut first, 0, "Hel").await;
    for expected in ["sort", "taken 0", "Hel"] {
        assert_eq!(heard(&mut attach).await, expected);
    }
    say(
        &mut first,
        OperationServerMessage::Reconnect { within_ms: 500 },
    )
    .await;
    let room = controls.room().await.expect("it has not ended");
    room.fill(Piece {
        at: None,
        data: Bytes::from_static(b"in"),
        end: false,
    });
    let (mut second, asked) = socket(&listener).await;
    assert_eq!(asked, "stdout=3&stderr=0");
    say(&mut second, taken(0)).await;
    assert_eq!(hear(&mut second).await, "0 in");
    write(&mut second, 0, "Hello").await;
    for expected in ["sort", "taken 0", "lo"] {
        assert_eq!(heard(&mut attach).await, expected);
    }
}
