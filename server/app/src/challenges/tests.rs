use shared_types::{clock::ManualClock, entropy::SeededEntropy};

use super::*;

fn setting() -> (SeededEntropy, ManualClock, SigningKey) {
    let entropy = SeededEntropy::new(1);
    let identity = SigningKey::generate(&entropy);
    let clock = ManualClock::at(Timestamp::from_micros(5));
    (entropy, clock, identity)
}

/// The salt of every replica here.
fn salt() -> Digest {
    Digest::of(b"salt")
}

fn replica(id: u128, identity: &SigningKey) -> Challenges {
    Challenges::new(ReplicaId::from_u128(id), identity, &salt())
}

#[test]
fn a_challenge_is_good_for_a_minute_and_only_as_it_was_made() {
    let (entropy, clock, identity) = setting();
    let challenges = replica(1, &identity);
    let challenge = challenges.issue(&clock, &entropy);
    let is_good = |challenge: &[u8]| challenges.check(challenge, &clock).is_some();
    assert!(!is_good(&challenge[1..]));
    assert!(!is_good(b""));
    for byte in 0..challenge.len() {
        let mut changed = challenge.clone();
        changed[byte] ^= 1;
        assert!(!is_good(&changed), "byte {byte}");
    }
    // A wall clock that goes back makes none of them good for longer.
    clock.set_wall(-3_600_000_000);
    clock.advance(GOOD_FOR - Duration::from_micros(1));
    assert!(is_good(&challenge));
    clock.advance(Duration::from_micros(1));
    assert!(!is_good(&challenge));
}

#[test]
fn another_replica_with_the_same_identity_takes_a_challenge_with_the_salt_of_its_maker() {
    let (entropy, clock, identity) = setting();
    let (maker, other) = (replica(1, &identity), replica(2, &identity));
    let challenge = maker.issue(&clock, &entropy);
    assert_eq!(maker.other_maker(&challenge), None);
    assert_eq!(other.other_maker(&challenge), Some(maker.replica));
    assert!(
        other.check(&challenge, &clock).is_none(),
        "it is no own one"
    );
    let keys = other.keys_of(&salt());
    let good = other.check_other(&challenge, &keys, &clock);
    let good = good.expect("it is good");
    assert_eq!(good.number.replica, maker.replica);
    assert_eq!(
        good.sealing_key.public(),
        maker.sealing_key(&challenge).public()
    );
    for byte in 0..challenge.len() {
        let mut changed = challenge.clone();
        changed[byte] ^= 1;
        let known = other.check_other(&changed, &keys, &clock);
        assert!(known.is_none(), "byte {byte}");
    }
    let other_salt = other.keys_of(&Digest::of(b"another salt"));
    let stranger = replica(3, &SigningKey::generate(&entropy));
    for (by, keys) in [(&other, other_salt), (&stranger, stranger.keys_of(&salt()))] {
        assert!(by.check_other(&challenge, &keys, &clock).is_none());
    }
    clock.advance(GOOD_FOR + CLOCKS_DIFFER_BY - Duration::from_micros(1));
    assert!(other.check_other(&challenge, &keys, &clock).is_some());
    clock.advance(Duration::from_micros(1));
    assert!(other.check_other(&challenge, &keys, &clock).is_none());
    let challenge = maker.issue(&clock, &entropy);
    clock.set_wall(-6_000_000);
    let ahead = other.check_other(&challenge, &keys, &clock);
    assert!(ahead.is_none(), "it would be good for too long");
}

#[test]
fn challenges_are_numbered_in_their_order() {
    let (entropy, clock, identity) = setting();
    let challenges = replica(1, &identity);
    let numbers = [(); 3].map(|()| {
        let challenge = challenges.issue(&clock, &entropy);
        let good = challenges.check(&challenge, &clock).expect("it is good");
        assert_eq!(good.number.replica, ReplicaId::from_u128(1));
        good.number.number
    });
    assert!(
        numbers.is_sorted() && numbers[0] < numbers[2],
        "{numbers:?}"
    );
}

#[test]
fn each_challenge_has_a_sealing_key_of_its_own_that_stays() {
    let (entropy, clock, identity) = setting();
    let challenges = replica(1, &identity);
    let [first, second] = [(); 2].map(|()| challenges.issue(&clock, &entropy));
    let public = |challenge: &[u8]| challenges.sealing_key(challenge).public();
    assert_eq!(public(&first), public(&first));
    assert_ne!(public(&first), public(&second));
}
