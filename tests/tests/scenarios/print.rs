//! `gantry --print`: one message from a script, its answer and its exit code.

use tests::{
    gantry::Gantry,
    model_server::{ModelServer, Reply},
};

const TOUCH: &str = r#"{"command":"touch made"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gets_the_answer_alone_and_learns_by_the_code_what_needed_consent() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let call = || Reply::call("Shell", TOUCH);
    model.script(vec![
        Reply::text("It is fine."),
        call(),
        Reply::text("It needs you."),
        call(),
        Reply::text("Made."),
    ]);
    let fine = gantry.cli(&["--print", "review"]).await;
    assert_eq!(String::from_utf8_lossy(&fine.stdout), "It is fine.\n");
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
    let asked = gantry.cli(&["--print", "make it", "--mode", "ask"]).await;
    assert_eq!(asked.status.code(), Some(3), "{asked:?}");
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("Shell: touch made"), "{said}");
    assert!(!runner.workspace().join("made").exists());
    let allow = ["--allow", "Shell(touch *)", "--output", "json"];
    let words = [&["-p", "make it", "--mode", "ask"], &allow[..]].concat();
    let made = gantry.cli(&words).await;
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let object: serde_json::Value = serde_json::from_slice(&made.stdout).expect("one object");
    assert_eq!(
        (&object["text"], &object["steps"]),
        (&"Made.".into(), &2.into())
    );
    assert!(runner.workspace().join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_fit_the_schema_is_asked_for_again_and_then_given_up() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let file = gantry.home().join("schema.json");
    std::fs::write(&file, r#"{"type":"array","items":{"type":"integer"}}"#).expect("it is written");
    let file = file.to_str().expect("text");
    model.script(vec![
        Reply::text("one, two"),
        Reply::text("```json\n[1, 2]\n```"),
        Reply::text("no"),
        Reply::text("no"),
        Reply::text("no"),
    ]);
    let list = ["--print", "count", "--schema", file];
    let fits = gantry.cli(&list).await;
    let value: serde_json::Value = serde_json::from_slice(&fits.stdout).expect("JSON alone");
    assert_eq!(
        (fits.status.code(), value),
        (Some(0), serde_json::json!([1, 2]))
    );
    assert_eq!(model.requests().len(), 2);
    let never = gantry.cli(&list).await;
    assert_eq!(never.status.code(), Some(4), "{never:?}");
    assert_eq!(model.requests().len(), 5);
}
