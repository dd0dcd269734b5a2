//! Models of a runner's own model server: asked over the runner's link, with a key that stays on its machine.

use std::{os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use shared_api::{ModelState, OfferedModel, Payer, RoleName};
use shared_client::Client;
use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Runner, eventually},
    model_server::{ModelServer, Reply, Step},
};
use tokio::sync::Notify;

/// The key of the runner's model server, looked for wherever it must not be.
const CANARY: &str = "sk-canary-of-the-laptop-0123456789";

/// The name under which the model is chosen.
const MODEL: &str = "laptop/qwen3:8b";

/// A runner with this model server, once its model is listed.
async fn laptop(gantry: &Gantry, server: &ModelServer) -> Runner {
    server.lists(&["qwen3:8b"]);
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(gantry.url(), &token, "laptop").await;
    let key = runner.home().join("model.key");
    let mut file = std::fs::File::options();
    let file = file.write(true).create_new(true).mode(0o600).open(&key);
    std::io::Write::write_all(&mut file.expect("a file"), CANARY.as_bytes()).expect("room");
    let key = key.display().to_string();
    runner.options(&[
        "--model-server",
        &server.base_url(),
        "--model-key-file",
        &key,
    ]);
    runner.start();
    until_listed(&gantry.client(), ModelState::Ready).await;
    runner
}

async fn listed(client: &Client) -> Option<OfferedModel> {
    let models = client.models().await.expect("a list").models;
    models.into_iter().find(|model| model.name == MODEL)
}

async fn until_listed(client: &Client, state: ModelState) -> OfferedModel {
    let wanted = format!("{MODEL} is {state:?}");
    eventually(&wanted, async || {
        listed(client).await.filter(|model| model.state == state)
    })
    .await
}

/// The number of files in this folder; none of them has the key.
fn files_without_the_key(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_without_the_key(&entry.path()),
        Ok(kind) if kind.is_file() => {
            let bytes = std::fs::read(entry.path()).expect("it is ours");
            let mut places = bytes.windows(CANARY.len());
            let found = places.any(|part| part == CANARY.as_bytes());
            assert!(!found, "{}", entry.path().display());
            1
        }
        _ => 0,
    });
    files.sum()
}

async fn choose(gantry: &Gantry, model: &str) {
    let chosen = gantry.cli(&["config", "set", "model", model]).await;
    assert!(chosen.status.success(), "{chosen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_a_runner_answers_over_its_link_and_the_key_never_leaves_the_machine() {
    let gantry = Gantry::practice().await;
    let server = ModelServer::start().await;
    let runner = laptop(&gantry, &server).await;
    let model = listed(&gantry.client()).await.expect("it is listed");
    assert_eq!(
        (model.account.as_str(), model.paid_by),
        ("laptop", Payer::Runner)
    );
    assert!(model.price.is_none() && !model.is_default, "{model:?}");

    // Longer than one frame of the link, both ways.
    let said = "words ".repeat(50_000);
    let refusal = Reply::refusal(401, &format!("no such key: {CANARY}"));
    server.script(vec![Reply::call("ping", "{}"), Reply::text(&said), refusal]);
    let tested = gantry.client().test_model(MODEL).await.expect("it answers");
    assert!(tested.streams && tested.calls_tools, "{tested:?}");
    choose(&gantry, MODEL).await;
    let mut talk = gantry.talk().await;
    let told = talk.say(&"a long question ".repeat(10_000)).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), said);
    let keys = server.authorizations();
    assert_eq!(keys, vec![Some(format!("Bearer {CANARY}")); 2]);

    let usage = gantry.cli(&["usage"]).await;
    let usage = String::from_utf8_lossy(&usage.stdout).into_owned();
    assert!(
        usage.contains("qwen3:8b (laptop)") && usage.contains("unpriced"),
        "{usage}"
    );

    let refused = talk.say("again").await;
    assert_eq!(refused.outcome, TurnOutcome::Failed);
    let reason = refused.reason.unwrap_or_default();
    assert!(
        reason.contains("--model-key-file of runner laptop"),
        "{reason}"
    );
    for text in [gantry.log(), runner.log()] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert!(files_without_the_key(&gantry.home()) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_killed_in_mid_answer_makes_way_for_the_next_model() {
    let operators = ModelServer::start().await;
    let gantry = Gantry::scripted(&operators).await;
    let server = ModelServer::start().await;
    let mut runner = laptop(&gantry, &server).await;
    choose(&gantry, &format!("{MODEL}, scripted")).await;
    let held = Arc::new(Notify::new());
    server.script(vec![Reply::Raw(vec![
        Step::text("half an answer"),
        Step::Hold(held),
    ])]);
    operators.script(vec![Reply::text("I answer")]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_said("half an answer").await;
    runner.kill().await;
    talk.until_notice("laptop went away in mid-answer").await;
    talk.until_notice("laptop is offline; asking scripted instead")
        .await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "I answer");

    let away = until_listed(&gantry.client(), ModelState::Away).await;
    let reason = away.reason.unwrap_or_default();
    assert!(
        reason.starts_with("runner laptop is offline: start it"),
        "{reason}"
    );
    let tested = gantry.client().test_model(MODEL).await;
    let words = tested.expect_err("it is offline").to_string();
    assert!(words.contains("runner laptop is offline"), "{words}");
    runner.start();
    until_listed(&gantry.client(), ModelState::Ready).await;
    server.script(vec![Reply::text("I am back")]);
    assert_eq!(talk.say("go on").await.answer(), "I am back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_models_of_a_runner_are_there_for_those_who_may_use_it_while_they_may() {
    let gantry = Gantry::practice().await;
    let server = ModelServer::start().await;
    let _runner = laptop(&gantry, &server).await;
    let token = gantry.person("bob", RoleName::Member).await;
    let bob = gantry.client_with(Some(token.clone()));
    assert_eq!(listed(&bob).await, None);
    let set = r#"{"layer":"user","values":{"model":"laptop/qwen3:8b"}}"#;
    let choose = async || {
        let set = Some(set.to_owned());
        gantry
            .ask_as(&token, "patch", "/api/v1/settings", set)
            .await
    };
    let refused = choose().await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    bob.test_model(MODEL).await.expect_err("it is not his");

    let id = gantry.client().runners().await.expect("a list")[0].id;
    let shared = gantry.client().share_runner(id, "bob").await;
    shared.expect("the owner may");
    assert!(listed(&bob).await.is_some());
    assert_eq!(choose().await.status, 200);
    server.script(vec![Reply::text("hello bob")]);
    let mut talk = gantry.talk_as(&token).await;
    assert_eq!(talk.say("hello").await.answer(), "hello bob");
    let unshared = gantry.client().unshare_runner(id, Some("bob")).await;
    unshared.expect("the owner may");
    assert_eq!(listed(&bob).await, None);
    let told = talk.say("hello?").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    let reason = told.reason.unwrap_or_default();
    assert!(reason.contains("is not offered any more"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_means_one_runner_and_no_other_one_that_gets_its_name() {
    let gantry = Gantry::practice().await;
    let (first, second) = (ModelServer::start().await, ModelServer::start().await);
    let _first = laptop(&gantry, &first).await;
    choose(&gantry, MODEL).await;
    let shown = gantry.cli(&["config"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(MODEL), "people read its name: {shown}");
    first.script(vec![Reply::text("I am the first")]);
    let mut talk = gantry.talk().await;
    assert_eq!(talk.say("hello").await.answer(), "I am the first");

    let client = gantry.client();
    let id = client.runners().await.expect("a list")[0].id;
    client.remove_runner(id).await.expect("the owner may");
    let _second = laptop(&gantry, &second).await;
    let told = talk.say("hello?").await;
    assert_eq!(told.outcome, TurnOutcome::Failed);
    assert!(second.asked().is_empty(), "nobody chose it");
}
