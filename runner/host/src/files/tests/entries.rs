//! Entries of directories: told, made, moved and removed, links among them never followed.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use shared_sandbox::{
    Edit, EntryKind, FileFailure, Found, MadeDirectory, MakeDirectory, Move, Moved, Outcome,
    Remove, Removed, Request, Stat,
};
use shared_types::RefusalCode;

use crate::testing::{Ask, Scene};

fn stat(path: &str) -> Stat {
    let path = path.to_owned();
    Stat {
        path,
        follow: false,
    }
}

fn make(path: &str) -> MakeDirectory {
    let path = path.to_owned();
    MakeDirectory { path }
}

fn rename(from: &str, to: &str, replace: bool) -> Move {
    Move {
        from: from.to_owned(),
        to: to.to_owned(),
        replace,
    }
}

fn remove(path: &str, tree: bool) -> Remove {
    let path = path.to_owned();
    Remove { path, tree }
}

impl Scene {
    async fn found(&self, path: &str) -> Found {
        match self.outcome(stat(path)).await {
            Outcome::Found(found) => found,
            other => panic!("expected what is there, not {other:?}"),
        }
    }

    async fn refusal(&self, request: impl Ask) -> RefusalCode {
        match self.outcome(request).await {
            Outcome::Refused(refusal) => refusal.code,
            other => panic!("expected a refusal, not {other:?}"),
        }
    }
}

fn moved(kind: EntryKind, replaced: bool) -> Outcome {
    Outcome::Moved(Moved { kind, replaced })
}

fn removed(kind: EntryKind) -> Outcome {
    Outcome::Removed(Removed { kind })
}

#[tokio::test]
async fn what_is_at_a_path_is_told_and_a_link_is_told_itself() {
    let scene = Scene::new();
    scene.put("d/file", "text");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(scene.path("d/file"), mode).expect("a mode");
    symlink("../outside", scene.path("link")).expect("a link");
    symlink("d", scene.path("alias")).expect("a link");
    scene.pipe("pipe");
    let file = scene.found("alias/file").await;
    let meta = fs::metadata(scene.path("d/file")).expect("a file");
    let modified = meta.mtime() * 1_000_000 + meta.mtime_nsec() / 1000;
    let expected = Found {
        kind: EntryKind::File,
        bytes: 4,
        mode: 0o640,
        modified_us: modified,
        leads_to: None,
    };
    assert_eq!(file, expected);
    let link = scene.found("link").await;
    assert_eq!(link.kind, EntryKind::Link);
    assert_eq!(link.leads_to.as_deref(), Some("../outside"));
    for directory in ["", ".", "d", "d/", "d/.", "d/../d"] {
        let found = scene.found(directory).await;
        assert_eq!(
            (found.kind, found.bytes),
            (EntryKind::Directory, 0),
            "{directory}"
        );
    }
    assert_eq!(scene.found("pipe").await.kind, EntryKind::Other);
    let path = || "d/no".to_owned();
    let missing = FileFailure::NotFound { path: path() };
    assert_eq!(scene.failure(stat("d/no")).await, missing);
    let failure = scene.failure(stat("d/file/")).await;
    assert!(
        matches!(failure, FileFailure::NotADirectory { .. }),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_directory_is_made_with_its_parents_and_may_be_there_already() {
    let scene = Scene::new();
    let made = |made| Outcome::MadeDirectory(MadeDirectory { made });
    assert_eq!(scene.outcome(make("a/b/c")).await, made(true));
    symlink("a", scene.path("alias")).expect("a link");
    for path in ["a/b/c", "a/b/c/", "alias/b", "alias", "", "."] {
        assert_eq!(scene.outcome(make(path)).await, made(false), "{path}");
    }
    assert_eq!(scene.outcome(make("alias/d/")).await, made(true));
    assert!(scene.path("a/d").is_dir());
    scene.put("file", "");
    for path in ["file", "file/x"] {
        let failure = scene.failure(make(path)).await;
        assert!(
            matches!(failure, FileFailure::NotADirectory { .. }),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_file_a_directory_and_a_link_itself_are_moved() {
    let scene = Scene::new();
    scene.put("file", "text");
    scene.put("d/inner", "inner");
    symlink("file", scene.path("link")).expect("a link");
    let (file, folder, link) = (EntryKind::File, EntryKind::Directory, EntryKind::Link);
    let outcome = scene.outcome(rename("link", "d/link", false)).await;
    assert_eq!(outcome, moved(link, false));
    let leads_to = fs::read_link(scene.path("d/link")).expect("a link");
    assert_eq!(leads_to.to_str(), Some("file"));
    let outcome = scene.outcome(rename("file", "d/new", false)).await;
    assert_eq!(outcome, moved(file, false));
    let outcome = scene.outcome(rename("d/", "e", false)).await;
    assert_eq!(outcome, moved(folder, false));
    assert_eq!(
        (scene.text("e/new"), scene.text("e/inner")),
        ("text".into(), "inner".into())
    );
    assert!(!scene.path("d").exists() && !scene.path("file").exists());
}

#[tokio::test]
async fn a_move_replaces_nothing_unless_that_is_asked_for() {
    let scene = Scene::new();
    scene.put("a", "a");
    scene.put("b", "b");
    scene.put("target", "target");
    symlink("target", scene.path("link")).expect("a link");
    symlink("nowhere", scene.path("dangling")).expect("a link");
    for to in ["b", "link", "dangling"] {
        let path = to.to_owned();
        let failure = scene.failure(rename("a", to, false)).await;
        assert_eq!(failure, FileFailure::Exists { path });
    }
    let replaced = moved(EntryKind::File, true);
    assert_eq!(scene.outcome(rename("a", "b", true)).await, replaced);
    assert_eq!(scene.text("b"), "a");
    // The link is replaced, and what it leads to stays.
    assert_eq!(scene.outcome(rename("b", "link", true)).await, replaced);
    assert_eq!(
        (scene.text("link"), scene.text("target")),
        ("a".into(), "target".into())
    );
    assert!(
        fs::symlink_metadata(scene.path("link"))
            .expect("a file")
            .is_file()
    );
    fs::hard_link(scene.path("link"), scene.path("same")).expect("another name");
    assert_eq!(scene.outcome(rename("link", "same", true)).await, replaced);
    assert!(!scene.path("link").exists());
    assert_eq!(scene.text("same"), "a");
}

#[tokio::test]
async fn a_directory_takes_the_place_of_an_empty_one_only() {
    let scene = Scene::new();
    scene.put("d/inner", "inner");
    scene.put("full/one", "");
    scene.put("file", "");
    fs::create_dir(scene.path("empty")).expect("a folder");
    let path = || "full".to_owned();
    let full = scene.failure(rename("d", "full", true)).await;
    assert_eq!(full, FileFailure::NotEmpty { path: path() });
    let over_a_file = scene.failure(rename("d", "file", true)).await;
    assert!(
        matches!(over_a_file, FileFailure::NotADirectory { .. }),
        "{over_a_file:?}"
    );
    let file_over = scene.failure(rename("file", "d", true)).await;
    assert!(
        matches!(file_over, FileFailure::NotAFile { .. }),
        "{file_over:?}"
    );
    let outcome = scene.outcome(rename("d", "empty", true)).await;
    assert_eq!(outcome, moved(EntryKind::Directory, true));
    assert_eq!(scene.text("empty/inner"), "inner");
    for (from, to) in [
        ("empty", "empty"),
        ("empty", "empty/in"),
        ("file", "./file"),
    ] {
        let code = scene.refusal(rename(from, to, true)).await;
        assert_eq!(code, RefusalCode::Invalid, "{from} to {to}");
    }
    let missing = scene.failure(rename("file", "no/file", false)).await;
    assert!(
        matches!(missing, FileFailure::NotFound { .. }),
        "{missing:?}"
    );
    assert_eq!(scene.text("empty/inner"), "inner");
}

#[tokio::test]
async fn a_file_a_link_itself_and_an_empty_directory_are_removed() {
    let scene = Scene::new();
    scene.put("file", "text");
    scene.put("d/inner", "inner");
    fs::create_dir(scene.path("empty")).expect("a folder");
    symlink("d", scene.path("link")).expect("a link");
    for tree in [false, true] {
        // With the slash it is what the link leads to, which is never removed by way of the link.
        let followed = scene.failure(remove("link/", tree)).await;
        assert!(
            matches!(followed, FileFailure::NotADirectory { .. }),
            "{followed:?}"
        );
    }
    assert_eq!(
        scene.outcome(remove("link", true)).await,
        removed(EntryKind::Link)
    );
    let path = || "d".to_owned();
    let full = scene.failure(remove("d", false)).await;
    assert_eq!(full, FileFailure::NotEmpty { path: path() });
    assert_eq!(scene.text("d/inner"), "inner");
    assert_eq!(
        scene.outcome(remove("file", false)).await,
        removed(EntryKind::File)
    );
    let folder = removed(EntryKind::Directory);
    assert_eq!(scene.outcome(remove("empty", false)).await, folder);
    assert_eq!(scene.outcome(remove("d", true)).await, folder);
    let left = fs::read_dir(scene.host.root())
        .expect("a workspace")
        .count();
    assert_eq!(left, 0);
    let missing = scene.failure(remove("d", true)).await;
    assert_eq!(missing, FileFailure::NotFound { path: path() });
}

#[tokio::test]
async fn a_whole_tree_is_removed_and_what_its_links_lead_to_stays() {
    let scene = Scene::new();
    scene.put("kept/file", "kept");
    fs::write(scene.outside().join("secret"), "secret").expect("a secret");
    for number in 0..3000 {
        scene.put(&format!("tree/{}/{number}", number % 7), "");
    }
    symlink(scene.outside(), scene.path("tree/out")).expect("a link");
    symlink("../kept", scene.path("tree/1/kept")).expect("a link");
    scene.pipe("tree/pipe");
    let outcome = scene.outcome(remove("tree", true)).await;
    assert_eq!(outcome, removed(EntryKind::Directory));
    assert_eq!(scene.text("kept/file"), "kept");
    assert!(scene.outside().join("secret").exists());
    let left = fs::read_dir(scene.host.root())
        .expect("a workspace")
        .count();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn of_a_tree_that_cannot_be_removed_wholly_the_rest_is_where_it_was() {
    let scene = Scene::new();
    let deep = (0..150).map(|_| "d").collect::<Vec<_>>().join("/");
    scene.put(&format!("deep/{deep}/file"), "");
    fs::create_dir(scene.path("top")).expect("a folder");
    fs::rename(scene.path("deep"), scene.path("top/a")).expect("a move");
    scene.put(&format!("deep/{deep}/file"), "");
    let bottom = scene.path("deep").join(&deep);
    fs::rename(scene.path("top"), bottom.join("top")).expect("a move");
    let whole = scene.failure(remove("deep", true)).await;
    let partly = matches!(&whole, FileFailure::PartlyRemoved { path, .. } if path == "deep");
    assert!(
        partly || matches!(whole, FileFailure::Io { .. }),
        "{whole:?}"
    );
    assert!(bottom.join("top").exists());
    let names: Vec<_> = fs::read_dir(scene.host.root())
        .expect("a workspace")
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn what_was_saved_while_an_edit_was_under_way_is_not_overwritten() {
    let scene = Scene::new();
    scene.put("notes", "one");
    let edit = Request::Edit(Edit {
        path: "notes".to_owned(),
        old: "one".to_owned(),
        new: "two".to_owned(),
        every: false,
        expected: None,
    });
    let mut performing = scene.host.perform(edit, crate::testing::LONG);
    let outcome = loop {
        match performing.events.recv().await.expect("an end") {
            crate::HostEvent::Changing(announced) => {
                scene.put("notes", "one, and more that somebody has saved");
                announced.go_ahead();
            }
            crate::HostEvent::Ended(outcome, _) => break outcome,
            other => panic!("{other:?}"),
        }
    };
    let path = "notes".to_owned();
    let changed = FileFailure::Changed {
        path,
        since_read: false,
    };
    assert_eq!(outcome, Outcome::Failed(changed));
    assert_eq!(scene.text("notes"), "one, and more that somebody has saved");
}

#[tokio::test]
async fn the_workspace_itself_is_neither_moved_nor_removed() {
    let scene = Scene::new();
    scene.put("a/file", "text");
    let root = scene.host.root().display().to_string();
    for path in ["", ".", "./", "a/..", "a/../.", root.as_str(), ".."] {
        for request in [
            Request::Remove(remove(path, true)),
            Request::Move(rename(path, "b", true)),
            Request::Move(rename("a", path, true)),
        ] {
            let title = request.title();
            let mut performing = scene.host.perform(request, crate::testing::LONG);
            // It is not announced either.
            let outcome = match performing.events.recv().await.expect("an end") {
                crate::HostEvent::Ended(outcome, _) => outcome,
                other => panic!("{title}: {other:?}"),
            };
            let refused = matches!(&outcome, Outcome::Refused(refusal) if refusal.code == RefusalCode::Invalid);
            assert!(refused, "{title}: {outcome:?}");
        }
    }
    assert_eq!(scene.text("a/file"), "text");
}

#[tokio::test]
async fn nothing_outside_the_workspace_is_told_made_moved_or_removed() {
    let scene = Scene::new();
    scene.put("a/inner", "inner");
    let outside = scene.outside();
    fs::write(outside.join("secret"), "secret").expect("a secret");
    fs::create_dir(outside.join("ws-evil")).expect("a sibling");
    fs::write(outside.join("ws-evil/secret"), "secret").expect("a secret");
    symlink(outside, scene.path("out")).expect("a link");
    symlink("../ws-evil", scene.path("relative-out")).expect("a link");
    symlink("/proc/self/root", scene.path("magic")).expect("a link");
    let sibling = format!("{}-evil/secret", scene.host.root().display());
    for path in [
        "../secret",
        "a/../../secret",
        "a/../../ws/../secret",
        sibling.as_str(),
        "/etc/passwd",
        "out/secret",
        "relative-out/secret",
        "magic/etc/passwd",
    ] {
        let outside = FileFailure::OutsideWorkspace {
            path: path.to_owned(),
        };
        assert_eq!(scene.failure(stat(path)).await, outside);
        assert_eq!(scene.failure(remove(path, true)).await, outside);
        assert_eq!(scene.failure(rename(path, "stolen", true)).await, outside);
        assert_eq!(scene.failure(rename("a/inner", path, true)).await, outside);
        let folder = format!("{path}.d/new");
        let failure = scene.failure(make(&folder)).await;
        assert!(
            matches!(failure, FileFailure::OutsideWorkspace { .. }),
            "{folder}: {failure:?}"
        );
    }
    let mut names: Vec<_> = fs::read_dir(outside)
        .expect("the outside")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["secret", "ws", "ws-evil"]);
    assert_eq!(scene.text("a/inner"), "inner");
}
