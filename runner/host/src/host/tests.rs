use std::{collections::BTreeMap, fs, os::unix::fs::symlink, sync::Arc, time::Duration};

use shared_sandbox::{FileFailure, Outcome, Read, Write};
use shared_types::{Isolation, RefusalCode, SystemClock};

use super::*;
use crate::testing::{LONG, Scene, end, shell};

fn open(root: impl Into<PathBuf>) -> Result<Host, WorkspaceError> {
    let options = HostOptions {
        root: root.into(),
        environment: BTreeMap::new(),
        file_operation_within: LONG,
    };
    Host::open(options, Arc::new(SystemClock::new()))
}

fn read(path: &str) -> Read {
    Read {
        path: path.to_owned(),
        first_line: 1,
        max_lines: 10,
        max_bytes: 1000,
    }
}

#[test]
fn a_root_that_cannot_serve_says_what_to_do() {
    let scene = Scene::new();
    scene.put("file", "");
    let missing = open(scene.path("missing")).expect_err("there is nothing");
    assert!(
        matches!(missing, WorkspaceError::Missing { .. }),
        "{missing:?}"
    );
    assert!(missing.to_string().contains("create it"));
    let file = open(scene.path("file")).expect_err("it is a file");
    assert!(
        matches!(file, WorkspaceError::NotADirectory { .. }),
        "{file:?}"
    );
    assert_eq!(scene.host.isolation(), Isolation::none());
}

#[tokio::test]
async fn a_root_that_is_a_link_is_known_by_both_names() {
    let scene = Scene::new();
    scene.put("a", "text");
    let link = scene.outside().join("link");
    symlink(scene.host.root(), &link).expect("a link");
    let host = open(&link).expect("a link to a folder is a folder");
    assert_eq!(host.root(), link);
    for root in [
        link.as_path(),
        &scene.host.root().canonicalize().expect("real"),
    ] {
        let path = root.join("a").display().to_string();
        let ended = end(host.perform(Request::Read(read(&path)), LONG)).await;
        assert!(matches!(ended.outcome, Outcome::Read(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_workspace_that_is_moved_is_still_the_workspace() {
    let scene = Scene::new();
    scene.put("a", "text");
    fs::rename(scene.host.root(), scene.outside().join("moved")).expect("a move");
    assert!(matches!(scene.outcome(read("a")).await, Outcome::Read(_)));
    let plan = scene.host.plan(&shell("pwd")).expect("a plan");
    let variables = plan
        .environment
        .iter()
        .map(|variable| variable.to_string_lossy());
    assert_eq!(variables.filter(|text| text.ends_with("/moved")).count(), 1);
}

#[tokio::test]
async fn work_that_panics_has_an_end() {
    let end = settled(tokio::spawn(async { panic!("a defect") })).await;
    match end.outcome {
        Outcome::Refused(refusal) => assert_eq!(refusal.code, RefusalCode::Lost),
        other => panic!("expected a refusal, not {other:?}"),
    }
}

#[tokio::test]
async fn a_file_operation_without_time_is_given_up() {
    let scene = Scene::with(Duration::ZERO);
    scene.put("a", "text");
    let failure = scene.failure(read("a")).await;
    assert_eq!(failure, FileFailure::TooSlow { limit_ms: 0 });
}

#[tokio::test]
async fn a_change_that_is_stopped_in_time_changes_nothing() {
    let scene = Scene::new();
    let write = Write {
        path: "a".to_owned(),
        content: b"new".to_vec(),
    };
    let performing = scene.start(write);
    performing.stop.cancel();
    let ended = end(performing).await;
    assert!(matches!(ended.outcome, Outcome::Refused(_)), "{ended:?}");
    assert!(!scene.path("a").exists());
}

#[tokio::test]
async fn changes_of_one_file_are_made_one_after_the_other() {
    let scene = Scene::new();
    scene.put(
        "lines",
        (0..16).map(|i| format!("<{i}>\n")).collect::<String>(),
    );
    let edits: Vec<_> = (0..16)
        .map(|i| {
            scene.start(shared_sandbox::Edit {
                path: "lines".to_owned(),
                old: format!("<{i}>"),
                new: format!("[{i}]"),
                every: false,
                expected: None,
            })
        })
        .collect();
    for edit in edits {
        assert!(matches!(end(edit).await.outcome, Outcome::Edited(_)));
    }
    let expected: String = (0..16).map(|i| format!("[{i}]\n")).collect();
    assert_eq!(scene.text("lines"), expected);
}

#[tokio::test]
async fn changes_of_one_file_by_several_names_are_made_one_after_the_other() {
    let scene = Scene::new();
    let lines = (0..16).map(|i| format!("<{i}>\n")).collect::<String>();
    scene.put("d/lines", lines);
    symlink("d/lines", scene.path("link")).expect("a link");
    symlink("d", scene.path("e")).expect("a link");
    let absolute = scene.path("d/lines").display().to_string();
    let names = ["d/lines", "link", "e/lines", "d/../e/lines", &absolute];
    let edits: Vec<_> = (0..16)
        .map(|i| {
            scene.start(shared_sandbox::Edit {
                path: names[i % names.len()].to_owned(),
                old: format!("<{i}>"),
                new: format!("[{i}]"),
                every: false,
                expected: None,
            })
        })
        .collect();
    for edit in edits {
        let ended = end(edit).await;
        assert!(matches!(ended.outcome, Outcome::Edited(_)), "{ended:?}");
    }
    let expected: String = (0..16).map(|i| format!("[{i}]\n")).collect();
    assert_eq!(scene.text("d/lines"), expected);
}

#[test]
fn a_file_is_known_by_one_path_before_and_after_its_directories_are_made() {
    let scene = Scene::new();
    let workspace = Workspace::open(scene.host.root()).expect("a workspace");
    let place = || workspace.place_of_change("new/deep/file");
    let before = place();
    scene.put("new/deep/file", "");
    assert_eq!(place(), before);
    assert_eq!(workspace.place_of_change("new/./deep/file"), before);
}

#[tokio::test]
async fn a_slow_change_of_one_file_holds_up_no_change_of_another() {
    let scene = Scene::new();
    // Nobody reads so much in time.
    let sparse = fs::File::create(scene.path("sparse")).expect("a file");
    sparse.set_len(1 << 42).expect("a sparse file");
    let write = |path: &str| Write {
        path: path.to_owned(),
        content: b"new".to_vec(),
    };
    let mut slow = scene.start(write("sparse"));
    for small in ["small", "in/new/folders"] {
        let outcome = scene.outcome(write(small)).await;
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
    assert!(slow.events.try_recv().is_err(), "it is under way");
    slow.stop.cancel();
    assert!(matches!(end(slow).await.outcome, Outcome::Refused(_)));
}

#[tokio::test]
async fn a_change_waits_until_the_end_of_the_one_before_it_is_written_down() {
    let scene = Scene::new();
    let write = |path: &str| Write {
        path: path.to_owned(),
        content: b"new".to_vec(),
    };
    let mut first = scene.start(write("file"));
    let held = loop {
        match first.events.recv().await.expect("an end") {
            HostEvent::Changing(announced) => announced.go_ahead(),
            HostEvent::Ended(_, held) => break held,
            other => panic!("unexpected: {other:?}"),
        }
    };
    let mut second = scene.start(write("./file"));
    let other = scene.outcome(write("other")).await;
    assert!(matches!(other, Outcome::Written(_)), "{other:?}");
    assert!(second.events.try_recv().is_err(), "it is announced already");
    drop(held);
    assert!(matches!(end(second).await.outcome, Outcome::Written(_)));
}
