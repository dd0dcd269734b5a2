//! Many links that break the protocol, each in its own way: every one hears a reason, and the server
//! is as it was.

use bytes::Bytes;
use proto::v1::{self, runner_frame::Kind};
use shared_types::limits::{MAX_FRAME_BYTES, MAX_HELLO_BYTES};
use tests::{
    footprint::behaving,
    over_both,
    peer::{Line, Over, Peer, PeerLink, link_raw},
};

/// Links that break the protocol, and how many of them at a time.
const LINKS: usize = 200;
const AT_ONCE: usize = 8;

/// What no protobuf library would write: a field without an end, a kind of field that there is
/// not, a length beyond the frame.
const MALFORMED: [&[u8]; 3] = [&[0xff; 64], &[0x0f, 0x01], &[0x0a, 0xff, 0xff, 0xff, 0x7f]];

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    two_hundred_links_that_break_the_protocol_each_hear_a_reason_and_cost_nothing,
}

async fn two_hundred_links_that_break_the_protocol_each_hear_a_reason_and_cost_nothing(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let token = peer.access_token().await;
    for first in (0..LINKS).step_by(AT_ONCE) {
        let mut links = Vec::new();
        for number in first..first + AT_ONCE {
            let (url, token) = (gantry.url().to_owned(), token.clone());
            links.push(tokio::spawn(async move {
                broken(over, number, &url, &token).await
            }));
        }
        for link in links {
            let (reason, words) = link.await.expect("it hears a reason");
            assert!(reason.contains(words), "it should say {words:?}: {reason}");
        }
    }
    println!("{LINKS} links were ended, each with its reason");
    drop(peer);
    before.is_restored(&gantry).await;
}

/// Breaks the protocol in one of several ways on a connection of its own; returns the reason that
/// was given and words that it has to have.
async fn broken(over: Over, number: usize, url: &str, token: &str) -> (String, &'static str) {
    let line = Line::to(over, url).await;
    let frame = |kind| async {
        let mut link = PeerLink::dial(&line, token).await.expect("a challenge");
        link.send(kind).await;
        link.reason().await
    };
    let goodbye = |bytes: usize| {
        Kind::Goodbye(v1::Goodbye {
            reason: "x".repeat(bytes),
            for_good: false,
            ..v1::Goodbye::default()
        })
    };
    match number % 6 {
        0 => (
            frame(Kind::Heartbeat(v1::Heartbeat::default())).await,
            "must be a proof",
        ),
        1 => (frame(goodbye(MAX_HELLO_BYTES)).await, "64 KiB"),
        2 => (frame(goodbye(MAX_FRAME_BYTES)).await, "64 KiB"),
        3 => (frame(Kind::Proof(Box::default())).await, "version 0"),
        4 => {
            let empty = link_raw(&line, token, vec![Bytes::new()]).await;
            (empty.to_string(), "must be a proof")
        }
        _ => {
            let bytes = MALFORMED[number / 6 % MALFORMED.len()];
            let refused = link_raw(&line, token, vec![Bytes::from_static(bytes)]).await;
            (refused.to_string(), "decode")
        }
    }
}
