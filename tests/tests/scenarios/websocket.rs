//! The WebSocket, spoken wrongly: each mistake is answered with a problem that says what it was,
//! and the connection goes on.

use std::sync::Arc;

use serde_json::{Value, json};
use shared_types::SessionId;
use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply, Step},
    socket::Socket,
};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

/// Sessions that one connection may follow at once.
const SUBSCRIPTIONS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_does_not_understand_is_a_problem_and_the_connection_goes_on() {
    let gantry = Gantry::practice().await;
    let mut socket = Sessions::open(&gantry).await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let good = subscribe(session);
    let mistakes = [
        ("", "not understood"),
        ("nonsense", "not understood"),
        ("{}", "type"),
        (r#"{"type":"dance"}"#, "dance"),
        (r#"{"type":"subscribe"}"#, "session"),
        (
            r#"{"type":"subscribe","session":7,"after":0}"#,
            "not understood",
        ),
        (
            r#"{"type":"subscribe","session":"ses_1","after":0}"#,
            "ses_01h455vb4pex5vsknk084sn02q",
        ),
        (
            r#"{"type":"subscribe","session":"run_00000000000000000000000000","after":0}"#,
            "ses_01h455vb4pex5vsknk084sn02q",
        ),
        (
            r#"{"type":"unsubscribe","session":"x"}"#,
            "ses_01h455vb4pex5vsknk084sn02q",
        ),
        (r#"{"type":"watch"}"#, "topics"),
        (r#"{"type":"watch","topics":"sessions"}"#, "not understood"),
        (r#"{"type":"watch","topics":["pumps"]}"#, "pumps"),
        (r#"{"type":"watch","topics":[],"surprise":1}"#, "surprise"),
    ];
    for (text, words) in mistakes {
        socket.say(Message::text(text)).await;
        socket.hears_problem(&Value::Null, 422, words).await;
    }
    let surprise = good.replace('{', r#"{"surprise":1,"#);
    socket.say(Message::text(surprise)).await;
    socket.hears_problem(&Value::Null, 422, "surprise").await;
    socket.say(Message::binary(good.clone())).await;
    socket.hears_problem(&Value::Null, 422, "JSON text").await;

    socket.say(Message::text(good)).await;
    assert_eq!(socket.hears().await["type"], "event");
    assert_eq!(socket.hears().await["type"], "caught_up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_there_is_not_found_and_the_connection_goes_on() {
    let gantry = Gantry::practice().await;
    let mut socket = Sessions::open(&gantry).await;
    let nothing = SessionId::from_u128(1);
    for _ in 0..2 * SUBSCRIPTIONS {
        socket.say(Message::text(subscribe(nothing))).await;
        socket
            .hears_problem(&json!(nothing.to_string()), 404, "session not found")
            .await;
    }
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    socket.say(Message::text(subscribe(session))).await;
    assert_eq!(socket.hears().await["session"], session.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subscription_to_a_session_that_is_deleted_ends_and_the_others_go_on() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let mut socket = Sessions::open(&gantry).await;
    let kept = client.create_session("").await.expect("a session").id;
    let deleted = client.create_session("").await.expect("a session").id;
    for session in [kept, deleted] {
        socket.say(Message::text(subscribe(session))).await;
        socket.catches_up(session).await;
    }
    client.delete_session(deleted).await.expect("it is deleted");
    let named = json!(deleted.to_string());
    socket.hears_problem(&named, 404, "session not found").await;
    let sent = client.send(kept, "hello", "1").await;
    sent.expect("it is taken");
    assert_eq!(socket.hears().await["session"], kept.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_subscriptions_are_refused_until_one_is_given_up() {
    let gantry = Gantry::practice().await;
    let mut socket = Sessions::open(&gantry).await;
    let mut sessions = Vec::new();
    for _ in 0..=SUBSCRIPTIONS {
        sessions.push(
            gantry
                .client()
                .create_session("")
                .await
                .expect("a session")
                .id,
        );
    }
    let last = sessions.pop().expect("there are some");
    for session in &sessions {
        socket.say(Message::text(subscribe(*session))).await;
        socket.catches_up(*session).await;
    }
    socket.say(Message::text(subscribe(last))).await;
    let named = json!(last.to_string());
    socket
        .hears_problem(&named, 422, "too many subscriptions")
        .await;
    // One that is followed already is not one more.
    socket.say(Message::text(subscribe(sessions[1]))).await;
    socket.catches_up(sessions[1]).await;
    let given_up = json!({ "type": "unsubscribe", "session": sessions[0] });
    socket.say(Message::text(given_up.to_string())).await;
    socket.say(Message::text(subscribe(last))).await;
    socket.catches_up(last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_sent_while_a_turn_runs_has_the_documented_shape() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    let mut socket = Sessions::open(&gantry).await;
    socket.say(Message::text(subscribe(session))).await;
    socket.catches_up(session).await;
    // Output and text are sent live as long as no event says the same.
    let told = Arc::new(Notify::new());
    let answer = vec![
        Step::text("do"),
        Step::Hold(told.clone()),
        Step::text("ne"),
        Step::end(),
    ];
    let command = json!({ "command": "echo hi; until [ -e go ]; do sleep 0.01; done" });
    model.script(vec![Reply::call("Shell", command), Reply::Raw(answer)]);
    let sent = client.send(session, "go", "1").await;
    sent.expect("it is accepted");
    let mut kinds = Vec::new();
    loop {
        let said = socket.hears().await;
        let live = said["live"]["kind"].as_str().unwrap_or_default().to_owned();
        match live.as_str() {
            "output" => std::fs::write(runner.workspace().join("go"), "").expect("it is ours"),
            "text" => told.notify_one(),
            _ => {}
        }
        kinds.push(live);
        if said["event"]["event"]["type"] == "turn.ended" || said["event"]["type"] == "turn.ended" {
            break;
        }
    }
    assert!(kinds.iter().any(|kind| kind == "output"), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "text"), "{kinds:?}");
}

/// A client that follows sessions.
struct Sessions(Socket);

impl Sessions {
    async fn open(gantry: &Gantry) -> Self {
        Self(Socket::open(gantry, "/api/v1/stream", "ServerMessage").await)
    }

    async fn say(&mut self, message: Message) {
        self.0.say(message).await;
    }

    async fn hears(&mut self) -> Value {
        self.0.hears().await
    }

    /// The next message is this problem.
    async fn hears_problem(&mut self, session: &Value, status: u16, words: &str) {
        let said = self.hears().await;
        assert_eq!(said["type"], "problem", "{said}");
        assert_eq!(&said["session"], session, "{said}");
        assert_eq!(said["problem"]["status"], status, "{said}");
        let detail = said["problem"]["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "it should say {words:?}: {detail}");
    }

    /// Everything of this session was sent.
    async fn catches_up(&mut self, session: SessionId) {
        loop {
            let said = self.hears().await;
            assert_eq!(said["session"], session.to_string(), "{said}");
            match said["type"].as_str() {
                Some("event") => {}
                Some("caught_up") => return,
                _ => panic!("{said}"),
            }
        }
    }
}

fn subscribe(session: SessionId) -> String {
    json!({ "type": "subscribe", "session": session, "after": 0 }).to_string()
}
