//! Whoever may not use a runner any more is shown nothing of what is written there since.

use shared_api::RoleName;
use shared_client::Client;
use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, Talk, eventually},
    model_server::{ModelServer, Reply},
};

/// Writes `before` again and again, and `after` once the file `cut` is there.
const WRITES: &str = "while [ ! -e cut ]; do echo before; sleep 0.02; done; while :; do echo after; sleep 0.02; done";

const NOT_SHARED: &str = "laptop is not shared with you any more";

/// A server, a runner of its owner's that is shared with Bob, and what Bob says.
async fn shared(model: &ModelServer) -> (Gantry, Runner, String, Talk) {
    let gantry = Gantry::scripted(model).await;
    let runner = gantry.runner("laptop").await;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let (owner, bob) = (gantry.client(), gantry.client_with(Some(bobs.clone())));
    let id = owner.runners().await.expect("a list")[0].id;
    owner.share_runner(id, "bob").await.expect("it is shared");
    bob.use_runner("laptop").await.expect("it is shared");
    let talk = gantry.talk_as(&bobs).await;
    (gantry, runner, bobs, talk)
}

/// Takes the share back, and lets the command write what is not for Bob any more.
async fn unshare(owner: &Client, runner: &Runner) {
    let id = owner.runners().await.expect("a list")[0].id;
    let unshared = owner.unshare_runner(id, None).await;
    unshared.expect("it was shared");
    std::fs::write(runner.workspace().join("cut"), "").expect("it can be written");
}

/// Once it has ended, and before, its output is refused.
async fn is_stopped_and_hidden(gantry: &Gantry, bobs: &str) {
    let bob = gantry.client_with(Some(bobs.to_owned()));
    let ended = eventually("the command is stopped", async || {
        let listed = bob.operations(true, 10).await.expect("a list");
        let id = listed.first()?.id;
        let output = format!("/api/v1/operations/{id}/output?stream=stdout&offset=0");
        let output = gantry.ask_as(bobs, "get", &output, None).await;
        assert_eq!(output.status, 403, "{output:?}");
        let words = output.body["detail"].as_str().expect("words");
        assert!(words.contains(NOT_SHARED), "{words}");
        listed
            .first()?
            .ended_at
            .is_some()
            .then(|| listed[0].clone())
    })
    .await;
    let ended = serde_json::to_value(&ended).expect("JSON");
    assert_eq!(ended["stopped"]["why"], "access_ended", "{ended}");
    assert_eq!(ended["stopped"]["by"], "owner", "{ended}");
    let words = "stopped: its person may not use its runner any more (by owner)";
    assert_eq!(ended["end"]["words"], words, "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_command_on_a_runner_that_is_unshared_is_stopped_and_shows_nothing_more() {
    let model = ModelServer::start().await;
    let (gantry, runner, bobs, mut talk) = shared(&model).await;
    let command = serde_json::json!({ "command": WRITES, "timeout_ms": 600_000 });
    model.script(vec![
        Reply::call("Shell", &command),
        Reply::text("so it is"),
    ]);
    let turn = talk.send("write").await;
    talk.until_output("before").await;
    unshare(&gantry.client(), &runner).await;
    let told = talk.ended(turn).await;
    let [(CallOutcome::Unknown, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains(NOT_SHARED), "{text}");
    is_stopped_and_hidden(&gantry, &bobs).await;
    let heard = format!("{:?}", talk.heard);
    assert!(!heard.contains("after\\n"), "{heard}");
    assert!(!format!("{:?}", model.requests()).contains("after\\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_on_a_runner_that_is_unshared_is_stopped_and_not_read_on() {
    let model = ModelServer::start().await;
    let (gantry, runner, bobs, mut talk) = shared(&model).await;
    let command = serde_json::json!({ "command": WRITES, "timeout_ms": 300 });
    model.script(vec![
        Reply::call("Shell", &command),
        Reply::text("it runs"),
        Reply::call("task_read", r#"{"task":1,"wait_ms":2000}"#),
        Reply::text("it is over"),
    ]);
    let told = talk.say("write").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Background);
    unshare(&gantry.client(), &runner).await;
    let told = talk.say("and now?").await;
    let told = format!("{:?}", told.calls());
    assert!(told.contains(NOT_SHARED), "{told}");
    assert!(!told.contains("before\\n"), "{told}");
    is_stopped_and_hidden(&gantry, &bobs).await;
    assert!(!format!("{:?}", talk.heard).contains("after\\n"));
}
