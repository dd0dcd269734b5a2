use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use shared_types::SystemClock;
use tempfile::TempDir;

use super::*;
use crate::{
    performing::Stopping,
    testing::{LONG, as_stranger},
};

/// A folder with these files.
fn folder(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        fs::write(path, "").expect("a file");
    }
    folder
}

fn listed(folder: &Path, after: &str, max_entries: u32) -> Listed {
    let asked = List {
        path: String::new(),
        after: after.to_owned(),
        max_entries,
        tree: true,
    };
    let workspace = Workspace::open(folder).expect("a workspace");
    let (_stop, stopping) = Stopping::pair();
    let allowance = Allowance::new(Arc::new(SystemClock::new()), LONG, stopping);
    list(&asked, &workspace, &allowance).expect("a list")
}

fn names(listed: &Listed) -> Vec<&str> {
    listed.entries.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn a_tree_is_the_same_in_pages_of_any_size() {
    let folder = folder(&["a/1", "a/2", "a/3/x", "a/3/y", "b", "c/1", "d"]);
    let whole = listed(folder.path(), "", 100);
    assert!(!whole.more);
    assert_eq!(whole.entries.len(), 10);
    for size in 1..=10 {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = listed(folder.path(), &after, size);
            all.extend(names(&page).into_iter().map(str::to_owned));
            after = all.last().expect("an entry").clone();
            if !page.more {
                break;
            }
        }
        assert_eq!(all, names(&whole), "pages of {size}");
    }
}

#[test]
fn of_a_large_directory_no_more_names_are_kept_than_are_wanted() {
    let folder = folder(&["a", "b", "c", "d", "e"]);
    let handle = fs::File::open(folder.path()).expect("a folder");
    let asked = List {
        path: String::new(),
        after: String::new(),
        max_entries: 1,
        tree: true,
    };
    let (_stop, stopping) = Stopping::pair();
    let allowance = Allowance::new(Arc::new(SystemClock::new()), LONG, stopping);
    let (handle, below, after) = (OwnedFd::from(handle), PathBuf::new(), Path::new("b"));
    let level = ListedDirectory::open(handle, below, after, &asked, &allowance).expect("its names");
    let kept: Vec<_> = level.names.map(|name| name.shown).collect();
    assert_eq!(
        (kept, level.more),
        (vec!["b".to_owned(), "c".to_owned()], true)
    );
}

#[test]
fn as_root_a_directory_that_cannot_be_entered_is_marked_and_the_rest_is_listed() {
    let folder = folder(&["a/1", "b/1"]);
    let mode = |path, mode| {
        let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set.expect("its mode");
    };
    mode(folder.path().to_owned(), 0o755);
    mode(folder.path().join("a"), 0o744);
    let listed = as_stranger(|| listed(folder.path(), "", 100));
    assert_eq!(names(&listed), ["a", "b", "b/1"]);
    let marked: Vec<_> = listed.entries.iter().map(|one| one.is_unreadable).collect();
    assert_eq!(marked, [true, false, false]);
}
