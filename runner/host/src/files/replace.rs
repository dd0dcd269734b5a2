//! Puts a file into place at once: a reader sees the old content or the new, never half.
//!
//! But a file with an owner that a new file could not have is written into, so that it keeps him. The new content
//! is on the disk before that begins. Other names of a file (hard links) may lie outside the workspace, so nothing is
//! written through them: they keep the old content.

use std::{
    fs::File,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::FileExt as _,
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use shared_program::files::write_with_holes;
use shared_sandbox::FileFailure;

use super::{Allowance, Failure, access, download::state, failure, io_failure, step};
use crate::workspace::{PathTarget, handle_path, stat_entry, sync_directory};

/// The mode bits that a file keeps when its content is replaced. Set-user-id and the like are dropped, as the kernel
/// drops them when a file is written to.
pub(super) const KEPT_MODE: u32 = 0o777;

/// The mode of a new file, less what the umask takes away.
pub(super) const NEW_MODE: u32 = 0o666;

/// Copied at once into a file that stays.
const BUFFER_BYTES: usize = 64 * 1024;

/// The file that is there now; `None` where there is nothing.
pub(super) fn existing(target: &PathTarget, asked: &str) -> Result<Option<Stat>, Failure> {
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
pub(super) struct ReplacementNames<'a> {
    /// The file, as it was asked for.
    pub(super) asked: &'a str,
    /// The name of the new content until it is in place.
    pub(super) unfinished: &'a str,
    /// The file that must still be there, where the new content was made from it.
    pub(super) expected: Option<&'a Stat>,
}

/// A file beside the target under the change's own name, synced, put into place; the directory
/// synced too. The access to what was there is kept as far as permitted; other names of it (hard links) keep
/// the old content.
pub(super) fn replace(
    target: &PathTarget,
    content: &[u8],
    before: Option<&Stat>,
    names: ReplacementNames<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let file = create(target, names.unfinished, before);
    let file = file.map_err(|errno| failure(names.asked, errno))?;
    step();
    let written = fill(&file, content, target, before);
    put_synced(target, &file, written, names, allowance)
}

/// Gives a file without a name, which has all of its content and is synced, the target's name, by
/// way of the change's own. The access is kept as by [`replace`].
pub(super) fn name(
    target: &PathTarget,
    file: &File,
    before: Option<&Stat>,
    names: ReplacementNames<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let kept = before.map_or(Ok(()), |before| access::keep(file, target, before));
    let named = kept.and_then(|()| {
        let (path, follow) = (handle_path(file), AtFlags::SYMLINK_FOLLOW);
        rustix::fs::linkat(CWD, path, &target.directory, names.unfinished, follow)
    });
    named.map_err(|errno| failure(names.asked, errno))?;
    step();
    put_synced(target, file, file.sync_all(), names, allowance)
}

/// The last step, if all before it `went` well; else what is unfinished is removed.
fn put_synced(
    target: &PathTarget,
    file: &File,
    went: io::Result<()>,
    names: ReplacementNames<'_>,
    allowance: &Allowance,
) -> Result<(), Failure> {
    let ReplacementNames {
        asked,
        unfinished,
        expected,
    } = names;
    let written = went.map_err(|error| io_failure(asked, &error));
    // The last moment at which nothing has changed.
    let put = written.and_then(|()| allowance.check()).and_then(|()| {
        // A file that became something else since is not replaced, nor is content that another program has saved.
        let now = existing(target, asked)?;
        if expected.is_some_and(|expected| !now.is_some_and(|now| is_same(expected, &now))) {
            let path = asked.to_owned();
            return Err(FileFailure::Changed {
                path,
                since_read: false,
            }
            .into());
        }
        put(file, &target.directory, unfinished, target, now.as_ref())
            .map_err(|error| io_failure(asked, &error))
    });
    step();
    match &put {
        Ok(()) => sync_directory(&target.directory),
        Err(_) => {
            // Where it cannot be removed, settling the change finds it again.
            let _ = rustix::fs::unlinkat(&target.directory, unfinished, AtFlags::empty());
        }
    }
    put
}

/// Puts a file, which has all of its content and this name, where another one is `now`, or nothing.
pub(super) fn put(
    file: &File,
    directory: &OwnedFd,
    name: &str,
    target: &PathTarget,
    now: Option<&Stat>,
) -> io::Result<()> {
    let stays = now.map_or(Ok(None), |now| stays(file, target, now))?;
    let Some(mut stays) = stays else {
        rustix::fs::renameat(directory, name, &target.directory, &target.name)?;
        return Ok(());
    };
    stays.set_len(0)?;
    let (mut buffer, mut at) = (vec![0; BUFFER_BYTES], 0);
    loop {
        match file.read_at(&mut buffer, at) {
            Ok(0) => break,
            Ok(read) => {
                write_with_holes(&mut stays, &buffer[..read])?;
                at += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stays.set_len(at)?;
    stays.sync_all()?;
    step();
    // Where it cannot be removed, settling the change finds it again.
    let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    Ok(())
}

/// The file that is there, open to be written into, where a new one in its place would have another owner.
fn stays(new: &File, target: &PathTarget, now: &Stat) -> Result<Option<File>, Errno> {
    let has_owner = now.st_uid == rustix::fs::fstat(new)?.st_uid;
    if has_owner || now.st_nlink > 1 {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&target.directory, &target.name, flags, Mode::empty()) {
        Ok(file) => {
            let opened = rustix::fs::fstat(&file)?;
            let key = |stat: &Stat| (stat.st_dev, stat.st_ino);
            match key(&opened) == key(now) {
                true => Ok(Some(File::from(file))),
                false => Err(Errno::STALE),
            }
        }
        Err(Errno::ACCESS | Errno::PERM | Errno::TXTBSY) => {
            tracing::warn!("a file is replaced whose owner cannot be kept");
            Ok(None)
        }
        Err(errno) => Err(errno),
    }
}

fn is_same(before: &Stat, now: &Stat) -> bool {
    let key = |stat: &Stat| (stat.st_dev, stat.st_ino, state(stat));
    key(before) == key(now)
}

fn create(target: &PathTarget, name: &str, before: Option<&Stat>) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // No other process reads it before it has the mode that it is to keep.
    let mode = before.map_or(NEW_MODE, |_| 0o600);
    let file = rustix::fs::openat(&target.directory, name, flags, Mode::from_raw_mode(mode))?;
    Ok(File::from(file))
}

fn fill(
    mut file: &File,
    content: &[u8],
    target: &PathTarget,
    before: Option<&Stat>,
) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(before) = before {
        access::keep(file, target, before)?;
    }
    file.sync_all()
}
