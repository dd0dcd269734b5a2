use proto::sealing::Sealer;
use shared_types::entropy::SeededEntropy;

use super::*;

const RUNNER: RunnerId = RunnerId::from_u128(1);
const TOKEN: &str = "access";

/// The server's end of a link, as it says that it is.
struct Server {
    identity: RunnerKey,
    ephemeral: [u8; 32],
    nonce: [u8; 32],
    access_token: &'static str,
}

impl Server {
    fn new() -> Self {
        Self {
            identity: RunnerKey::generate(&SeededEntropy::new(1)),
            ephemeral: [2; 32],
            nonce: [9; 32],
            access_token: TOKEN,
        }
    }

    fn identity(&self) -> ServerIdentity {
        ServerIdentity(self.identity.public().try_into().expect("32 bytes"))
    }

    fn challenge(&self) -> v1::Challenge {
        let mut challenge = v1::Challenge {
            nonce: self.nonce.to_vec(),
            ephemeral_key: Ephemeral::of(self.ephemeral).public(),
            signature: Vec::new(),
        };
        let signed = signing::challenge(self.access_token, &challenge);
        challenge.signature = self.identity.sign(&signed);
        challenge
    }

    /// What it seals with, once it has this proof.
    fn sealer(&self, proof: &v1::Proof) -> Sealer<v1::ServerFrame> {
        let ours = Ephemeral::of(self.ephemeral);
        let keys = LinkKeys::of_server(RUNNER, ours, &self.nonce, proof);
        let key = KeyPlace::default();
        let mut sealer = Sealer::new(key.clone());
        sealer.seal(Kind::Challenge(self.challenge()).into());
        key.put(keys.expect("a public key").from_server);
        sealer
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The runner's proof.
fn proved(hearing: &mut Hearing<'_>) -> Result<v1::Proof, Unproven> {
    let (key, entropy) = (
        RunnerKey::generate(&SeededEntropy::new(3)),
        SeededEntropy::new(4),
    );
    let hello = v1::Hello::default();
    let frame = hearing.prove(hello, &key, &entropy, &KeyPlace::default())?;
    match frame.kind {
        Some(runner_frame::Kind::Proof(proof)) => Ok(*proof),
        other => panic!("no proof: {other:?}"),
    }
}

/// What has heard this challenge in the first second of its link.
fn challenged(
    identity: &ServerIdentity,
    challenge: v1::Challenge,
) -> (Hearing<'_>, Result<v1::ServerFrame, Unproven>) {
    let mut hearing = Hearing::new(identity, RUNNER, TOKEN);
    let heard = hearing.open(Kind::Challenge(challenge).into(), at(1));
    (hearing, heard)
}

#[test]
fn only_a_challenge_that_the_server_signed_for_this_access_token_is_answered() {
    let server = Server::new();
    let identity = server.identity();
    let cases = [
        (
            "a stranger's",
            Server {
                identity: RunnerKey::generate(&SeededEntropy::new(2)),
                ..Server::new()
            }
            .challenge(),
        ),
        (
            "for another token",
            Server {
                access_token: "another",
                ..Server::new()
            }
            .challenge(),
        ),
        (
            "with another nonce",
            v1::Challenge {
                nonce: vec![8; 32],
                ..server.challenge()
            },
        ),
        (
            "with another key",
            v1::Challenge {
                ephemeral_key: vec![8; 32],
                ..server.challenge()
            },
        ),
        (
            "without a signature",
            v1::Challenge {
                signature: Vec::new(),
                ..server.challenge()
            },
        ),
    ];
    for (what, challenge) in cases {
        let (mut hearing, heard) = challenged(&identity, challenge);
        assert_eq!(heard, Err(Unproven::Challenge), "{what}");
        assert_eq!(proved(&mut hearing), Err(Unproven::Challenge), "{what}");
    }
    let (mut hearing, heard) = challenged(&identity, server.challenge());
    assert!(heard.is_ok());
    assert!(proved(&mut hearing).is_ok());
}

#[test]
fn a_key_that_makes_no_secret_is_not_answered() {
    let server = Server::new();
    let identity = server.identity();
    for key in [vec![0; 32], vec![1; 31], Vec::new()] {
        let mut challenge = v1::Challenge {
            ephemeral_key: key,
            ..server.challenge()
        };
        let signed = signing::challenge(TOKEN, &challenge);
        challenge.signature = server.identity.sign(&signed);
        let (mut hearing, heard) = challenged(&identity, challenge);
        assert!(heard.is_ok());
        assert_eq!(proved(&mut hearing), Err(Unproven::Challenge));
    }
}

#[test]
fn nothing_but_a_challenge_is_heard_before_the_proof() {
    let server = Server::new();
    let identity = server.identity();
    for kind in [
        Kind::Goodbye(v1::Goodbye::default()),
        Kind::NewJournal(v1::NewJournal {}),
        Kind::Welcome(v1::Welcome::default()),
        Kind::Operation(Box::default()),
    ] {
        let frame = v1::ServerFrame::from(kind);
        let mut called = Hearing::new(&identity, RUNNER, TOKEN);
        assert_eq!(called.open(frame.clone(), at(1)), Err(Unproven::Challenge));
        let (mut hearing, _) = challenged(&identity, server.challenge());
        assert_eq!(hearing.open(frame, at(1)), Err(Unproven::Challenge));
    }
}

/// An order that was sent so many seconds after the challenge, which came in the first second.
fn ordered(sent_s: u64, at_s: u64) -> Result<u64, Unproven> {
    let server = Server::new();
    let identity = server.identity();
    let (mut hearing, _) = challenged(&identity, server.challenge());
    let proof = proved(&mut hearing).expect("a proof");
    let frame = v1::ServerFrame {
        kind: Some(Kind::Operation(Box::new(v1::Operation {
            start_within_ms: 30_000,
            ..v1::Operation::default()
        }))),
        sent_ms: sent_s * 1000,
    };
    let sealed = server.sealer(&proof).seal(frame).expect("there is a key");
    let opened = hearing.open(sealed, at(at_s))?;
    match opened.kind {
        Some(Kind::Operation(operation)) => Ok(operation.start_within_ms),
        other => panic!("no operation: {other:?}"),
    }
}

#[test]
fn an_order_is_obeyed_while_it_is_young_and_starts_so_much_sooner() {
    assert_eq!(ordered(5, 6), Ok(30_000));
    assert_eq!(ordered(5, 26), Ok(10_000));
    assert_eq!(ordered(5, 66), Ok(0));
    assert_eq!(ordered(5, 67), Err(Unproven::Late(at(61))));
    assert_eq!(ordered(15, 6), Ok(30_000), "the challenge took its time");
    assert_eq!(ordered(16, 6), Err(Unproven::Early));
}

#[test]
fn what_is_not_the_servers_next_frame_is_not_heard() {
    let server = Server::new();
    let identity = server.identity();
    let (mut hearing, _) = challenged(&identity, server.challenge());
    let proof = proved(&mut hearing).expect("a proof");
    let beat = || v1::ServerFrame::from(Kind::Heartbeat(v1::Heartbeat::default()));
    let bare = hearing.open(beat(), at(1));
    assert_eq!(bare, Err(Unproven::Frame(NotSealed)));
    let elsewhere = Server {
        nonce: [8; 32],
        ..Server::new()
    }
    .sealer(&proof)
    .seal(beat());
    let foreign = hearing.open(elsewhere.expect("there is a key"), at(1));
    assert_eq!(foreign, Err(Unproven::Frame(NotSealed)));
    let sealed = server.sealer(&proof).seal(beat()).expect("there is a key");
    assert_eq!(hearing.open(sealed.clone(), at(1)), Ok(beat()));
    let again = hearing.open(sealed, at(1));
    assert_eq!(again, Err(Unproven::Frame(NotSealed)));
}
