use aws_lc_rs::hmac;
use shared_types::{Clock as _, SystemClock};

use super::*;

/// Both ends of a link whose key is made of this byte.
fn ends(key: u8) -> (Sealer, Opener) {
    let place = KeyPlace::default();
    place.put(SealKey([key; 32]));
    (Sealer::new(place), Opener::new(SealKey([key; 32])))
}

fn ended(operation: &str) -> v1::RunnerFrame {
    said(Kind::Ended(v1::Ended {
        operation: operation.to_owned(),
        outcome: None,
    }))
}

fn output(data: &[u8]) -> v1::RunnerFrame {
    said(Kind::Output(v1::Output {
        operation: "op_1".to_owned(),
        stream: 1,
        offset: 7,
        data: data.to_vec().into(),
    }))
}

fn said(kind: Kind) -> v1::RunnerFrame {
    v1::RunnerFrame { kind: Some(kind) }
}

fn change(frame: &mut v1::RunnerFrame, change: impl FnOnce(&mut v1::Sealed)) {
    match &mut frame.kind {
        Some(Kind::Sealed(sealed)) => change(sealed),
        other => panic!("not sealed: {other:?}"),
    }
}

#[test]
fn what_is_sealed_comes_out_as_it_was_in_its_order() {
    let (mut sealer, mut opener) = ends(1);
    let nothing_known = v1::RunnerFrame { kind: None };
    for frame in [ended("op_1"), output(b"data"), nothing_known, ended("op_1")] {
        let sealed = sealer.seal(frame.clone()).expect("there is a key");
        assert_eq!(opener.open(sealed), Ok(frame));
    }
}

#[test]
fn a_frame_that_is_made_up_changed_repeated_moved_or_left_out_does_not_open() {
    let seal = |sealer: &mut Sealer, frame| sealer.seal(frame).expect("there is a key");
    let cases: [fn(&mut Vec<v1::RunnerFrame>); 9] = [
        |frames| frames[0] = ended("op_1"),
        |frames| frames[0].kind = None,
        |frames| change(&mut frames[0], |sealed| sealed.mac.clear()),
        |frames| change(&mut frames[0], |sealed| sealed.mac.push(0)),
        |frames| change(&mut frames[0], |sealed| sealed.mac[15] ^= 1),
        |frames| {
            change(&mut frames[0], |sealed| {
                sealed.frame = ended("op_2").encode_to_vec().into();
            });
        },
        |frames| frames.insert(1, frames[0].clone()),
        |frames| frames.swap(0, 1),
        |frames| drop(frames.remove(0)),
    ];
    for (number, spoil) in cases.iter().enumerate() {
        let (mut sealer, mut opener) = ends(1);
        let said = [ended("op_1"), output(b"data"), ended("op_2")];
        let mut frames = said.map(|frame| seal(&mut sealer, frame)).to_vec();
        spoil(&mut frames);
        let mut opened = frames.into_iter().map(|frame| opener.open(frame));
        let bad = opened.position(|frame| frame == Err(NotSealed));
        assert_eq!(bad, Some(usize::from(number == 6)), "case {number}");
    }
    let (mut elsewhere, _) = ends(2);
    let (_, mut opener) = ends(1);
    let foreign = seal(&mut elsewhere, ended("op_1"));
    assert_eq!(opener.open(foreign), Err(NotSealed), "of another link");
}

#[test]
fn without_a_key_nothing_leaves_but_the_hello() {
    let place = KeyPlace::default();
    let mut sealer = Sealer::new(place.clone());
    let hello = said(Kind::Hello(Box::default()));
    assert_eq!(sealer.seal(hello.clone()), Some(hello.clone()));
    assert_eq!(sealer.seal(ended("op_1")), None);
    place.put(SealKey([1; 32]));
    let (_, mut opener) = ends(1);
    let sealed = sealer.seal(hello.clone()).expect("there is a key");
    assert_eq!(opener.open(sealed), Ok(hello));
}

#[test]
#[ignore = "prints what a seal costs, also where it would be an HMAC"]
fn what_a_seal_costs() {
    const ROUNDS: u32 = 20_000;
    let (key, secret) = (SealKey([1; 32]), [1; 32]);
    for bytes in [100, 200, 65_536] {
        let frame = vec![7; bytes];
        let time = |what: &str, work: &dyn Fn()| {
            let clock = SystemClock::new();
            (0..ROUNDS).for_each(|_| work());
            println!("{what} of {bytes} B: {:?}", clock.monotonic() / ROUNDS);
        };
        let mac = key.seal(3, &frame);
        time("seal", &|| drop(key.seal(3, &frame)));
        time("open", &|| assert!(key.holds(3, &frame, &mac)));
        time("hmac", &|| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
            assert_eq!(hmac::sign(&key, &frame).as_ref().len(), 32);
        });
    }
}
