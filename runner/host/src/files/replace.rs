//! Puts a file into place at once: a reader sees the old content or the new, never half.

use std::{fs::File, io::Write as _};

use cap_tempfile::TempFile;
use rustix::{
    fs::{FileType, Gid, Mode, Stat, Uid},
    io::Errno,
};

use super::{Allowance, Failure, failure, io_failure};
use crate::workspace::{Target, stat_entry, sync_directory};

/// What a file keeps when its content is replaced. Set-user-id and the like are dropped, as the
/// kernel drops them when a file is written to.
const KEPT_MODE: u32 = 0o777;

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

/// A temporary file beside the target, synced, renamed into place; the directory synced too.
/// Mode and, where permitted, owner of what was there are kept; other names of it (hard links)
/// keep the old content.
pub(super) fn replace(
    target: &Target,
    content: &[u8],
    before: Option<&Stat>,
    asked: &str,
    allowance: &Allowance,
) -> Result<(), Failure> {
    put(target, content, before, allowance, asked)?;
    sync_directory(&target.directory);
    Ok(())
}

fn put(
    target: &Target,
    content: &[u8],
    before: Option<&Stat>,
    allowance: &Allowance,
    asked: &str,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| io_failure(asked, &error);
    let directory = target.directory.try_clone().map_err(failed)?;
    let directory = cap_std::fs::Dir::from_std_file(File::from(directory));
    let mut temporary = TempFile::new(&directory).map_err(failed)?;
    temporary.write_all(content).map_err(failed)?;
    if let Some(before) = before {
        keep_owner_and_mode(temporary.as_file(), before).map_err(|errno| failure(asked, errno))?;
    }
    temporary.as_file().sync_all().map_err(failed)?;
    // The last moment at which nothing has changed.
    allowance.check()?;
    temporary.replace(&target.name).map_err(failed)
}

fn keep_owner_and_mode(file: &cap_std::fs::File, before: &Stat) -> Result<(), Errno> {
    let now = rustix::fs::fstat(file)?;
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid) {
        let (owner, group) = (Uid::from_raw(before.st_uid), Gid::from_raw(before.st_gid));
        // Only root may give a file away; for anybody else it stays the runner's.
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(before.st_mode & KEPT_MODE))
}
