//! A turn stays where it began; what is chosen meanwhile counts from the next one.

use std::sync::Arc;

use serde_json::json;
use shared_api::CreateSession;
use shared_client::ClientError;
use shared_types::{
    Event,
    event::{CallOutcome, Choice, TurnOutcome},
};
use tests::{
    gantry::{Gantry, Told},
    model_server::{ModelServer, Reply, Step},
};
use tokio::sync::Notify;

/// The names of the runners on which the turn's operations were placed.
fn runners(told: &Told) -> Vec<&str> {
    let places = told.places().into_iter();
    places.map(|place| place.runner_name.as_str()).collect()
}

/// What each claim of the turn says about where it works.
fn choices(told: &Told) -> Vec<Choice> {
    let known = told.events.iter().filter_map(|event| event.known());
    let claims = known.filter_map(|event| match event {
        Event::TurnClaimed { choice, .. } => choice.clone(),
        _ => None,
    });
    claims.collect()
}

fn shell(command: &str) -> Reply {
    Reply::call("Shell", json!({ "command": command }))
}

async fn use_runner(gantry: &Gantry, name: &str) {
    let used = gantry.client().use_runner(name).await;
    used.expect("it can be chosen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_stays_on_its_runner_and_the_next_one_moves_and_the_model_is_told() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let laptop = gantry.runner("laptop").await;
    let alpha = gantry.runner("alpha").await;
    use_runner(&gantry, "laptop").await;
    model.script(vec![
        shell("while [ ! -e go ]; do sleep 0.05; done; touch one"),
        shell("touch two"),
        Reply::text("done"),
        shell("touch three"),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_placed().await;
    use_runner(&gantry, "alpha").await;
    std::fs::write(laptop.workspace().join("go"), "").expect("it is written");
    let told = talk.ended(turn).await;
    assert_eq!(runners(&told), ["laptop", "laptop"]);
    assert_eq!(laptop.file("two"), Some(String::new()));

    let told = talk.say("go on").await;
    assert_eq!(runners(&told), ["alpha"]);
    assert_eq!(
        (laptop.file("three"), alpha.file("three")),
        (None, Some(String::new()))
    );
    let requests = model.requests();
    let machine = format!("linux/{}", std::env::consts::ARCH);
    let note = format!(
        "your tools now work on runner alpha ({machine}); before this message they worked on runner laptop"
    );
    let first = format!("when it began: {machine}.");
    let says = |request: &serde_json::Value| {
        let told = request["messages"].to_string();
        assert!(told.contains(&first), "{told}");
        told.contains(&note)
    };
    let said: Vec<_> = requests.iter().map(says).collect();
    assert_eq!(said, [false, false, false, true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_goes_on_after_a_restart_stays_on_its_runner() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let laptop = gantry.runner("laptop").await;
    let alpha = gantry.runner("alpha").await;
    use_runner(&gantry, "laptop").await;
    model.script(vec![
        shell("touch one"),
        Reply::Raw(vec![Step::Hold(Arc::new(Notify::new()))]),
        shell("touch two"),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    model.wait_for_requests(2).await;
    use_runner(&gantry, "alpha").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(runners(&told), ["laptop", "laptop"]);
    assert_eq!(
        (laptop.file("two"), alpha.file("two")),
        (Some(String::new()), None)
    );
    let choices = choices(&told);
    assert_eq!((choices.len(), &choices[0]), (2, &choices[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_session_works_on_its_runner_whatever_the_user_chooses() {
    let gantry = Gantry::practice().await;
    let laptop = gantry.runner("laptop").await;
    let alpha = gantry.runner("alpha").await;
    use_runner(&gantry, "laptop").await;
    let pinned = gantry
        .cli(&["chat", "--runner", "alpha", "run touch here"])
        .await;
    assert_eq!(pinned.status.code(), Some(0), "{pinned:?}");
    let lifted = gantry.cli(&["chat", "-c", "--runner", "-", "run touch there"]);
    let lifted = lifted.await;
    assert_eq!(lifted.status.code(), Some(0), "{lifted:?}");
    assert_eq!(
        (laptop.file("here"), laptop.file("there")),
        (None, Some(String::new()))
    );
    assert_eq!(
        (alpha.file("here"), alpha.file("there")),
        (Some(String::new()), None)
    );

    let on_beta = CreateSession {
        runner: Some("beta".to_owned()),
        ..CreateSession::default()
    };
    let refused = gantry.client().begin_session(&on_beta).await;
    assert!(
        matches!(&refused, Err(ClientError::Refused(problem)) if problem.detail == "runner not found"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_to_a_removed_runner_is_an_error_also_where_another_one_has_its_name() {
    let gantry = Gantry::practice().await;
    let _removed = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let client = gantry.client();
    let pinned = client.pin_session(talk.session(), "laptop").await;
    let pin = pinned.expect("it is there").runner.expect("it is pinned");
    client.remove_runner(pin.id).await.expect("it is removed");
    let other = gantry.runner("laptop").await;
    use_runner(&gantry, "laptop").await;
    let told = talk.say("run touch ran").await;
    let [(CallOutcome::Refused, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    let says = "runner \"laptop\", to which this session is pinned, was removed";
    assert!(text.contains(says), "{text}");
    assert_eq!(other.file("ran"), None);
    client
        .unpin_session(talk.session())
        .await
        .expect("it is there");
    let told = talk.say("run touch ran").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    assert_eq!(other.file("ran"), Some(String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_in_a_folder_of_this_machines_runner_works_in_it() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let laptop = gantry.runner("laptop").await;
    let _other = gantry.runner("other").await;
    use_runner(&gantry, "other").await;
    let folder = laptop.workspace().join("src/app");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(laptop.workspace().join("README"), "of the root").expect("it is written");
    let works = |dir: Option<&str>| {
        model.script(vec![
            shell("touch here"),
            Reply::call("Write", json!({ "path": "notes", "content": "x" })),
            Reply::call("Read", json!({ "path": "../../README" })),
            Reply::call("Glob", json!({ "pattern": "*" })),
            Reply::text("done"),
        ]);
        let mut chat = gantry.terminal(&["chat"]);
        chat.args(dir.map(|dir| format!("--dir={dir}")));
        chat.args(dir.map(|_| "--runner=laptop")).arg("go");
        // As on a machine where both were installed by one person.
        chat.env("GANTRY_HOME", laptop.home()).current_dir(&folder);
        chat
    };
    let chat = works(None).output().await.expect("it runs");
    let said = String::from_utf8_lossy(&chat.stdout).into_owned();
    assert!(chat.status.success(), "{chat:?}");
    assert!(
        said.contains("works here: on runner laptop, in its directory src/app"),
        "{said}"
    );
    assert!(folder.join("here").exists() && folder.join("notes").exists());
    let results = model.requests().pop().expect("it was asked")["messages"].to_string();
    assert!(results.contains("of the root"), "{results}");
    assert!(
        results.contains("notes\\nhere") || results.contains("here\\nnotes"),
        "{results}"
    );

    std::fs::create_dir(laptop.workspace().join("docs")).expect("a folder");
    let chat = works(Some("./docs/")).output().await.expect("it runs");
    assert!(chat.status.success(), "{chat:?}");
    assert_eq!(laptop.file("docs/here"), Some(String::new()));
    for (directory, words) in [("/etc", "is absolute"), ("../x", "leads upwards")] {
        let refused = works(Some(directory)).output().await.expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(words), "{said}");
    }
}
