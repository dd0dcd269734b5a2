//! A runner that has no room for another command at the moment.

use std::fs::File;

use shared_types::event::CallOutcome;
use tests::gantry::{Gantry, Runner, Setup, Talk, eventually};

/// Commands that a runner runs at the same time.
const AT_ONCE: usize = 64;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_which_a_runner_has_no_room_waits_for_some_and_runs_once() {
    let gantry = Gantry::with(Setup::with_many_sessions()).await;
    let runner = gantry.runner("laptop").await;
    let _busy = busy(&gantry, &runner).await;
    let mut talk = gantry.talk().await;
    let turn = talk.send("run echo ran >> effects").await;
    talk.until_notice("as many operations as it can; trying again in")
        .await;
    assert_eq!(runner.file("effects"), None);
    let _room = make_room(&runner);
    let told = talk.ended(turn).await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    assert_eq!(runner.file("effects").as_deref(), Some("ran\n"));
    assert_eq!(told.places().len(), 1, "it is one operation all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_waits_for_room_while_the_server_is_killed_runs_once() {
    let mut gantry = Gantry::with(Setup::with_many_sessions()).await;
    let runner = gantry.runner("laptop").await;
    let busy = busy(&gantry, &runner).await;
    let mut talk = gantry.talk().await;
    let turn = talk.send("run echo ran >> effects").await;
    talk.until_notice("trying again in").await;
    drop(busy);
    gantry.kill_server().await;
    let _room = make_room(&runner);
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    assert_eq!(runner.file("effects").as_deref(), Some("ran\n"));
}

/// Fills the runner with commands that wait: for a pipe, because so many that look again and again would
/// slow down every other test.
async fn busy(gantry: &Gantry, runner: &Runner) -> Vec<Talk> {
    let pipe = runner.workspace().join("room");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.expect("it is installed").success());
    let mut talks = Vec::new();
    for _ in 0..AT_ONCE {
        let mut talk = gantry.talk().await;
        talk.send("run echo begun >> begun; : < room").await;
        talks.push(talk);
    }
    eventually("it is full", || async {
        let begun = runner.file("begun")?;
        (begun.lines().count() == AT_ONCE).then_some(())
    })
    .await;
    talks
}

/// Lets the commands end, now and later, for as long as the file is open.
fn make_room(runner: &Runner) -> File {
    let pipe = runner.workspace().join("room");
    let open = File::options().read(true).write(true).open(pipe);
    open.expect("a pipe")
}
