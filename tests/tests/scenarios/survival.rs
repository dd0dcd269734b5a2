use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, eventually},
    model_server::{ModelServer, Reply},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_mid_tool_ends_the_same_turn_after_its_restart_with_one_effect_and_the_real_output()
 {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", r#"{"command":"echo effect >> effects; echo before; while [ ! -e go-on ]; do sleep 0.02; done; echo after"}"#),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_output("before").await;
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "done");
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("before\nafter"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
    assert_eq!(
        told.places().len(),
        1,
        "a stored intent is never placed again"
    );
    assert_eq!(model.requests().len(), 2, "no answer is asked for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_ends_while_the_server_is_dead_is_not_run_again() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", r#"{"command":"echo effect >> effects; echo before; while [ ! -e go-on ]; do sleep 0.02; done; echo after; touch over"}"#),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_output("before").await;
    gantry.kill_server().await;
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    eventually("the command ends", || async { runner.file("over") }).await;
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert!(
        told.calls()[0].1.contains("before\nafter"),
        "{:?}",
        told.calls()
    );
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_the_death_of_the_server_while_the_model_answers() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let hold = std::sync::Arc::new(tokio::sync::Notify::new());
    model.script(vec![
        Reply::Raw(vec![tests::model_server::Step::Hold(hold)]),
        Reply::text("at last"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    model.wait_for_requests(1).await;
    gantry.kill_server().await;
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(
        (told.outcome, told.answer()),
        (TurnOutcome::Completed, "at last")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_reconnects_between_two_messages() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    assert_eq!(
        talk.say("run echo one").await.calls()[0].0,
        CallOutcome::Completed
    );
    runner.kill().await;
    gantry.until_online("laptop", false).await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let told = talk.say("run echo two").await;
    assert!(told.calls()[0].1.contains("two"), "{:?}", told.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_in_mid_tool_comes_back_to_its_command_with_one_effect_and_the_real_output()
{
    killed_in_mid_tool(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_that_syncs_to_the_disk_before_each_start() {
    killed_in_mid_tool(&["--sync-before-start"]).await;
}

async fn killed_in_mid_tool(options: &[&str]) {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("laptop").await;
    if !options.is_empty() {
        runner.kill().await;
        gantry.until_online("laptop", false).await;
        runner.options(options);
        runner.start();
        gantry.until_online("laptop", true).await;
    }
    model.script(vec![
        Reply::call(
            "Shell",
            r#"{"command":"echo effect >> effects; echo before; until test -e go; do sleep 0.01; done; echo after"}"#,
        ),
        Reply::text("I see"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    talk.until_output("before").await;
    runner.kill().await;
    talk.until_notice("offline since").await;
    std::fs::write(runner.workspace().join("go"), "").expect("a file");
    runner.start();
    let told = talk.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("before") && text.contains("after"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_twice_with_the_same_client_id_is_one_turn() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    let first = client
        .send(session, "hello", "same")
        .await
        .expect("accepted");
    let second = client
        .send(session, "hello", "same")
        .await
        .expect("accepted");
    assert_eq!(first, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_stops_server_and_runner_with_exit_code_0() {
    let mut gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    assert_eq!(runner.stop().await, Some(0));
    assert_eq!(gantry.stop_server().await, Some(0));
}
