mod archives;
mod edits;
mod entries;

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, PermissionsExt, symlink},
};

use shared_sandbox::{
    Edit, EntryKind, FileFailure, List, Nearest, Outcome, Read, ReadContent, Write, Written,
};
use shared_types::{Digest, RefusalCode, limits::MAX_INLINE_FILE_BYTES};

use super::{MAX_RESULT_BYTES, failure, fit};
use crate::testing::Scene;

fn read(path: &str, first_line: u64, max_lines: u64, max_bytes: u64) -> Read {
    Read {
        path: path.to_owned(),
        first_line,
        max_lines,
        max_bytes,
    }
}

fn whole(path: &str) -> Read {
    read(path, 1, u64::MAX, u64::MAX)
}

fn write(path: &str, content: &[u8]) -> Write {
    Write {
        path: path.to_owned(),
        content: content.to_vec(),
    }
}

fn edit(old: &str, new: &str, every: bool) -> Edit {
    Edit {
        path: "file".to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
        every,
        expected: None,
    }
}

impl Scene {
    async fn read(&self, read: Read) -> ReadContent {
        match self.outcome(read).await {
            Outcome::Read(content) => content,
            other => panic!("expected content, not {other:?}"),
        }
    }

    async fn write(&self, write: Write) -> Written {
        match self.outcome(write).await {
            Outcome::Written(written) => written,
            other => panic!("expected that it was written, not {other:?}"),
        }
    }

    pub(super) fn pipe(&self, below: &str) {
        let made = std::process::Command::new("mkfifo")
            .arg(self.path(below))
            .status();
        assert!(made.expect("mkfifo runs").success());
    }
}

#[tokio::test]
async fn lines_are_read_from_where_they_were_asked_for() {
    let scene = Scene::new();
    scene.put("file", "one\ntwo\nthree\nfour");
    let found = scene.read(read("file", 2, 2, 100)).await;
    assert_eq!(found.content, b"two\nthree\n");
    assert_eq!(
        (found.first_line, found.lines, found.file_bytes, found.more),
        (2, 2, 18, true)
    );
    let found = scene.read(read("file", 4, 2, 100)).await;
    assert_eq!(
        (found.content.as_slice(), found.lines, found.more),
        (&b"four"[..], 1, false)
    );
    let found = scene.read(read("file", 9, 2, 100)).await;
    assert_eq!(
        (found.content.len(), found.lines, found.more),
        (0, 0, false)
    );
    let found = scene.read(read("file", 0, 0, 100)).await;
    assert_eq!((found.first_line, found.lines, found.more), (1, 0, true));
    scene.put("empty", "");
    let found = scene.read(whole("empty")).await;
    assert_eq!((found.lines, found.more), (0, false));
}

#[tokio::test]
async fn a_read_ends_with_the_last_line_that_fits() {
    let scene = Scene::new();
    scene.put("file", "12345\n67890\nabc\n");
    for (max_bytes, content, lines) in [
        (12, "12345\n67890\n", 2),
        (11, "12345\n", 1),
        (6, "12345\n", 1),
    ] {
        let found = scene.read(read("file", 1, 10, max_bytes)).await;
        assert_eq!(found.content, content.as_bytes());
        assert_eq!((found.lines, found.more), (lines, true));
    }
    assert!(!scene.read(read("file", 1, 10, 16)).await.more);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_cut_between_characters() {
    let scene = Scene::new();
    scene.put("file", "äöü\nnext\n");
    let found = scene.read(read("file", 1, 10, 3)).await;
    assert_eq!(
        (found.content.as_slice(), found.lines, found.more),
        ("ä".as_bytes(), 1, true)
    );
}

#[tokio::test]
async fn no_more_than_the_bound_is_read_at_once() {
    let scene = Scene::new();
    scene.put("file", "0123456789abcde\n".repeat(200_000));
    let found = scene.read(whole("file")).await;
    assert_eq!(found.content.len(), MAX_INLINE_FILE_BYTES);
    assert!(found.more);
}

#[tokio::test]
async fn a_huge_file_is_read_at_its_end_without_being_loaded() {
    let scene = Scene::new();
    let file = File::create(scene.path("huge")).expect("a file");
    let line = b"x".repeat(1_000_000);
    for at in 0..300 {
        file.write_all_at(&line, at * 1_000_000).expect("text");
    }
    file.write_all_at(b"\nlast\n", 300_000_000).expect("text");
    let found = scene.read(read("huge", 2, 5, 100)).await;
    assert_eq!(
        (found.content.as_slice(), found.file_bytes),
        (&b"last\n"[..], 300_000_006)
    );
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_read_as_they_are_and_binaries_are_not() {
    let scene = Scene::new();
    scene.put("latin", b"caf\xe9\n");
    assert_eq!(scene.read(whole("latin")).await.content, b"caf\xe9\n");
    scene.put("binary", b"ELF\0");
    let binary = FileFailure::Binary {
        path: "binary".to_owned(),
    };
    assert_eq!(scene.failure(whole("binary")).await, binary);
    let edit = Edit {
        path: "binary".to_owned(),
        ..edit("ELF", "elf", false)
    };
    assert_eq!(scene.failure(edit).await, binary);
}

#[tokio::test]
async fn what_is_not_an_ordinary_file_is_refused_without_waiting() {
    let scene = Scene::new();
    scene.pipe("pipe");
    fs::create_dir(scene.path("folder")).expect("a folder");
    let _socket = std::os::unix::net::UnixListener::bind(scene.path("socket")).expect("a socket");
    for path in ["pipe", "folder", "socket"] {
        let expected = FileFailure::NotAFile {
            path: path.to_owned(),
        };
        assert_eq!(scene.failure(whole(path)).await, expected);
        assert_eq!(scene.failure(write(path, b"x")).await, expected);
        let edit = Edit {
            path: path.to_owned(),
            ..edit("a", "b", false)
        };
        assert_eq!(scene.failure(edit).await, expected);
    }
    scene.put("file", "x");
    let expected = FileFailure::NotADirectory {
        path: "file/x".to_owned(),
    };
    assert_eq!(scene.failure(whole("file/x")).await, expected);
    let missing = FileFailure::NotFound {
        path: "missing".to_owned(),
    };
    assert_eq!(scene.failure(whole("missing")).await, missing);
}

#[tokio::test]
async fn a_pipe_is_looked_at_without_being_opened() {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    let scene = Scene::new();
    scene.pipe("file");
    let opened = inotify::init(CreateFlags::NONBLOCK).expect("a watch");
    inotify::add_watch(&opened, scene.path("file"), WatchFlags::OPEN).expect("a watch");
    let path = "file".to_owned();
    let failure = scene.failure(whole("file")).await;
    assert_eq!(failure, FileFailure::NotAFile { path });
    let none = rustix::io::read(&opened, &mut [0; 64]);
    assert_eq!(none, Err(rustix::io::Errno::AGAIN));
}

#[tokio::test]
async fn a_write_makes_the_file_and_its_parents() {
    let scene = Scene::new();
    let written = scene.write(write("a/b/c/file", b"new")).await;
    assert_eq!(
        written,
        Written {
            bytes: 3,
            before: None,
            after: Digest::of(b"new").into()
        }
    );
    assert_eq!(scene.text("a/b/c/file"), "new");
    let written = scene.write(write("a/b/../b/c/file", b"newer")).await;
    assert_eq!(written.before, Some(Digest::of(b"new").into()));
    assert_eq!(scene.text("a/b/c/file"), "newer");
    let names: Vec<_> = fs::read_dir(scene.path("a/b/c"))
        .expect("a folder")
        .collect();
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_replaces_the_file_at_once() {
    let scene = Scene::new();
    scene.put("script", "old");
    fs::set_permissions(scene.path("script"), fs::Permissions::from_mode(0o750)).expect("mode");
    fs::hard_link(scene.path("script"), scene.outside().join("other-name")).expect("a link");
    let reader = File::open(scene.path("script")).expect("the old file");
    scene.write(write("script", b"new")).await;
    let mode = fs::metadata(scene.path("script"))
        .expect("metadata")
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert_eq!(scene.text("script"), "new");
    assert_eq!(std::io::read_to_string(reader).expect("text"), "old");
    let other = fs::read_to_string(scene.outside().join("other-name"));
    assert_eq!(
        other.expect("text"),
        "old",
        "a hard link to the outside is not written through"
    );
}

#[tokio::test]
async fn a_content_beyond_the_bound_is_refused() {
    let scene = Scene::new();
    let large = vec![b'x'; MAX_INLINE_FILE_BYTES + 1];
    let expected = FileFailure::TooLarge {
        path: "file".to_owned(),
        bytes: large.len() as u64,
        limit: MAX_INLINE_FILE_BYTES as u64,
    };
    assert_eq!(scene.failure(write("file", &large)).await, expected);
    assert!(!scene.path("file").exists());
    scene.put("file", &large);
    assert_eq!(scene.failure(edit("x", "y", true)).await, expected);
    scene.put("file", &large[..MAX_INLINE_FILE_BYTES]);
    let grown = scene.failure(edit("x", "yy", true)).await;
    assert!(matches!(grown, FileFailure::TooLarge { .. }), "{grown:?}");
    assert_eq!(scene.text("file").len(), MAX_INLINE_FILE_BYTES);
}

#[tokio::test]
async fn a_full_disk_is_told_as_such() {
    for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
        let failed = Outcome::from(failure("x", errno));
        assert_eq!(failed, Outcome::Failed(FileFailure::DiskFull));
    }
}

#[tokio::test]
async fn whatever_is_asked_of_a_workspace_that_was_removed_says_so() {
    let scene = Scene::new();
    std::fs::remove_dir(scene.path("")).expect("it is empty");
    let list = List {
        path: String::new(),
        max_entries: 10,
        tree: false,
        after: String::new(),
    };
    for failure in [
        scene.failure(whole("file")).await,
        scene.failure(write("file", b"content")).await,
        scene.failure(edit("x", "y", false)).await,
        scene.failure(list).await,
    ] {
        assert_eq!(failure, FileFailure::WorkspaceGone);
    }
}

#[tokio::test]
async fn an_edit_needs_exactly_one_place() {
    let scene = Scene::new();
    scene.put("file", "one\ntwo\nthree two\n");
    let path = || "file".to_owned();
    for every in [false, true] {
        let missing = FileFailure::NoMatch {
            path: path(),
            nearest: Some(Nearest::Nowhere),
        };
        assert_eq!(scene.failure(edit("four", "x", every)).await, missing);
    }
    let many = FileFailure::ManyMatches {
        path: path(),
        count: 2,
        lines: vec![2, 3],
    };
    assert_eq!(scene.failure(edit("two", "x", false)).await, many);
    assert_eq!(scene.text("file"), "one\ntwo\nthree two\n");
    match scene.outcome(edit("three two", "3", false)).await {
        Outcome::Edited(edited) => {
            assert_eq!((edited.line, edited.replaced), (3, 1));
            assert_eq!(edited.before, Digest::of(b"one\ntwo\nthree two\n"));
            assert_eq!(edited.after, Digest::of(b"one\ntwo\n3\n"));
        }
        other => panic!("expected an edit, not {other:?}"),
    }
    assert_eq!(scene.text("file"), "one\ntwo\n3\n");
}

#[tokio::test]
async fn an_edit_may_replace_every_place() {
    let scene = Scene::new();
    scene.put("file", b"a \xff a\na");
    match scene.outcome(edit("a", "bb", true)).await {
        Outcome::Edited(edited) => assert_eq!((edited.line, edited.replaced), (1, 3)),
        other => panic!("expected an edit, not {other:?}"),
    }
    assert_eq!(
        fs::read(scene.path("file")).expect("bytes"),
        b"bb \xff bb\nbb"
    );
}

#[tokio::test]
async fn places_that_overlap_are_two() {
    let scene = Scene::new();
    scene.put("file", "aaa");
    let many = FileFailure::ManyMatches {
        path: "file".to_owned(),
        count: 2,
        lines: vec![1, 1],
    };
    assert_eq!(scene.failure(edit("aa", "b", false)).await, many);
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_refused() {
    let scene = Scene::new();
    scene.put("file", "text");
    for edit in [edit("", "x", false), edit("text", "text", false)] {
        match scene.outcome(edit).await {
            Outcome::Refused(refusal) => assert_eq!(refusal.code, RefusalCode::Invalid),
            other => panic!("expected a refusal, not {other:?}"),
        }
    }
    let missing = Edit {
        path: "missing".to_owned(),
        ..edit("a", "b", false)
    };
    assert!(matches!(
        scene.failure(missing).await,
        FileFailure::NotFound { .. }
    ));
}

#[tokio::test]
async fn a_list_is_sorted_and_says_what_each_entry_is() {
    let scene = Scene::new();
    scene.put("b", "12345");
    scene.put("a/x", "");
    scene.put(".hidden", "");
    scene.pipe("d");
    symlink("b", scene.path("c")).expect("a link");
    let list = |path: &str, max_entries| List {
        path: path.to_owned(),
        max_entries,
        tree: false,
        after: String::new(),
    };
    let Outcome::Listed(listed) = scene.outcome(list("", 10)).await else {
        panic!("expected a list");
    };
    let entries: Vec<_> = listed
        .entries
        .iter()
        .map(|e| (e.name.as_str(), e.kind, e.bytes))
        .collect();
    assert_eq!(
        entries,
        [
            (".hidden", EntryKind::File, 0),
            ("a", EntryKind::Directory, 0),
            ("b", EntryKind::File, 5),
            ("c", EntryKind::Link, 0),
            ("d", EntryKind::Other, 0),
        ]
    );
    assert!(!listed.more);
    let Outcome::Listed(listed) = scene.outcome(list("", 2)).await else {
        panic!("expected a list");
    };
    assert_eq!(
        (
            listed.entries.len(),
            listed.entries[1].name.as_str(),
            listed.more
        ),
        (2, "a", true)
    );
    assert!(matches!(
        scene.failure(list("b", 2)).await,
        FileFailure::NotADirectory { .. }
    ));
    assert!(matches!(
        scene.failure(list("e", 2)).await,
        FileFailure::NotFound { .. }
    ));
}

#[test]
fn a_result_is_cut_where_it_would_not_fit_a_frame() {
    let mut names = vec!["x".repeat(MAX_RESULT_BYTES / 2); 3];
    assert!(fit(&mut names, String::len));
    assert_eq!(names.len(), 2);
    assert!(!fit(&mut names, String::len));
}

#[tokio::test]
async fn an_edit_fits_lines_of_either_end_and_keeps_them_and_the_mark_at_the_beginning() {
    let scene = Scene::new();
    for (content, old, new, edited) in [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\r\nb", "b", "x\ny", "a\r\nx\r\ny"),
        ("a\nb\r\nc", "\nb\nc", "!", "a!"),
        ("a\nb\r\n", "a", "x\ny", "x\ny\nb\r\n"),
        ("a\r\nb", "a\r\n", "a\n", "a\nb"),
        ("\u{feff}a\r\n", "\u{feff}a\n", "b\n", "\u{feff}b\r\n"),
        ("\u{feff}a\n", "a", "b", "\u{feff}b\n"),
    ] {
        scene.put("file", content);
        let outcome = scene.outcome(edit(old, new, false)).await;
        assert!(
            matches!(outcome, Outcome::Edited(_)),
            "{content:?} {old:?}: {outcome:?}"
        );
        assert_eq!(scene.text("file"), edited, "{content:?} {old:?}");
    }
    scene.put("file", "a\nb\na\r\nb\r\n");
    let failure = scene.failure(edit("a\nb", "x\ny", false)).await;
    assert!(
        matches!(failure, FileFailure::ManyMatches { count: 2, .. }),
        "{failure:?}"
    );
    scene.outcome(edit("a\nb", "x\ny", true)).await;
    assert_eq!(scene.text("file"), "x\ny\nx\r\ny\r\n");
}

#[tokio::test]
async fn a_changed_file_keeps_the_attributes_that_people_gave_it() {
    let scene = Scene::new();
    scene.put("file", "short");
    let none = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(scene.path("file"), "user.note", b"mine", none).expect("it is ours");
    scene.outcome(edit("short", "new", false)).await;
    let mut value = [0; 8];
    let length = rustix::fs::getxattr(scene.path("file"), "user.note", &mut value[..]);
    assert_eq!(&value[..length.expect("it is kept")], b"mine");
    let names = fs::read_dir(scene.host.root()).expect("it is there");
    assert_eq!(names.count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn as_root_a_file_keeps_its_owner() {
    let scene = Scene::new();
    scene.put("file", "old");
    let owner = Some(crate::testing::STRANGER);
    std::os::unix::fs::chown(scene.path("file"), owner, owner).expect("root");
    scene.outcome(edit("old", "new", false)).await;
    let metadata = fs::metadata(scene.path("file")).expect("it is there");
    let kept = (
        std::os::unix::fs::MetadataExt::uid(&metadata),
        scene.text("file"),
    );
    assert_eq!(kept, (crate::testing::STRANGER, "new".to_owned()));
}
