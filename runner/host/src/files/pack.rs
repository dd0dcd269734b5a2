//! Reads many small files of a directory at once: an archive of them is made, and served like a file.
//!
//! The archive lies on the workspace's disk in a file without a name, or in memory where nothing may be
//! written there. What changes while it is read, and what cannot be read, is left out and said.

use std::{
    fs::File,
    io::{self, BufWriter, Read as _, Write},
    path::Path,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{MemfdFlags, Mode, OFlags, Stat},
};
use shared_program::files;
use shared_sandbox::{FileFailure, Pack, Packed, Skipped};
use shared_types::{
    FileHasher,
    limits::{MAX_ARCHIVE_BYTES, MAX_ARCHIVE_ENTRIES},
};

use super::{
    Allowance, Failure, MAX_SKIPPED_BYTES, OpenFile, bytes, download::state, fit_within, invalid,
    io_failure, skipped_bytes, unpack::is_beneath,
};
use crate::workspace::{Links, Workspace, open_ordinary};

/// The number of attempts to read a file that changes, before it is left out.
const ATTEMPTS: usize = 3;

/// Makes the archive, hands it over, and says what is in it.
pub(super) fn pack(
    asked: &Pack,
    workspace: &Workspace,
    allowance: &Allowance,
    hand_over: impl FnOnce(OpenFile),
) -> Result<Packed, Failure> {
    if asked.entries.len() > MAX_ARCHIVE_ENTRIES {
        return Err(invalid(
            "too many entries are asked for at once; ask for a part of them",
        ));
    }
    let failed = |error: &io::Error| io_failure(&asked.path, error);
    let directory = workspace.open_directory(&asked.path)?;
    let file = scratch(workspace).map_err(|error| failed(&error))?;
    let archive = DigestedFile {
        file: BufWriter::new(file.try_clone().map_err(|error| failed(&error))?),
        hasher: FileHasher::new(asked.algorithm),
        bytes: 0,
    };
    let mut archive = tar::Builder::new(archive);
    let mut skipped = Vec::new();
    for path in &asked.entries {
        allowance.check()?;
        let left = MAX_ARCHIVE_BYTES.saturating_sub(archive.get_ref().bytes);
        match read(&directory, path, left) {
            Ok((content, stat)) => {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len() as u64);
                header.set_mode(stat.st_mode & 0o7777);
                header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
                let added = archive.append_data(&mut header, path, content.as_slice());
                added.map_err(|error| failed(&error))?;
            }
            Err(failure) => skipped.push(Skipped {
                path: path.clone(),
                failure,
            }),
        }
    }
    let mut archive = archive.into_inner().map_err(|error| failed(&error))?;
    archive.flush().map_err(|error| failed(&error))?;
    let (bytes, digest) = (archive.bytes, archive.hasher.finish());
    fit_within(MAX_SKIPPED_BYTES, &mut skipped, skipped_bytes);
    hand_over(OpenFile::new(file, bytes));
    Ok(Packed {
        bytes,
        digest,
        skipped,
    })
}

/// A whole file in one of its states.
fn read(directory: &OwnedFd, path: &str, limit: u64) -> Result<(Vec<u8>, Stat), FileFailure> {
    let failed = |errno| crate::workspace::failure(path, errno);
    if !is_beneath(path) {
        let path = path.to_owned();
        return Err(FileFailure::OutsideWorkspace { path });
    }
    for _ in 0..ATTEMPTS {
        let opened = open_ordinary(directory.as_fd(), Path::new(path), Links::Refuse);
        let (file, before) = opened.map_err(failed)?;
        let size = bytes(before.st_size);
        if size > limit {
            return Err(FileFailure::TooLarge {
                path: path.to_owned(),
                bytes: size,
                limit,
            });
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        let read = (&file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut content);
        read.map_err(|error| crate::workspace::io_failure(path, &error))?;
        let (after, read) = (
            rustix::fs::fstat(&file).map_err(failed)?,
            content.len() as u64,
        );
        match files::settled(state(&before), state(&after), read) {
            Some(bytes) if bytes > limit => {
                return Err(FileFailure::TooLarge {
                    path: path.to_owned(),
                    bytes,
                    limit,
                });
            }
            Some(bytes) => {
                content.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
                return Ok((content, before));
            }
            None => {}
        }
    }
    let path = path.to_owned();
    Err(FileFailure::Changed {
        path,
        since_read: false,
    })
}

/// A file without a name.
pub(super) fn scratch(workspace: &Workspace) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let root = workspace.open_directory("");
    let unnamed = root
        .ok()
        .and_then(|root| rustix::fs::openat(root, ".", flags, Mode::from_raw_mode(0o600)).ok());
    let file = match unnamed {
        Some(file) => file,
        None => rustix::fs::memfd_create("gantry-archive", MemfdFlags::CLOEXEC)?,
    };
    Ok(File::from(file))
}

/// Counts and digests what is written.
struct DigestedFile {
    file: BufWriter<File>,
    hasher: FileHasher,
    bytes: u64,
}

impl Write for DigestedFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write_all(data)?;
        self.hasher.update(data);
        self.bytes += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
