//! What stands between a runner and its server, and ends the TLS of both, can cut their link and
//! nothing else: it makes no order, no end and no output up.

use proto::v1::{self, runner_frame::Kind};
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    footprint::behaving,
    gantry::{Gantry, Setup, eventually},
    meddler::{Meddler, Meddling},
    over_both,
    peer::{Over, Peer},
    proxy::Way,
};

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    a_first_frame_that_was_changed_on_its_way_is_refused,
}

/// What may become of a frame. The first ones leave some of an earlier link for those behind.
const MEDDLING: [Meddling; 9] = [
    Meddling::Flipped(|_| 0),
    Meddling::Flipped(|bytes| bytes / 2),
    Meddling::Flipped(|bytes| bytes - 1),
    Meddling::Cut,
    Meddling::Repeated,
    Meddling::Swapped,
    Meddling::LeftOut,
    Meddling::OfAnotherLink,
    Meddling::OfTheOtherWay,
];

/// Each time the link ends, and the operation is carried out once all the same.
async fn only_the_link_ends(way: Way) {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let meddler = Meddler::before(gantry.url()).await;
    let runner = gantry.runner_by_way_of(meddler.url(), "laptop").await;
    let mut talk = gantry.talk().await;
    let mut effects = String::new();
    for (number, meddling) in MEDDLING.into_iter().enumerate() {
        let what = format!("{meddling:?} {way:?}");
        let links = meddler.links();
        meddler.plan(way, meddling);
        let script = format!("run echo {number} >> effects; echo truth");
        let told = talk.say(&script).await;
        assert!(meddler.is_done(), "{what}");
        assert_eq!(
            told.outcome,
            TurnOutcome::Completed,
            "{what}: {:?}",
            told.reason
        );
        let [(CallOutcome::Completed, text)] = told.calls()[..] else {
            panic!("{what}: one call: {:?}", told.calls())
        };
        assert!(text.contains("truth"), "{what}: {text}");
        effects += &format!("{number}\n");
        assert_eq!(runner.file("effects").as_ref(), Some(&effects), "{what}");
        let next = || async { (meddler.links() > links).then_some(()) };
        eventually(&format!("{what}: the next link"), next).await;
        gantry.until_online("laptop", true).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_the_server_did_not_send_there_ends_the_link_and_nothing_else() {
    only_the_link_ends(Way::ToRunner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_the_runner_did_not_send_there_ends_the_link_and_nothing_else() {
    only_the_link_ends(Way::ToServer).await;
}

async fn a_first_frame_that_was_changed_on_its_way_is_refused(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let changes: [fn(&mut v1::Proof); 5] = [
        |proof| proof.protocol_version += 1,
        |proof| proof.ephemeral_key[0] ^= 1,
        |proof| proof.hello = None,
        |proof| proof.hello = Some(v1::Sealed::default()),
        |proof| {
            let mut hello = proof.hello.take().unwrap_or_default().sealed.to_vec();
            hello[7] ^= 1;
            let sealed = hello.into();
            proof.hello = Some(v1::Sealed { sealed });
        },
    ];
    for change in changes {
        let (mut link, token) = peer.dial().await;
        let mut proof = peer.proof(&mut link, &token, peer.hello());
        change(&mut proof);
        link.send(Kind::Proof(proof)).await;
        let reason = link.reason().await;
        assert!(reason.starts_with("Unauthenticated: "), "{reason}");
    }
    let runners = gantry.client().runners().await.expect("a list");
    let mut peers = runners.iter().filter(|runner| runner.name == "peer");
    assert!(!peers.any(|runner| runner.online));
    drop(peer);
    before.is_restored(&gantry).await;
}
