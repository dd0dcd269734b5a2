//! The access to a file, as far as its replacement keeps it: mode and access list, and owner and group
//! where the host permits. Where it does not, no user gets access who had none before. The attributes that
//! people and programs gave the file are kept as well.

use std::fs::File;

use rustix::{
    buffer::spare_capacity,
    fs::{Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags},
    io::Errno,
};

use super::replace::KEPT_MODE;
use crate::workspace::{PathTarget, handle_path};

/// The attribute in which Linux has a file's access list (acl(5)). Its form is a version of 4 bytes, then
/// entries of 8 bytes: tag, permissions, and an id, little-endian (`linux/posix_acl_xattr.h`).
const ACCESS_LIST: &str = "system.posix_acl_access";
const VERSION_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;

/// The tags of the entries for the file's group and for all users who have no other entry.
const GROUP: u8 = 0x04;
const OTHERS: u8 = 0x20;

/// Of a longer access list nothing is kept. It is some 500 entries.
const MAX_LIST_BYTES: usize = 4096;

/// The bits of the group in a mode; in that of a file with an access list, the most that any but owner and
/// others may do.
const GROUP_BITS: u32 = 0o070;

/// Gives a file this mode and modification time, in microseconds since 1970.
///
/// # Errors
/// When the host refuses one of them.
pub(super) fn set(file: &File, mode: u32, modified_us: i64) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode & KEPT_MODE))?;
    let modified = Timespec {
        tv_sec: modified_us.div_euclid(1_000_000),
        tv_nsec: modified_us.rem_euclid(1_000_000) * 1000,
    };
    let untouched = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let times = Timestamps {
        last_access: untouched,
        last_modification: modified,
    };
    rustix::fs::futimens(file, &times)
}

/// Gives a new file the access of the one at `target`, which it is about to replace.
///
/// # Errors
/// When the host refuses the mode.
pub(super) fn keep(file: &File, target: &PathTarget, before: &Stat) -> Result<(), Errno> {
    let mode = before.st_mode & KEPT_MODE;
    if let Err(errno) = attributes(file, target) {
        tracing::warn!(error = %errno, "failed to keep the attributes of a file");
    }
    let has_group = keep_owner(file, before)?;
    let (mode, kept) = match access_list(target) {
        Ok(Some(mut list)) => {
            if !has_group {
                narrow(&mut list);
            }
            let kept = rustix::fs::fsetxattr(file, ACCESS_LIST, &list, XattrFlags::empty());
            (mode, kept)
        }
        // It may have inherited one from its directory.
        Ok(None) if has_group => (mode, without_list(file)),
        Ok(None) => (mode & (!GROUP_BITS | mode << 3), without_list(file)),
        Err(errno) => (mode, Err(errno)),
    };
    let mode = match kept {
        Ok(()) => mode,
        Err(errno) => {
            tracing::warn!(error = %errno, "failed to keep a file's access list; its group loses access");
            mode & !GROUP_BITS
        }
    };
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}

/// Keeps the owner and the group, or the group alone, as far as the host permits. Returns whether the
/// group is kept.
fn keep_owner(file: &File, before: &Stat) -> Result<bool, Errno> {
    let now = rustix::fs::fstat(file)?;
    let (owner, group) = (Uid::from_raw(before.st_uid), Gid::from_raw(before.st_gid));
    if (now.st_uid, now.st_gid) == (before.st_uid, before.st_gid) {
        return Ok(true);
    }
    // Only root may give a file away; for another user it stays the runner's, who may be in its group.
    let given = rustix::fs::fchown(file, Some(owner), Some(group));
    let is_kept = given.is_ok()
        || now.st_gid == before.st_gid
        || rustix::fs::fchown(file, None, Some(group)).is_ok();
    Ok(is_kept)
}

fn attributes(file: &File, target: &PathTarget) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&target.directory, &target.name, flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(()),
        before => shared_program::files::keep_attributes(before?, file),
    }
}

/// The access list of what is there; `None` where it has none but its mode.
fn access_list(target: &PathTarget) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&target.directory, &target.name, flags, Mode::empty());
    let file = match opened {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let mut list = Vec::with_capacity(MAX_LIST_BYTES);
    // By its path, because a handle that reads nothing has no attributes.
    match rustix::fs::getxattr(handle_path(&file), ACCESS_LIST, spare_capacity(&mut list)) {
        Ok(_) => Ok(Some(list)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn without_list(file: &File) -> Result<(), Errno> {
    match rustix::fs::fremovexattr(file, ACCESS_LIST) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        removed => removed,
    }
}

/// Lets the file's group, which is another one now, do no more than all users may.
fn narrow(list: &mut [u8]) {
    let entries = list.get_mut(VERSION_BYTES..).unwrap_or_default();
    let others = entries.chunks_exact(ENTRY_BYTES).find(|e| e[0] == OTHERS);
    let others = others.map_or(0, |entry| entry[2]);
    for entry in entries.chunks_exact_mut(ENTRY_BYTES) {
        if entry[0] == GROUP {
            entry[2] &= others;
        }
    }
}

#[cfg(test)]
mod tests;
