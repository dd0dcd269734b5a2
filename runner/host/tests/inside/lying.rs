//! A far end that says what it likes.

use std::{io::Write as _, os::fd::OwnedFd};

use runner_host::{ConnectError, Hello, HostEvent, Inside};
use serde_json::{Value, json};
use shared_sandbox::{Download, Outcome};
use shared_types::{Digest, DigestAlgorithm, RefusalCode};

use crate::peer::{Peer, frame};
use crate::scene::{Ended, LONG, announced, end, read, refused, write};

/// The far end, and the near end that takes it for the program.
async fn connected() -> (Peer, Inside) {
    let (liar, ours) = Peer::pair();
    liar.say(&json!({ "hello": Hello::here() }));
    let (inside, _) = Inside::connect(ours).await.expect("it says hello");
    (liar, inside)
}

fn ended(id: u64, outcome: &Outcome) -> Value {
    json!({ "ended": { "id": id, "outcome": outcome } })
}

fn made() -> Outcome {
    Outcome::MadeDirectory(shared_sandbox::MadeDirectory { made: true })
}

fn written() -> Outcome {
    Outcome::Written(shared_sandbox::Written {
        bytes: 3,
        before: None,
        after: Digest::of(b"new").into(),
    })
}

fn changing(id: u64, done: &Outcome) -> Value {
    let effect = json!({ "path": "file", "before": "nothing", "after": "directory" });
    json!({ "changing": { "id": id, "change": { "effects": [effect], "done": done } } })
}

/// A download for which this is handed over.
async fn handed_over(descriptor: &OwnedFd) -> Ended {
    let (mut liar, inside) = connected().await;
    let download = Download {
        path: "file".to_owned(),
        algorithm: DigestAlgorithm::Sha256,
        max_bytes: 0,
    };
    let reading = inside.download(download, LONG);
    let (_, id, _) = liar.heard().await;
    let opened = json!({ "opened": { "id": id, "bytes": u64::MAX } });
    liar.hand_over(&opened, descriptor);
    let outcome = Outcome::Downloaded(shared_sandbox::Downloaded {
        bytes: 3,
        digest: Digest::of(b"abc").into(),
    });
    liar.say(&ended(id, &outcome));
    end(reading).await
}

#[tokio::test]
async fn what_nobody_asked_for_is_not_heard() {
    let (mut liar, inside) = connected().await;
    let reading = inside.perform(read("file"), LONG);
    let (kind, id, _) = liar.heard().await;
    assert_eq!(kind, "perform");
    for other in [0, id + 1, u64::MAX] {
        liar.say(&ended(other, &made()));
        liar.say(&json!({ "settled": { "id": other, "verdict": "applied" } }));
    }
    liar.say(&json!({ "settled": { "id": id, "verdict": "applied" } }));
    liar.say(&changing(id, &written()));
    liar.say(&json!({ "input_taken": { "id": id, "up_to": u64::MAX } }));
    let failed = Outcome::Failed(shared_sandbox::FileFailure::DiskFull);
    liar.say(&ended(id, &failed));
    let end = end(reading).await;
    assert_eq!((end.outcome, end.changes, end.taken), (failed, 0, 0));
}

#[tokio::test]
async fn an_end_of_another_kind_is_no_end() {
    let (mut liar, inside) = connected().await;
    let reading = inside.perform(read("file"), LONG);
    let (_, id, _) = liar.heard().await;
    liar.say(&ended(id, &made()));
    assert_eq!(
        refused(end(reading).await.outcome).0,
        RefusalCode::Unavailable
    );
    assert_eq!(liar.heard().await.0, "stop");

    let mut writing = inside.perform(write("file", b"new"), LONG);
    let (_, id, _) = liar.heard().await;
    liar.say(&changing(id, &written()));
    announced(&mut writing).await.go_ahead();
    assert_eq!(liar.heard().await.0, "answer");
    liar.say(&changing(id, &written()));
    liar.say(&ended(id, &made()));
    let Some(HostEvent::Ended(outcome, held)) = writing.events.recv().await else {
        panic!("it is announced twice");
    };
    assert_eq!(refused(outcome).0, RefusalCode::Lost);
    assert_eq!(liar.heard().await.0, "stop");
    drop(held);
    let (kind, released, _) = liar.heard().await;
    assert_eq!((kind.as_str(), released), ("release", id));

    let writing = inside.perform(write("file", b"new"), LONG);
    let (_, id, _) = liar.heard().await;
    liar.say(&changing(id, &made()));
    let ended = end(writing).await;
    assert_eq!(
        (refused(ended.outcome).0, ended.changes),
        (RefusalCode::Unavailable, 0)
    );
}

#[tokio::test]
async fn only_an_ordinary_file_that_is_open_for_reading_is_read() {
    let (pipe, _other) = rustix::pipe::pipe().expect("a pipe");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "abc").expect("a file");
    let open = |path: &std::path::Path| OwnedFd::from(std::fs::File::open(path).expect("a file"));
    let only_written = std::fs::OpenOptions::new().write(true).open(&path);
    let only_written = OwnedFd::from(only_written.expect("a file"));
    for (descriptor, why) in [
        (&pipe, "ordinary file"),
        (&open(folder.path()), "ordinary file"),
        (&open("/proc/self/environ".as_ref()), "of the kernel"),
        (&only_written, "open for reading"),
    ] {
        let ended = handed_over(descriptor).await;
        assert!(ended.opened.is_none());
        let (code, message) = refused(ended.outcome);
        assert_eq!(code, RefusalCode::Unavailable);
        assert!(message.contains(why), "{message}");
    }
    let ended = handed_over(&open(&path)).await;
    assert_eq!(ended.opened.expect("it is handed over").bytes(), 3);
    assert!(matches!(ended.outcome, Outcome::Downloaded(_)));
    std::fs::write(&path, "abcd").expect("a file");
    let ended = handed_over(&open(&path)).await;
    assert!(matches!(ended.outcome, Outcome::Failed(_)), "{ended:?}");
}

#[tokio::test]
async fn frames_that_cannot_be_read_end_everything() {
    let huge = [u32::MAX.to_le_bytes(), 4_u32.to_le_bytes()].concat();
    let longer = [8_u32.to_le_bytes(), 9_u32.to_le_bytes()].concat();
    for bytes in [huge, longer, frame(&json!({ "unknown": {} }))] {
        let (mut liar, inside) = connected().await;
        let reading = inside.perform(read("file"), LONG);
        liar.heard().await;
        liar.send(&bytes, None);
        assert_eq!(
            refused(end(reading).await.outcome).0,
            RefusalCode::Unavailable
        );
        let after = end(inside.perform(write("file", b""), LONG)).await;
        assert_eq!(refused(after.outcome).0, RefusalCode::Unavailable);
        let _ = liar.0.write_all(b"more");
    }
}

#[tokio::test]
async fn what_cannot_be_passed_on_in_a_link_is_no_end() {
    let (mut liar, inside) = connected().await;
    let long = "x".repeat(1024 * 1024);
    let far = Outcome::Failed(shared_sandbox::FileFailure::NotFound { path: long });
    let other = shared_types::Refusal::new(RefusalCode::Unauthenticated, "log in");
    for outcome in [far, Outcome::Refused(other)] {
        let reading = inside.perform(read("file"), LONG);
        let (_, id, _) = liar.heard().await;
        let (sending, bytes) = (liar.0.try_clone(), frame(&ended(id, &outcome)));
        let sending = std::thread::spawn(move || sending.expect("a socket").write_all(&bytes));
        let (code, message) = refused(end(reading).await.outcome);
        assert_eq!(code, RefusalCode::Unavailable);
        assert!(message.contains("said what cannot be"), "{message}");
        sending.join().expect("no panic").expect("it is read");
        assert_eq!(liar.heard().await.0, "stop");
    }
}

#[tokio::test]
async fn a_change_that_is_too_large_to_be_written_down_is_refused() {
    let (mut liar, inside) = connected().await;
    let writing = inside.perform(write("file", b"new"), LONG);
    let (_, id, _) = liar.heard().await;
    let mut change = changing(id, &written());
    change["changing"]["change"]["effects"][0]["path"] = "x".repeat(32 * 1024).into();
    liar.say(&change);
    let (kind, answered, answer) = liar.heard().await;
    assert_eq!((kind.as_str(), answered), ("answer", id));
    assert_eq!(answer["refusal"]["code"], "RESOURCE_EXHAUSTED");
    liar.say(&ended(id, &written()));
    assert_eq!(
        end(writing).await.changes,
        0,
        "the daemon hears nothing of it"
    );
}

#[tokio::test]
async fn an_end_that_takes_more_than_its_bytes_once_it_is_written_down_is_no_end() {
    let (mut liar, inside) = connected().await;
    // Six bytes of JSON each.
    let skipped = |characters: usize| {
        let path = "\u{1}".repeat(characters);
        let failure = shared_sandbox::FileFailure::DiskFull;
        vec![shared_sandbox::Skipped { path, failure }]
    };
    for (characters, is_end) in [(40_000, true), (50_000, false)] {
        let unpack = shared_sandbox::Unpack {
            path: String::new(),
            bytes: 0,
            digest: Digest::of(b"").into(),
        };
        let mut unpacking = inside.unpack(unpack, LONG);
        let (_, id, _) = liar.heard().await;
        let outcome = Outcome::Unpacked(shared_sandbox::Unpacked {
            entries: 0,
            skipped: skipped(characters),
        });
        let (sending, bytes) = (liar.0.try_clone(), frame(&ended(id, &outcome)));
        let sending = std::thread::spawn(move || sending.expect("a socket").write_all(&bytes));
        let Some(HostEvent::Ended(end, _)) = unpacking.performing.events.recv().await else {
            panic!("it has not ended");
        };
        sending.join().expect("no panic").expect("it is read");
        assert_eq!(end == outcome, is_end, "{characters}");
        while liar.heard().await.0 != "release" {}
    }
}

#[tokio::test]
async fn only_a_program_of_the_same_version_is_spoken_with() {
    let hellos = [
        json!({ "hello": Hello { version: 99, ..Hello::here() } }),
        ended(1, &made()),
    ];
    for (hello, is_version) in hellos.iter().zip([true, false]) {
        let (liar, ours) = Peer::pair();
        liar.say(hello);
        let error = Inside::connect(ours).await.expect_err("it is not ours");
        assert_eq!(matches!(error, ConnectError::Version(99)), is_version);
    }
}
