//! Further model accounts of the operator: `[[model.accounts]]`.

use std::fs;

use shared_api::Payer;
use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Setup},
    model_server::{ModelServer, Reply},
};

/// A key that is looked for wherever it must not be.
const CANARY: &str = "sk-canary-0123456789-abcdefghij";

/// What a verb of the operator says, and whether it succeeds.
async fn verb(gantry: &Gantry, words: &[&str]) -> (bool, String) {
    let said = gantry.operator(words).output().await.expect("it starts");
    let text = [said.stdout, said.stderr].concat();
    let text = String::from_utf8(text).expect("it is text");
    (said.status.success(), text)
}

async fn choose(gantry: &Gantry, model: &str) {
    let chosen = gantry.cli(&["config", "set", "model", model]).await;
    assert!(chosen.status.success(), "{chosen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_the_operator_is_listed_chosen_answers_with_its_key_and_is_reloaded() {
    let (first, work) = (ModelServer::start().await, ModelServer::start().await);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("work.key");
    fs::write(&file, CANARY).expect("it is written");
    let settings = format!(
        "[model]\nname = \"gpt-t\"\nbase_url = {:?}\n\
         [[model.accounts]]\nname = \"work\"\nbase_url = {:?}\nmodels = [\"gpt-t\", \"other\"]\nkey_file = {file:?}\n",
        first.base_url(),
        work.base_url()
    );
    let gantry = Gantry::with(Setup {
        settings: settings.clone(),
        ..Setup::default()
    })
    .await;
    let (is_fine, told) = verb(&gantry, &["check-config"]).await;
    let line = "model:    work/gpt-t, or work/other, in openai-chat, with a key";
    assert!(is_fine && told.contains(line), "{told}");

    let listed = gantry.client().models().await.expect("a list").models;
    let listed = listed.iter().map(|model| {
        assert_eq!(model.paid_by, Payer::Operator);
        (
            model.account.as_str(),
            model.name.as_str(),
            model.is_default,
        )
    });
    let listed: Vec<_> = listed.collect();
    let expected = [
        ("operator", "gpt-t", true),
        ("work", "gpt-t", false),
        ("work", "other", false),
    ];
    assert_eq!(listed, expected);

    let mut talk = gantry.talk().await;
    choose(&gantry, "work/other").await;
    work.script(vec![Reply::text("I am at work.")]);
    assert_eq!(talk.say("go").await.answer(), "I am at work.");
    assert_eq!(first.requests().len(), 0);
    assert_eq!(work.requests()[0]["model"], "other");
    assert_eq!(work.authorizations(), [Some(format!("Bearer {CANARY}"))]);

    // One name is asked at both accounts.
    choose(&gantry, "gpt-t").await;
    first.script(vec![Reply::refusal(401, "no such key")]);
    work.script(vec![Reply::text("In its place.")]);
    let told = talk.say("go on").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "In its place.");
    assert_eq!(first.requests().len(), 1);

    fs::write(&file, "sk-of-tomorrow").expect("it is written");
    assert_eq!(
        verb(&gantry, &["reload"]).await,
        (true, "reloaded\n".to_owned())
    );
    choose(&gantry, "work/other").await;
    work.script(vec![Reply::text("With another key.")]);
    assert_eq!(talk.say("once more").await.answer(), "With another key.");
    let last = work.authorizations().pop().flatten();
    assert_eq!(last.as_deref(), Some("Bearer sk-of-tomorrow"));

    fs::remove_file(&file).expect("it is there");
    let (is_done, told) = verb(&gantry, &["reload"]).await;
    let words = [r#"the account "work""#, "work.key cannot be read"];
    assert!(
        !is_done && words.iter().all(|words| told.contains(words)),
        "{told}"
    );
    assert!(!gantry.log().contains(CANARY), "a key shows nowhere");
}
