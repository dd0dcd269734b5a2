//! A process that makes one change is killed after each of its steps, and what it left is settled by
//! another: the change is made once, whatever its kind.

use std::{
    collections::BTreeMap,
    os::unix::{fs::symlink, process::ExitStatusExt as _},
    path::Path,
    process::Command,
};

use shared_sandbox::{Input, MakeDirectory, Move, Remove, Unpack, Upload};
use shared_types::DigestAlgorithm;

use super::*;
use crate::testing::{DIES_AT, LONG};

/// The test below that is the process to be killed.
const MAKER: &str = "files::settle::tests::steps::maker";

/// How it learns what to do.
const REQUEST: &str = "MAKES";

/// What its announcement stands behind.
const CHANGE: &str = "change: ";

#[tokio::test]
#[ignore = "changes the folder that it is started in; the test below starts it"]
#[expect(clippy::disallowed_methods, reason = "this is its `main`")]
async fn maker() {
    let root = std::env::current_dir().expect("a folder");
    let request = std::env::var(REQUEST).expect("a request");
    let request: Request = serde_json::from_str(&request).expect("JSON");
    println!("{:?}", perform(&crate::testing::open(&root), request).await);
}

/// Performs a request to its end, and tells what it announces.
async fn perform(host: &crate::Host, request: Request) -> Outcome {
    let mut performing = match request {
        Request::Upload(upload) => {
            let uploading = host.upload(upload, LONG);
            let piece = Input {
                offset: 0,
                data: NEW.into(),
                end: true,
            };
            uploading.pieces.send(piece).await.expect("it is taken");
            uploading.performing
        }
        Request::Unpack(unpack) => {
            let uploading = host.unpack(unpack, LONG);
            let piece = Input {
                offset: 0,
                data: archive().into(),
                end: true,
            };
            uploading.pieces.send(piece).await.expect("it is taken");
            uploading.performing
        }
        request => host.perform(request, LONG),
    };
    loop {
        match performing.events.recv().await.expect("an end") {
            HostEvent::Changing(announced) => {
                let change = serde_json::to_string(&announced.change).expect("JSON");
                println!("{CHANGE}{change}");
                announced.go_ahead();
            }
            HostEvent::Ended(outcome, _) => return outcome,
            HostEvent::Opened(_) | HostEvent::InputTaken(_) => {}
        }
    }
}

/// A workspace with something to change of every kind.
fn workspace() -> Scene {
    let scene = Scene::new();
    scene.put("file", OLD);
    scene.put("tree/a/b", OLD);
    scene.put("tree/c", OLD);
    fs::create_dir(scene.path("empty")).expect("a folder");
    fs::hard_link(scene.path("file"), scene.path("same")).expect("a link");
    fs::write(scene.outside().join("secret"), OLD).expect("a file");
    symlink("../../secret", scene.path("tree/link")).expect("a link");
    scene
}

fn changes() -> Vec<Request> {
    let text = |text: &str| text.to_owned();
    let moved = |from, to| {
        Request::Move(Move {
            from: text(from),
            to: text(to),
            replace: true,
        })
    };
    let removed = |path, tree| {
        Request::Remove(Remove {
            path: text(path),
            tree,
        })
    };
    vec![
        write("file"),
        write("new/folder/file"),
        edit(),
        Request::Upload(Upload {
            path: text("file"),
            bytes: NEW.len() as u64,
            digest: Digest::of(NEW).into(),
            mode: None,
            modified_us: None,
        }),
        Request::MakeDirectory(MakeDirectory {
            path: text("new/folder"),
        }),
        moved("file", "tree/d"),
        moved("file", "tree/c"),
        moved("file", "same"),
        moved("tree", "empty"),
        moved("tree/link", "link"),
        removed("file", false),
        removed("empty", false),
        removed("tree/link", false),
        removed("tree", true),
    ]
}

/// A new folder, a new file in it, another content for a file that is there, and a link.
fn archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Directory);
    let added = archive.append_data(&mut header, "new/inner", &[][..]);
    added.expect("there is room");
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(NEW.len() as u64);
    for path in ["new/inner/file", "tree/c"] {
        let added = archive.append_data(&mut header, path, NEW);
        added.expect("there is room");
    }
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    let added = archive.append_link(&mut header, "new/link", "inner/file");
    added.expect("there is room");
    archive.into_inner().expect("it is in memory")
}

/// Everything in the workspace, and what it holds.
fn everything(scene: &Scene) -> BTreeMap<String, String> {
    fn add(folder: &Path, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let holds = match meta.file_type() {
                kind if kind.is_dir() => "a folder".to_owned(),
                kind if kind.is_symlink() => format!("{:?}", fs::read_link(&path)),
                _ => fs::read_to_string(&path).expect("text"),
            };
            all.insert(path.display().to_string(), holds);
            if meta.is_dir() {
                add(&path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(scene.host.root(), &mut all);
    let root = scene.host.root().display().to_string();
    let all = all.into_iter();
    all.map(|(path, holds)| (path.replace(&root, ""), holds))
        .collect()
}

/// The change that a maker announced which died after so many steps; nothing where it did not die.
fn die(scene: &Scene, request: &Request, step: u32) -> Option<Change> {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", MAKER, "--ignored", "--nocapture"])
        .current_dir(scene.host.root())
        .env(REQUEST, serde_json::to_string(request).expect("JSON"))
        .env(DIES_AT, step.to_string())
        .output()
        .expect("a process");
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let change = text.lines().find_map(|line| line.split_once(CHANGE));
    let change = change.expect("an announcement").1;
    killed.then(|| serde_json::from_str(change).expect("a change"))
}

#[tokio::test]
async fn a_change_of_any_kind_is_made_once_wherever_its_maker_is_killed() {
    let (mut applied, mut not_applied) = (0, 0);
    for request in changes() {
        let whole = workspace();
        let expected = perform(&whole.host, request.clone()).await;
        let everything_after = everything(&whole);
        for step in 0.. {
            let scene = workspace();
            let Some(change) = die(&scene, &request, step) else {
                assert!(step >= 2, "{} has {step} steps", request.title());
                break;
            };
            match scene.settle(&change).await {
                SettledChange::Applied(outcome) => {
                    assert_eq!(outcome, expected, "{}, step {step}", request.title());
                    applied += 1;
                }
                SettledChange::NotApplied => {
                    let outcome = perform(&scene.host, request.clone()).await;
                    assert_eq!(outcome, expected, "{}, step {step}", request.title());
                    not_applied += 1;
                }
                SettledChange::Unclear => panic!("{}, step {step}: {change:?}", request.title()),
            }
            let left = everything(&scene);
            assert_eq!(left, everything_after, "{}, step {step}", request.title());
            assert!(scene.outside().join("secret").exists());
        }
    }
    assert!(applied > 0 && not_applied > 0, "{applied}, {not_applied}");
}

#[tokio::test]
async fn a_change_of_which_a_part_was_undone_by_somebody_is_unclear() {
    let request = changes().remove(5);
    for gone in ["tree/d", "file"] {
        let scene = workspace();
        let change = scene.announced_only(request.clone()).await;
        if gone == "tree/d" {
            fs::rename(scene.path("file"), scene.path("tree/d")).expect("a move");
        }
        fs::remove_file(scene.path(gone)).expect("it is there");
        assert_eq!(
            scene.settle(&change).await,
            SettledChange::Unclear,
            "{gone}"
        );
    }
}

#[tokio::test]
async fn a_tree_that_was_put_aside_is_removed_whatever_is_called_so_now() {
    let request = changes().pop().expect("the removal of a tree");
    let scene = workspace();
    let change = scene.announced_only(request).await;
    fs::rename(scene.path("tree"), scene.path(unfinished(&change))).expect("a move");
    scene.put("tree/new", NEW);
    let settled = scene.settle(&change).await;
    assert_eq!(settled, SettledChange::Applied(change.done.clone()));
    assert!(!scene.path(unfinished(&change)).exists());
    assert_eq!(scene.content("tree/new").as_deref(), Some(NEW));
}

#[tokio::test]
async fn what_a_killed_unpacking_leaves_is_old_or_new_and_unpacking_again_makes_it_whole() {
    let archive = archive();
    let request = Request::Unpack(Unpack {
        path: String::new(),
        bytes: archive.len() as u64,
        digest: DigestAlgorithm::Blake3.of(&archive),
    });
    let whole = workspace();
    perform(&whole.host, request.clone()).await;
    let everything_after = everything(&whole);
    assert_eq!(whole.content("new/link").as_deref(), Some(NEW));
    let mut settled = [0; 3];
    for step in 0.. {
        let scene = workspace();
        let Some(change) = die(&scene, &request, step) else {
            break;
        };
        settled[match scene.settle(&change).await {
            SettledChange::Applied(_) => 0,
            SettledChange::NotApplied => 1,
            SettledChange::Unclear => 2,
        }] += 1;
        assert!(!scene.path(unfinished(&change)).exists(), "step {step}");
        assert!([OLD, NEW].contains(&scene.content("tree/c").expect("a file").as_slice()));
        let again = perform(&scene.host, request.clone()).await;
        assert!(matches!(again, Outcome::Unpacked(done) if done.skipped.is_empty()));
        assert_eq!(everything(&scene), everything_after, "step {step}");
    }
    assert!(settled.iter().all(|count| *count > 0), "{settled:?}");
}
