//! Everything that can end a command but the command itself has an end of its own, as whoever reads
//! the conversation sees it.

use std::process::Command;

use shared_types::event::CallOutcome;
use tests::gantry::{Gantry, eventually, parent_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_that_was_removed_is_said_to_be_gone() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    std::fs::remove_dir_all(runner.workspace()).expect("it can be removed");
    gantry
        .tells(
            "run echo here",
            CallOutcome::Failed,
            "the workspace is gone",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_exist_is_the_shells_own_end() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    gantry
        .tells(
            "run no-such-program",
            CallOutcome::Completed,
            "exit code 127",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_supervisor_is_killed_says_so_with_its_output_and_leaves_nobody() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo $$ > leader; echo so far; sleep 1000")
        .await;
    talk.until_output("so far").await;
    let leader: u32 = runner
        .file("leader")
        .expect("it is there")
        .trim()
        .parse()
        .expect("a pid");
    let supervisor = parent_of(leader).expect("it has one");
    assert_ne!(supervisor, runner.pid(), "it is not the daemon");
    kill(supervisor);
    let told = talk.ended(turn).await;
    let [(CallOutcome::Unknown, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.starts_with("so far\n"), "{text}");
    assert!(
        text.contains("its supervisor on the runner's host was killed"),
        "{text}"
    );
    eventually("the command is gone", || async {
        parent_of(leader).is_none().then_some(())
    })
    .await;
}

fn kill(pid: u32) {
    let killed = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(killed.expect("kill starts").success());
}
