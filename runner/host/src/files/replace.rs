//! Puts a file into place at once: a reader sees the old content or the new, never half.

use std::{
    fs::File,
    io::{self, Write as _},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use shared_sandbox::FileFailure;

use super::{Allowance, Failure, access, download::state, failure, io_failure, step};
use crate::workspace::{Target, handle_path, stat_entry, sync_directory};

/// What a file keeps when its content is replaced. Set-user-id and the like are dropped, as the
/// kernel drops them when a file is written to.
pub(super) const KEPT_MODE: u32 = 0o777;

/// What a new file allows, less what the umask takes away.
pub(super) const NEW_MODE: u32 = 0o666;

/// What is there now; `None` where there is nothing.
pub(super) fn existing(target: &Target, asked: &str) -> Result<Option<Stat>, Failure> {
    let failed = |errno| failure(asked, errno);
    let Some(stat) = stat_entry(&target.directory, target.name.as_os_str()).map_err(failed)? else {
        return Ok(None);
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(stat)),
        _ => Err(failed(Errno::ISDIR)),
    }
}

/// The names of a replacement, and what it replaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    /// The file, as it was asked for.
    pub(super) asked: &'a str,
    /// What the new content is called until it is in place.
    pub(super) unfinished: &'a str,
    /// What must still be there, where the new content was made from it.
    pub(super) expected: Option<&'a Stat>,
}

/// A file beside the target under the change's own name, synced, renamed into place; the directory
/// synced too. The access to what was there is kept as far as permitted; other names of it (hard links) keep
/// the old content.
pub(super) fn replace(
    target: &Target,
    content: &[u8],
    before: Option<&Stat>,
    names: Names<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let file = create(target, names.unfinished, before);
    let file = file.map_err(|errno| failure(names.asked, errno))?;
    step();
    let written = fill(file, content, target, before);
    rename(target, written, names, allowance)
}

/// Gives a file without a name, which has all of its content and is synced, the target's name, by
/// way of the change's own. The access is kept as by [`replace`].
pub(super) fn name(
    target: &Target,
    file: &File,
    before: Option<&Stat>,
    names: Names<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let kept = before.map_or(Ok(()), |before| access::keep(file, target, before));
    let named = kept.and_then(|()| {
        let (path, follow) = (handle_path(file), AtFlags::SYMLINK_FOLLOW);
        rustix::fs::linkat(CWD, path, &target.directory, names.unfinished, follow)
    });
    named.map_err(|errno| failure(names.asked, errno))?;
    step();
    rename(target, file.sync_all(), names, allowance)
}

/// The last step, if all before it `went` well; else what is unfinished is removed.
fn rename(
    target: &Target,
    went: io::Result<()>,
    names: Names<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let Names {
        asked,
        unfinished,
        expected,
    } = names;
    let failed = |errno| failure(asked, errno);
    let written = went.map_err(|error| io_failure(asked, &error));
    // The last moment at which nothing has changed.
    let renamed = written.and_then(|()| allowance.check()).and_then(|()| {
        // A file that became something else meanwhile is not replaced, nor what somebody has saved.
        let now = existing(target, asked)?;
        if expected.is_some_and(|expected| !now.is_some_and(|now| is_same(expected, &now))) {
            let path = asked.to_owned();
            return Err(FileFailure::Changed { path }.into());
        }
        let name = target.name.as_os_str();
        rustix::fs::renameat(&target.directory, unfinished, &target.directory, name).map_err(failed)
    });
    step();
    match &renamed {
        Ok(()) => sync_directory(&target.directory),
        Err(_) => {
            // Where it cannot be removed, settling the change finds it again.
            let _ = rustix::fs::unlinkat(&target.directory, unfinished, AtFlags::empty());
        }
    }
    renamed
}

fn is_same(before: &Stat, now: &Stat) -> bool {
    let key = |stat: &Stat| (stat.st_dev, stat.st_ino, state(stat));
    key(before) == key(now)
}

fn create(target: &Target, name: &str, before: Option<&Stat>) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Nobody else reads it before it has the mode that it is to keep.
    let mode = before.map_or(NEW_MODE, |_| 0o600);
    let file = rustix::fs::openat(&target.directory, name, flags, Mode::from_raw_mode(mode))?;
    Ok(File::from(file))
}

fn fill(mut file: File, content: &[u8], target: &Target, before: Option<&Stat>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(before) = before {
        access::keep(&file, target, before)?;
    }
    file.sync_all()
}
