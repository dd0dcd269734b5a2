//! What other processes of the same user see of server and runner. Root sees everything, so the programs run as
//! an ordinary user.

use std::process::Output;

use tests::{
    gantry::{Gantry, Process, Runner, children_of, eventually},
    ordinary::Ordinary,
};

/// What `cat` as the ordinary user says of a process's environment.
async fn environment_of(ordinary: &Ordinary, pid: u32) -> Output {
    let mut cat = tokio::process::Command::new("cat");
    cat.arg(format!("/proc/{pid}/environ"));
    ordinary.becomes(&mut cat);
    cat.output().await.expect("there is a cat")
}

async fn is_refused(ordinary: &Ordinary, pid: u32) {
    let read = environment_of(ordinary, pid).await;
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_of_the_same_user_does_not_read_the_models_key_from_the_server() {
    let (ordinary, home) = (
        Ordinary::with_programs(),
        tempfile::tempdir().expect("a folder"),
    );
    ordinary.give(home.path());
    let environment = [
        ("OPENAI_API_KEY".to_owned(), "sk-secret".to_owned()),
        ("GANTRY_MODEL".to_owned(), "some-model".to_owned()),
    ];
    let arguments = ["run", "--listen", "127.0.0.1:0"].map(str::to_owned);
    let mut server = Process::start_by(
        &ordinary.launcher(),
        "gantry-server",
        &arguments,
        home.path(),
        &environment,
    );
    while !server.line().await.starts_with("listening on ") {}
    is_refused(&ordinary, server.pid()).await;
    // Nor does root find it where a process shows what it was started with.
    let shown = std::fs::read(format!("/proc/{}/environ", server.pid()));
    let shown = String::from_utf8_lossy(&shown.expect("root sees it")).into_owned();
    assert!(shown.contains("GANTRY_MODEL=some-model"), "{shown}");
    assert!(
        shown.contains("OPENAI_API_KEY=\0") && !shown.contains("sk-secret"),
        "{shown}"
    );
    assert_eq!(server.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_is_hidden_from_its_user_works_as_ever_and_its_commands_are_not_hidden() {
    let (ordinary, gantry) = (Ordinary::with_programs(), Gantry::practice().await);
    let mut runner = Runner::stranger();
    ordinary.give(&runner.home());
    let launcher = ordinary.launcher();
    runner.launch_by(&launcher.iter().map(String::as_str).collect::<Vec<_>>());
    let token = gantry.join_token("laptop").await;
    let enrolled = runner.try_enrol(gantry.url(), &token, "laptop").await;
    assert!(enrolled.status.success(), "{enrolled:?}");
    runner.start();
    gantry.until_online("laptop", true).await;
    is_refused(&ordinary, runner.pid()).await;

    let mut talk = gantry.talk().await;
    for (message, answer) in [
        ("write notes/a.txt: one", "notes/a.txt"),
        ("edit notes/a.txt: one => two", "notes/a.txt"),
        ("read notes/a.txt", "two"),
        ("search two", "notes/a.txt"),
        (
            "run cat notes/a.txt; cat /proc/self/environ >environment",
            "two",
        ),
    ] {
        let told = talk.say(message).await;
        assert!(
            told.answer().contains(answer),
            "{message}: {}",
            told.answer()
        );
    }
    let seen = runner.file("environment").expect("it was written");
    assert!(
        seen.contains("PATH=") && !seen.contains("do-not-leak"),
        "{seen}"
    );
    let supervisors = eventually("supervisors wait", || async {
        Some(children_of(runner.pid())).filter(|children| !children.is_empty())
    });
    let read = environment_of(&ordinary, supervisors.await[0]).await;
    assert!(read.status.success(), "{read:?}");

    // Its commands outlive it, and the next daemon takes them up.
    let turn = talk
        .send("run echo up; until [ -e go-on ]; do sleep 0.02; done; echo over")
        .await;
    talk.until_output("up").await;
    runner.kill().await;
    runner.start();
    gantry.until_online("laptop", true).await;
    let go_on = runner.workspace().join("go-on");
    std::fs::write(go_on, "").expect("it is written");
    let told = talk.ended(turn).await;
    assert!(told.answer().contains("over"), "{}", told.answer());
}
