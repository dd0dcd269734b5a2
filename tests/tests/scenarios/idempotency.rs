//! Requests with an Idempotency-Key: carried out once, however often they are sent.

use serde_json::{Value, json};
use shared_api::RoleName;
use tests::{gantry::Gantry, openapi::Document};

/// What came back.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    status: u16,
    replayed: bool,
    body: Value,
}

/// Posts with a key.
async fn post(gantry: &Gantry, token: &str, path: &str, key: &str, body: &Value) -> Answer {
    let request = gantry.request("post", path).bearer_auth(token);
    let answer = request.header("Idempotency-Key", key).json(body).send();
    let answer = answer.await.expect("an answer");
    Answer {
        status: answer.status().as_u16(),
        replayed: answer.headers().contains_key("idempotency-replayed"),
        body: answer.json().await.expect("JSON"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_is_carried_out_once_and_answered_alike() {
    let mut gantry = Gantry::practice().await;
    let token = gantry.token().to_owned();
    let begin = async |gantry: &Gantry, key: &str, title: &str| {
        post(
            gantry,
            &token,
            "/api/v1/sessions",
            key,
            &json!({ "title": title }),
        )
        .await
    };
    // Those that come while the first is carried out are told so.
    let at_once = futures_util::future::join_all((0..8).map(|_| begin(&gantry, "one", "a")));
    for answer in at_once.await {
        assert!(matches!(answer.status, 201 | 409), "{answer:?}");
    }
    let first = begin(&gantry, "one", "a").await;
    assert_eq!((first.status, first.replayed), (201, true), "{first:?}");
    let session = first.body["id"].as_str().expect("an id").to_owned();
    let sessions = gantry.client().sessions(10).await.expect("a list");
    assert_eq!(sessions.len(), 1, "it was begun once");

    let other = begin(&gantry, "one", "b").await;
    assert_eq!(
        (other.status, &other.body["code"]),
        (422, &json!("key_reused"))
    );
    assert_eq!(begin(&gantry, "two", "b").await.status, 201);
    let messages = format!("/api/v1/sessions/{session}/messages");
    let hello = json!({ "text": "hello" });
    let said = post(&gantry, &token, &messages, "three", &hello).await;
    assert_eq!((said.status, said.replayed), (202, false));

    gantry.stop_server().await;
    gantry.start_server().await;
    assert_eq!(
        begin(&gantry, "one", "a").await,
        first,
        "also after a restart"
    );
    let again = post(&gantry, &token, &messages, "three", &hello).await;
    assert_eq!(
        (again.status, again.replayed, &again.body),
        (202, true, &said.body)
    );

    // Another person's key of this name is another one.
    let bob = gantry.person("bob", RoleName::Member).await;
    let bobs = post(
        &gantry,
        &bob,
        "/api/v1/sessions",
        "one",
        &json!({ "title": "a" }),
    )
    .await;
    assert_eq!((bobs.status, bobs.replayed), (201, false));
    assert_ne!(bobs.body["id"], first.body["id"]);

    gantry
        .client()
        .delete_session(session.parse().expect("an id"))
        .await
        .expect("it is there");
    let gone = begin(&gantry, "one", "a").await;
    assert_eq!(
        (gone.status, &gone.body["code"]),
        (409, &json!("answer_not_kept")),
        "{gone:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_sent_again_after_its_runner_is_gone_is_the_same_operation() {
    let gantry = Gantry::practice().await;
    let first_runner = gantry.runner("laptop").await;
    let _other = gantry.runner("desktop").await;
    let send = async |runner: &str| {
        let start = json!({ "runner": runner, "exec": { "argv": ["true"] } });
        post(&gantry, gantry.token(), "/api/v1/operations", "job", &start).await
    };
    let first = send("laptop").await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(send("desktop").await.status, 409, "another place is meant");
    let removed = gantry.cli(&["runners", "remove", "--yes", "laptop"]).await;
    assert!(removed.status.success(), "{removed:?}");
    drop(first_runner);

    assert_eq!(send("laptop").await.body["id"], first.body["id"]);
    assert_eq!(send("desktop").await.status, 409);
    let _same_name = gantry.runner("laptop").await;
    assert_eq!(send("laptop").await.body["id"], first.body["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_a_secret_is_given_once_and_a_refusal_as_often_as_it_is_true() {
    let gantry = Gantry::practice().await;
    let session = gantry
        .client()
        .create_session("")
        .await
        .expect("a session")
        .id;
    let links = format!("/api/v1/sessions/{session}/links");
    for (path, body) in [
        ("/api/v1/keys", json!({ "name": "ci" })),
        ("/api/v1/people", json!({ "name": "ann", "role": "member" })),
        ("/api/v1/join-tokens", json!({ "name": "laptop" })),
        (&links, json!({})),
    ] {
        let first = post(&gantry, gantry.token(), path, path, &body).await;
        assert_eq!((first.status, first.replayed), (201, false), "{first:?}");
        let again = post(&gantry, gantry.token(), path, path, &body).await;
        assert_eq!(
            (again.status, &again.body["code"]),
            (409, &json!("answer_not_kept")),
            "{path}"
        );
        let made = [
            &first.body["id"],
            &first.body["entry"]["id"],
            &first.body["person"]["id"],
        ];
        if let Some(made) = made.into_iter().find_map(Value::as_str) {
            let words = again.body["detail"].as_str().expect("words");
            assert!(words.contains(made), "{path}: {words}");
        }
    }
    let keys = gantry.client().keys().await.expect("a list");
    assert_eq!(keys.iter().filter(|key| key.name == "ci").count(), 1);

    let pinned = json!({ "runner": "desktop" });
    let sessions = "/api/v1/sessions";
    let refused = post(&gantry, gantry.token(), sessions, "pinned", &pinned).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    let _runner = gantry.runner("desktop").await;
    let begun = post(&gantry, gantry.token(), sessions, "pinned", &pinned).await;
    assert_eq!((begun.status, begun.replayed), (201, false), "{begun:?}");
    for wrong in ["", " ", "a b", &"x".repeat(256)] {
        let refused = post(&gantry, gantry.token(), sessions, wrong, &json!({})).await;
        assert_eq!(refused.status, 422, "{wrong:?}: {refused:?}");
    }
    // Who may not begin a session is not told of one either.
    let key = gantry
        .key("reader", &[shared_api::ScopeName::Read])
        .await
        .key;
    let reader = post(&gantry, &key, sessions, "pinned", &pinned).await;
    assert_eq!(reader.status, 403, "{reader:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_makes_something_takes_a_key() {
    let gantry = Gantry::practice().await;
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    let document = Document::new(document.body);
    let mut makes = Vec::new();
    for operation in document.operations() {
        let takes_a_key = operation.parameters("header").contains(&"Idempotency-Key");
        let made = operation.method == "post" && operation.answers(201);
        let goes_on = ["send_message", "run_command", "rewind_session"];
        let goes_on = operation.id().is_some_and(|id| goes_on.contains(&id));
        // A second ticket costs nothing, and both are worth nothing half a minute later.
        let ticket = operation.path.ends_with("/stream-tickets");
        let wanted = (made || goes_on) && !ticket;
        assert_eq!(takes_a_key, wanted, "{}", operation.path);
        makes.extend(takes_a_key.then_some(operation.path));
    }
    assert_eq!(makes.len(), 14, "{makes:?}");
}
