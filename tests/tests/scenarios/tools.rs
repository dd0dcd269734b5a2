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
async fn an_edit_lands_once_the_model_has_read_what_stands_in_the_file() {
    let model = ModelServer::start().await;
    let gantry = Gantry::scripted(&model).await;
    let runner = gantry.runner("laptop").await;
    let file = runner.workspace().join("main.c");
    std::fs::write(&file, "int main() {\r\n\treturn 1;\r\n}\r\n").expect("it is written");
    let read = || Reply::call("Read", r#"{"path":"main.c"}"#);
    let edit = |old: &str, new: &str| {
        let arguments = serde_json::json!({ "path": "./main.c", "old": old, "new": new });
        Reply::call("Edit", arguments)
    };
    model.script(vec![
        edit("\treturn 1;", "\treturn 0;"),
        read(),
        edit("    return 1;\n}", "    return 0;\n}"),
        Reply::call("Shell", r#"{"command":"printf '// the end\\n' >> main.c"}"#),
        edit("\treturn 1;\n}", "\treturn 0;\n}"),
        read(),
        edit("\treturn 1;\n}", "\treturn 0;\n}"),
        edit("return 0", "return 2"),
        Reply::text("done"),
    ]);
    let told = gantry.talk().await.say("go").await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let [unread, _, tabs, _, changed, _, landed, again] = told.calls()[..] else {
        panic!("eight calls: {:?}", told.calls())
    };
    let words = "not run: read ./main.c first, with Read, so that the edit fits what stands there";
    assert_eq!(unread, (CallOutcome::Refused, words));
    let words = "line 2 is indented with a tab where your text has 4 spaces";
    assert!(tabs.1.contains(words), "{tabs:?}");
    let words = "failed: \"./main.c\" was changed since it was read: read it again";
    assert_eq!(changed, (CallOutcome::Failed, words));
    assert_eq!(landed.0, CallOutcome::Completed, "{landed:?}");
    assert_eq!(again.0, CallOutcome::Completed, "{again:?}");
    assert_eq!(
        runner.file("main.c").as_deref(),
        Some("int main() {\r\n\treturn 2;\r\n}\r\n// the end\n")
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
