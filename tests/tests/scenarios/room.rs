//! A runner that has no room for another command at the moment.

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
    make_room(&runner);
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
    make_room(&runner);
    gantry.start_server().await;
    let told = talk.ended(turn).await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    assert_eq!(runner.file("effects").as_deref(), Some("ran\n"));
}

/// Fills the runner with commands that wait.
async fn busy(gantry: &Gantry, runner: &Runner) -> Vec<Talk> {
    let mut talks = Vec::new();
    for _ in 0..AT_ONCE {
        let mut talk = gantry.talk().await;
        talk.send("run echo begun >> begun; until [ -e room ]; do sleep 0.1; done")
            .await;
        talks.push(talk);
    }
    eventually("it is full", || async {
        let begun = runner.file("begun")?;
        (begun.lines().count() == AT_ONCE).then_some(())
    })
    .await;
    talks
}

fn make_room(runner: &Runner) {
    std::fs::write(runner.workspace().join("room"), "").expect("it is written");
}
