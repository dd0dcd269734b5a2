use std::{fs, os::unix::fs::PermissionsExt as _};

use bytes::Bytes;
use shared_sandbox::{Downloaded, FileFailure, Written};
use shared_types::{Digest, DigestAlgorithm};

use super::*;
use crate::testing::{LONG, Scene, end};

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * at / 7) as u8).collect()
}

fn upload(path: &str, content: &[u8]) -> Upload {
    Upload {
        path: path.to_owned(),
        bytes: content.len() as u64,
        digest: Digest::of(content).into(),
        mode: None,
        modified_us: None,
    }
}

/// Sends this in pieces and reads to the end.
async fn sent(scene: &Scene, upload: Upload, content: &[u8]) -> Outcome {
    let Uploading { performing, pieces } = scene.host.upload(upload, LONG);
    let content = Bytes::copy_from_slice(content);
    let sending = tokio::spawn(async move {
        let mut at = 0;
        loop {
            let data = content.slice(at..content.len().min(at + 60_000));
            let (offset, end) = (at as u64, at + data.len() == content.len());
            at += data.len();
            let piece = Input { offset, data, end };
            if pieces.send(piece).await.is_err() || end {
                return;
            }
        }
    });
    let outcome = end(performing).await.outcome;
    sending.await.expect("no panic");
    outcome
}

#[tokio::test]
async fn a_file_for_a_workspace_that_was_removed_fails_and_says_so() {
    let scene = Scene::new();
    fs::remove_dir(scene.path("")).expect("it is empty");
    let gone = Outcome::Failed(FileFailure::WorkspaceGone);
    assert_eq!(sent(&scene, upload("file", b"x"), b"x").await, gone);
    let path = "file".to_owned();
    let algorithm = DigestAlgorithm::Sha256;
    let downloaded = end(scene.host.download(
        Download {
            path,
            algorithm,
            max_bytes: 0,
        },
        LONG,
    ))
    .await;
    assert_eq!(downloaded.outcome, gone);
}

fn names(scene: &Scene) -> Vec<String> {
    let entries = fs::read_dir(scene.host.root()).expect("a workspace");
    entries
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect()
}

#[tokio::test]
async fn a_file_arrives_whole_under_missing_directories_and_replaces_what_was_there() {
    let scene = Scene::new();
    let content = bytes(1_000_000);
    let written = |before: Option<&[u8]>, after: &[u8]| {
        Outcome::Written(Written {
            bytes: after.len() as u64,
            before: before.map(|before| Digest::of(before).into()),
            after: Digest::of(after).into(),
        })
    };
    let outcome = sent(&scene, upload("a/b/file", &content), &content).await;
    assert_eq!(outcome, written(None, &content));
    assert!(fs::read(scene.path("a/b/file")).expect("a file") == content);
    let mode = fs::Permissions::from_mode(0o751);
    fs::set_permissions(scene.path("a/b/file"), mode).expect("a mode");
    let outcome = sent(&scene, upload("a/b/file", b"short"), b"short").await;
    assert_eq!(outcome, written(Some(&content), b"short"));
    assert_eq!(scene.text("a/b/file"), "short");
    let stat = fs::metadata(scene.path("a/b/file")).expect("a file");
    assert_eq!(stat.permissions().mode() & 0o777, 0o751);
    let outcome = sent(&scene, upload("empty", b""), b"").await;
    assert_eq!(outcome, written(None, b""));
}

#[tokio::test]
async fn what_is_not_what_was_announced_changes_nothing_and_leaves_nothing() {
    let scene = Scene::new();
    scene.put("file", "before");
    let path = || "file".to_owned();
    let announced = || upload("file", b"content");
    let other = sent(&scene, announced(), b"CONTENT").await;
    assert_eq!(
        other,
        Outcome::Failed(FileFailure::OtherDigest { path: path() })
    );
    let (path, bytes) = (path(), 7);
    let size = Outcome::Failed(FileFailure::OtherSize { path, bytes });
    assert_eq!(sent(&scene, announced(), b"content and more").await, size);
    assert_eq!(sent(&scene, announced(), b"conten").await, size);
    let below = sent(&scene, upload("new/file", b"content"), b"CONTENT").await;
    assert!(matches!(below, Outcome::Failed(_)), "{below:?}");
    assert_eq!(scene.text("file"), "before");
    assert_eq!(names(&scene), ["file"]);
}

#[tokio::test]
async fn an_upload_that_is_stopped_or_left_alone_leaves_nothing() {
    let scene = Scene::new();
    for stops in [true, false] {
        let Uploading {
            mut performing,
            pieces,
        } = scene.host.upload(upload("file", b"content"), LONG);
        let piece = Input {
            offset: 0,
            data: "con".into(),
            end: false,
        };
        pieces.send(piece).await.expect("it waits");
        let taken = performing.events.recv().await;
        assert!(matches!(taken, Some(HostEvent::InputTaken(3))), "{taken:?}");
        match stops {
            true => performing.stop.cancel(),
            false => drop(pieces),
        }
        let outcome = end(performing).await.outcome;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        assert_eq!(names(&scene), [""; 0]);
    }
}

#[tokio::test]
async fn nothing_is_put_outside_the_workspace() {
    let scene = Scene::new();
    let outcome = sent(&scene, upload("../file", b"x"), b"x").await;
    assert!(
        matches!(
            outcome,
            Outcome::Failed(FileFailure::OutsideWorkspace { .. })
        ),
        "{outcome:?}"
    );
    scene.put("directory/file", "");
    let outcome = sent(&scene, upload("directory", b"x"), b"x").await;
    assert!(
        matches!(outcome, Outcome::Failed(FileFailure::NotAFile { .. })),
        "{outcome:?}"
    );
}

async fn opened(performing: &mut Performing) -> files::OpenFile {
    match performing.events.recv().await {
        Some(HostEvent::Opened(file)) => file,
        other => panic!("expected an open file, not {other:?}"),
    }
}

fn download(path: &str) -> Download {
    Download {
        path: path.to_owned(),
        algorithm: DigestAlgorithm::Sha256,
        max_bytes: 0,
    }
}

#[tokio::test]
async fn a_file_beyond_the_bound_of_its_download_is_refused_before_it_is_opened() {
    let scene = Scene::new();
    scene.put("file", bytes(11));
    let bounded = |max_bytes| Download {
        max_bytes,
        ..download("file")
    };
    let refused = end(scene.host.download(bounded(10), LONG)).await;
    let expected = FileFailure::TooLarge {
        path: "file".to_owned(),
        bytes: 11,
        limit: 10,
    };
    assert_eq!(refused.outcome, Outcome::Failed(expected));
    let read = end(scene.host.download(bounded(11), LONG)).await;
    assert!(matches!(read.outcome, Outcome::Downloaded(_)), "{read:?}");
}

#[tokio::test]
async fn a_download_is_read_anywhere_and_ends_with_its_digest() {
    let scene = Scene::new();
    let content = bytes(700_000);
    scene.put("file", &content);
    let mut performing = scene.host.download(download("file"), LONG);
    let file = opened(&mut performing).await;
    fs::remove_file(scene.path("file")).expect("a file");
    assert_eq!(file.bytes(), 700_000);
    let piece = file.read(650_000, 65_536).expect("readable");
    assert!(piece[..] == content[650_000..]);
    assert!(file.read(700_000, 10).expect("readable").is_empty());
    let other = scene.host.download(download("file"), LONG);
    let missing = end(other).await.outcome;
    assert!(
        matches!(missing, Outcome::Failed(FileFailure::NotFound { .. })),
        "{missing:?}"
    );
    let outcome = end(performing).await.outcome;
    let digest = Digest::of(&content).into();
    let bytes = 700_000;
    let whole = Outcome::Downloaded(Downloaded { bytes, digest });
    assert_eq!(outcome, whole, "without a name it is the same file");
}

#[tokio::test]
async fn a_file_that_is_written_to_while_it_is_read_has_changed() {
    let scene = Scene::new();
    let size = 64 * 1024 * 1024;
    scene.put("file", "");
    let file = fs::File::options()
        .write(true)
        .open(scene.path("file"))
        .expect("a file");
    file.set_len(size).expect("a sparse file");
    let mut performing = scene.host.download(download("file"), LONG);
    opened(&mut performing).await;
    file.set_len(size / 2).expect("shorter");
    let path = "file".to_owned();
    let changed = Outcome::Failed(FileFailure::Changed {
        path,
        since_read: false,
    });
    assert_eq!(end(performing).await.outcome, changed);
}
