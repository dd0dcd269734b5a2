mod flood;
mod network;
mod restored;

use proto::{agreement::Ephemeral, enrolling::Envelope};
use shared_types::{OsEntropy, TenantId, Token, limits::is_name};

use super::{
    joining::{OpenedRequest, name_from},
    *,
};
use crate::{JoinTerms, testing::Fixture};

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// A runner of the test's own, with the key that it signs with.
struct Peer {
    key: SigningKey,
    runner: RunnerId,
}

impl Peer {
    async fn enrol(fixture: &Fixture) -> Self {
        let key = SigningKey::generate(&OsEntropy);
        let token = token(fixture, JoinTerms::default()).await;
        let enrolled = fixture.app.enrolment.join(ask(fixture, &key, &token)).await;
        let runner = enrolled.expect("the token is good").runner;
        Self { key, runner }
    }

    /// A request in which everything is right, with this join state.
    fn signed(&self, fixture: &Fixture, join_state: u64) -> AuthenticateRequest {
        let identity = identity(fixture);
        let (challenge, audience) = (identity.challenge, identity.audience);
        let signed = signing::authenticate(&challenge, &audience, self.runner, join_state);
        AuthenticateRequest {
            runner: self.runner.to_string(),
            signature: self.key.sign(&signed),
            challenge,
            join_state,
            join_state_signature: Vec::new(),
            address: Some(ADDRESS),
        }
    }
}

fn identity(fixture: &Fixture) -> v1::IdentifyReply {
    let ask = v1::IdentifyRequest {
        nonce: vec![1; 32],
        version: enrolling::VERSION,
    };
    fixture.app.enrolment.identify(&ask, None).expect("a nonce")
}

async fn token(fixture: &Fixture, terms: JoinTerms) -> String {
    let made = fixture.app.runners.create_join_token(&fixture.ctx, terms);
    made.await.expect("the terms are fine").token.reveal()
}

/// A request in which everything is right, as it comes out of its seal.
fn ask(fixture: &Fixture, key: &SigningKey, token: &str) -> OpenedRequest {
    let challenge = identity(fixture).challenge;
    let ephemeral_key = Ephemeral::generate(&OsEntropy).public();
    let signed = signing::enrol(&challenge, &ephemeral_key, token);
    OpenedRequest {
        content: v1::EnrolContent {
            join_token: token.to_owned(),
            public_key: key.public().to_vec(),
            signature: key.sign(&signed),
            hostname: "laptop".to_owned(),
            software_version: "1".to_owned(),
            ..v1::EnrolContent::default()
        },
        challenge,
        ephemeral_key,
        address: Some(ADDRESS),
    }
}

#[tokio::test]
async fn a_request_that_is_repeated_is_refused_and_locks_nothing() {
    let fixture = Fixture::practice().await;
    let enrolment = &fixture.app.enrolment;
    let peer = Peer::enrol(&fixture).await;
    let first = peer.signed(&fixture, 0);
    let let_in = enrolment.authenticate(&first).await;
    let let_in = let_in.expect("it is let in");
    let (token, state) = (let_in.access_token, let_in.join_state);
    let claims = enrolment.check_link_token(&token).expect("it is ours");
    let store = &fixture.app.store;
    let used = store.use_join_state(claims.tenant, peer.runner, claims.join_state);
    assert!(used.await.expect("it answers"));
    let again = enrolment.authenticate(&first).await;
    let again = again.expect_err("it is refused");
    assert!(matches!(again.error, AppError::Invalid(_)), "{again:?}");
    let second = peer.signed(&fixture, state);
    let next = enrolment.authenticate(&second).await;
    next.expect("it is not locked");
}

#[tokio::test]
async fn a_runner_that_was_removed_or_locked_is_given_the_proof_and_nobody_else_is() {
    for removed in [true, false] {
        let fixture = Fixture::practice().await;
        let (app, peer) = (&fixture.app, Peer::enrol(&fixture).await);
        let refused = async |ask: &AuthenticateRequest| {
            let answer = app.enrolment.authenticate(ask).await;
            answer.expect_err("it is refused")
        };
        let mut impostor = peer.signed(&fixture, 0);
        impostor.signature[0] ^= 1;
        assert_eq!(refused(&impostor).await.dismissal, None, "it serves");
        if removed {
            let removed = app.runners.remove(&fixture.ctx, peer.runner).await;
            removed.expect("it is known");
        } else {
            let (_, state) = renewed(&fixture, &peer, 0).await;
            let (token, _) = renewed(&fixture, &peer, state).await;
            let claims = app.enrolment.check_link_token(&token).expect("it is ours");
            let store = &app.store;
            let used = store.use_join_state(claims.tenant, peer.runner, claims.join_state);
            assert!(used.await.expect("it answers"));
        }
        for _ in 0..2 {
            let ask = peer.signed(&fixture, 0);
            let dismissal = refused(&ask).await.dismissal.expect("a proof");
            let identity = app.enrolment.identity_key();
            let signed = signing::dismissed(&ask.challenge, peer.runner);
            assert!(verifies(&identity, &signed, &dismissal), "{removed}");
            assert_eq!(
                refused(&ask).await.dismissal,
                Some(dismissal),
                "the same word for the same challenge"
            );
        }
        let mut impostor = peer.signed(&fixture, 0);
        impostor.signature[0] ^= 1;
        assert_eq!(
            refused(&impostor).await.dismissal,
            None,
            "it has not the key"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sealed_after_the_commit_of_a_removal() {
    let fixture = Fixture::practice().await;
    for _ in 0..20 {
        let peer = Peer::enrol(&fixture).await;
        let app = &fixture.app;
        let gate = app.enrolment.inner.links.gate(peer.runner).await;
        let removed = app.runners.remove(&fixture.ctx, peer.runner);
        let watched = async {
            loop {
                let row = app.store.runner(fixture.ctx.tenant, peer.runner).await;
                if row.expect("it is known").revoked_at.is_some() {
                    return gate.while_open(|| ());
                }
            }
        };
        let (removed, open) = tokio::join!(removed, watched);
        removed.expect("it is removed");
        assert_eq!(open, None);
    }
}

#[tokio::test]
async fn a_runner_that_cannot_be_removed_keeps_its_gate() {
    let (fixture, other) = (Fixture::practice().await, Fixture::practice().await);
    let peer = Peer::enrol(&fixture).await;
    let gate = fixture.app.enrolment.inner.links.gate(peer.runner).await;
    let stranger = fixture.app.runners.remove(&other.ctx, peer.runner).await;
    assert!(
        matches!(stranger, Err(AppError::NotFound(_))),
        "{stranger:?}"
    );
    assert_eq!(gate.while_open(|| ()), Some(()));
}

async fn renewed(fixture: &Fixture, peer: &Peer, join_state: u64) -> (String, u64) {
    let ask = peer.signed(fixture, join_state);
    let let_in = fixture.app.enrolment.authenticate(&ask).await;
    let let_in = let_in.expect("it is let in");
    (let_in.access_token, let_in.join_state)
}

#[tokio::test]
async fn a_link_token_opens_a_link_to_whoever_has_its_key_and_to_nobody_else() {
    let fixture = Fixture::practice().await;
    let enrolment = &fixture.app.enrolment;
    let peer = Peer::enrol(&fixture).await;
    let other = SigningKey::generate(&OsEntropy);
    let (token, _) = renewed(&fixture, &peer, 0).await;
    let good = enrolment.check_link_token(&token).expect("it is ours");
    let prove = async |claims: LinkClaims, key: &SigningKey| {
        let (challenge, _sealer) = enrolment.challenge_link(&claims, &token).await;
        let mut proof = v1::Proof {
            ephemeral_key: Ephemeral::generate(&OsEntropy).public(),
            ..v1::Proof::default()
        };
        proof.signature = key.sign(&signing::proof(&token, challenge.said(), &proof));
        let proved = enrolment.prove_link(&claims, challenge, &token, &proof);
        proved.await.map(|(identity, _)| identity.runner)
    };
    let of_another = LinkClaims {
        key: Digest::of(&other.public()),
        ..good.clone()
    };
    let elsewhere = LinkClaims {
        tenant: TenantId::from_u128(7),
        ..good.clone()
    };
    for (why, claims, key) in [
        ("another key signs", good.clone(), &other),
        ("the token is of another key", of_another.clone(), &peer.key),
        ("both are of another", of_another, &other),
        ("the token is of another tenant", elsewhere, &peer.key),
    ] {
        let proved = prove(claims, key).await;
        assert!(
            matches!(proved, Err(AppError::Unauthenticated(_))),
            "{why}: {proved:?}"
        );
    }
    let proved = prove(good.clone(), &peer.key).await;
    assert_eq!(proved.ok(), Some(peer.runner));
    let again = prove(good.clone(), &peer.key).await;
    assert!(matches!(again, Err(AppError::Unavailable(_))), "{again:?}");
    // A copy has shown that it knows more: what came before opens nothing.
    let (newer, _) = renewed(&fixture, &peer, good.join_state).await;
    let newer = enrolment.check_link_token(&newer).expect("it is ours");
    let used = fixture
        .app
        .store
        .use_join_state(newer.tenant, peer.runner, newer.join_state);
    assert!(used.await.expect("it answers"));
    let stale = prove(good, &peer.key).await;
    assert!(matches!(stale, Err(AppError::Unavailable(_))), "{stale:?}");
}

#[tokio::test]
async fn a_fleet_token_enrols_nobody_by_a_request_that_is_repeated() {
    let fixture = Fixture::practice().await;
    let fleet = JoinTerms {
        uses: 2,
        ..JoinTerms::default()
    };
    let (key, token) = (
        SigningKey::generate(&OsEntropy),
        token(&fixture, fleet).await,
    );
    let first = ask(&fixture, &key, &token);
    let again = OpenedRequest {
        content: v1::EnrolContent {
            name: "another".to_owned(),
            ..first.content.clone()
        },
        challenge: first.challenge.clone(),
        ephemeral_key: first.ephemeral_key.clone(),
        address: first.address,
    };
    let enrolled = fixture.app.enrolment.join(first).await;
    let enrolled = enrolled.expect("the token is good");
    let again = fixture.app.enrolment.join(again).await;
    let again = again.expect("it is the same runner");
    assert_eq!((again.runner, again.name), (enrolled.runner, enrolled.name));
    // The same key with another token is no repetition.
    let other = self::token(&fixture, JoinTerms::default()).await;
    let other = fixture
        .app
        .enrolment
        .join(ask(&fixture, &key, &other))
        .await;
    let other = other.err();
    assert!(matches!(other, Some(AppError::Conflict(_))), "{other:?}");
}

#[tokio::test]
async fn an_enrolment_whose_answer_was_lost_gets_the_same_answer_and_nobody_else_does() {
    let fixture = Fixture::practice().await;
    let token = token(&fixture, JoinTerms::default()).await;
    let (key, other) = (
        SigningKey::generate(&OsEntropy),
        SigningKey::generate(&OsEntropy),
    );
    let join = async |key| fixture.app.enrolment.join(ask(&fixture, key, &token)).await;
    let first = join(&key).await.expect("the token is good");
    let again = join(&key).await.expect("it asks for the same");
    assert_eq!((again.runner, again.name), (first.runner, first.name));
    let stranger = join(&other).await.err();
    assert!(
        matches!(stranger, Some(AppError::Unauthenticated(words)) if words.contains("used already"))
    );
    let mut forged = ask(&fixture, &other, &token);
    forged.content.public_key = key.public().to_vec();
    let forged = fixture.app.enrolment.join(forged).await.err();
    assert!(
        matches!(forged, Some(AppError::Unauthenticated(_))),
        "{forged:?}"
    );
    let removed = fixture.app.runners.remove(&fixture.ctx, first.runner).await;
    removed.expect("it is there");
    let late = join(&key).await.err();
    assert!(
        matches!(late, Some(AppError::Unauthenticated(_))),
        "{late:?}"
    );
}

/// What is refused to these requests, and what the log says of each: reason, subject and count.
async fn told(fixture: &Fixture, rows: usize) -> Vec<(String, String, String, u64)> {
    loop {
        let audit = fixture.app.store.audit_after(fixture.ctx.tenant, 0, 1000);
        let mut audit = audit.await.expect("it answers");
        audit.retain(|row| row.kind.ends_with(".refused"));
        if audit.len() < rows {
            tokio::task::yield_now().await;
            continue;
        }
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let told = audit.into_iter().map(|row| {
            assert_eq!(row.detail["from"], "192.0.2.1");
            let count = row.detail["count"].as_u64().expect("a number");
            (row.kind, text(&row.detail["reason"]), row.subject, count)
        });
        return told.collect();
    }
}

#[tokio::test]
async fn every_refusal_is_in_the_log_with_what_it_was_about_and_where_it_came_from() {
    let fixture = Fixture::practice().await;
    let (app, peer) = (&fixture.app, Peer::enrol(&fixture).await);
    let key = &SigningKey::generate(&OsEntropy);
    let token = token(&fixture, JoinTerms::default()).await;
    let foreign = |pin| Token::join(pin, &OsEntropy).reveal();
    let unknown = foreign(app.enrolment.identity_key());
    let mut asks = vec![
        ask(&fixture, key, "gantry_join_AAAA"),
        ask(&fixture, key, &foreign([7; 32])),
        ask(&fixture, key, &unknown),
        ask(&fixture, key, &token),
        ask(&fixture, key, &token),
        ask(&fixture, key, &token),
        ask(&fixture, &peer.key, &token),
        ask(&fixture, key, &token),
    ];
    asks[3].content.signature[0] ^= 1;
    asks[4].content.name = "no name".to_owned();
    asks[7].content.public_key = [&[1][..], &[0; 31]].concat();
    for ask in asks {
        assert!(app.enrolment.join(ask).await.is_err());
    }
    for sealed in sealed_wrongly(&fixture) {
        assert!(app.enrolment.enrol(sealed, Some(ADDRESS)).await.is_err());
    }
    let mut asks = [(); 5].map(|()| peer.signed(&fixture, 0));
    asks[0].runner = "nobody".to_owned();
    asks[1].runner = RunnerId::from_u128(1).to_string();
    asks[2].signature[0] ^= 1;
    asks[3].challenge[0] ^= 1;
    let changed = signing::authenticate(
        &asks[3].challenge,
        &identity(&fixture).audience,
        peer.runner,
        0,
    );
    asks[3].signature = peer.key.sign(&changed);
    for ask in &asks[..4] {
        assert!(app.enrolment.authenticate(ask).await.is_err());
    }
    app.enrolment
        .authenticate(&asks[4])
        .await
        .expect("it is let in");
    assert!(app.enrolment.authenticate(&asks[4]).await.is_err());
    let never = peer.signed(&fixture, 9);
    assert!(app.enrolment.authenticate(&never).await.is_err());
    let told = told(&fixture, 16).await;
    let told: Vec<_> = told
        .iter()
        .map(|(kind, reason, subject, count)| {
            assert_eq!(
                (*count, subject.is_empty()),
                (
                    1,
                    matches!(
                        &**reason,
                        "no token"
                            | "foreign token"
                            | "unknown token"
                            | "not sealed"
                            | "not opened"
                            | "unknown runner"
                    ) || (&**kind, &**reason) == ("enrolment.refused", "old challenge")
                ),
                "{reason}"
            );
            (kind.split('.').next().unwrap_or_default(), &**reason)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("enrolment", "no token"),
            ("enrolment", "foreign token"),
            ("enrolment", "unknown token"),
            ("enrolment", "bad signature"),
            ("enrolment", "invalid request"),
            ("enrolment", "name taken"),
            ("enrolment", "key taken"),
            ("enrolment", "unsound key"),
            ("enrolment", "not sealed"),
            ("enrolment", "old challenge"),
            ("enrolment", "not opened"),
            ("authentication", "unknown runner"),
            ("authentication", "bad signature"),
            ("authentication", "old challenge"),
            ("authentication", "late request"),
            ("authentication", "join state never given"),
        ]
    );
}

/// Requests that the server cannot open: one of version 1, one with another's challenge, one that was
/// changed on its way.
fn sealed_wrongly(fixture: &Fixture) -> [v1::EnrolRequest; 3] {
    let sealed = || {
        let identity = identity(fixture);
        let envelope = Envelope::to(&identity.challenge, &identity.sealing_key, &OsEntropy);
        let envelope = envelope.expect("a public key");
        envelope.seal(&v1::EnrolContent::default()).0
    };
    let (mut other, mut changed) = (sealed(), sealed());
    other.challenge[0] ^= 1;
    changed.sealed[0] ^= 1;
    [v1::EnrolRequest::default(), other, changed]
}

#[tokio::test]
async fn an_answer_is_signed_and_one_of_another_version_gets_none() {
    let fixture = Fixture::practice().await;
    let (app, peer) = (&fixture.app, Peer::enrol(&fixture).await);
    let ask = peer.signed(&fixture, 0);
    let reply = app.enrolment.authenticate(&ask).await;
    let reply = reply.expect("it is let in");
    let identity = app.enrolment.identity_key();
    let signed = signing::authenticated(&ask.challenge, peer.runner, &reply);
    assert!(verifies(&identity, &signed, &reply.signature));
    let state = signing::join_state(peer.runner, reply.join_state);
    assert!(verifies(&identity, &state, &reply.join_state_signature));
    for (version, upgrade) in [(0, "upgrade gantry-runner"), (3, "upgrade gantry-server")] {
        let ask = v1::IdentifyRequest {
            nonce: vec![1; 32],
            version,
        };
        let refused = app
            .enrolment
            .identify(&ask, None)
            .expect_err("another version");
        assert!(refused.to_string().contains(upgrade), "{refused}");
    }
}

#[tokio::test]
async fn guessing_is_limited_and_locks_nobody_out_who_has_a_good_token() {
    let fixture = Fixture::practice().await;
    let enrolment = &fixture.app.enrolment;
    let key = SigningKey::generate(&OsEntropy);
    let mut guesses = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let guess = Token::join(enrolment.identity_key(), &OsEntropy).reveal();
        let (enrolment, ask) = (enrolment.clone(), ask(&fixture, &key, &guess));
        guesses.spawn(async move { enrolment.join(ask).await.err() });
    }
    let answers = guesses.join_all().await;
    let tried = |answer: &&Option<AppError>| matches!(answer, Some(AppError::Unauthenticated(_)));
    assert_eq!(answers.iter().filter(tried).count(), ATTEMPTS as usize);
    let tired = |answer: &&Option<AppError>| matches!(answer, Some(AppError::TooMany { .. }));
    assert_eq!(answers.iter().filter(tired).count(), 40 - ATTEMPTS as usize);
    let good = token(&fixture, JoinTerms::default()).await;
    let enrolled = enrolment.join(ask(&fixture, &key, &good)).await;
    enrolled.expect("a good token is always tried");
}

#[tokio::test]
async fn a_token_gives_its_labels_and_enrols_only_from_its_network() {
    let fixture = Fixture::practice().await;
    let (app, key) = (&fixture.app, SigningKey::generate(&OsEntropy));
    let terms = |range: &str| JoinTerms {
        labels: [("zone".to_owned(), "office".to_owned())].into(),
        from: Some(range.parse().expect("a range")),
        ..JoinTerms::default()
    };
    let elsewhere = token(&fixture, terms("198.51.100.0/24")).await;
    let refused = app.enrolment.join(ask(&fixture, &key, &elsewhere)).await;
    assert!(matches!(refused.err(), Some(AppError::Forbidden(_))));
    let told = told(&fixture, 1).await;
    assert_eq!(
        (&*told[0].0, &*told[0].1),
        ("enrolment.refused", "address out of range")
    );
    let here = token(&fixture, terms("192.0.2.0/24")).await;
    let mut ask = ask(&fixture, &key, &here);
    ask.content.labels = [("zone", "home"), ("gpu", "yes")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    app.enrolment.join(ask).await.expect("it comes from there");
    let runners = app.runners.list(&fixture.ctx, "", 10).await;
    let (runners, _) = runners.expect("a list");
    let labels: Vec<_> = runners[0]
        .labels
        .iter()
        .map(|(k, v)| (&**k, &**v))
        .collect();
    assert_eq!(labels, [("gpu", "yes"), ("zone", "office")]);
}

#[test]
fn a_hosts_name_becomes_a_name_that_is_allowed() {
    assert_eq!(name_from("Eva's MacBook.local"), "eva-s-macbook.local");
    assert_eq!(name_from("-"), "runner");
    assert!(is_name(&name_from(&"Ä".repeat(200))));
}
