//! Runners that misbehave on the wire. Whatever they say, the server answers with one reason,
//! keeps no descriptor and no memory, and serves the other runners on.

use proto::{
    PROTOCOL_VERSION, signing,
    v1::{self, ended::Outcome, runner_frame::Kind, server_frame},
};
use shared_types::{
    OperationId,
    event::{CallOutcome, TurnOutcome},
    limits::{CREDIT_WINDOW_BYTES, MAX_FRAME_BYTES, MAX_HELLO_BYTES, OUTPUT_CHUNK_BYTES},
};
use tests::{
    footprint::behaving,
    gantry::Gantry,
    over_both,
    peer::{Key, Line, Over, Peer, PeerLink},
};

over_both! {
    #[tokio::test(flavor = "multi_thread")]
    a_first_frame_that_is_wrong_is_refused_with_its_reason,
    a_link_that_does_not_say_hello_is_ended_after_ten_seconds,
    the_bearer_of_a_removed_runners_token_hears_at_once_that_it_was_removed,
    a_runner_that_is_too_old_is_listed_with_what_to_do_until_it_is_let_in,
    a_newer_runner_is_welcomed_with_the_version_that_both_speak,
    a_copied_access_token_is_worth_nothing_without_the_key_and_disturbs_nobody,
    a_runner_without_a_key_for_its_link_is_not_let_in,
    a_frame_that_breaks_the_protocol_ends_the_link_with_its_reason,
    what_a_runner_says_of_operations_that_it_was_never_given_changes_nothing,
    broken_output_ends_the_link_and_the_operation_goes_on_over_the_next_one,
    many_links_that_send_too_much_leave_no_descriptor_and_no_memory_behind,
}

async fn a_first_frame_that_is_wrong_is_refused_with_its_reason(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    type Spoil = fn(&mut v1::Hello);
    let hellos: [(&str, Spoil); 7] = [
        ("64 KiB", |hello| {
            hello.software_version = "x".repeat(MAX_HELLO_BYTES)
        }),
        ("64 KiB", |hello| {
            hello.software_version = "x".repeat(MAX_FRAME_BYTES);
        }),
        ("no incarnation", |hello| hello.incarnation = None),
        ("no capabilities", |hello| hello.capabilities = None),
        ("longer than 256 bytes", |hello| {
            hello.software_version = "x".repeat(257)
        }),
        ("does not belong to this runner", |hello| {
            let sandboxes = &mut hello.capabilities.as_mut().expect("it has some").sandboxes;
            sandboxes[0].name = "another".to_owned();
        }),
        ("an operation's id cannot be read", |hello| {
            let operation = "op_nonsense".to_owned();
            hello.inventory.push(v1::InventoryEntry {
                operation,
                ended: true,
            });
        }),
    ];
    for (words, spoil) in hellos {
        let (mut link, token) = peer.dial().await;
        let mut hello = peer.hello();
        spoil(&mut hello);
        let proof = peer.proof(&mut link, &token, hello);
        link.send(Kind::Proof(proof)).await;
        let reason = link.reason().await;
        assert!(reason.contains(words), "it should say {words:?}: {reason}");
    }
    for version in 0..PROTOCOL_VERSION {
        let (mut link, token) = peer.dial().await;
        let mut proof = peer.proof(&mut link, &token, peer.hello());
        proof.protocol_version = version;
        peer.sign(&link, &token, &mut proof);
        link.send(Kind::Proof(proof)).await;
        let reason = link.reason().await;
        let words = format!("FailedPrecondition: the runner speaks version {version}");
        assert!(reason.starts_with(&words), "{reason}");
        assert!(reason.ends_with("upgrade gantry-runner"), "{reason}");
    }
    let (mut link, _) = peer.dial().await;
    link.send(Kind::Heartbeat(v1::Heartbeat::default())).await;
    let reason = link.reason().await;
    assert!(reason.contains("first frame must be a proof"), "{reason}");
    drop(link);
    assert!(!is_online(&gantry, "peer").await);
    drop(peer);
    before.is_restored(&gantry).await;
}

async fn a_link_that_does_not_say_hello_is_ended_after_ten_seconds(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut link, _) = peer.dial().await;
    let reason = link.reason().await;
    assert!(reason.contains("no hello came within 10 s"), "{reason}");
    drop((link, peer));
    before.is_restored(&gantry).await;
}

async fn the_bearer_of_a_removed_runners_token_hears_at_once_that_it_was_removed(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let token = peer.access_token().await;
    let removed = gantry.client().remove_runner(peer.runner).await;
    removed.expect("it is there");
    let refused = peer.try_dial_with(&token).await.err().expect("it is gone");
    assert!(
        refused.message().contains("this runner was removed"),
        "{refused}"
    );
    drop(peer);
    before.is_restored(&gantry).await;
}

async fn a_runner_that_is_too_old_is_listed_with_what_to_do_until_it_is_let_in(over: Over) {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let listed = || async {
        let listed = gantry.cli(&["runners"]).await;
        String::from_utf8(listed.stdout).expect("text")
    };
    assert!(listed().await.contains("never connected"));
    let (mut link, token) = peer.dial().await;
    let mut proof = peer.proof(&mut link, &token, peer.hello());
    proof.protocol_version = 2;
    peer.sign(&link, &token, &mut proof);
    link.send(Kind::Proof(proof)).await;
    link.reason().await;
    let why = "refused: it speaks version 2, this server 3: upgrade gantry-runner";
    let shown = listed().await;
    assert!(shown.contains(why), "{shown}");

    let (link, _) = peer.link().await;
    gantry.until_online("peer", true).await;
    drop((link, peer));
    gantry.until_online("peer", false).await;
    let shown = listed().await;
    assert!(shown.contains("offline, last seen"), "{shown}");
}

async fn a_newer_runner_is_welcomed_with_the_version_that_both_speak(over: Over) {
    let gantry = Gantry::practice().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut link, token) = peer.dial().await;
    let newer = v1::Hello {
        protocol_version: PROTOCOL_VERSION + 7,
        ..peer.hello()
    };
    let mut proof = peer.proof(&mut link, &token, newer);
    proof.protocol_version = PROTOCOL_VERSION + 7;
    peer.sign(&link, &token, &mut proof);
    link.send(Kind::Proof(proof)).await;
    let Ok(Some(server_frame::Kind::Welcome(welcome))) = link.next().await else {
        panic!("it is welcome");
    };
    assert_eq!(welcome.protocol_version, PROTOCOL_VERSION);
}

async fn a_copied_access_token_is_worth_nothing_without_the_key_and_disturbs_nobody(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut own, token) = peer.dial().await;
    let copied = peer.proof(&mut own, &token, peer.hello());
    own.send(Kind::Proof(copied.clone())).await;
    gantry.until_online("peer", true).await;

    let thief = Key::generate();
    let elsewhere = Line::to(over, gantry.url()).await;
    for forged in [
        "none",
        "the thief's",
        "copied",
        "copied whole",
        "for another key",
    ] {
        let mut link = PeerLink::dial(&elsewhere, &token)
            .await
            .expect("a challenge");
        let mut proof = peer.proof(&mut link, &token, peer.hello());
        match forged {
            "none" => proof.signature.clear(),
            "copied" => proof.signature.clone_from(&copied.signature),
            "copied whole" => proof.clone_from(&copied),
            "for another key" => proof.ephemeral_key.clone_from(&copied.ephemeral_key),
            _ => {
                let signed = signing::proof(&token, &link.challenge, &proof);
                proof.signature = thief.sign(&signed);
            }
        }
        link.send(Kind::Proof(proof)).await;
        let reason = link.reason().await;
        assert!(
            reason.starts_with("Unauthenticated: "),
            "{forged}: {reason}"
        );
    }
    for token in ["", "x", &token[..token.len() - 1]] {
        let refused = PeerLink::dial(&elsewhere, token)
            .await
            .err()
            .expect("it is refused");
        assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused:?}");
    }

    assert!(
        is_online(&gantry, "peer").await,
        "its own link is untouched"
    );
    answers(&mut own, &gantry).await;
    drop((own, elsewhere, peer));
    before.is_restored(&gantry).await;
}

async fn a_runner_without_a_key_for_its_link_is_not_let_in(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    for key in [vec![], vec![1; 31], vec![1; 33], vec![0; 32]] {
        let (mut link, token) = peer.dial().await;
        let mut proof = peer.proof(&mut link, &token, peer.hello());
        proof.ephemeral_key = key;
        peer.sign(&link, &token, &mut proof);
        link.send(Kind::Proof(proof)).await;
        let reason = link.reason().await;
        assert!(reason.starts_with("InvalidArgument: "), "{reason}");
        assert!(reason.contains("ephemeral key"), "{reason}");
    }
    assert!(!is_online(&gantry, "peer").await);
    drop(peer);
    before.is_restored(&gantry).await;
}

async fn a_frame_that_breaks_the_protocol_ends_the_link_with_its_reason(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let nobody = OperationId::from_u128(1).to_string();
    let cases = [
        ("a second first message", Kind::Hello(Box::default())),
        ("a second first message", Kind::Proof(Box::default())),
        (
            "a frame came within another",
            Kind::Sealed(v1::Sealed::default()),
        ),
        ("operation's id", accepted("op_nonsense")),
        ("operation's id", accepted("")),
        ("operation's id", accepted("run_01h455vb4pex5vsknk084sn02q")),
        ("operation's id", output("ses_1", 0, b"x")),
        ("operation's id", ended("op_", 0)),
        (
            "message length too large",
            output(&nobody, 0, &vec![0; MAX_FRAME_BYTES]),
        ),
        (
            "at most 65536",
            output(&nobody, 0, &vec![0; OUTPUT_CHUNK_BYTES + 1]),
        ),
        (
            "names stream 7",
            Kind::Gap(v1::Gap {
                operation: nobody.clone(),
                stream: 7,
                from: 0,
                to: 1,
            }),
        ),
        (
            "says nothing",
            Kind::CancelAnswer(v1::CancelAnswer {
                operation: nobody.clone(),
                ..v1::CancelAnswer::default()
            }),
        ),
    ];
    let mut last = 0;
    for (words, frame) in cases {
        let (mut link, generation) = peer.link().await;
        assert!(generation > last, "a generation only grows");
        last = generation;
        link.send(frame).await;
        let reason = link.reason().await;
        assert!(reason.contains(words), "it should say {words:?}: {reason}");
    }
    gantry.until_online("peer", false).await;
    drop(peer);
    before.is_restored(&gantry).await;
}

async fn what_a_runner_says_of_operations_that_it_was_never_given_changes_nothing(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut link, _) = peer.link().await;
    let nobody = OperationId::from_u128(1).to_string();
    let chunk = vec![b'x'; OUTPUT_CHUNK_BYTES];
    link.send(accepted(&nobody)).await;
    for piece in 0..2048 {
        link.send(output(&nobody, piece * OUTPUT_CHUNK_BYTES as u64, &chunk))
            .await;
    }
    link.send(ended(&nobody, 0)).await;
    link.send(ended(&nobody, 0)).await;
    // The link goes on: its next operation is asked for after all of that was read.
    answers(&mut link, &gantry).await;
    drop((link, peer));
    before.is_restored(&gantry).await;
}

async fn broken_output_ends_the_link_and_the_operation_goes_on_over_the_next_one(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let (mut link, _) = peer.link().await;
    gantry
        .client()
        .use_runner("peer")
        .await
        .expect("it is chosen");
    let mut talk = gantry.talk().await;
    let turn = talk.send("run true").await;
    let operation = link.operation().await.operation;

    link.send(output(&operation, 0, b"too early")).await;
    let reason = link.reason().await;
    assert!(reason.contains("before it was accepted"), "{reason}");

    let mut link = attached(&peer, &operation, 0).await;
    link.send(output(&operation, 5, b"hole")).await;
    let reason = link.reason().await;
    assert!(reason.contains("leaves a hole: 0 was expected"), "{reason}");

    let mut link = attached(&peer, &operation, 0).await;
    let up_to = beyond_credit(&gantry, &link, &operation).await;
    let reason = link.reason().await;
    assert!(reason.contains("beyond the credit"), "{reason}");

    let mut link = peer.link().await.0;
    let from = link.operation().await.stdout_from;
    assert!(
        from <= up_to,
        "no more than was sent is there: {from} of {up_to}"
    );
    link.send(accepted(&operation)).await;
    link.send(output(&operation, from, b"the end")).await;
    let end = from + "the end".len() as u64;
    link.send(ended(&operation, end)).await;
    link.send(ended(&operation, end + 1)).await;
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let [(CallOutcome::Completed, text)] = told.calls()[..] else {
        panic!("one call: {:?}", told.calls())
    };
    assert!(
        text.contains("the end") && !text.contains("early"),
        "{text}"
    );
    assert!(!text.contains("hole"), "{text}");
    answers(&mut link, &gantry).await;
    drop((link, peer));
    before.is_restored(&gantry).await;
}

async fn many_links_that_send_too_much_leave_no_descriptor_and_no_memory_behind(over: Over) {
    let (gantry, _laptop, before) = behaving().await;
    let peer = Peer::enrol_for(over, &gantry, "peer").await;
    let token = peer.access_token().await;
    let huge = || {
        Kind::Goodbye(v1::Goodbye {
            reason: "x".repeat(MAX_FRAME_BYTES - 1024),
            for_good: false,
            ..v1::Goodbye::default()
        })
    };
    for _ in 0..16 {
        let mut links = Vec::new();
        for _ in 0..8 {
            let channel = Line::to(over, gantry.url()).await;
            let link = PeerLink::dial(&channel, &token).await.expect("a challenge");
            link.send(huge()).await;
            links.push(link);
        }
        for mut link in links {
            assert!(link.reason().await.contains("64 KiB"));
        }
    }
    drop(peer);
    before.is_restored(&gantry).await;
}

/// A new link that was asked for this operation, again, from this offset, and has accepted it.
async fn attached(peer: &Peer, operation: &str, from: u64) -> PeerLink {
    let (mut link, _) = peer.link().await;
    let asked = link.operation().await;
    assert_eq!(
        (asked.operation.as_str(), asked.stdout_from),
        (operation, from)
    );
    link.send(accepted(operation)).await;
    link
}

/// Sends gaps, which need no credit, and behind each a byte that needs it, until the link ends.
/// The reader has to be behind only once, and while the server is held many come at once for it.
/// Returns where the output ended.
async fn beyond_credit(gantry: &Gantry, link: &PeerLink, operation: &str) -> u64 {
    const BURSTS: u32 = 100;
    const PAIRS: u32 = 120;
    let mut offset = 0;
    for _ in 0..BURSTS {
        gantry.signal_server("STOP");
        let mut taken = true;
        for _ in 0..PAIRS {
            let gap = v1::Gap {
                operation: operation.to_owned(),
                stream: v1::OutputStream::Stdout.into(),
                from: offset,
                to: offset + 2 * CREDIT_WINDOW_BYTES,
            };
            offset = gap.to;
            taken = taken && link.send(Kind::Gap(gap)).await;
            taken = taken && link.send(output(operation, offset, b"x")).await;
            offset += 1;
        }
        gantry.signal_server("CONT");
        if !taken {
            return offset;
        }
    }
    panic!("the server took {offset} bytes, whatever it had granted");
}

/// The runner behind this link is given an operation and answers it.
async fn answers(link: &mut PeerLink, gantry: &Gantry) {
    gantry
        .client()
        .use_runner("peer")
        .await
        .expect("it is chosen");
    let mut talk = gantry.talk().await;
    let turn = talk.send("run true").await;
    let operation = link.operation().await.operation;
    link.send(accepted(&operation)).await;
    link.send(ended(&operation, 0)).await;
    let told = talk.ended(turn).await;
    assert_eq!(
        told.calls()[0].0,
        CallOutcome::Completed,
        "{:?}",
        told.calls()
    );
}

async fn is_online(gantry: &Gantry, name: &str) -> bool {
    let runners = gantry.client().runners().await.expect("a list");
    runners
        .iter()
        .any(|runner| runner.name == name && runner.online)
}

fn accepted(operation: &str) -> Kind {
    Kind::Accepted(v1::Accepted {
        operation: operation.to_owned(),
        journal_sequence: 0,
    })
}

fn output(operation: &str, offset: u64, data: &[u8]) -> Kind {
    Kind::Output(v1::Output {
        operation: operation.to_owned(),
        stream: v1::OutputStream::Stdout.into(),
        offset,
        data: data.to_vec().into(),
    })
}

/// Exit code 0 after this much output.
fn ended(operation: &str, stdout: u64) -> Kind {
    let stdout = v1::StreamEnd {
        offset: stdout,
        checksum: None,
    };
    Kind::Ended(v1::Ended {
        operation: operation.to_owned(),
        outcome: Some(Outcome::Exited(v1::ExitRecord {
            status: Some(v1::exit_record::Status::Code(0)),
            cause: v1::exit_record::Cause::Exited.into(),
            stdout: Some(stdout),
            stderr: Some(v1::StreamEnd::default()),
            wall_ms: 1,
            tree_gone: true,
            ..v1::ExitRecord::default()
        })),
    })
}
