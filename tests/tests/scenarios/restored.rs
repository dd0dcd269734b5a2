//! A server whose folder was restored from an older copy.

use std::path::Path;

use shared_types::SessionId;
use tests::gantry::{Gantry, eventually};

/// Copies a folder into another one, with all that is in it.
fn copy(folder: &Path, into: &Path) {
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([folder, into])
        .status();
    assert!(copied.expect("cp starts").success());
}

async fn shown(gantry: &Gantry, session: SessionId) -> String {
    let shown = gantry.cli(&["show", &session.to_string()]).await;
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_server_locks_no_runner_and_runs_nothing_twice() {
    let mut gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let mut old = gantry.talk().await;
    old.say("run echo one >> effects").await;
    // It runs when the copy is made, ends after that, and is forgotten.
    let mut running = gantry.talk().await;
    let turn = running
        .send("run echo two >> effects; echo up; until test -e go; do sleep 0.05; done")
        .await;
    running.until_output("up").await;
    gantry.stop_server().await;
    let kept = tempfile::tempdir().expect("a temporary folder");
    copy(&gantry.home().join("server"), kept.path());
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go"), "").expect("a file");
    running.ended(turn).await;
    for _ in 0..3 {
        runner.kill().await;
        gantry.until_online("laptop", false).await;
        runner.start();
        gantry.until_online("laptop", true).await;
        // Each raises the epoch that the runner knows of the session.
        old.say("run echo three > three").await;
    }

    gantry.stop_server().await;
    std::fs::remove_dir_all(gantry.home().join("server")).expect("it is there");
    copy(&kept.path().join("server"), &gantry.home());
    gantry.start_server().await;
    gantry.until_online("laptop", true).await;
    let laptop = &gantry.client().runners().await.expect("a list")[0];
    assert!(!laptop.locked && laptop.server_went_back.is_some());
    let listed = gantry.cli(&["runners"]).await;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("restored from an older copy"), "{listed}");
    assert!(gantry.log().contains("restored from an older copy"));
    let session = running.session();
    eventually("the model is told what is not known", || async {
        let shown = shown(&gantry, session).await;
        shown.contains("was restored").then_some(())
    })
    .await;

    // A conversation whose epoch the runner has seen further on.
    let text = "run echo four >> effects";
    let client = gantry.client();
    client
        .send(old.session(), text, "after the restoration")
        .await
        .expect("it is taken");
    eventually("it runs on the same runner", || async {
        let effects = runner.file("effects")?;
        (effects == "one\ntwo\nfour\n").then_some(())
    })
    .await;
}
