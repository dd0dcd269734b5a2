use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, children_of, eventually, is_alive},
    model_server::{ModelServer, Reply},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_runs_a_command_on_the_runner_and_streams_its_output() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo first; touch made-here; echo second")
        .await;
    talk.until_output("first").await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("one call: {:?}", told.calls())
    };
    assert!(text.contains("first\nsecond"), "{text}");
    assert_eq!(runner.file("made-here").as_deref(), Some(""));
    assert!(
        told.answer().starts_with("Practice model (no AI)"),
        "{}",
        told.answer()
    );
    assert_eq!(told.places()[0].runner_name, "laptop");
    assert_eq!(told.places()[0].isolation.to_string(), "none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_model_writes_reads_edits_and_finds_files_in_the_workspace() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call(
            "Write",
            r#"{"path":"src/notes.txt","content":"alpha\nbeta\n"}"#,
        ),
        Reply::call(
            "Edit",
            r#"{"path":"src/notes.txt","old":"beta","new":"gamma"}"#,
        ),
        Reply::calls(
            "",
            [
                ("Read", r#"{"path":"src/notes.txt"}"#),
                ("Grep", r#"{"pattern":"gam+a"}"#),
                ("Glob", r#"{"pattern":"**/*.txt"}"#),
                ("List", r#"{"path":"src"}"#),
            ]
            .map(|(name, arguments)| (name.to_owned(), arguments.to_owned()))
            .into(),
        ),
        Reply::text("all done"),
    ]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    assert_eq!(told.answer(), "all done");
    assert_eq!(
        runner.file("src/notes.txt").as_deref(),
        Some("alpha\ngamma\n")
    );
    let calls = told.calls();
    assert_eq!(calls.len(), 6);
    assert!(
        calls
            .iter()
            .all(|(outcome, _)| *outcome == CallOutcome::Completed),
        "{calls:?}"
    );
    assert!(
        calls[2..]
            .iter()
            .all(|(_, text)| text.contains("notes.txt") || text.contains("gamma")),
        "{calls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_kills_a_shell_pipelines_whole_group() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk.send("run echo $$ > leader; (sleep 1000; touch survived) | sleep 1000 & sleep 1000 & echo going; wait").await;
    talk.until_output("going").await;
    let leader: u32 = runner
        .file("leader")
        .expect("it is written")
        .trim()
        .parse()
        .expect("a pid");
    let group: Vec<u32> = eventually("the pipeline runs", || async {
        let group = children_of(leader);
        (group.len() >= 3).then_some(group)
    })
    .await;
    talk.cancel().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Cancelled);
    assert_eq!(told.calls()[0].0, CallOutcome::Cancelled);
    assert!(
        told.calls()[0].1.contains("going"),
        "the output so far is told: {:?}",
        told.calls()
    );
    for pid in group.into_iter().chain([leader]) {
        assert!(!is_alive(pid), "process {pid} outlived the cancel");
    }
    assert_eq!(runner.file("survived"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_see_nothing_of_the_runners_environment() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let told = gantry.talk().await.say("run env").await;
    let text = told.calls()[0].1;
    assert!(text.contains("PATH="), "{text}");
    assert!(
        !text.contains("RUNNER_SECRET") && !text.contains("do-not-leak"),
        "{text}"
    );
    assert!(!text.contains("GANTRY"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_says_nothing_for_too_long_is_stopped_and_one_that_goes_on_talking_is_not() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let _runner = gantry.runner("laptop").await;
    model.script(vec![
        Reply::call(
            "Shell",
            r#"{"command":"echo before; sleep 1000","idle_timeout_ms":1000}"#,
        ),
        Reply::call(
            "Shell",
            r#"{"command":"for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done","idle_timeout_ms":1000}"#,
        ),
        Reply::text("I see"),
    ]);
    let told = gantry.talk().await.say("go").await;
    let [
        (CallOutcome::TimedOut, silent),
        (CallOutcome::Completed, talking),
    ] = told.calls()[..]
    else {
        panic!("{:?}", told.calls())
    };
    assert!(silent.contains("before"), "{silent}");
    assert!(silent.contains("said nothing for 1 s"), "{silent}");
    assert!(talking.contains("6\n"), "{talking}");
}
