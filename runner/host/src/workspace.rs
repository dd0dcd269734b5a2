//! The workspace: one directory, held open, beneath which the kernel resolves every path.
//!
//! `openat2` with `RESOLVE_BENEATH` refuses `..`, absolute paths and symbolic links that lead out, also while
//! things are renamed; links that stay inside work. Only one rule is textual: an absolute path that begins with
//! the root is taken relative to it, for people's convenience.

pub(crate) mod entry;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags},
    io::Errno,
};
use shared_sandbox::FileFailure;
use shared_types::limits::MAX_PATH_BYTES;

/// The number of attempts to open a path while other processes rename things on the way.
const RENAME_RETRIES: usize = 128;

/// The most symbolic links that the last component of a path may lead through (the kernel's bound).
const MAX_LINKS: usize = 40;

/// The directory beneath which everything happens.
#[derive(Debug)]
pub(crate) struct Workspace {
    known: PathBuf,
    handle: OwnedFd,
    /// The same directory, only as a place to be in.
    place: OwnedFd,
}

/// The reason why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is nothing there.
    #[error("open the workspace {root:?}: it does not exist; create it or name another folder")]
    Missing {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// It is a file or the like.
    #[error("open the workspace {root:?}: it is not a directory; name a folder")]
    NotADirectory {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// The runner's user may not read it.
    #[error(
        "open the workspace {root:?}: permission is denied; let the runner's user read and enter it, or name another folder"
    )]
    NotReadable {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// The kernel cannot confine paths.
    #[error(
        "open the workspace {root:?}: this kernel cannot resolve paths beneath a directory; Linux 5.6 or later is needed"
    )]
    Kernel {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// The host reported something else.
    #[error("open the workspace {root:?}")]
    Io {
        /// The root that was asked for.
        root: PathBuf,
        /// The host's error.
        source: std::io::Error,
    },
}

/// The rule for symbolic links: the kernel follows those that stay beneath the directory, or refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
    /// Nor is another file system entered.
    RefuseAndMounts,
}

/// The place of a file that is there or will be: a name in an open directory, not a symbolic link.
#[derive(Debug)]
pub(crate) struct PathTarget {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
}

impl Workspace {
    /// Opens the root; from here on its path is of no importance.
    pub(crate) fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |errno| {
            let root = root.to_owned();
            match errno {
                Errno::NOENT => WorkspaceError::Missing { root },
                Errno::NOTDIR => WorkspaceError::NotADirectory { root },
                Errno::ACCESS | Errno::PERM => WorkspaceError::NotReadable { root },
                Errno::NOSYS => WorkspaceError::Kernel { root },
                errno => WorkspaceError::Io {
                    root,
                    source: errno.into(),
                },
            }
        };
        let handle = rustix::fs::openat(CWD, root, flags, Mode::empty()).map_err(failed)?;
        let beneath = |flags| open_beneath(&handle, Path::new("."), flags, Links::Follow);
        beneath(flags).map_err(failed)?;
        let place = beneath(OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC);
        Ok(Self {
            known: root.to_owned(),
            place: place.map_err(failed)?,
            handle,
        })
    }

    /// The root as it was asked for.
    pub(crate) fn root(&self) -> &Path {
        &self.known
    }

    /// The root as the kernel knows it now.
    pub(crate) fn real_root(&self) -> Option<PathBuf> {
        real_path(&self.handle)
    }

    /// The path beneath the root that is asked for. An absolute one must begin with the root, as
    /// people know it or as the kernel does, component by component.
    pub(crate) fn relative(&self, asked: &str) -> Result<PathBuf, FileFailure> {
        if asked.len() > MAX_PATH_BYTES {
            let reason = format!(
                "the path has {} bytes; at most {MAX_PATH_BYTES} are possible",
                asked.len()
            );
            return Err(FileFailure::Io { reason });
        }
        if asked.contains('\0') {
            let reason = "the path holds a NUL byte".to_owned();
            return Err(FileFailure::Io { reason });
        }
        let path = Path::new(asked);
        let below = if path.is_absolute() {
            let known = path.strip_prefix(&self.known).ok().map(Path::to_owned);
            let real = || Some(path.strip_prefix(real_path(&self.handle)?).ok()?.to_owned());
            known
                .or_else(real)
                .ok_or_else(|| FileFailure::OutsideWorkspace {
                    path: asked.to_owned(),
                })?
        } else {
            path.to_owned()
        };
        Ok(if below.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            below
        })
    }

    /// True if the root was removed: nothing can be made in it any more, even if its path leads to something.
    pub(crate) fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.handle).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Opens a directory for reading its entries.
    pub(crate) fn open_directory(&self, asked: &str) -> Result<OwnedFd, FileFailure> {
        self.open_directory_with(asked, OFlags::RDONLY)
    }

    /// Opens a directory only as a place to be in: it need not be readable.
    pub(crate) fn open_place(&self, asked: &str) -> Result<OwnedFd, FileFailure> {
        self.open_directory_with(asked, OFlags::PATH)
    }

    /// Opens any kind of file only to look at it: it need not be readable.
    pub(crate) fn open_any(&self, asked: &str) -> Result<OwnedFd, FileFailure> {
        let path = self.relative(asked)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        open_beneath(&self.handle, &path, flags, Links::Follow).map_err(|e| failure(asked, e))
    }

    /// The root as a place to be in, if that is what is asked for and it was not removed. Waits
    /// for no disk and no network: the kernel says what it knows.
    pub(crate) fn place_at_once(&self, asked: &str) -> Option<OwnedFd> {
        let path = self.relative(asked).ok()?;
        let is_root = path.components().all(|part| part == Component::CurDir);
        let known = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let there = || rustix::fs::statx(&self.place, "", known, StatxFlags::NLINK);
        (is_root && there().ok()?.stx_nlink > 0)
            .then(|| rustix::io::fcntl_dupfd_cloexec(&self.place, 0).ok())
            .flatten()
    }

    fn open_directory_with(&self, asked: &str, access: OFlags) -> Result<OwnedFd, FileFailure> {
        let path = self.relative(asked)?;
        let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_beneath(&self.handle, &path, flags, Links::Follow).map_err(|e| failure(asked, e))
    }

    /// Opens an ordinary file for reading.
    pub(crate) fn open_file(&self, asked: &str) -> Result<(File, Stat), FileFailure> {
        let path = self.relative(asked)?;
        open_ordinary(&self.handle, &path, Links::Follow).map_err(|e| failure(asked, e))
    }

    /// The path of the handle beneath the root, by the kernel's account; `None` where it was moved away. The root
    /// itself is the empty path.
    pub(crate) fn place_of(&self, handle: impl AsFd) -> Option<PathBuf> {
        let place = real_path(handle)?;
        let place = place.strip_prefix(real_path(&self.handle)?).ok()?;
        Some(place.to_owned())
    }

    /// The path that a change of this file locks: one path for each file, for every name of it, also where it or
    /// its directory is not there yet. For a file that cannot be changed it is any path.
    pub(crate) fn place_of_change(&self, asked: &str) -> PathBuf {
        if let Ok(target) = self.locate(asked, Parents::Expect)
            && let Some(directory) = real_path(&target.directory)
        {
            return directory.join(&target.name);
        }
        let Ok(relative) = self.relative(asked) else {
            return asked.into();
        };
        let mut above = relative.ancestors().skip(1);
        let there = above.find_map(|above| {
            let handle = self.open_place(above.to_str()?).ok()?;
            let missing = relative.strip_prefix(above).ok()?;
            Some(real_path(&handle)?.join(missing))
        });
        there.unwrap_or(relative)
    }

    /// The same path beneath the root, which [`Workspace::locate`] finds again. It is one path for every name of
    /// a file; but a path that is no UTF-8 stays as it was asked for.
    pub(crate) fn path_of_change(&self, asked: &str) -> String {
        self.path_beneath(&self.place_of_change(asked), asked)
    }

    fn path_beneath(&self, place: &Path, asked: &str) -> String {
        let beneath = real_path(&self.handle).and_then(|root| {
            let beneath = place.strip_prefix(root).ok()?;
            beneath.to_str().map(str::to_owned)
        });
        beneath.unwrap_or_else(|| asked.to_owned())
    }

    /// Finds the place of a file. Symbolic links at the end are followed one by one, and the kernel resolves each
    /// from the root, so that a link is written through, not replaced.
    pub(crate) fn locate(&self, asked: &str, parents: Parents) -> Result<PathTarget, FileFailure> {
        let failed = |errno| failure(asked, errno);
        let mut path = self.relative(asked)?;
        if asked.ends_with('/') || asked.ends_with("/.") {
            return Err(failed(Errno::ISDIR));
        }
        for _ in 0..MAX_LINKS {
            let name = path.file_name().ok_or(Errno::ISDIR).map_err(failed)?;
            let parent = path.parent().unwrap_or(Path::new("")).to_owned();
            let directory = self.parent(&parent, parents).map_err(failed)?;
            match rustix::fs::readlinkat(&directory, name, Vec::new()) {
                Ok(target) => path = parent.join(OsStr::from_bytes(target.as_bytes())),
                Err(Errno::INVAL | Errno::NOENT) => {
                    let name = name.to_owned();
                    return Ok(PathTarget { directory, name });
                }
                Err(errno) => return Err(failed(errno)),
            }
            if path.is_absolute() {
                return Err(failed(Errno::XDEV));
            }
        }
        Err(failed(Errno::LOOP))
    }

    /// Opens the directory `path`; what is missing of it is made component by component, each in
    /// the handle that the kernel gave for the one before.
    fn parent(&self, path: &Path, parents: Parents) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |path: &Path| {
            let path = Path::new(".").join(path);
            open_beneath(&self.handle, &path, flags, Links::Follow)
        };
        match open(path) {
            Err(Errno::NOENT) if parents == Parents::Make => {}
            opened => return opened,
        }
        let (mut at, mut way) = (open(Path::new(""))?, PathBuf::new());
        for component in path.components() {
            way.push(component);
            at = match open(&way) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&at, component.as_os_str(), Mode::from(0o777)) {
                        Ok(()) => {
                            crate::files::step();
                            sync_directory(&at);
                        }
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    open(&way)?
                }
                opened => opened?,
            };
        }
        Ok(at)
    }
}

impl PathTarget {
    /// The target, where it is a symbolic link, with bytes that are not UTF-8 replaced.
    pub(crate) fn leads_to(&self) -> Result<String, Errno> {
        let link = rustix::fs::readlinkat(&self.directory, &self.name, Vec::new())?;
        Ok(link.to_string_lossy().into_owned())
    }
}

/// The rule for missing parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    Make,
    Expect,
}

/// Makes the names in a directory durable. What they name is in place already, so a file system
/// that cannot do this is no failure.
pub(crate) fn sync_directory(directory: &OwnedFd) {
    if let Err(errno) = rustix::fs::fsync(directory) {
        tracing::debug!(error = %errno, "failed to sync a directory of the workspace");
    }
}

/// Opens `path` beneath `directory`, by the kernel.
pub(crate) fn open_beneath(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match links {
        Links::Follow => {}
        Links::Refuse => resolve |= ResolveFlags::NO_SYMLINKS,
        Links::RefuseAndMounts => resolve |= ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    }
    let open = || rustix::fs::openat2(directory.as_fd(), path, flags, Mode::empty(), resolve);
    // The kernel gives up with EAGAIN where a rename on the way could have hidden an escape.
    let mut last = open();
    for _ in 0..RENAME_RETRIES {
        match last {
            Err(Errno::AGAIN | Errno::INTR) => last = open(),
            _ => break,
        }
    }
    last
}

/// Opens an ordinary file for reading; anything else is `EISDIR`. It first looks at what is there: to open a pipe
/// lets go a writer that waits for a reader, and to open a device may do something. A pipe or device that takes
/// the file's place after that look does not block.
pub(crate) fn open_ordinary(
    directory: impl AsFd,
    path: &Path,
    links: Links,
) -> Result<(File, Stat), Errno> {
    let looked = OFlags::PATH | OFlags::CLOEXEC;
    let there = open_beneath(directory.as_fd(), path, looked, links)?;
    must_be_ordinary(&there)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open_beneath(directory, path, flags, links)?;
    let stat = must_be_ordinary(&file)?;
    Ok((File::from(file), stat))
}

fn must_be_ordinary(file: &OwnedFd) -> Result<Stat, Errno> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        _ => Err(Errno::ISDIR),
    }
}

/// The absolute path by which the kernel knows an open file or directory.
pub(crate) fn real_path(handle: impl AsFd) -> Option<PathBuf> {
    let link = rustix::fs::readlinkat(CWD, handle_path(handle), Vec::new()).ok()?;
    Some(OsString::from_vec(link.into_bytes()).into())
}

/// A path that leads to the open handle itself, in this process and in one that it spawns.
pub(crate) fn handle_path(handle: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}

/// The failure that the errno means for the path that was asked for.
pub(crate) fn failure(asked: &str, errno: Errno) -> FileFailure {
    let path = asked.to_owned();
    match errno {
        Errno::NOENT => FileFailure::NotFound { path },
        Errno::XDEV => FileFailure::OutsideWorkspace { path },
        Errno::ISDIR | Errno::NXIO | Errno::NODEV => FileFailure::NotAFile { path },
        Errno::NOTDIR => FileFailure::NotADirectory { path },
        Errno::ACCESS | Errno::PERM => FileFailure::Denied { path },
        Errno::NOSPC | Errno::DQUOT => FileFailure::DiskFull,
        Errno::LOOP => FileFailure::Io {
            reason: "the path leads through too many symbolic links".to_owned(),
        },
        errno => FileFailure::Io {
            reason: std::io::Error::from(errno).to_string(),
        },
    }
}

/// [`failure`] for errors of the standard library.
pub(crate) fn io_failure(asked: &str, error: &std::io::Error) -> FileFailure {
    match Errno::from_io_error(error) {
        Some(errno) => failure(asked, errno),
        None => FileFailure::Io {
            reason: error.to_string(),
        },
    }
}

/// The state of `name` in `directory`, without following a link; `None` where there is nothing.
pub(crate) fn stat_entry(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests;
