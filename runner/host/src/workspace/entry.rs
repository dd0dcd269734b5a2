//! Entries of directories: a name and what it names, where a symbolic link is an entry itself and is
//! never followed. Links on the way to it are, as long as they stay beneath the root.

use std::path::{Path, PathBuf};

use rustix::{
    fd::AsFd,
    fs::{AtFlags, FileType, OFlags, Statx, StatxFlags},
    io::Errno,
};
use shared_sandbox::{EntryKind, FileFailure};

use super::{Links, Parents, PathTarget, Workspace, failure, open_beneath, real_path};
use crate::ChangeIdentity;

/// The host's facts about an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostEntry {
    pub(crate) identity: ChangeIdentity,
    pub(crate) stat: Statx,
}

impl Workspace {
    /// Finds an entry by its name in its directory, which must be there. `None` for the root, and
    /// for a path that ends in `.` or `..`: these have no name of their own.
    pub(crate) fn entry(&self, asked: &str) -> Result<Option<PathTarget>, FileFailure> {
        let path = self.relative(asked)?;
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.parent(parent, Parents::Expect);
        Ok(Some(PathTarget {
            directory: directory.map_err(|errno| failure(asked, errno))?,
            name: name.to_owned(),
        }))
    }

    /// The path that a change of an entry locks, as [`Workspace::place_of_change`].
    pub(crate) fn place_of_entry(&self, asked: &str) -> PathBuf {
        if let Ok(Some(target)) = self.entry(asked)
            && let Some(directory) = real_path(&target.directory)
        {
            return directory.join(&target.name);
        }
        self.place_of_change(asked)
    }

    /// The path of a change of an entry, as [`Workspace::path_of_change`].
    pub(crate) fn path_of_entry(&self, asked: &str) -> String {
        self.path_beneath(&self.place_of_entry(asked), asked)
    }

    /// Finds an entry by its name in its directory, which is made where it is missing.
    pub(crate) fn make_parent(&self, asked: &str) -> Result<PathTarget, FileFailure> {
        let failed = |errno| failure(asked, errno);
        let path = self.relative(asked)?;
        let name = path.file_name().ok_or(Errno::ISDIR).map_err(failed)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok(PathTarget {
            directory: self.parent(parent, Parents::Make).map_err(failed)?,
            name: name.to_owned(),
        })
    }

    /// Makes a directory with its missing parents.
    pub(crate) fn make_directory(&self, asked: &str) -> Result<(), FileFailure> {
        let path = self.relative(asked)?;
        let made = self.parent(&path, Parents::Make);
        made.map(drop).map_err(|errno| failure(asked, errno))
    }
}

/// The entry of this name in the directory; `None` where there is nothing.
pub(crate) fn look(target: &PathTarget) -> Result<Option<HostEntry>, Errno> {
    match stat(&target.directory, &target.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(entry) => Ok(Some(entry)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The facts about an open file.
pub(crate) fn look_at(handle: impl AsFd) -> Result<HostEntry, Errno> {
    stat(handle, "", AtFlags::EMPTY_PATH)
}

fn stat(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
    flags: AtFlags,
) -> Result<HostEntry, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(directory, name, flags, wanted)?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask);
    let born = known.contains(StatxFlags::BTIME).then_some(stat.stx_btime);
    let identity = ChangeIdentity {
        kind: kind(FileType::from_raw_mode(stat.stx_mode.into())),
        inode: stat.stx_ino,
        born_ns: born.and_then(|born| {
            let seconds = born.tv_sec.checked_mul(1_000_000_000)?;
            seconds.checked_add(born.tv_nsec.into())
        }),
    };
    Ok(HostEntry { identity, stat })
}

/// The kind of an entry of this type.
pub(crate) fn kind(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Opens a directory in another one to read and to empty it: neither through a link nor on another
/// file system.
pub(crate) fn open_inner(
    directory: impl AsFd,
    name: &(impl AsRef<Path> + ?Sized),
) -> Result<rustix::fd::OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open_beneath(directory, name.as_ref(), flags, Links::RefuseAndMounts)
}
