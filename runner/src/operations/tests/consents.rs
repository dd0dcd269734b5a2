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

#[tokio::test]
async fn the_machines_policy_has_the_last_word_and_counts_as_soon_as_it_is_changed() {
    let mut bench = Bench::new().await;
    let policy = bench.folder.join("policy.toml");
    let ask = async |bench: &mut Bench, number, consent| {
        let mut incoming = incoming(number, shell("echo ran >> effect"));
        incoming.consent = consent;
        bench.order(incoming).await;
    };
    let agent = Consent::Agent(Mode::Full);
    ask(&mut bench, 1, agent).await;
    assert_eq!(code(&bench.read_all().await.1), Some(0));

    std::fs::write(&policy, "mode = \"ask\"").expect("a policy");
    ask(&mut bench, 2, agent).await;
    let refusal = refused(&mut bench).await;
    assert_eq!(refusal.code(), Code::ForbiddenByRunnerPolicy);
    for words in [policy.to_str().expect("text"), "a person approves this"] {
        assert!(refusal.message.contains(words), "{}", refusal.message);
    }
    let plan = shell("echo ran >> effect").digest();
    let mode = Mode::Full;
    ask(&mut bench, 2, Consent::Approved { mode, plan }).await;
    assert_eq!(code(&bench.read_all().await.1), Some(0));

    std::fs::write(&policy, "deny = [\"Shell(echo *)\"]").expect("a policy");
    ask(&mut bench, 3, Consent::Caller).await;
    let refusal = refused(&mut bench).await;
    assert!(
        refusal.message.contains("Shell(echo *)"),
        "{}",
        refusal.message
    );
    // What has begun is read to its end.
    ask(&mut bench, 2, Consent::Caller).await;
    assert_eq!(code(&bench.read_all().await.1), Some(0));

    std::fs::write(&policy, "denied = []").expect("no policy");
    ask(&mut bench, 3, Consent::Caller).await;
    let refusal = refused(&mut bench).await;
    assert!(
        refusal.message.contains("cannot be used"),
        "{}",
        refusal.message
    );
    std::fs::remove_file(&policy).expect("removed");
    ask(&mut bench, 3, Consent::Caller).await;
    assert_eq!(code(&bench.read_all().await.1), Some(0));
    let effects = std::fs::read_to_string(bench.path("effect")).expect("the effects");
    assert_eq!(effects, "ran\nran\nran\n");
}
