//! Gives a file, directory or link another path.

use rustix::{
    fs::{AtFlags, FileType, RenameFlags},
    io::Errno,
};
use shared_sandbox::{FileFailure, Move, Moved, Outcome};
use shared_types::{Refusal, RefusalCode};

use super::{Allowance, Announcer, Failure, failure, invalid, must_be_directory, named, step};
use crate::{
    Change, Effect, There,
    workspace::{PathTarget, Workspace, entry, sync_directory},
};

/// Moves the entry itself, at once.
pub(super) fn rename(
    asked: &Move,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Moved, Failure> {
    let (from, to) = (named(&asked.from, workspace)?, named(&asked.to, workspace)?);
    let look = |target, path: &str| entry::look(target).map_err(|errno| failure(path, errno));
    let Some(moved) = look(&from, &asked.from)? else {
        return Err(failure(&asked.from, Errno::NOENT));
    };
    let (moved, replaced) = (moved.identity, look(&to, &asked.to)?);
    must_be_directory(&asked.from, moved.kind)?;
    must_be_directory(&asked.to, moved.kind)?;
    if replaced.is_some() && !asked.replace {
        return Err(exists(&asked.to));
    }
    let places = [&asked.from, &asked.to].map(|path| workspace.place_of_entry(path));
    if places[0] == places[1] {
        return Err(invalid(
            "both paths are the same; name another one to move to",
        ));
    }
    if places[1].starts_with(&places[0]) {
        return Err(invalid("a directory cannot be moved into itself"));
    }
    let before = replaced.map_or(There::Nothing, |there| There::This(there.identity));
    let done = Moved {
        kind: moved.kind,
        replaced: replaced.is_some(),
    };
    let effect = |path, before, after| Effect {
        path: workspace.path_of_entry(path),
        before,
        after,
    };
    let change = Change {
        effects: vec![
            effect(&asked.from, There::This(moved), There::Nothing),
            effect(&asked.to, before.clone(), There::This(moved)),
        ],
        unfinished: None,
        done: Outcome::Moved(done),
    };
    announcer.announce(change, allowance)?;
    allowance.check()?;
    // The kernel does nothing where both are names of the same file.
    if before == There::This(moved) && are_two_names(&from, &to) {
        let removed = rustix::fs::unlinkat(&from.directory, &from.name, AtFlags::empty());
        removed.map_err(|errno| failure(&asked.from, errno))?;
    } else {
        rename_entry(&from, &to, asked.replace).map_err(|errno| refused(asked, errno))?;
    }
    step();
    sync_directory(&to.directory);
    sync_directory(&from.directory);
    Ok(done)
}

/// True if both are names that the same file has beside each other, so that one of them can go. The
/// same name in another spelling, or seen through another mount, is the file's only one.
fn are_two_names(from: &PathTarget, to: &PathTarget) -> bool {
    let stat = |target: &PathTarget| {
        rustix::fs::statat(&target.directory, &target.name, AtFlags::SYMLINK_NOFOLLOW)
    };
    match (stat(from), stat(to)) {
        (Ok(from), Ok(to)) => {
            let is_directory = FileType::from_raw_mode(from.st_mode) == FileType::Directory;
            let is_same = (from.st_dev, from.st_ino) == (to.st_dev, to.st_ino);
            !is_directory && is_same && from.st_nlink > 1
        }
        _ => false,
    }
}

fn rename_entry(from: &PathTarget, to: &PathTarget, replace: bool) -> Result<(), Errno> {
    let flags = match replace {
        true => RenameFlags::empty(),
        false => RenameFlags::NOREPLACE,
    };
    rustix::fs::renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags)
}

fn exists(path: &str) -> Failure {
    let path = path.to_owned();
    FileFailure::Exists { path }.into()
}

/// The failure that the errno of the rename means.
fn refused(asked: &Move, errno: Errno) -> Failure {
    match errno {
        Errno::EXIST if !asked.replace => exists(&asked.to),
        Errno::EXIST | Errno::NOTEMPTY => FileFailure::NotEmpty {
            path: asked.to.clone(),
        }
        .into(),
        Errno::ISDIR | Errno::NOTDIR => failure(&asked.to, errno),
        Errno::XDEV => FileFailure::Io {
            reason: "the two paths are on different file systems".to_owned(),
        }
        .into(),
        Errno::INVAL if !asked.replace => Failure::Refused(Refusal::new(
            RefusalCode::Unsupported,
            "the workspace's file system cannot move without replacing; ask to replace, or put the workspace on a local disk",
        )),
        errno => failure(&asked.from, errno),
    }
}
