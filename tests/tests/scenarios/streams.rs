use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tests::gantry::{Gantry, PATIENCE};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::frame::coding::CloseCode},
};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(gantry: &Gantry, token: &str) -> Socket {
    let url = format!("{}/api/v1/stream", gantry.url()).replacen("http", "ws", 1);
    let mut request = url.into_client_request().expect("a request");
    let bearer = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    connect_async(request).await.expect("it is let in").0
}

async fn say(socket: &mut Socket, message: Value) {
    let message = Message::text(message.to_string());
    socket.send(message).await.expect("the server listens");
}

/// The next message; `Err` with the code of the goodbye where there is none.
async fn hear(socket: &mut Socket) -> Result<Value, Option<CloseCode>> {
    loop {
        let heard = timeout(PATIENCE, socket.next()).await;
        match heard.expect("something is said") {
            Some(Ok(Message::Text(text))) => {
                return Ok(serde_json::from_str(&text).expect("messages are JSON"));
            }
            Some(Ok(Message::Close(frame))) => return Err(frame.map(|frame| frame.code)),
            Some(Ok(_)) => {}
            Some(Err(error)) => panic!("the connection broke: {error}"),
            None => return Err(None),
        }
    }
}

async fn until_caught_up(socket: &mut Socket) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let message = hear(socket).await.expect("the connection stays");
        match message["type"].as_str() {
            Some("event") => seen.push(message["event"]["seq"].as_u64().expect("a number")),
            Some("caught_up") => return seen,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    let key = client.create_key("phone").await.expect("a key");
    let mut phone = connect(&gantry, &key.key).await;
    say(
        &mut phone,
        json!({ "type": "subscribe", "session": session, "after": 0 }),
    )
    .await;
    assert_eq!(until_caught_up(&mut phone).await, [1]);
    client
        .remove_key(key.entry.id)
        .await
        .expect("it is revoked");
    assert_eq!(hear(&mut phone).await, Err(Some(CloseCode::Policy)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_says_goodbye_to_those_who_follow() {
    let mut gantry = Gantry::practice().await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let token = gantry.token().to_owned();
    let mut socket = connect(&gantry, &token).await;
    say(
        &mut socket,
        json!({ "type": "subscribe", "session": session, "after": 0 }),
    )
    .await;
    until_caught_up(&mut socket).await;
    assert_eq!(gantry.stop_server().await, Some(0));
    let asked = json!({ "type": "reconnect", "within_ms": 500 });
    assert_eq!(hear(&mut socket).await, Ok(asked));
    assert_eq!(hear(&mut socket).await, Err(Some(CloseCode::Restart)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_subscribes_again_gets_every_event_once_and_in_order() {
    let gantry = Gantry::practice().await;
    let mut talk = gantry.talk().await;
    for _ in 0..20 {
        talk.say("hello").await;
    }
    let session = talk.session();
    let log = gantry.client().session(session).await.expect("it is there");
    let all: Vec<u64> = (1..=log.last_seq).collect();
    let mut socket = connect(&gantry, gantry.token()).await;
    let subscribe = json!({ "type": "subscribe", "session": session, "after": 0 });
    for _ in 0..50 {
        say(&mut socket, subscribe.clone()).await;
    }
    say(
        &mut socket,
        json!({ "type": "unsubscribe", "session": session }),
    )
    .await;
    say(
        &mut socket,
        json!({ "type": "subscribe", "session": "nonsense", "after": 0 }),
    )
    .await;
    let mut seen = Vec::new();
    loop {
        let message = hear(&mut socket).await.expect("the connection stays");
        match message["type"].as_str() {
            Some("event") => seen.push(message["event"]["seq"].as_u64().expect("a number")),
            Some("problem") => break,
            _ => {}
        }
    }
    // Each subscription begins anew, and what it says is a prefix of the log.
    for run in seen.chunk_by(|one, next| next == &(one + 1)) {
        assert_eq!(run, &all[..run.len()]);
    }
    say(&mut socket, subscribe).await;
    assert_eq!(until_caught_up(&mut socket).await, all);
}
