//! What peers send that nobody has let in: messages of the enrolment service, changed in every way.
//!
//! The server answers each with a reply or a status, enrols nobody, locks nobody, and stays of the
//! size that it was. `tests/corpus/enrolment` holds messages as they are, one in each file behind a
//! byte that names the method.

use std::path::PathBuf;

use prost::Message;
use proto::{
    agreement::Ephemeral,
    enrolling::{self, Envelope},
    v1,
};
use shared_fuzz::{fuzz, stored};
use shared_types::{RunnerId, Token, entropy::SeededEntropy};
use tests::{
    footprint::behaving,
    gantry::Gantry,
    peer::{call_raw, connect},
};
use tonic::Code;

/// By the first byte of an input.
const METHODS: [&str; 3] = ["Identify", "Enrol", "Authenticate"];

/// Longest message of the enrolment service.
const ENROLMENT_BYTES: usize = 8 * 1024;

/// Changed messages that a short run sends.
const SEEDS: u64 = 300;

fn corpus() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "corpus", "enrolment"]
        .iter()
        .collect()
}

/// Messages as runners send them, by their names. Their secrets are nobody's.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let input = |method: u8, message: Vec<u8>| [vec![method], message].concat();
    let identify = v1::IdentifyRequest {
        nonce: vec![1; 32],
        version: enrolling::VERSION,
    };
    let (challenge, entropy) = (vec![3; 64], SeededEntropy::new(1));
    let servers = Ephemeral::of([7; 32]).public();
    let envelope = Envelope::to(&challenge, &servers, &entropy).expect("a public key");
    let (enrol, _) = envelope.seal(&v1::EnrolContent {
        join_token: Token::join([7; 32], &entropy).reveal(),
        public_key: vec![2; 32],
        signature: vec![4; 64],
        name: "laptop".to_owned(),
        labels: [("zone".to_owned(), "home".to_owned())].into(),
        hostname: "laptop.local".to_owned(),
        software_version: "0.1.0".to_owned(),
    });
    let authenticate = v1::AuthenticateRequest {
        runner: RunnerId::from_u128(1).to_string(),
        challenge,
        signature: vec![4; 64],
        join_state: 1,
        join_state_signature: vec![5; 64],
    };
    vec![
        ("authenticate", input(2, authenticate.encode_to_vec())),
        ("enrol", input(1, enrol.encode_to_vec())),
        ("identify", input(0, identify.encode_to_vec())),
    ]
}

#[test]
fn the_stored_messages_are_those_of_this_protocol() {
    let stored = stored(&corpus());
    for (name, bytes) in messages() {
        let found = stored.iter().find(|(stored, _)| stored == name);
        assert!(
            found.is_some_and(|(_, stored)| *stored == bytes),
            "{name} is another one: run the ignored test that makes them"
        );
    }
}

#[test]
#[ignore = "writes the corpus anew, after a change of the protocol"]
fn write_the_messages() {
    std::fs::create_dir_all(corpus()).expect("a folder");
    for (name, bytes) in messages() {
        std::fs::write(corpus().join(name), bytes).expect("a file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_message_of_enrolment_is_read_to_its_end_and_answered() {
    let gantry = Gantry::practice().await;
    let channel = connect(gantry.url()).await;
    // A field that is not known, as long as the server lets a message be.
    let field = [vec![0xfa, 0x3f, 0xfc, 0x3f], vec![7; ENROLMENT_BYTES - 4]].concat();
    let status = call_raw(&channel, "Enrol", field)
        .await
        .expect_err("nobody");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_strangers_send_is_answered_and_changes_nothing() {
    let (gantry, _laptop, before) = behaving().await;
    let channel = connect(gantry.url()).await;
    let here = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        fuzz(&corpus(), SEEDS, |input, _| {
            let Some((method, message)) = input.split_first() else {
                return;
            };
            let method = METHODS[usize::from(*method) % METHODS.len()];
            let answer = here.block_on(call_raw(&channel, method, message.to_vec()));
            // What cannot be decoded is of tonic's making, and says so by this code.
            let known = [
                Code::Internal,
                Code::InvalidArgument,
                Code::OutOfRange,
                Code::ResourceExhausted,
                Code::Unauthenticated,
            ];
            match answer {
                Ok(()) => assert_eq!(method, "Identify", "nobody is let in"),
                Err(status) => assert!(known.contains(&status.code()), "{status:?}"),
            }
        });
    });
    let runners = gantry.client().runners().await.expect("a list");
    assert!(runners.len() == 1 && !runners[0].locked, "{runners:?}");
    before.is_restored(&gantry).await;
}
