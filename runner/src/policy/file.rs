//! The policy's file: who may have written it, and the reading of it.
//!
//! The daemon's user must not be able to loosen the policy. So the file and its folder belong to root, and no other
//! user can write there. A file that does not fit this, or that cannot be understood, counts as one that forbids
//! everything. Only a file that is absent is no policy.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{Policy, rules};

/// The place of the policy on every machine.
const PATH: &str = "/etc/gantry/policy.toml";

/// The user who may write it.
const ROOT: u32 = 0;

/// The permissions with which group or others may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The place of a policy, and the user who may write it.
#[derive(Debug, Clone)]
pub(crate) struct PolicySource {
    pub(super) path: PathBuf,
    pub(super) writer: u32,
}

impl PolicySource {
    /// The machine's. No flag and no variable of the environment names another: the daemon's user sets those.
    pub(crate) fn of_machine() -> Self {
        Self {
            path: PATH.into(),
            writer: ROOT,
        }
    }

    /// That of a test, which its user may write.
    #[cfg(test)]
    pub(crate) fn of_test(path: PathBuf) -> Self {
        Self {
            path,
            writer: rustix::process::getuid().as_raw(),
        }
    }

    /// The file.
    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The policy that is there now.
    pub(super) fn read(&self) -> PolicyFile {
        match self.text() {
            Ok(Some(text)) => match rules::parsed(&text) {
                Ok(policy) => PolicyFile::Policy(policy),
                Err(reason) => PolicyFile::Broken(reason),
            },
            Ok(None) => PolicyFile::Nothing,
            Err(reason) => PolicyFile::Broken(reason),
        }
    }

    /// The marks of the file and its folder: where they are the same, nothing was replaced or changed.
    pub(super) fn marks(&self) -> [Option<Mark>; 2] {
        [self.path.as_path(), self.folder()]
            .map(|path| fs::symlink_metadata(path).ok().map(Mark::of))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn text(&self) -> Result<Option<String>, String> {
        let opened = OpenOptions::new()
            .read(true)
            // Neither is a link followed nor the other end of a pipe waited for.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err("it is a symbolic link: put the file itself there".to_owned());
            }
            Err(error) => return Err(format!("the runner's user cannot read it: {error}")),
        };
        let told = |error: io::Error| error.to_string();
        let folder = fs::symlink_metadata(self.folder()).map_err(told)?;
        if !folder.is_dir() {
            return Err("its folder is a symbolic link: put the folder itself there".to_owned());
        }
        self.is_guarded("its folder", &folder)?;
        let about = file.metadata().map_err(told)?;
        if !about.is_file() {
            return Err("it is no regular file".to_owned());
        }
        self.is_guarded("it", &about)?;
        bounded(&file).map(Some)
    }

    /// Only the one user may write it.
    fn is_guarded(&self, what: &str, about: &Metadata) -> Result<(), String> {
        if about.uid() != self.writer {
            return Err(format!(
                "{what} belongs to user {} and not to user {}: chown root",
                about.uid(),
                self.writer
            ));
        }
        if about.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(format!(
                "{what} can be written by its group or by others: chmod go-w"
            ));
        }
        Ok(())
    }
}

fn bounded(file: &File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| format!("it cannot be read: {error}"))?;
    match bytes as u64 > MAX_BYTES {
        true => Err(format!("it is larger than {MAX_BYTES} bytes")),
        false => Ok(text),
    }
}

/// The result of reading a policy's file.
#[derive(Debug)]
pub(super) enum PolicyFile {
    /// Nothing: this machine has no policy.
    Nothing,
    /// A policy.
    Policy(Policy),
    /// Something that cannot be used, for this reason.
    Broken(String),
}

/// Another one after every change of a file, its owner or its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Mark {
    fn of(about: Metadata) -> Self {
        Self {
            inode: (about.dev(), about.ino()),
            size: about.size(),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}
