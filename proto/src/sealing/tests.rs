use shared_types::{Clock as _, SystemClock};

use super::*;

const RUNNER: RunnerId = RunnerId::from_u128(1);

/// The keys of both ends of one link, the runner's first.
fn keys(link: u8) -> [LinkKeys; 2] {
    let (runner, server) = (Ephemeral::of([1; 32]), Ephemeral::of([2; 32]));
    let challenge = v1::Challenge {
        nonce: vec![link; 32],
        ephemeral_key: server.public(),
        signature: Vec::new(),
    };
    let proof = v1::Proof {
        ephemeral_key: runner.public(),
        ..v1::Proof::default()
    };
    let ends = [
        LinkKeys::of_runner(RUNNER, runner, &challenge),
        LinkKeys::of_server(RUNNER, server, &challenge.nonce, &proof),
    ];
    ends.map(|keys| keys.expect("public keys"))
}

/// One direction of a link.
trait Direction: SealedFrame + Clone + PartialEq {
    fn key(keys: LinkKeys) -> SealKey<Self>;
    fn opening() -> Self;
    fn said() -> Vec<Self>;

    /// Its two ends, once the first frame has passed.
    fn ends(link: u8) -> (Sealer<Self>, Opener<Self>) {
        let [ours, theirs] = keys(link);
        let place = KeyPlace::default();
        let mut sealer = Sealer::new(place.clone());
        assert!(sealer.seal(Self::opening()) == Some(Self::opening()));
        place.put(Self::key(ours));
        (sealer, Opener::new(Self::key(theirs)))
    }

    /// What it says on a link, as it leaves.
    fn leaving(link: u8) -> Vec<Self> {
        let (mut sealer, _) = Self::ends(link);
        let seal = |frame| sealer.seal(frame).expect("there is a key");
        Self::said().into_iter().map(seal).collect()
    }
}

impl Direction for RunnerFrame {
    fn key(keys: LinkKeys) -> SealKey<Self> {
        keys.from_runner
    }

    fn opening() -> Self {
        let kind = Some(runner_frame::Kind::Proof(Box::default()));
        Self { kind }
    }

    fn said() -> Vec<Self> {
        let output = v1::Output {
            operation: "op_1".to_owned(),
            stream: 1,
            offset: 7,
            data: b"data".to_vec().into(),
        };
        let kinds = [
            Some(runner_frame::Kind::Ended(v1::Ended::default())),
            Some(runner_frame::Kind::Output(output)),
            None,
        ];
        kinds.map(|kind| Self { kind }).to_vec()
    }
}

impl Direction for ServerFrame {
    fn key(keys: LinkKeys) -> SealKey<Self> {
        keys.from_server
    }

    fn opening() -> Self {
        server_frame::Kind::Challenge(v1::Challenge::default()).into()
    }

    fn said() -> Vec<Self> {
        let operation = "op_1".to_owned();
        let forget = v1::Forget { operation };
        let kinds = [
            Some(server_frame::Kind::Forget(forget)),
            Some(server_frame::Kind::Welcome(v1::Welcome::default())),
            None,
        ];
        let late = |kind| Self { kind, sent_ms: 7 };
        kinds.map(late).to_vec()
    }
}

fn what_is_sealed_comes_out<F: Direction>() {
    let (mut sealer, mut opener) = F::ends(1);
    for frame in F::said() {
        let sealed = sealer.seal(frame.clone()).expect("there is a key");
        assert!(sealed != frame);
        assert!(opener.open(sealed) == Ok(frame));
    }
}

#[test]
fn what_is_sealed_comes_out_as_it_was_in_its_order() {
    what_is_sealed_comes_out::<RunnerFrame>();
    what_is_sealed_comes_out::<ServerFrame>();
}

/// A way in which frames are spoiled, and which of them is the first that does not open.
type Spoilt<F> = (&'static str, Vec<F>, usize);

fn spoilt<F: Direction>(other_direction: Sealed) -> Vec<Spoilt<F>> {
    let good = F::leaving(1);
    let with = |change: &dyn Fn(&mut Vec<F>)| {
        let mut frames = good.clone();
        change(&mut frames);
        frames
    };
    let mut cases = vec![
        (
            "made up",
            with(&|frames| frames[0] = F::said()[0].clone()),
            0,
        ),
        ("empty", with(&|frames| frames[0] = F::default()), 0),
        (
            "sealed nothing",
            with(&|frames| frames[0] = F::of(Sealed::default())),
            0,
        ),
        ("another first", with(&|frames| frames[1] = F::opening()), 1),
        (
            "repeated",
            with(&|frames| frames.insert(1, frames[0].clone())),
            1,
        ),
        ("swapped", with(&|frames| frames.swap(1, 2)), 1),
        ("left out", with(&|frames| drop(frames.remove(1))), 1),
        (
            "of another link",
            with(&|frames| frames[1] = F::leaving(2)[1].clone()),
            1,
        ),
        (
            "of the other direction",
            with(&|frames| frames[0] = F::of(other_direction.clone())),
            0,
        ),
    ];
    for (place, frame) in good.iter().enumerate() {
        let bytes = frame.clone().sealed().expect("it is sealed").sealed;
        let mut change = |what, changed: Vec<u8>| {
            let sealed = changed.into();
            let changed = with(&|frames| {
                frames[place] = F::of(Sealed {
                    sealed: Clone::clone(&sealed),
                })
            });
            cases.push((what, changed, place));
        };
        for byte in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[byte] ^= 1 << (byte % 8);
            change("with another bit", flipped);
            change("cut short", bytes[..byte].to_vec());
        }
        change("longer", [&bytes[..], &[0]].concat());
    }
    cases
}

fn nothing_else_opens<F: Direction>(other_direction: Sealed) {
    for (what, frames, first_bad) in spoilt::<F>(other_direction) {
        let (_, mut opener) = F::ends(1);
        let mut opened = frames.into_iter().map(|frame| opener.open(frame));
        let bad = opened.position(|frame| frame == Err(NotSealed));
        assert_eq!(bad, Some(first_bad), "{what}");
    }
}

#[test]
fn a_frame_that_is_not_the_next_one_of_its_link_and_direction_does_not_open() {
    let of = |frame: Option<Sealed>| frame.expect("it is sealed");
    nothing_else_opens::<RunnerFrame>(of(ServerFrame::leaving(1).remove(0).sealed()));
    nothing_else_opens::<ServerFrame>(of(RunnerFrame::leaving(1).remove(0).sealed()));
}

#[test]
fn a_hello_opens_on_its_own_link_and_as_the_first_frame_alone() {
    let hello = RunnerFrame {
        kind: Some(runner_frame::Kind::Hello(Box::default())),
    };
    let seal = |link| {
        let [runner, _] = keys(link);
        runner.from_runner.seal_first(&hello)
    };
    let (_, mut opener) = RunnerFrame::ends(1);
    assert_eq!(opener.first(&seal(1)), Ok(hello.clone()));
    assert_eq!(opener.first(&seal(2)), Err(NotSealed));
    assert_eq!(opener.open(RunnerFrame::of(seal(1))), Err(NotSealed));
}

#[test]
fn what_is_held_of_a_frame_holds_nothing_that_is_unknown_with_it() {
    const PADDING: usize = 1024 * 1024;
    let [ours, theirs] = keys(1).map(|keys| keys.from_runner);
    let kind = runner_frame::Kind::Output(v1::Output {
        data: Bytes::from(vec![7; 50_000]),
        ..v1::Output::default()
    });
    let mut padded = RunnerFrame { kind: Some(kind) }.encode_to_vec();
    prost::encoding::bytes::encode(9999, &vec![0; PADDING], &mut padded);
    let opened = theirs.open(1, &ours.seal_bytes(1, padded));
    let Some(runner_frame::Kind::Output(output)) = opened.expect("it opens").kind else {
        panic!("expected output");
    };
    assert_eq!(output.data.len(), 50_000);
    let held = output.data.try_into_mut().expect("nobody else has it");
    assert!(
        held.capacity() < PADDING,
        "{} bytes are held",
        held.capacity()
    );
}

fn nothing_leaves_early<F: Direction>() {
    let place = KeyPlace::default();
    let mut sealer = Sealer::<F>::new(place.clone());
    assert!(
        sealer.seal(F::said().remove(0)).is_none(),
        "it opens no link"
    );
    assert!(sealer.seal(F::opening()).is_some());
    assert!(sealer.seal(F::opening()).is_none(), "there is no key");
    let [ours, theirs] = keys(1);
    place.put(F::key(ours));
    let sealed = sealer.seal(F::opening()).expect("there is a key");
    assert!(Opener::new(F::key(theirs)).open(sealed) == Ok(F::opening()));
}

#[test]
fn without_a_key_nothing_leaves_but_what_opens_a_link() {
    nothing_leaves_early::<RunnerFrame>();
    nothing_leaves_early::<ServerFrame>();
}

#[test]
fn the_seals_are_those_that_another_implementation_makes() {
    // Python's `cryptography`, with these private keys and this nonce: a sign of life each.
    let beat = v1::Heartbeat::default();
    let [runner, server] = keys(9);
    let frame = RunnerFrame {
        kind: Some(runner_frame::Kind::Heartbeat(beat)),
    };
    let hexadecimal = |Sealed { sealed }: Sealed| {
        let digits = sealed.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let sealed = hexadecimal(runner.from_runner.seal(1, &frame));
    assert_eq!(sealed, "cfd11d4c743537b1b16082cb5a4061c1b99a");
    let frame = server_frame::Kind::Heartbeat(beat).into();
    let sealed = hexadecimal(server.from_server.seal(1, &frame));
    assert_eq!(sealed, "f2a79ab7d086c275ea9653dfc26ea62f16f5");
}

#[test]
#[ignore = "prints what a seal costs, also where it would only authenticate"]
fn what_a_seal_costs() {
    const ROUNDS: u32 = 20_000;
    let [
        LinkKeys {
            from_runner: key, ..
        },
        _,
    ] = keys(1);
    for bytes in [100, 200, 65_536] {
        let data = vec![7; bytes];
        let frame = RunnerFrame {
            kind: Some(runner_frame::Kind::Output(v1::Output {
                data: data.clone().into(),
                ..v1::Output::default()
            })),
        };
        let time = |what: &str, work: &dyn Fn()| {
            let clock = SystemClock::new();
            (0..ROUNDS).for_each(|_| work());
            println!("{what} of {bytes} B: {:?}", clock.monotonic() / ROUNDS);
        };
        let sealed = key.seal(3, &frame);
        time("encode", &|| drop(frame.encode_to_vec()));
        time("encode and seal", &|| drop(key.seal(3, &frame)));
        time("open and decode", &|| drop(key.open(3, &sealed)));
        time("authenticate only", &|| {
            let aad = Aad::from(&data);
            let tag = key
                .cipher()
                .seal_in_place_separate_tag(nonce(3), aad, &mut []);
            drop(tag);
        });
        time("encrypt only", &|| {
            let mut data = [0; 65_536];
            let data = &mut data[..bytes];
            let tag = key
                .cipher()
                .seal_in_place_separate_tag(nonce(3), Aad::empty(), data);
            drop(tag);
        });
    }
}
