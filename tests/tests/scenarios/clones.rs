use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, Runner, TO_BE_ENROLLED, eventually},
    gateway::Gateway,
};

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
async fn a_request_that_the_network_withheld_locks_no_runner_and_stops_no_command() {
    let gantry = Gantry::practice().await;
    let gateway = Gateway::before(gantry.url()).await;
    let mut runner = gantry.runner_by_way_of(gateway.url(), "laptop").await;
    runner.kill().await;
    gateway.withhold("/Authenticate");
    runner.start();
    eventually("the request is under way", || async {
        (gateway.withheld() > 0).then_some(())
    })
    .await;
    runner.kill().await;
    gateway.allow();
    runner.start();
    gantry.until_online("laptop", true).await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo up; until test -e go; do sleep 0.05; done; echo through")
        .await;
    talk.until_output("up").await;
    let refused = gateway.release().await;
    assert!(!refused.is_empty(), "the old bytes have arrived");
    for status in refused {
        assert!(status.message().contains("came before"), "{status:?}");
    }
    std::fs::write(runner.workspace().join("go"), "").expect("a file");
    let told = talk.ended(turn).await;
    assert!(told.calls()[0].1.contains("through"), "{:?}", told.calls());
    let runners = gantry.client().runners().await.expect("a list");
    assert!(runners[0].online && !runners[0].locked, "{runners:?}");
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
