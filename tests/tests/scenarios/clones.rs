use shared_types::event::CallOutcome;
use tests::gantry::{Gantry, Runner, TO_BE_ENROLLED, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_runner_folder_is_noticed_and_locked_and_neither_copy_runs_anything() {
    let gantry = Gantry::practice().await;
    let mut original = gantry.runner("laptop").await;
    let mut copy = Runner::copy_of(&original);
    copy.start();
    // The copy takes the link over; the original comes back with a state that is used up.
    eventually("the runner is locked", || async {
        let runners = gantry.client().runners().await.ok()?;
        (runners.len() == 1 && runners[0].locked && !runners[0].online).then_some(())
    })
    .await;
    assert_eq!(original.ended().await, Some(TO_BE_ENROLLED));
    assert_eq!(copy.ended().await, Some(TO_BE_ENROLLED));
    assert!(
        original.log().contains("its folder was copied"),
        "{}",
        original.log()
    );
    let told = gantry.talk().await.say("run touch ran").await;
    let (outcome, text) = &told.calls()[0];
    assert_eq!(*outcome, CallOutcome::Refused);
    assert!(text.contains("its folder was copied"), "{text}");
    assert_eq!((original.file("ran"), copy.file("ran")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_restarts_often_is_no_copy() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    for _ in 0..3 {
        runner.kill().await;
        gantry.until_online("laptop", false).await;
        runner.start();
        gantry.until_online("laptop", true).await;
    }
    assert!(!gantry.client().runners().await.expect("a list")[0].locked);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_began_after_its_state_was_kept_is_not_begun_again_once_that_is_restored() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let mut talk = gantry.talk().await;
    let told = talk.say("run echo one >> effects").await;
    assert_eq!(told.calls()[0].0, CallOutcome::Completed);
    let kept = runner.snapshot();
    let turn = talk
        .send("run echo two >> effects; echo so far; sleep 1000")
        .await;
    talk.until_output("so far").await;
    runner.power_off();
    runner.restore(&kept);
    runner.start();
    let told = talk.ended(turn).await;
    let [(CallOutcome::Unknown, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    assert!(text.contains("so far"), "{text}");
    assert_eq!(runner.file("effects").as_deref(), Some("one\ntwo\n"));
    gantry.until_online("laptop", true).await;
    let told = gantry.talk().await.say("run echo serves").await;
    assert!(told.calls()[0].1.contains("serves"), "{:?}", told.calls());
}
