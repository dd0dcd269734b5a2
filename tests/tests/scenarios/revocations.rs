//! A right that ends takes along what was begun or queued under it.

use shared_api::{CreateJoinToken, CreateKey, RoleName, ScopeName};
use shared_types::event::TurnOutcome;
use tests::gantry::{Gantry, Runner, eventually, processes_marked};

/// Runs until it is stopped.
fn endless(marker: &str) -> String {
    format!("run echo up; {marker} sh -c 'while :; do sleep 0.05; done'")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_queued_under_a_key_and_what_runs_under_it_ends_when_the_key_is_revoked() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let marker = format!("MARKER=revoked-{}", std::process::id());
    let key = gantry.key("bot", &[ScopeName::Chat]).await;
    let mut talk = gantry.talk_as(&key.key).await;
    let mut turns = vec![talk.send(&endless(&marker)).await];
    for number in 1..8 {
        turns.push(talk.send(&format!("run echo > ran-{number}")).await);
    }
    talk.until_output("up").await;
    let removed = gantry.client().remove_key(key.entry.id).await;
    removed.expect("it is removed");
    // The key reads nothing any more: its owner looks.
    let mut seen = gantry.reads(talk.session());
    for turn in turns {
        assert_eq!(seen.ended(turn).await.outcome, TurnOutcome::Cancelled);
    }
    eventually("the command is gone", || async {
        processes_marked(&marker).is_empty().then_some(())
    })
    .await;
    for number in 1..8 {
        assert_eq!(runner.file(&format!("ran-{number}")), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_queued_under_a_key_and_what_runs_under_it_ends_when_the_key_expires() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let marker = format!("MARKER=expired-{}", std::process::id());
    let terms = CreateKey {
        name: "bot".to_owned(),
        scopes: Some(vec![ScopeName::Chat]),
        valid_for_s: Some(5),
        from: None,
    };
    let key = gantry
        .client()
        .create_key_with(&terms)
        .await
        .expect("a key");
    let mut talk = gantry.talk_as(&key.key).await;
    let first = talk.send(&endless(&marker)).await;
    let second = talk.send("run echo > ran").await;
    let mut seen = gantry.reads(talk.session());
    for turn in [first, second] {
        assert_eq!(seen.ended(turn).await.outcome, TurnOutcome::Cancelled);
    }
    eventually("the command is gone", || async {
        processes_marked(&marker).is_empty().then_some(())
    })
    .await;
    assert_eq!(runner.file("ran"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_operation_ends_with_its_key() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let key = gantry.key("bot", &[ScopeName::Exec]).await;
    let exec = r#"{"runner":"laptop","exec":{"argv":["sleep","1000"]}}"#.to_owned();
    let started = gantry
        .ask_as(&key.key, "post", "/api/v1/operations", Some(exec))
        .await;
    assert_eq!(started.status, 201, "{started:?}");
    let path = format!(
        "/api/v1/operations/{}",
        started.body["id"].as_str().expect("an id")
    );
    let removed = gantry.client().remove_key(key.entry.id).await;
    removed.expect("it is removed");
    let shown = eventually("it has ended", || async {
        let shown = gantry.ask("get", &path, None).await.body;
        (!shown["ended_at"].is_null()).then_some(shown)
    })
    .await;
    assert_eq!(shown["stopped"]["why"], "credential_revoked", "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_become_a_viewer_enrols_no_runner_with_a_token_from_before() {
    let gantry = Gantry::practice().await;
    let token = gantry.person("bob", RoleName::Member).await;
    let bob = gantry.client_with(Some(token.clone()));
    let join = bob.create_join_token(&CreateJoinToken::one("pc")).await;
    let join = join.expect("a member adds runners").token;
    let bobs = bob.me().await.expect("bob").user.id;
    let lowered = gantry.client().change_role(bobs, RoleName::Viewer).await;
    lowered.expect("the owner may do that");
    let refused = Runner::stranger().try_enrol(gantry.url(), &join, "pc").await;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(words.contains("may not add runners any more"), "{words}");
    assert!(gantry.client().runners().await.expect("a list").is_empty());
}
