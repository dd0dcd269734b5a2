//! What stands between a runner and its server, and ends the TLS of both, can cut their link and
//! nothing else: it makes no end up, and no output.

use proto::v1::{self, RunnerFrame, ended::Outcome, runner_frame::Kind};
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    footprint::behaving,
    gantry::Gantry,
    over_both,
    peer::{Over, Peer, PeerLink},
};

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    a_frame_that_the_runner_did_not_send_there_ends_the_link_and_nothing_else,
    a_first_frame_that_was_changed_on_its_way_is_refused,
}

/// The frames that a runner sends of one operation, as they pass, and what becomes of them.
type Meddle = fn(&mut Vec<RunnerFrame>);

async fn a_frame_that_the_runner_did_not_send_there_ends_the_link_and_nothing_else(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut link, _) = peer.link().await;
    let used = gantry.client().use_runner("peer").await;
    used.expect("it is chosen");
    let mut talk = gantry.talk().await;
    let turn = talk.send("run true").await;
    let operation = link.operation().await.operation;
    let meddling: [(&str, Meddle); 7] = [
        ("a forged end", |frames| frames[1] = forged_end(&frames[1])),
        ("forged output", |frames| frames[1] = changed(&frames[1])),
        ("an output without its seal", |frames| {
            frames[1] = RunnerFrame {
                kind: Some(output("op_1", b"false")),
            };
        }),
        ("a repetition", |frames| frames.insert(1, frames[0].clone())),
        ("another order", |frames| frames.swap(1, 2)),
        ("a gap", |frames| drop(frames.remove(1))),
        ("a frame within a frame", |frames| {
            frames[1].kind = Some(Kind::Sealed(v1::Sealed::default()));
        }),
    ];
    for (what, meddle) in meddling {
        say(&link, &operation, meddle).await;
        let reason = link.reason().await;
        assert!(reason.contains("the runner sealed"), "{what}: {reason}");
        link = peer.link().await.0;
        let asked = link.operation().await;
        assert_eq!(asked.operation, operation, "{what}: it has not ended");
    }
    say(&link, &operation, |_| {}).await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("one call: {:?}", told.calls())
    };
    assert!(text.contains("truth") && !text.contains("false"), "{text}");
    drop((link, peer));
    before.is_restored(&gantry).await;
}

async fn a_first_frame_that_was_changed_on_its_way_is_refused(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let changes: [fn(&mut v1::Hello); 4] = [
        |hello| hello.protocol_version += 1,
        |hello| hello.journal_sequence += 1,
        |hello| {
            let incarnation = hello.incarnation.as_mut();
            incarnation.expect("it has one").boot.push('2');
        },
        |hello| hello.inventory.push(v1::InventoryEntry::default()),
    ];
    for change in changes {
        let (mut link, token) = peer.dial().await;
        let mut hello = peer.hello(&link, &token);
        change(&mut hello);
        link.send(Kind::Hello(hello)).await;
        let reason = link.reason().await;
        assert!(reason.starts_with("Unauthenticated: "), "{reason}");
    }
    assert!(!is_online(&gantry).await);
    drop(peer);
    before.is_restored(&gantry).await;
}

/// Accepts the operation, tells its output and its end, with somebody in between.
async fn say(link: &PeerLink, operation: &str, meddle: Meddle) {
    let accepted = Kind::Accepted(v1::Accepted {
        operation: operation.to_owned(),
        journal_sequence: 0,
    });
    let said = [accepted, output(operation, b"truth"), ended(operation, 5)];
    let mut frames = said.map(|kind| link.seal(kind)).to_vec();
    meddle(&mut frames);
    for frame in frames {
        link.send_as_it_is(frame).await;
    }
}

/// Whoever reads a frame can put another one in its place.
fn forged_end(seen: &RunnerFrame) -> RunnerFrame {
    let Kind::Output(output) = within(seen) else {
        panic!("no output");
    };
    RunnerFrame {
        kind: Some(ended(&output.operation, 0)),
    }
}

/// The same, of the same length, under the seal of the true one.
fn changed(seen: &RunnerFrame) -> RunnerFrame {
    let mut changed = seen.clone();
    if let Some(Kind::Sealed(sealed)) = &mut changed.kind {
        let mut bytes = sealed.frame.to_vec();
        let last = bytes.len() - "truth".len();
        bytes[last..].copy_from_slice(b"false");
        sealed.frame = bytes.into();
    }
    changed
}

fn within(frame: &RunnerFrame) -> Kind {
    let Some(Kind::Sealed(sealed)) = &frame.kind else {
        panic!("not sealed: {frame:?}");
    };
    let frame: RunnerFrame = prost::Message::decode(sealed.frame.clone()).expect("a frame");
    frame.kind.expect("a kind")
}

fn output(operation: &str, data: &[u8]) -> Kind {
    Kind::Output(v1::Output {
        operation: operation.to_owned(),
        stream: v1::OutputStream::Stdout.into(),
        offset: 0,
        data: data.to_vec().into(),
    })
}

/// Exit code 0 after this much output.
fn ended(operation: &str, stdout: u64) -> Kind {
    let end = |offset| v1::StreamEnd {
        offset,
        checksum: None,
    };
    Kind::Ended(v1::Ended {
        operation: operation.to_owned(),
        outcome: Some(Outcome::Exited(v1::ExitRecord {
            status: Some(v1::exit_record::Status::Code(0)),
            cause: v1::exit_record::Cause::Exited.into(),
            stdout: Some(end(stdout)),
            stderr: Some(end(0)),
            ..v1::ExitRecord::default()
        })),
    })
}

async fn is_online(gantry: &Gantry) -> bool {
    let runners = gantry.client().runners().await.expect("a list");
    let mut peers = runners.iter().filter(|runner| runner.name == "peer");
    peers.any(|runner| runner.online)
}
