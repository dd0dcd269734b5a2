//! Two servers on one database: what one does, people see at the other.

use serde_json::json;
use shared_types::{OperationId, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Runner, Setup, TO_BE_ENROLLED, Told, eventually},
    model_server::{ModelServer, Reply},
    postgres::Postgres,
    socket::{Heard, Socket},
    work::Work,
};

use super::super::tool_sign_ins::{agreed, answered, done, double::ToolServer, who};

/// A server with a runner, and another server beside it.
async fn two(postgres: &Postgres) -> (Gantry, Runner, Gantry) {
    let one = Gantry::with(Setup {
        database: Some(postgres.database()),
        ..Setup::default()
    })
    .await;
    let runner = one.runner("laptop").await;
    let other = one.another().await;
    (one, runner, other)
}

fn seqs(told: &Told) -> Vec<u64> {
    told.events.iter().map(|event| event.seq).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_seen_and_stopped_at_the_other_server_than_its_own() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("hello").await;
    let (near, seen) = (talk.ended(turn).await, far.ended(turn).await);
    assert_eq!(seqs(&near), seqs(&seen));

    let turn = talk.send(&format!("run {}", Work(5).until_enough())).await;
    far.until_placed().await;
    far.cancel().await;
    let near = talk.ended(turn).await;
    assert_eq!(near.outcome, TurnOutcome::Cancelled);
    assert_eq!(seqs(&near), seqs(&far.ended(turn).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_begun_at_one_server_ends_at_the_other_and_both_renew_each_token_once() {
    let (postgres, model) = (Postgres::start(), ModelServer::start().await);
    let here = Gantry::with(Setup {
        database: Some(postgres.database()),
        model: Some(model.base_url()),
        settings: "[web]\nallow = [\"127.0.0.0/8\"]\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let (there, server) = (here.another().await, ToolServer::start().await);
    done(&here, &["mcp", "add", "tracker", "--url", &server.mcp()]).await;
    // So short that each request renews it.
    server.told().good_for = 1;
    let back = agreed(&here, here.token(), "ada").await;
    let (status, told) = answered(&there, there.token(), &back).await;
    assert_eq!(status, 200, "{told}");
    model.script(vec![Reply::text("done"); 4]);
    let mut talks = Vec::new();
    for gantry in [&here, &there, &here, &there] {
        talks.push(gantry.talk().await);
    }
    let turns = talks.iter_mut().map(|talk| talk.say("hello"));
    futures_util::future::join_all(turns).await;
    assert_eq!(server.told().thefts, 0);
    for talk in &mut talks[..2] {
        let (_, text) = who(talk, &model).await;
        assert!(text.contains("you are ada"), "{text}");
    }
    // Signed out at one, signed out at the other.
    done(&there, &["mcp", "logout", "tracker"]).await;
    let (_, text) = who(&mut talks[0], &model).await;
    assert!(!text.contains("you are ada"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_at_one_server_loses_its_stream_at_the_other() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let key = here.client().create_key("k").await.expect("a key");
    let mut stream = Socket::open_as(&there, &key.key, "/api/v1/stream", "ServerMessage").await;
    let revoked = here.client().remove_key(key.entry.id).await;
    revoked.expect("it is there");
    loop {
        if let Heard::Closed(code) = stream.next().await {
            assert_eq!(code, Some(1008));
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_after_the_database_was_away_is_seen_at_the_other_server() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let told = talk.say("hello").await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    postgres.stop();
    postgres.start_again();
    let turn = talk.send("hello again").await;
    assert_eq!(seqs(&talk.ended(turn).await), seqs(&far.ended(turn).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_removed_at_one_server_loses_its_link_to_the_other() {
    let postgres = Postgres::start();
    let (_here, mut runner, there) = two(&postgres).await;
    let client = there.client();
    let id = client.runners().await.expect("a list")[0].id;
    client.remove_runner(id).await.expect("it is removed");
    assert_eq!(runner.ended().await, Some(TO_BE_ENROLLED));
}

/// Starts a command that ends only if it is stopped, as the bearer of this token.
async fn starts(gantry: &Gantry, token: &str) -> OperationId {
    let script = "echo up; while :; do sleep 0.1; done";
    let wish = json!({ "runner": "laptop", "exec": { "script": script } }).to_string();
    let started = gantry.ask_as(token, "post", "/api/v1/operations", Some(wish));
    let started = started.await;
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.body["id"].as_str().expect("an id");
    id.parse().expect("an id")
}

/// Waits until the command has ended.
async fn until_ended(gantry: &Gantry, operation: OperationId) {
    let path = format!("/api/v1/operations/{operation}");
    eventually("the command ends", async || {
        let seen = gantry.ask("get", &path, None).await;
        (seen.body["state"] == "ended").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_stopped_at_the_other_server_than_that_of_its_runner() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let operation = starts(&here, here.token()).await;
    let cancelled = there.client().cancel_operation(operation).await;
    cancelled.expect("it is there");
    until_ended(&here, operation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_under_a_key_that_ends_is_stopped_whichever_server_sees_that_first() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    for by in [&here, &there] {
        let key = here.client().create_key("k").await.expect("a key");
        let operation = starts(&here, &key.key).await;
        let revoked = by.client().remove_key(key.entry.id).await;
        revoked.expect("it is there");
        until_ended(&here, operation).await;
    }
}
