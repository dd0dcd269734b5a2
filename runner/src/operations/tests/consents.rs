//! Consents: what an agent may do here, by a person's approval and by the machine's policy.

use proto::v1::refusal::Code;
use shared_sandbox::Consent;
use shared_types::Mode;

use super::*;

/// The refusal of an operation that did not start.
async fn refused(bench: &mut Bench) -> v1::Refusal {
    match bench.read_all().await {
        (_, v1::ended::Outcome::Refused(refusal)) => refusal,
        other => panic!("no refusal: {other:?}"),
    }
}

#[tokio::test]
async fn a_command_other_than_the_approved_one_leaves_no_trace_and_may_be_asked_for_anew() {
    let mut bench = Bench::new().await;
    let run = |script: &str| {
        let mut incoming = incoming(1, shell("echo ran > effect"));
        incoming.consent = Consent::Approved {
            mode: Mode::Ask,
            plan: shell(script).digest(),
        };
        incoming
    };
    bench.order(run("echo harmless")).await;
    let refusal = refused(&mut bench).await;
    assert_eq!(refusal.code(), Code::ForbiddenByRunnerPolicy);
    assert!(refusal.message.contains("approved"), "{}", refusal.message);
    assert!(!bench.path("effect").exists());
    let mut bench = bench.kill(&incarnation().boot).await;
    assert!(bench.relink().await.inventory.is_empty());
    bench.order(run("echo ran > effect")).await;
    assert_eq!(code(&bench.read_all().await.1), Some(0));
}
