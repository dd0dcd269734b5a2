//! How much one user may store, with whatever credentials.

use serde_json::json;
use shared_api::ScopeName;
use tests::gantry::{Answer, Gantry, Setup};

async fn limited(settings: &str) -> Gantry {
    Gantry::with(Setup {
        settings: format!("[limits]\n{settings}\n"),
        ..Setup::default()
    })
    .await
}

fn is(answer: &Answer, status: u16, words: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let detail = answer.body["detail"].as_str().expect("a detail");
    assert!(detail.contains(words), "{detail}");
    let waits = answer
        .retry_after
        .is_some_and(|seconds| (1..=61).contains(&seconds));
    assert_eq!(waits, status == 429, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_begins_in_a_minute_is_bounded_and_other_keys_get_no_more() {
    let gantry = limited("new_per_minute = 5").await;
    let made = gantry
        .key("wild", &[ScopeName::Chat, ScopeName::Admin])
        .await;
    let wild = gantry.client_with(Some(made.key));
    for _ in 0..3 {
        wild.create_session("").await.expect("there is room");
    }
    wild.create_key("another").await.expect("that is the fifth");
    for (path, body) in [
        ("/api/v1/sessions", json!({})),
        ("/api/v1/keys", json!({ "name": "x" })),
        ("/api/v1/join-tokens", json!({})),
    ] {
        let refused = gantry.ask("post", path, Some(body.to_string())).await;
        is(&refused, 429, "new_per_minute under [limits]");
    }
    // What it made can be taken back all the same.
    gantry
        .client()
        .remove_key(made.entry.id)
        .await
        .expect("it is removed");
    assert_eq!(gantry.client().keys().await.expect("a list").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_begins_only_so_many_sessions() {
    let gantry = limited("sessions_at_most = 2").await;
    let begin = async || {
        gantry
            .ask("post", "/api/v1/sessions", Some("{}".to_owned()))
            .await
    };
    assert_eq!((begin().await.status, begin().await.status), (201, 201));
    is(&begin().await, 409, "sessions_at_most under [limits]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sends_only_so_much_in_a_minute_and_a_repetition_costs_nothing() {
    let gantry = limited("message_kib_per_minute = 256").await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let path = format!("/api/v1/sessions/{session}/messages");
    let send = async |client_id: &str, bytes: usize| {
        let body = json!({ "text": "x".repeat(bytes), "client_id": client_id });
        gantry.ask("post", &path, Some(body.to_string())).await
    };
    let first = send("1", 200 * 1024).await;
    assert_eq!(first.status, 202, "{first:?}");
    is(
        &send("2", 200 * 1024).await,
        429,
        "message_kib_per_minute under [limits]",
    );
    for _ in 0..10 {
        let again = send("1", 20 * 1024).await;
        assert_eq!((again.status, &again.body), (202, &first.body));
    }
    assert_eq!(send("3", 40 * 1024).await.status, 202);
}
