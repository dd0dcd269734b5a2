//! The operator rotates the key of the runners' access tokens while the server runs, as docs/configuration.md
//! says.

use proto::v1::server_frame;
use shared_types::event::CallOutcome;
use tests::{
    gantry::{Gantry, eventually},
    peer::{Line, Over, Peer, PeerLink},
    work::Work,
};
use tonic::{Code, Status};

/// A link with a token that was given earlier, up to the welcome.
async fn link_with(gantry: &Gantry, peer: &Peer, token: &str) -> Result<PeerLink, Status> {
    let mut link = PeerLink::dial(&Line::to(Over::Grpc, gantry.url()).await, token).await?;
    peer.greet(&mut link, token).await;
    match link.next().await? {
        Some(server_frame::Kind::Welcome(_)) => Ok(link),
        other => panic!("no welcome: {other:?}"),
    }
}

/// Rotates, and returns what the verb said.
async fn rotate(gantry: &Gantry, words: &[&str]) -> String {
    let words = [&["rotate-link-key"], words].concat();
    let said = gantry.operator(&words).output().await.expect("it starts");
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).expect("it is text")
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_notice_no_rotation_and_sign_in_again_where_the_old_key_is_refused_at_once() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let (work, mut talk) = (Work(53), gantry.talk().await);
    let turn = talk.send(&format!("run {}", work.until_enough())).await;
    eventually("the work begins", || async { work.effects(&runner) }).await;
    let old = peer.access_token().await;
    let links = || runner.log().matches("runner connected").count();
    assert_eq!(links(), 1);

    let said = rotate(&gantry, &[]).await;
    assert!(said.contains("accepted for 10 more minutes"), "{said}");
    let linked = link_with(&gantry, &peer, &old).await;
    let mut linked = linked.expect("the earlier key still verifies");
    assert_eq!(links(), 1, "the runner has the link that it had");

    let said = rotate(&gantry, &["--now"]).await;
    assert!(said.contains("are refused"), "{said}");
    let reason = linked.reason().await;
    assert!(reason.contains("another link key"), "{reason}");
    let refused = link_with(&gantry, &peer, &old).await.err();
    assert_eq!(
        refused.map(|status| status.code()),
        Some(Code::Unauthenticated)
    );
    drop(peer.link().await);
    eventually("the runner links again", || async {
        (links() == 2).then_some(())
    })
    .await;

    work.is_enough(&runner.workspace());
    let told = talk.ended(turn).await;
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("{:?}", told.calls())
    };
    work.is_done(&runner, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_rotated_while_no_server_ran_counts_from_the_next_start_on() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let peer = Peer::enrol(&gantry, "peer").await;
    let old = peer.access_token().await;
    let key = gantry.home().join("server/keys/link.pem");
    let first = std::fs::read(&key).expect("a key");
    gantry.stop_server().await;
    let said = rotate(&gantry, &[]).await;
    assert!(said.contains("no server runs here"), "{said}");
    assert_ne!(std::fs::read(&key).expect("a key"), first);
    gantry.start_server().await;
    let linked = link_with(&gantry, &peer, &old).await;
    drop(linked.expect("the earlier key still verifies"));
    gantry.until_online("laptop", true).await;
    gantry
        .talk()
        .await
        .say("run touch after-the-rotation")
        .await;
    assert!(runner.file("after-the-rotation").is_some());
}
