use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
};

use rustix::fs::{CWD, setxattr};
use tempfile::TempDir;

use super::*;
use crate::testing::{ANOTHER_GROUP, STRANGER, as_stranger};

/// Entries of an access list: tags, permissions, and the id of a user or group.
fn list(entries: &[(u8, u8, u32)]) -> Vec<u8> {
    let mut list = vec![2, 0, 0, 0];
    for (tag, permissions, id) in entries {
        list.extend([*tag, 0, *permissions, 0]);
        list.extend(id.to_le_bytes());
    }
    list
}

/// The owner may read and write, one user may read, the group may do so much, and others nothing.
fn shared(group: u8) -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    list(&[
        (0x01, 6, NO_ID),
        (0x02, 4, STRANGER),
        (GROUP, group, NO_ID),
        (0x10, 6, NO_ID),
        (OTHERS, 0, NO_ID),
    ])
}

/// A folder with a file `old` of this mode.
fn folder(mode: u32) -> (TempDir, PathTarget) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("old"), "").expect("a file");
    fs::set_permissions(folder.path().join("old"), fs::Permissions::from_mode(mode)).expect("mode");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let directory = rustix::fs::openat(CWD, folder.path(), flags, Mode::empty());
    let target = PathTarget {
        directory: directory.expect("it opens"),
        name: "old".into(),
    };
    (folder, target)
}

/// Makes the replacement, and gives it the access of `old`.
fn replaced(folder: &Path, target: &PathTarget) -> File {
    let before = rustix::fs::stat(folder.join("old")).expect("it is there");
    let new = File::create(folder.join("new")).expect("a file");
    keep(&new, target, &before).expect("it is kept");
    new
}

fn list_of(file: &File) -> Result<Vec<u8>, Errno> {
    let mut list = Vec::with_capacity(MAX_LIST_BYTES);
    rustix::fs::fgetxattr(file, ACCESS_LIST, spare_capacity(&mut list)).map(|_| list)
}

fn mode_of(file: &File) -> u32 {
    file.metadata().expect("metadata").mode() & 0o777
}

#[test]
fn a_replacement_keeps_the_access_list_and_inherits_none() {
    let (folder, target) = folder(0o640);
    let folder = folder.path();
    let inherited = shared(6);
    let set = setxattr(
        folder,
        "system.posix_acl_default",
        &inherited,
        XattrFlags::empty(),
    );
    set.expect("a file system with access lists");
    let new = replaced(folder, &target);
    assert_eq!((list_of(&new), mode_of(&new)), (Err(Errno::NODATA), 0o640));

    let own = shared(4);
    setxattr(folder.join("old"), ACCESS_LIST, &own, XattrFlags::empty()).expect("a list");
    let new = replaced(folder, &target);
    assert_eq!((list_of(&new), mode_of(&new)), (Ok(own), 0o660));
}

#[test]
fn as_root_a_group_that_cannot_be_kept_takes_no_access_with_it() {
    for (mode, kept) in [(0o660, 0o600), (0o664, 0o644), (0o755, 0o755)] {
        let (folder, target) = folder(mode);
        let folder = folder.path();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("mode");
        let new = as_stranger(|| replaced(folder, &target));
        assert_eq!(mode_of(&new), kept, "{mode:o}");

        fs::remove_file(folder.join("new")).expect("it is there");
        setxattr(
            folder.join("old"),
            ACCESS_LIST,
            &shared(4),
            XattrFlags::empty(),
        )
        .expect("a list");
        let new = as_stranger(|| replaced(folder, &target));
        assert_eq!((list_of(&new), mode_of(&new)), (Ok(shared(0)), 0o660));
    }
}

#[test]
fn as_root_a_group_is_kept_where_the_owner_cannot_be() {
    let (folder, target) = folder(0o660);
    let folder = folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("mode");
    chown(folder.join("old"), Some(0), Some(ANOTHER_GROUP)).expect("root");
    let new = as_stranger(|| replaced(folder, &target));
    let metadata = new.metadata().expect("metadata");
    assert_eq!((metadata.uid(), metadata.gid()), (STRANGER, ANOTHER_GROUP));
    assert_eq!(mode_of(&new), 0o660);
}
