use shared_types::{OperationId, event::TurnOutcome};
use tests::{
    gantry::{Gantry, Told, eventually},
    model_server::{ModelServer, Reply},
};

fn operation(told: &Told) -> OperationId {
    *told.operations().first().expect("the call was placed")
}

fn seq(from: u64, to: u64) -> String {
    (from..=to).map(|number| format!("{number}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_wrote_is_kept_whole_over_a_crash_of_the_server_and_without_its_runner() {
    let model = ModelServer::start().await;
    let mut gantry = Gantry::scripted(&model).await;
    let mut runner = gantry.runner("laptop").await;
    let command = "seq 1 50000; echo err >&2; touch half; while [ ! -e go-on ]; do sleep 0.02; \
                   done; seq 50001 100000";
    model.script(vec![
        Reply::call("Shell", serde_json::json!({ "command": command })),
        Reply::text("done"),
    ]);
    let mut talk = gantry.talk().await;
    let turn = talk.send("go").await;
    eventually("half of it is written", || async { runner.file("half") }).await;
    gantry.kill_server().await;
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go-on"), "").expect("it can be written");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let operation = operation(&told).to_string();
    let _ = runner.stop().await;

    let whole = gantry.cli(&["output", &operation]).await;
    assert!(whole.stdout == seq(1, 100_000).as_bytes(), "not the same");
    assert_eq!(String::from_utf8_lossy(&whole.stderr), "");
    let tail = gantry.cli(&["output", &operation, "--offset", "-7"]).await;
    assert_eq!(tail.stdout, b"100000\n");
    let stderr = gantry.cli(&["output", &operation, "--stderr"]).await;
    assert_eq!(stderr.stdout, b"err\n");
    let nowhere = OperationId::from_u128(1).to_string();
    let nowhere = gantry.cli(&["output", &nowhere]).await;
    assert_eq!(nowhere.status.code(), Some(1));
    let words = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(words.contains("operation not found"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_endless_output_the_head_and_the_tail_are_kept_and_the_rest_is_said_to_be_missing() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call("Shell", serde_json::json!({ "command": "seq 1 3000000" })),
        Reply::text("done"),
    ]);
    let told = gantry.talk().await.say("go").await;
    let operation = operation(&told).to_string();
    let expected = seq(1, 3_000_000);
    let kept = gantry.cli(&["output", &operation]).await;
    let words = String::from_utf8_lossy(&kept.stderr).into_owned();
    let (stdout, mib) = (kept.stdout, 1024 * 1024);
    assert!(stdout.len() >= 2 * mib && stdout.len() < expected.len());
    assert!(stdout[..mib] == expected.as_bytes()[..mib], "another head");
    let tail = expected.len() - mib;
    assert!(
        stdout[stdout.len() - mib..] == expected.as_bytes()[tail..],
        "another tail"
    );
    let missing = words
        .split_whitespace()
        .filter_map(|word| word.parse::<usize>().ok());
    // Each line says how many, and from where on.
    let missing: usize = missing.step_by(2).sum();
    assert_eq!(missing, expected.len() - stdout.len(), "{words}");
    let path = format!("/api/v1/operations/{operation}/output?offset=-5&limit=2");
    let answer = gantry.ask("get", &path, None).await;
    assert_eq!(answer.body["base"], expected.len() - 5);
    assert_eq!(answer.body["end"], expected.len());
    assert_eq!(
        (&answer.body["bytes"], &answer.body["ended"]),
        (&2.into(), &true.into())
    );
}
