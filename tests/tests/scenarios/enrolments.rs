//! A proxy that ends TLS between a runner and its server, with a certificate that the runner trusts: it
//! reads, changes, replaces and repeats the calls of enrolment. It learns nothing of what they say, and
//! has nobody enrolled but the runner itself.

use std::sync::{Arc, Mutex};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use prost::Message;
use proto::{
    agreement::Ephemeral,
    enrolling::{self, Envelope},
    v1::{self, enrol_answer::Answer},
};
use shared_api::CreateJoinToken;
use shared_types::{OsEntropy, RunnerId};
use tests::{
    gantry::{Gantry, Runner, eventually},
    interposer::{Change, Interposer, Speaks, To},
    peer::{call_raw, connect},
};

/// What no byte on the wire may show.
const NAME: &str = "name-that-nobody-reads";

const BOTH: [Speaks; 2] = [Speaks::Http2, Speaks::Http1];

fn nothing() -> Change {
    Arc::new(|_, _, _| {})
}

/// Changes the messages of this call, on this way.
fn change<T: Message + Default + 'static>(
    to: To,
    call: &'static str,
    with: impl Fn(&mut T) + Send + Sync + 'static,
) -> Change {
    Arc::new(move |way, name, bytes| {
        if (way, name) == (to, call) {
            let mut message = T::decode(&bytes[..]).expect("it is of this call");
            with(&mut message);
            *bytes = message.encode_to_vec();
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_tls_reads_nothing_of_an_enrolment() {
    let gantry = Gantry::practice().await;
    for speaks in BOTH {
        let proxy = Interposer::before(gantry.url(), speaks, nothing()).await;
        let token = gantry.join_token("").await;
        let runner = Runner::enrol(proxy.url(), &token, NAME).await;
        let key = std::fs::read(runner.home().join("runner/identity.key")).expect("a key");
        let runners = gantry.client().runners().await.expect("a list");
        let id = runners[0].id.to_string();
        // A single-use token that was spent is no secret, but it shows who was to be enrolled.
        let pair = Ed25519KeyPair::from_pkcs8(&key).expect("a key");
        let public = pair.public_key().as_ref();
        let secrets = [NAME.as_bytes(), token.as_bytes(), id.as_bytes(), public];
        let refused = Runner::stranger()
            .try_enrol(proxy.url(), &token, NAME)
            .await;
        assert!(!refused.status.success(), "the token is spent");
        let calls = proxy.calls();
        assert_eq!(calls.iter().filter(|call| call.name == "enrol").count(), 2);
        for call in &calls {
            for wire in [&call.request, &call.answer] {
                for secret in secrets {
                    let shown = wire.windows(secret.len()).any(|window| window == secret);
                    assert!(!shown, "{speaks:?} {}: {secret:?}", call.name);
                }
            }
        }
        let removed = gantry.client().remove_runner(runners[0].id).await;
        removed.expect("it is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_tls_changes_nothing_of_an_enrolment() {
    let gantry = Gantry::practice().await;
    let attacker = || Ephemeral::of([5; 32]);
    let enrolled = || {
        Answer::Enrolled(v1::Enrolled {
            runner: RunnerId::from_u128(5).to_string(),
            name: "another".to_owned(),
        })
    };
    let envelope = move |challenge: &[u8]| {
        let envelope = Envelope::to(challenge, &attacker().public(), &OsEntropy);
        envelope.expect("a public key")
    };
    let changes: [(&str, Change); 10] = [
        (
            "the key to seal to is the proxy's",
            change(
                To::Runner,
                "identify",
                move |reply: &mut v1::IdentifyReply| {
                    reply.sealing_key = attacker().public();
                },
            ),
        ),
        (
            "there is no key to seal to",
            change(To::Runner, "identify", |reply: &mut v1::IdentifyReply| {
                reply.sealing_key.clear();
            }),
        ),
        (
            "another challenge",
            change(To::Runner, "identify", |reply: &mut v1::IdentifyReply| {
                reply.challenge[0] ^= 1;
            }),
        ),
        (
            "an older version",
            change(To::Server, "identify", |ask: &mut v1::IdentifyRequest| {
                ask.version = 0;
            }),
        ),
        (
            "the request's seal",
            change(To::Server, "enrol", |ask: &mut v1::EnrolRequest| {
                ask.sealed[9] ^= 1;
            }),
        ),
        (
            "the request's key",
            change(To::Server, "enrol", move |ask: &mut v1::EnrolRequest| {
                ask.ephemeral_key = attacker().public();
            }),
        ),
        (
            "the request is the proxy's own",
            change(To::Server, "enrol", move |ask: &mut v1::EnrolRequest| {
                *ask = envelope(&ask.challenge)
                    .seal(&v1::EnrolContent::default())
                    .0;
            }),
        ),
        (
            "the reply's seal",
            change(To::Runner, "enrol", |reply: &mut v1::EnrolReply| {
                reply.sealed[0] ^= 1;
            }),
        ),
        (
            "the reply is the proxy's own",
            change(To::Runner, "enrol", move |reply: &mut v1::EnrolReply| {
                let (request, _) = envelope(&[9; 64]).seal(&v1::EnrolContent::default());
                let (_, key) = enrolling::open(attacker(), &request).expect("it is its own");
                *reply = key.seal(enrolled());
            }),
        ),
        (
            "the reply is not sealed",
            change(To::Runner, "enrol", move |reply: &mut v1::EnrolReply| {
                reply.sealed = v1::EnrolAnswer {
                    answer: Some(enrolled()),
                }
                .encode_to_vec();
            }),
        ),
    ];
    for speaks in BOTH {
        for (what, change) in &changes {
            let proxy = Interposer::before(gantry.url(), speaks, change.clone()).await;
            let token = gantry.join_token("").await;
            let runner = Runner::stranger();
            let output = runner.try_enrol(proxy.url(), &token, NAME).await;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{speaks:?} {what}: {said}");
            assert!(!runner.home().join("runner/runner.toml").exists(), "{what}");
            // Where only the answer was changed, the server knows the runner.
            for known in gantry.client().runners().await.expect("a list") {
                assert_eq!(known.name, NAME, "{speaks:?} {what}");
                let removed = gantry.client().remove_runner(known.id).await;
                removed.expect("it is there");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_tls_enrols_nobody_by_repeating_a_request() {
    let gantry = Gantry::practice().await;
    let fleet = CreateJoinToken {
        uses: Some(5),
        ..CreateJoinToken::one("")
    };
    let token = gantry.client().create_join_token(&fleet).await;
    let token = token.expect("a join token").token;
    let request = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&request);
    let keeping: Change = Arc::new(move |to, name, bytes| {
        if (to, name) == (To::Server, "enrol") {
            *kept.lock().expect("no panic") = bytes.clone();
        }
    });
    let proxy = Interposer::before(gantry.url(), Speaks::Http2, keeping).await;
    let _runner = Runner::enrol(proxy.url(), &token, NAME).await;
    let request = request.lock().expect("no panic").clone();
    let channel = connect(gantry.url()).await;
    for _ in 0..2 {
        // It is answered under a seal that only the runner opens.
        let answer = call_raw(&channel, "Enrol", request.clone()).await;
        answer.expect("the server has opened it");
    }
    let runners = gantry.client().runners().await.expect("a list");
    assert_eq!(runners.len(), 1, "{runners:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_state_that_was_changed_on_its_way_is_not_kept() {
    let gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    for speaks in BOTH {
        runner.kill().await;
        gantry.until_online("laptop", false).await;
        let altering = change(
            To::Runner,
            "authenticate",
            |reply: &mut v1::AuthenticateReply| reply.join_state += 5,
        );
        let proxy = Interposer::before(gantry.url(), speaks, altering).await;
        let moved = runner.try_servers(&[proxy.url()]).await;
        assert!(moved.status.success(), "{moved:?}");
        runner.start();
        eventually("it has tried twice", || async {
            let calls = proxy.calls();
            let tried = calls.iter().filter(|call| call.name == "authenticate");
            (tried.count() >= 2).then_some(())
        })
        .await;
        runner.kill().await;
        assert!(
            runner.log().contains("not as it signed"),
            "{}",
            runner.log()
        );
        let moved = runner.try_servers(&[gantry.url()]).await;
        assert!(moved.status.success(), "{moved:?}");
        runner.start();
        gantry.until_online("laptop", true).await;
    }
    assert!(!gantry.client().runners().await.expect("a list")[0].locked);
}
