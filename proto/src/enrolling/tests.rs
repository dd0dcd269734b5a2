use shared_types::entropy::SeededEntropy;

use super::*;

const CHALLENGE: [u8; 32] = [9; 32];

fn server(seed: u64) -> Ephemeral {
    Ephemeral::generate(&SeededEntropy::new(seed))
}

fn content() -> v1::EnrolContent {
    v1::EnrolContent {
        join_token: "gantry_join_secret".to_owned(),
        name: "laptop".to_owned(),
        ..v1::EnrolContent::default()
    }
}

fn request(seed: u64) -> (v1::EnrolRequest, ReplyKey) {
    let entropy = SeededEntropy::new(seed);
    let envelope = Envelope::to(&CHALLENGE, &server(1).public(), &entropy);
    envelope.expect("a public key").seal(&content())
}

fn answer() -> v1::enrol_answer::Answer {
    v1::enrol_answer::Answer::Enrolled(v1::Enrolled {
        runner: "run_1".to_owned(),
        name: "laptop".to_owned(),
    })
}

#[test]
fn request_and_reply_are_opened_by_the_other_end_and_show_nothing_on_the_way() {
    let (request, runner) = request(2);
    let (opened, server) = open(server(1), &request).expect("it is for this end");
    assert_eq!(opened, content());
    let reply = server.seal(answer());
    assert_eq!(runner.open(&reply), Ok(answer()));
    for wire in [request.encode_to_vec(), reply.encode_to_vec()] {
        for secret in ["secret", "laptop", "run_1"] {
            let mut windows = wire.windows(secret.len());
            assert!(!windows.any(|window| window == secret.as_bytes()));
        }
    }
}

#[test]
fn a_request_that_was_changed_or_is_for_another_end_or_challenge_is_not_opened() {
    let (sent, _) = request(2);
    for byte in 0..sent.sealed.len() {
        let mut changed = sent.clone();
        changed.sealed[byte] ^= 1;
        assert!(open(server(1), &changed).is_err(), "byte {byte}");
    }
    let changes: [fn(&mut v1::EnrolRequest); 5] = [
        |request| request.challenge[0] ^= 1,
        |request| request.ephemeral_key[0] ^= 1,
        |request| request.ephemeral_key.clear(),
        |request| request.ephemeral_key = vec![0; 32],
        |request| request.sealed.clear(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = sent.clone();
        change(&mut changed);
        assert!(open(server(1), &changed).is_err(), "change {number}");
    }
    assert!(open(server(3), &sent).is_err());
}

#[test]
fn a_reply_that_was_changed_or_answers_another_request_is_not_opened() {
    let ((first, runner), (second, _)) = (request(2), request(4));
    let reply = |request| {
        let (_, key) = open(server(1), request).expect("it is for this end");
        key.seal(answer())
    };
    assert_eq!(runner.open(&reply(&second)), Err(NotOpened));
    let mut changed = reply(&first);
    changed.sealed[0] ^= 1;
    assert_eq!(runner.open(&changed), Err(NotOpened));
    let as_it_came = v1::EnrolReply {
        sealed: first.sealed.clone(),
    };
    assert_eq!(runner.open(&as_it_came), Err(NotOpened));
}

#[test]
fn nothing_is_sealed_to_a_key_that_makes_no_secret() {
    let entropy = SeededEntropy::new(1);
    for key in [&[0; 32][..], &[7; 31], &[]] {
        assert!(Envelope::to(&CHALLENGE, key, &entropy).is_none());
    }
}
