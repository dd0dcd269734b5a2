//! The real program.

use std::{fs, process::Command};

use bytes::Bytes;
use runner_host::{Change, HostEvent, SettledChange, Uploading};
use rustix::process::Signal;
use serde_json::json;
use shared_sandbox::{
    Download, Edit, EntryKind, Glob, Grep, Input, List, Outcome, Pack, Request, Stat, Unpack,
    Upload,
};
use shared_types::{Digest, DigestAlgorithm, Refusal, RefusalCode, limits::INPUT_CHUNK_BYTES};

use crate::{
    peer::Peer,
    scene::{Ended, FILES, LONG, Program, Scene, announced, end, read, refused, write},
};

/// More than any window, and no two pieces alike.
fn large() -> Vec<u8> {
    (0..3 * 1024 * 1024_usize)
        .map(|at| (at * at / 7) as u8)
        .collect()
}

/// Sends this in pieces and reads to the end.
async fn sent(uploading: Uploading, content: &[u8]) -> Ended {
    let Uploading { performing, pieces } = uploading;
    let content = Bytes::copy_from_slice(content);
    let sending = tokio::spawn(async move {
        let mut at = 0;
        loop {
            let data = content.slice(at..content.len().min(at + INPUT_CHUNK_BYTES));
            let (offset, end) = (at as u64, at + data.len() == content.len());
            at += data.len();
            let piece = Input { offset, data, end };
            if pieces.send(piece).await.is_err() || end {
                return;
            }
        }
    });
    let ended = end(performing).await;
    sending.await.expect("no panic");
    ended
}

/// All of the file that was handed over.
fn whole(ended: &Ended) -> Vec<u8> {
    let file = ended.opened.as_ref().expect("a file was opened");
    let mut content = Vec::new();
    while (content.len() as u64) < file.bytes() {
        let piece = file.read(content.len() as u64, 64 * 1024).expect("bytes");
        assert!(!piece.is_empty(), "the file is shorter than it was");
        content.extend_from_slice(&piece);
    }
    content
}

/// A change that was told to be made, by a program that died before it was: its end, and itself.
async fn killed_in_the_middle(scene: &Scene) -> (Outcome, Change) {
    let mut writing = scene.inside.perform(write("file", b"new"), LONG);
    let announced = announced(&mut writing).await;
    let change = announced.change.clone();
    scene.program.signal(Signal::STOP);
    announced.go_ahead();
    scene.program.signal(Signal::KILL);
    (end(writing).await.outcome, change)
}

#[tokio::test]
async fn what_only_reads_is_answered_from_the_folder() {
    let scene = Scene::new().await;
    assert_eq!(
        scene.hello.uid,
        rustix::process::geteuid().as_raw(),
        "the program runs as the one who starts it"
    );
    assert!(scene.hello.home.starts_with('/') && scene.hello.shell.is_some());
    scene.put("a.txt", "one\ntwo\n");
    scene.put("b.txt", "three\n");
    let Outcome::Read(content) = scene.outcome(read("a.txt")).await else {
        panic!("nothing was read");
    };
    assert_eq!((content.content, content.lines), (b"one\ntwo\n".into(), 2));
    let path = String::new();
    let list = Request::List(List {
        path: path.clone(),
        max_entries: 10,
        tree: false,
        after: String::new(),
    });
    assert!(
        matches!(scene.outcome(list).await, Outcome::Listed(listed) if listed.entries.len() == 2)
    );
    let glob = Request::Glob(Glob {
        path: path.clone(),
        pattern: "b*".to_owned(),
        max_paths: 10,
    });
    assert!(
        matches!(scene.outcome(glob).await, Outcome::Globbed(found) if found.paths == ["b.txt"])
    );
    let grep = Request::Grep(Grep {
        path,
        pattern: "t[wh]".to_owned(),
        files: String::new(),
        ignore_case: false,
        max_matches: 10,
    });
    assert!(
        matches!(scene.outcome(grep).await, Outcome::Grepped(found) if found.matches.len() == 2)
    );
    let stat = Request::Stat(Stat {
        path: "a.txt".to_owned(),
        follow: false,
    });
    assert!(
        matches!(scene.outcome(stat).await, Outcome::Found(found) if found.kind == EntryKind::File)
    );
    let missing = scene.outcome(read("missing")).await;
    assert!(matches!(missing, Outcome::Failed(_)), "{missing:?}");
}

#[tokio::test]
async fn a_change_is_made_once_it_is_answered_and_not_before() {
    let scene = Scene::new().await;
    let content = large()[..1_000_000].to_vec();
    let mut writing = scene.inside.perform(write("file", &content), LONG);
    let change = announced(&mut writing).await;
    assert_eq!(change.change.effects[0].path, "file");
    assert!(!scene.path("file").exists());
    change.go_ahead();
    assert!(matches!(end(writing).await.outcome, Outcome::Written(_)));
    assert!(scene.content("file") == content);
    let edit = Request::Edit(Edit {
        path: "text".to_owned(),
        old: "a\n".to_owned(),
        new: "b\n".to_owned(),
        every: false,
        expected: None,
    });
    scene.put("text", "a\n");
    let edited = end(scene.inside.perform(edit, LONG)).await;
    assert!(matches!(edited.outcome, Outcome::Edited(_)), "{edited:?}");
    assert_eq!((edited.changes, scene.content("text")), (1, b"b\n".into()));
}

#[tokio::test]
async fn a_change_that_is_refused_or_that_nobody_hears_of_is_not_made() {
    let scene = Scene::new().await;
    scene.put("file", "old");
    let mut writing = scene.inside.perform(write("file", b"new"), LONG);
    let full = Refusal::new(RefusalCode::SpoolFull, "no room to write it down");
    announced(&mut writing).await.refuse(full.clone());
    assert_eq!(end(writing).await.outcome, Outcome::Refused(full));
    let mut writing = scene.inside.perform(write("file", b"new"), LONG);
    drop(announced(&mut writing).await);
    assert_eq!(refused(end(writing).await.outcome).0, RefusalCode::Fenced);
    let mut writing = scene.inside.perform(write("file", b"new"), LONG);
    let waits = announced(&mut writing).await;
    writing.stop.cancel();
    assert_eq!(refused(end(writing).await.outcome).0, RefusalCode::Fenced);
    drop(waits);
    assert_eq!(scene.content("file"), b"old");
}

#[tokio::test]
async fn a_large_file_goes_both_ways() {
    let scene = Scene::new().await;
    let content = large();
    let upload = Upload {
        path: "a/file".to_owned(),
        bytes: content.len() as u64,
        digest: Digest::of(&content).into(),
        mode: None,
        modified_us: None,
    };
    let written = sent(scene.inside.upload(upload, LONG), &content).await;
    assert!(
        matches!(written.outcome, Outcome::Written(_)),
        "{written:?}"
    );
    assert_eq!((written.changes, written.taken), (1, content.len() as u64));
    assert!(scene.content("a/file") == content);
    let download = Download {
        path: "a/file".to_owned(),
        algorithm: DigestAlgorithm::Sha256,
        max_bytes: 0,
    };
    let read = end(scene.inside.download(download, LONG)).await;
    let Outcome::Downloaded(downloaded) = &read.outcome else {
        panic!("{read:?}");
    };
    assert_eq!(downloaded.digest, Digest::of(&content).into());
    assert!(whole(&read) == content);
}

#[tokio::test]
async fn an_archive_goes_both_ways() {
    let scene = Scene::new().await;
    fs::create_dir(scene.path("from")).expect("a folder");
    scene.put("from/a", "content");
    let pack = Pack {
        path: "from".to_owned(),
        entries: vec!["a".to_owned()],
        algorithm: DigestAlgorithm::Sha256,
    };
    let packed = end(scene.inside.pack(pack, LONG)).await;
    assert!(matches!(packed.outcome, Outcome::Packed(_)), "{packed:?}");
    let archive = whole(&packed);
    let unpack = Unpack {
        path: "to".to_owned(),
        bytes: archive.len() as u64,
        digest: Digest::of(&archive).into(),
    };
    let unpacked = sent(scene.inside.unpack(unpack, LONG), &archive).await;
    assert!(
        matches!(unpacked.outcome, Outcome::Unpacked(_)),
        "{unpacked:?}"
    );
    assert_eq!(scene.content("to/a"), b"content");
}

#[tokio::test]
async fn an_upload_that_is_left_alone_leaves_nothing() {
    let scene = Scene::new().await;
    let upload = Upload {
        path: "file".to_owned(),
        bytes: 3,
        digest: Digest::of(b"abc").into(),
        mode: None,
        modified_us: None,
    };
    let Uploading { performing, pieces } = scene.inside.upload(upload, LONG);
    drop(pieces);
    assert_eq!(
        refused(end(performing).await.outcome).0,
        RefusalCode::Fenced
    );
    assert!(!scene.path("file").exists());
}

#[tokio::test]
async fn changes_that_meet_wait_until_the_end_of_the_first_is_written_down() {
    let scene = Scene::new().await;
    let first = end(scene.inside.perform(write("file", b"first"), LONG)).await;
    let mut second = scene.inside.perform(write("./file", b"second"), LONG);
    let other = scene.outcome(write("other", b"")).await;
    assert!(matches!(other, Outcome::Written(_)), "{other:?}");
    assert!(second.events.try_recv().is_err(), "it is announced already");
    drop(first.held);
    assert!(matches!(end(second).await.outcome, Outcome::Written(_)));
    assert_eq!(scene.content("file"), b"second");
}

#[tokio::test]
async fn a_change_whose_program_dies_in_the_middle_is_lost_and_can_be_settled() {
    let scene = Scene::new().await;
    scene.put("file", "old");
    let (outcome, change) = killed_in_the_middle(&scene).await;
    assert_eq!(refused(outcome).0, RefusalCode::Lost);
    let settled = scene.inside.settle(change.clone(), vec![None]).await;
    assert_eq!(settled, SettledChange::Unclear, "nobody can look");
    let (_program, inside) = scene.another().await;
    let settle = || inside.settle(change.clone(), vec![None]);
    assert_eq!(settle().await, SettledChange::NotApplied);
    scene.put("file", "new");
    assert_eq!(settle().await, SettledChange::Applied(change.done.clone()));
    scene.put("file", "else");
    assert_eq!(settle().await, SettledChange::Unclear);
}

#[tokio::test]
async fn a_change_that_was_not_told_to_go_ahead_is_not_lost_with_its_program() {
    let scene = Scene::new().await;
    scene.put("file", "old");
    let mut writing = scene.inside.perform(write("file", b"new"), LONG);
    let waits = announced(&mut writing).await;
    scene.program.signal(Signal::KILL);
    let Some(HostEvent::Ended(outcome, _)) = writing.events.recv().await else {
        panic!("no end");
    };
    waits.go_ahead();
    let (code, message) = refused(outcome);
    assert_eq!(code, RefusalCode::Unavailable);
    assert!(message.contains("nothing was changed"), "{message}");
    let (code, message) = refused(scene.outcome(read("file")).await);
    assert_eq!(code, RefusalCode::Unavailable);
    assert!(message.contains("is gone; try again"), "{message}");
    assert_eq!(scene.content("file"), b"old");
}

#[tokio::test]
async fn the_program_ends_once_nobody_needs_it() {
    let scene = Scene::new().await;
    let (program, inside) = scene.another().await;
    let first = end(inside.perform(write("file", b"first"), LONG)).await;
    let mut waits = inside.perform(write("file", b"second"), LONG);
    drop(inside);
    drop(first);
    let announced = announced(&mut waits).await;
    announced.go_ahead();
    let mut program = program;
    assert!(program.runs(), "a request is under way");
    assert!(matches!(end(waits).await.outcome, Outcome::Written(_)));
    assert!(program.ended().await, "it fails");
}

#[tokio::test]
async fn a_change_that_waits_when_the_daemon_dies_is_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut daemon, theirs) = Peer::pair();
    let program = Program::spawn(Command::new(FILES).arg(folder.path()), theirs);
    assert_eq!(daemon.heard().await.0, "hello");
    let request = write("file", b"");
    let perform = json!({ "id": 1, "request": request, "run_for_ms": 60_000 });
    daemon.say(&json!({ "perform": perform }));
    assert_eq!(daemon.heard().await.0, "changing");
    drop(daemon);
    assert!(program.ended().await, "it fails");
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "something was written");
}

#[tokio::test]
async fn only_the_lock_of_what_was_left_open_stays_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let lock = folder.path().join("lock");
    fs::write(&lock, "").expect("a file");
    let (mut daemon, theirs) = Peer::pair();
    let script = "exec 3<\"$1\" 4<\"$1\" 9<\"$1\"; exec \"$0\" \"$2\"";
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", script, FILES])
        .args([lock.as_path(), folder.path()]);
    let program = Program::spawn(&mut shell, theirs);
    assert_eq!(daemon.heard().await.0, "hello");
    let is_open = |number| program.open(number).as_deref() == Some(lock.as_path());
    assert_eq!([3, 4, 9].map(is_open), [true, false, false]);
}
