//! Removes a file, a link, an empty directory, or a directory with all that is in it.
//!
//! A directory with something in it first gets another name beside its own, at once, and is emptied
//! under that. So a reader finds it whole or not at all, and the name alone shows that a removal
//! died in between. What cannot be removed gets its old name back.

use std::ffi::{CStr, CString, OsStr};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Dir, RenameFlags},
    io::Errno,
};
use shared_sandbox::{EntryKind, FileFailure, Outcome, Remove, Removed};

use super::{Allowance, Announcer, Failure, failure, must_be_directory, named, step};
use crate::{
    Change, Effect, There,
    workspace::{PathTarget, Workspace, entry, sync_directory},
};

/// The most levels of directories in one that is removed: all of them are open at the same time, in
/// as many removals as run at once.
const MAX_DEPTH: usize = 100;

/// Names of one directory that are held at once.
const NAMES_AT_ONCE: usize = 1024;

/// Removes the entry itself.
pub(super) fn remove(
    asked: &Remove,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Removed, Failure> {
    let failed = |errno| failure(&asked.path, errno);
    let target = named(&asked.path, workspace)?;
    let found = entry::look(&target).map_err(failed)?;
    let identity = found.ok_or_else(|| failed(Errno::NOENT))?.identity;
    must_be_directory(&asked.path, identity.kind)?;
    let done = Removed {
        kind: identity.kind,
    };
    let tree = asked.tree && identity.kind == EntryKind::Directory;
    let unfinished = tree.then(|| allowance.unfinished_name());
    let effect = Effect {
        path: workspace.path_of_entry(&asked.path),
        before: There::This(identity),
        after: There::Nothing,
    };
    let change = Change {
        effects: vec![effect],
        unfinished: unfinished.clone(),
        done: Outcome::Removed(done),
    };
    announcer.announce(change, allowance)?;
    allowance.check()?;
    match (unfinished, identity.kind) {
        (Some(aside), _) => remove_tree(&target, &aside, &asked.path, allowance)?,
        (None, EntryKind::Directory) => {
            unlink(&target, AtFlags::REMOVEDIR).map_err(|errno| match errno {
                Errno::NOTEMPTY | Errno::EXIST => FileFailure::NotEmpty {
                    path: asked.path.clone(),
                }
                .into(),
                errno => failed(errno),
            })?;
        }
        (None, EntryKind::File | EntryKind::Link | EntryKind::Other) => {
            unlink(&target, AtFlags::empty()).map_err(failed)?;
        }
    }
    sync_directory(&target.directory);
    Ok(done)
}

/// Removes what a change has put aside under this name in the directory, and all that is in it; whether
/// it was there.
pub(super) fn clear(
    directory: &OwnedFd,
    name: &str,
    allowance: &Allowance,
) -> Result<bool, Failure> {
    let failed = |errno| failure(name, errno);
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let tree = entry::open_inner(directory, name).map_err(failed)?;
    empty(tree, allowance).1?;
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR).map_err(failed)?;
    Ok(true)
}

fn remove_tree(
    target: &PathTarget,
    aside: &str,
    asked: &str,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let failed = |errno| failure(asked, errno);
    // A directory that cannot be read cannot be emptied, and stays as it is.
    let tree = entry::open_inner(&target.directory, &target.name).map_err(failed)?;
    rename(target, &target.name, OsStr::new(aside)).map_err(failed)?;
    step();
    sync_directory(&target.directory);
    let (removed, emptied) = empty(tree, allowance);
    let gone = emptied.and_then(|()| {
        let gone = rustix::fs::unlinkat(&target.directory, aside, AtFlags::REMOVEDIR);
        gone.map_err(failed)
    });
    let Err(why) = gone else {
        step();
        return Ok(());
    };
    let back = rename(target, OsStr::new(aside), &target.name);
    step();
    match back {
        Ok(()) if !removed => Err(why),
        Ok(()) => Err(partly(asked, why, "what is left is where it was")),
        Err(errno) => {
            tracing::warn!(error = %errno, file.name = aside, "failed to give a directory its name back");
            Err(partly(
                asked,
                why,
                &format!("what is left is called {aside:?}"),
            ))
        }
    }
}

fn partly(asked: &str, why: Failure, left: &str) -> Failure {
    let why = match why {
        Failure::File(failure) => failure.to_string(),
        // It says that nothing was changed.
        Failure::Refused(_) => "it was stopped".to_owned(),
    };
    FileFailure::PartlyRemoved {
        path: asked.to_owned(),
        reason: format!("{why}; {left}"),
    }
    .into()
}

fn unlink(target: &PathTarget, flags: AtFlags) -> Result<(), Errno> {
    rustix::fs::unlinkat(&target.directory, &target.name, flags)?;
    step();
    Ok(())
}

fn rename(target: &PathTarget, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    let directory = &target.directory;
    rustix::fs::renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)
}

/// A directory that is being emptied.
struct EmptiedDirectory {
    directory: OwnedFd,
    /// Its name in the one above.
    name: CString,
    /// The names that are known to be in it.
    names: Vec<CString>,
}

/// Removes all that is in a directory. Returns `true` if anything was removed, and the error that
/// ended it early.
fn empty(directory: OwnedFd, allowance: &Allowance) -> (bool, Result<(), Failure>) {
    let mut removed = false;
    let mut levels = vec![EmptiedDirectory {
        directory,
        name: CString::default(),
        names: Vec::new(),
    }];
    let result = loop {
        match go_on(&mut levels, allowance) {
            Ok(Went::Removed) => removed = true,
            Ok(Went::On) => {}
            Ok(Went::ToTheEnd) => break Ok(()),
            Err(failure) => break Err(failure),
        }
        if removed {
            step();
        }
    };
    (removed, result)
}

enum Went {
    Removed,
    On,
    ToTheEnd,
}

/// One step of it.
fn go_on(levels: &mut Vec<EmptiedDirectory>, allowance: &Allowance) -> Result<Went, Failure> {
    allowance.check()?;
    let depth = levels.len();
    let Some(level) = levels.last_mut() else {
        return Ok(Went::ToTheEnd);
    };
    if level.names.is_empty() {
        level.names = names(&level.directory).map_err(|errno| told(&level.name, errno))?;
    }
    let Some(name) = level.names.pop() else {
        // It is empty.
        let over = levels.pop();
        let (Some(level), Some(above)) = (over, levels.last()) else {
            return Ok(Went::ToTheEnd);
        };
        let gone = rustix::fs::unlinkat(&above.directory, &level.name, AtFlags::REMOVEDIR);
        gone.map_err(|errno| told(&level.name, errno))?;
        return Ok(Went::Removed);
    };
    match rustix::fs::unlinkat(&level.directory, &name, AtFlags::empty()) {
        Ok(()) => return Ok(Went::Removed),
        // Another process has removed it.
        Err(Errno::NOENT) => return Ok(Went::On),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(told(&name, errno)),
    }
    if depth >= MAX_DEPTH {
        let reason = format!("directories lie in it more than {MAX_DEPTH} deep");
        return Err(FileFailure::Io { reason }.into());
    }
    let directory = open(&level.directory, &name).map_err(|errno| told(&name, errno))?;
    levels.push(EmptiedDirectory {
        directory,
        name,
        names: Vec::new(),
    });
    Ok(Went::On)
}

fn open(directory: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    use std::os::unix::ffi::OsStrExt as _;
    entry::open_inner(directory, OsStr::from_bytes(name.to_bytes()))
}

/// Some of the names in a directory; none where it is empty.
fn names(directory: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if names.len() >= NAMES_AT_ONCE {
            break;
        }
    }
    Ok(names)
}

/// The failure for something in the directory; a mount point is on another file system.
fn told(name: &CStr, errno: Errno) -> Failure {
    match errno {
        Errno::XDEV | Errno::BUSY => {
            let reason = format!("{:?} in it is another file system", name.to_string_lossy());
            FileFailure::Io { reason }.into()
        }
        errno => failure(&name.to_string_lossy(), errno),
    }
}
