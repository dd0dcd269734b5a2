use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
};

use shared_sandbox::{FileFailure, List, Outcome, Read, Write};

use crate::testing::{Scene, argv};

fn read(path: &str) -> Read {
    Read {
        path: path.to_owned(),
        first_line: 1,
        max_lines: 10,
        max_bytes: 1000,
    }
}

fn write(path: &str) -> Write {
    Write {
        path: path.to_owned(),
        content: b"written".to_vec(),
    }
}

/// A workspace with secrets around it and links to them.
fn surrounded() -> Scene {
    let scene = Scene::new();
    let outside = scene.outside();
    fs::create_dir(outside.join("ws-evil")).expect("a sibling");
    fs::write(outside.join("ws-evil/secret"), "secret").expect("a secret");
    fs::write(outside.join("secret"), "secret").expect("a secret");
    scene.put("a/inner", "inner");
    symlink(outside, scene.path("out")).expect("a link");
    symlink("../ws-evil", scene.path("relative-out")).expect("a link");
    symlink("../secret", scene.path("secret-link")).expect("a link");
    symlink("/proc/self/root", scene.path("magic")).expect("a link");
    symlink("../new-outside", scene.path("dangling-out")).expect("a link");
    scene
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let scene = surrounded();
    let sibling = format!("{}-evil/secret", scene.host.root().display());
    let climbing = format!("{}/../secret", scene.host.root().display());
    for path in [
        "../secret",
        "a/../../secret",
        "a/../../ws/../secret",
        &sibling,
        &climbing,
        "/etc/passwd",
        "out/secret",
        "relative-out/secret",
        "secret-link",
        "magic/etc/passwd",
    ] {
        let outside = FileFailure::OutsideWorkspace {
            path: path.to_owned(),
        };
        assert_eq!(scene.failure(read(path)).await, outside, "reading {path}");
        assert_eq!(scene.failure(write(path)).await, outside, "writing {path}");
    }
    for path in [
        "out/new",
        "relative-out/deep/new",
        "dangling-out",
        "../x/new",
        "out",
    ] {
        assert!(
            matches!(
                scene.failure(write(path)).await,
                FileFailure::OutsideWorkspace { .. }
            ),
            "writing {path}"
        );
    }
    for path in ["..", "out", "relative-out", "a/../.."] {
        let list = List {
            path: path.to_owned(),
            max_entries: 10,
            tree: false,
            after: String::new(),
        };
        assert!(
            matches!(
                scene.failure(list).await,
                FileFailure::OutsideWorkspace { .. }
            ),
            "listing {path}"
        );
        let mut exec = argv(&["pwd"]);
        exec.directory = path.to_owned();
        assert!(scene.host.plan(&exec).is_err(), "running in {path}");
    }
    let mut names: Vec<_> = fs::read_dir(scene.outside())
        .expect("the outside")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["secret", "ws", "ws-evil"]);
}

#[tokio::test]
async fn a_link_that_stays_inside_works() {
    let scene = surrounded();
    symlink("a", scene.path("alias")).expect("a link");
    fs::create_dir(scene.path("b")).expect("a folder");
    symlink("../a/inner", scene.path("b/inner-link")).expect("a link");
    for path in [
        "alias/inner",
        "b/inner-link",
        "b/../alias/../a/inner",
        "./a//inner",
    ] {
        assert!(
            matches!(scene.outcome(read(path)).await, Outcome::Read(found) if found.content == b"inner"),
            "{path}"
        );
    }
    scene.outcome(write("b/inner-link")).await;
    assert_eq!(scene.text("a/inner"), "written");
    assert!(
        scene.path("b/inner-link").is_symlink(),
        "a link is written through"
    );
    symlink("later", scene.path("dangling")).expect("a link");
    scene.outcome(write("dangling")).await;
    assert_eq!(scene.text("later"), "written");
}

#[tokio::test]
async fn a_circle_of_links_ends() {
    let scene = Scene::new();
    symlink("two", scene.path("one")).expect("a link");
    symlink("one", scene.path("two")).expect("a link");
    for failure in [
        scene.failure(read("one")).await,
        scene.failure(write("one")).await,
    ] {
        assert!(
            failure.to_string().contains("too many symbolic links"),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn the_root_as_people_know_it_may_begin_a_path() {
    let scene = Scene::new();
    scene.put("a", "text");
    let root = scene.host.root().display();
    for path in [format!("{root}/a"), format!("{root}//./a")] {
        assert!(
            matches!(scene.outcome(read(&path)).await, Outcome::Read(_)),
            "{path}"
        );
    }
    let list = |path: String| List {
        path,
        max_entries: 9,
        tree: false,
        after: String::new(),
    };
    for path in [
        format!("{root}"),
        format!("{root}/"),
        String::new(),
        ".".to_owned(),
    ] {
        match scene.outcome(list(path)).await {
            Outcome::Listed(listed) => assert_eq!(listed.entries.len(), 1),
            other => panic!("expected a list, not {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_path_that_no_file_can_have_is_a_failure() {
    let scene = Scene::new();
    for path in ["a\0b".to_owned(), "a/".repeat(3000), "x".repeat(300)] {
        assert!(matches!(
            scene.failure(read(&path)).await,
            FileFailure::Io { .. }
        ));
        assert!(matches!(
            scene.failure(write(&path)).await,
            FileFailure::Io { .. }
        ));
    }
    for path in ["", ".", "a/", "a/.", "a/.."] {
        assert!(
            matches!(
                scene.failure(write(path)).await,
                FileFailure::NotAFile { .. }
            ),
            "{path}"
        );
    }
}

/// Tells the other thread that it is over, also where an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody swaps a folder and a link to the outside while files are written and read through it.
#[tokio::test]
async fn a_rename_in_the_middle_lets_nothing_out() {
    const ROUNDS: usize = 2000;
    let scene = Scene::new();
    let outside = scene.outside().join("outside");
    fs::create_dir(&outside).expect("the outside");
    fs::write(outside.join("file"), "secret").expect("a secret");
    scene.put("door/file", "inside");
    symlink(&outside, scene.path("link")).expect("a link");
    let (door, link) = (scene.path("door"), scene.path("link"));
    let over = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    let swap = || {
        while !over.load(Ordering::Relaxed) {
            let here = rustix::fs::CWD;
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(here, &door, here, &link, exchange).expect("an exchange");
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(swap);
        let _over = Over(&over);
        let workspace = crate::workspace::Workspace::open(scene.host.root()).expect("it opens");
        // Until both sides of the door have been met, however the threads are scheduled.
        for round in 0.. {
            if round >= ROUNDS && inside > 0 && refused > 0 {
                break;
            }
            match workspace.open_file("door/file") {
                Ok((file, _)) => {
                    let text = std::io::read_to_string(file).expect("text");
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
            let path = format!("door/deep{}/new{round}", round % 7);
            if let Ok(target) = workspace.locate(&path, super::Parents::Make) {
                let flags = super::OFlags::CREATE | super::OFlags::WRONLY;
                let mode = super::Mode::from(0o600);
                // It may be refused, and only never be outside.
                let _ = rustix::fs::openat(&target.directory, target.name, flags, mode);
            }
        }
    });
    assert_eq!(fs::read_dir(&outside).expect("the outside").count(), 1);
}
