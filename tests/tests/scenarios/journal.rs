//! A runner's memory on disk that was damaged: it is never silently emptied, and the runner serves
//! on.

use std::{fs, path::PathBuf};

use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup},
    work::{Job, Work},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_damaged_in_the_middle_is_set_aside_and_its_commands_go_on() {
    let (gantry, mut runner) = setting().await;
    gantry.talk().await.say("run echo one").await;
    let mut talk = gantry.talk().await;
    let command = "run echo effect >> effects; echo so far; until test -e go; do sleep 0.05; done; \
                   echo to the end";
    let turn = talk.send(command).await;
    talk.until_output("so far").await;
    runner.kill().await;
    let whole = fs::read(journal(&runner)).expect("there is a journal");
    let mut damaged = whole.clone();
    damaged[whole.len() / 3] ^= 0x55;
    fs::write(journal(&runner), &damaged).expect("it can be written");
    runner.start();
    runner.until_logged("the journal was damaged").await;
    fs::write(runner.workspace().join("go"), "").expect("it can be written");

    let told = talk.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("so far\nto the end"), "{text}");
    assert_eq!(
        runner.file("effects").as_deref(),
        Some("effect\n"),
        "it is not run again"
    );
    let kept = fs::read(journal(&runner).with_extension("damaged-1"));
    assert_eq!(kept.expect("it is kept"), damaged);
    let told = gantry.talk().await.say("run echo serves").await;
    assert!(told.calls()[0].1.contains("serves"), "{:?}", told.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_whose_last_record_is_torn_is_repaired_and_its_commands_go_on() {
    let (gantry, mut runner) = setting().await;
    let job = Job::begin(&gantry, &runner, Work(91)).await;
    runner.kill().await;
    let mut torn = fs::read(journal(&runner)).expect("there is a journal");
    while torn.last() == Some(&0) {
        torn.pop();
    }
    torn.extend_from_slice(b"0123abcd {\"unfinished\":");
    fs::write(journal(&runner), torn).expect("it can be written");
    runner.start();
    job.finish(&runner).await;
    assert!(runner.log().contains("was cut off"), "{}", runner.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_taken_away_is_another_journal_and_nothing_is_run_again() {
    let (gantry, mut runner) = setting().await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo effect >> effects; echo so far; sleep 1000")
        .await;
    talk.until_output("so far").await;
    runner.kill().await;
    fs::remove_file(journal(&runner)).expect("there is a journal");
    runner.start();
    let told = talk.ended(turn).await;
    assert_eq!(
        told.calls()[0].0,
        CallOutcome::Unknown,
        "{:?}",
        told.calls()
    );
    assert_eq!(runner.file("effects").as_deref(), Some("effect\n"));
}

fn journal(runner: &Runner) -> PathBuf {
    runner.home().join("runner/journal/journal")
}

async fn setting() -> (Gantry, Runner) {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let runner = gantry.runner("laptop").await;
    (gantry, runner)
}
