//! A runner gets another name, and drains: what runs there goes on, and nothing new begins.

use serde_json::{Value, json};
use shared_api::{ChangeRunner, CreateSession, RoleName, Runner as Listed};
use shared_client::{Client, ClientError};
use shared_types::event::CallOutcome;
use tests::gantry::{Gantry, eventually};

/// Goes on until the file `cut` is there.
const UNTIL_CUT: &str = "while [ ! -e cut ]; do sleep 0.02; done; echo cut";

/// What the owner's command line says, and if it was done.
async fn cli(gantry: &Gantry, words: &[&str]) -> (bool, String) {
    let said = gantry.cli(words).await;
    let text = [said.stdout, said.stderr].concat();
    let text = String::from_utf8(text).expect("text");
    (said.status.success(), text)
}

/// Starts an operation on this runner; returns the status and the answer.
async fn start(gantry: &Gantry, runner: &str, request: Value) -> (u16, Value) {
    let mut start = request;
    start["runner"] = json!(runner);
    let body = Some(start.to_string());
    let answer = gantry.ask("post", "/api/v1/operations", body).await;
    (answer.status, answer.body)
}

fn shell(script: &str) -> Value {
    json!({ "exec": { "argv": ["sh", "-c", script] } })
}

async fn named(client: &Client, name: &str) -> Listed {
    let all = client.runners().await.expect("a list");
    let found = all.into_iter().find(|runner| runner.name == name);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

fn refused<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (u16, String) {
    match answer.expect_err("it is refused") {
        ClientError::Refused(problem) => (problem.status, problem.detail),
        other => panic!("{other:?} is no refusal"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_on_a_runner_that_drains_goes_on_and_nothing_new_begins_until_it_takes_work_again()
 {
    let mut gantry = Gantry::practice().await;
    let laptop = gantry.runner("laptop").await;
    let _desktop = gantry.runner("desktop").await;
    let client = gantry.client();
    client.use_runner("laptop").await.expect("it is there");
    let (status, running) = start(&gantry, "laptop", shell(UNTIL_CUT)).await;
    assert_eq!(status, 201, "{running}");
    let (done, said) = cli(&gantry, &["runners", "drain", "laptop"]).await;
    assert!(done && said.contains("laptop drains"), "{said}");
    let (_, said) = cli(&gantry, &["runners"]).await;
    assert!(said.contains("draining"), "{said}");
    let listed = named(&client, "laptop").await;
    assert_eq!(
        (listed.draining, listed.drained_by.as_deref()),
        (true, Some("owner"))
    );

    // Also after a restart, when a server waits for runners that may be on their way.
    gantry.stop_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    let client = gantry.client();
    let says = |words: &str| {
        words.contains("takes no new work")
            && words.contains("owner lets it drain")
            && words.contains("gantry runners undrain laptop")
    };
    for request in [shell("touch ran"), json!({ "list": { "path": "." } })] {
        let (status, refusal) = start(&gantry, "laptop", request).await;
        let words = refusal["detail"].as_str().expect("words");
        assert!(status == 409 && says(words), "{status}: {words}");
    }
    let told = gantry.talk().await.say("run touch ran").await;
    let [(CallOutcome::Refused, words)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(
        says(words) && words.contains("gantry runners use"),
        "{words}"
    );
    assert_eq!(laptop.file("ran"), None);
    let (status, other) = start(&gantry, "desktop", shell("true")).await;
    assert_eq!(status, 201, "{other}");

    // What runs there is listed by its runner, and goes on.
    let of = async |runner: &str, state: &str| {
        let id = named(&client, runner).await.id;
        let at = format!("/api/v1/operations?runner={id}&state={state}");
        let listed = gantry.ask("get", &at, None).await;
        let listed = listed.body["operations"].as_array().cloned();
        let ids = listed.expect("a list").into_iter();
        ids.map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("laptop", "open").await, [running["id"].clone()]);
    assert_eq!(of("desktop", "all").await, [other["id"].clone()]);
    std::fs::write(laptop.workspace().join("cut"), "").expect("it can be written");
    let at = format!(
        "/api/v1/operations/{}",
        running["id"].as_str().expect("an id")
    );
    let ended = eventually("it ends by itself", async || {
        let operation = gantry.ask("get", &at, None).await.body;
        (operation["state"] == "ended").then_some(operation)
    })
    .await;
    assert_eq!(ended["end"]["code"], 0, "{ended}");

    let (done, said) = cli(&gantry, &["runners", "undrain", "laptop"]).await;
    assert!(done && said.contains("laptop takes work again"), "{said}");
    let told = gantry.talk().await.say("run touch ran").await;
    assert_eq!(told.places()[0].runner_name, "laptop");
    assert_eq!(laptop.file("ran"), Some(String::new()));
    let (_, said) = cli(&gantry, &["audit"]).await;
    for deed in ["runner.drained", "runner.undrained"] {
        assert!(said.contains(deed), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_with_another_name_is_the_same_one_where_it_was_chosen_and_when_it_comes_back() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let _desktop = gantry.runner("desktop").await;
    let client = gantry.client();
    client.use_runner("laptop").await.expect("it is there");
    let pinned = CreateSession {
        runner: Some("laptop".to_owned()),
        ..CreateSession::default()
    };
    let pinned = client.begin_session(&pinned).await.expect("a session").id;
    let before = named(&client, "laptop").await.id;

    let (done, said) = cli(&gantry, &["runners", "rename", "laptop", "desktop"]).await;
    let words = "a runner called desktop exists; choose another name";
    assert!(!done && said.contains(words), "{said}");
    let wrong = ChangeRunner {
        name: Some("my laptop".to_owned()),
        ..ChangeRunner::default()
    };
    let (status, words) = refused(client.change_runner(before, &wrong).await);
    assert!(
        status == 422 && words.contains("cannot name a runner"),
        "{words}"
    );
    let (done, said) = cli(&gantry, &["runners", "rename", "laptop", "work"]).await;
    assert!(done && said.contains("laptop is called work now"), "{said}");

    assert_eq!(runner.stop().await, Some(0));
    gantry.until_online("work", false).await;
    runner.start();
    gantry.until_online("work", true).await;
    assert_eq!(named(&client, "work").await.id, before);
    // The name is free for another machine, and what was chosen stays.
    let other = gantry.runner("laptop").await;
    let me = client.me().await.expect("an answer");
    assert_eq!(me.active_runner, Some(before));
    assert_eq!(me.active_runner_name.as_deref(), Some("work"));
    let session = client.session(pinned).await.expect("it is there");
    let pin = session.runner.expect("it is pinned");
    assert_eq!((pin.id, pin.name.as_str()), (before, "work"));
    let told = gantry.talk().await.say("run touch here").await;
    assert_eq!(told.places()[0].runner_name, "work");
    assert_eq!(
        (runner.file("here"), other.file("here")),
        (Some(String::new()), None)
    );
    let (_, said) = cli(&gantry, &["audit"]).await;
    assert!(said.contains("runner.renamed"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_and_admins_rename_a_runner_or_let_it_drain() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let owner = gantry.client();
    let id = named(&owner, "laptop").await.id;
    let bob = gantry.person("bob", RoleName::Member).await;
    let bob = gantry.client_with(Some(bob));
    let drain = ChangeRunner {
        draining: Some(true),
        ..ChangeRunner::default()
    };
    assert_eq!(refused(bob.change_runner(id, &drain).await).0, 404);
    owner.share_runner(id, "bob").await.expect("it is shared");
    let (status, words) = refused(bob.change_runner(id, &drain).await);
    assert_eq!(status, 403);
    let refusal = "only its owner or an admin may rename or drain a runner; ask one of them";
    assert_eq!(words, refusal);
    assert!(!named(&bob, "laptop").await.draining);
}
