//! The operator rotates the key of the runners' access tokens, as docs/configuration.md says.

use proto::v1::server_frame;
use tests::{
    gantry::Gantry,
    peer::{Line, Over, Peer, PeerLink, connect},
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

#[tokio::test(flavor = "multi_thread")]
async fn runners_notice_no_rotation_and_an_old_token_lives_as_long_as_its_key() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let mut peer = Peer::enrol(&gantry, "peer").await;
    let old = peer.access_token().await;
    let key = |name: &str| gantry.home().join("server/keys").join(name);
    let (newest, previous) = (key("link.pem"), key("link.previous.pem"));
    let first = std::fs::read(&newest).expect("a key");

    gantry.stop_server().await;
    std::fs::rename(&newest, &previous).expect("it is moved away");
    gantry.start_server().await;
    assert_ne!(std::fs::read(&newest).expect("a key"), first);
    gantry.until_online("laptop", true).await;
    let linked = link_with(&gantry, &peer, &old).await;
    drop(linked.expect("the earlier key still verifies"));

    gantry.stop_server().await;
    std::fs::remove_file(&previous).expect("it is there");
    gantry.start_server().await;
    let refused = link_with(&gantry, &peer, &old).await.err();
    assert_eq!(
        refused.map(|status| status.code()),
        Some(Code::Unauthenticated)
    );
    peer.move_to(connect(gantry.url()).await);
    peer.link().await;
    gantry.until_online("laptop", true).await;
    gantry
        .talk()
        .await
        .say("run touch after-the-rotation")
        .await;
    assert!(runner.file("after-the-rotation").is_some());
}
