//! Only the server's own word ends what a runner runs: a dismissal that it has signed. Whatever else
//! refuses a runner on the way is a lost link.

use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Runner, TO_BE_ENROLLED, eventually, processes_marked},
    gateway::Gateway,
    http1_proxy::Http1Proxy,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_403_from_something_in_the_middle_stops_no_command() {
    let gantry = Gantry::practice().await;
    let gateway = Gateway::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(gateway.url(), "laptop").await;
    let mut talk = gantry.talk().await;
    let turn = talk
        .send("run echo up; until test -e go; do sleep 0.05; done; echo through")
        .await;
    talk.until_output("up").await;
    for call in ["/Authenticate", "/Link"] {
        let before = gateway.forbidden();
        gateway.forbid(call);
        eventually("it is refused twice", || async {
            (gateway.forbidden() >= before + 2).then_some(())
        })
        .await;
    }
    gateway.allow();
    gantry.until_online("laptop", true).await;
    std::fs::write(runner.workspace().join("go"), "").expect("a file");
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    assert!(told.calls()[0].1.contains("through"), "{:?}", told.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_runner_runs_is_gone() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    is_gone_with(&gantry, runner, "grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_runner_runs_is_gone_also_where_only_http1_passes() {
    let gantry = Gantry::practice().await;
    let proxy = Http1Proxy::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(proxy.url(), "laptop").await;
    is_gone_with(&gantry, runner, "http1").await;
}

/// Removes the runner while it runs a command that stops for no polite signal.
async fn is_gone_with(gantry: &Gantry, mut runner: Runner, name: &str) {
    let marker = format!("MARKER=dismissed-{name}-{}", std::process::id());
    let script = "trap '' TERM HUP INT\nsetsid sleep 1000 &\necho up\nwhile :; do sleep 1000; done";
    std::fs::write(runner.workspace().join("command.sh"), script).expect("it is written");
    let mut talk = gantry.talk().await;
    talk.send(&format!("run {marker} bash ./command.sh")).await;
    talk.until_output("up").await;
    assert!(!processes_marked(&marker).is_empty());
    let client = gantry.client();
    let id = client.runners().await.expect("a list")[0].id;
    client.remove_runner(id).await.expect("it is removed");
    assert_eq!(runner.ended().await, Some(TO_BE_ENROLLED));
    let left = processes_marked(&marker);
    assert!(left.is_empty(), "processes {left:?} outlived the dismissal");
    assert!(runner.log().contains("--replace"), "{}", runner.log());
}
