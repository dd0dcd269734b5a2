//! The archives with a runner's programs, which the server offers to machines that have none yet.
//!
//! They lie in one folder and are read when the server starts. Each file stays open, so that the server sends the bytes
//! of the checksum even if another file takes its place.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    net::IpAddr,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use shared_api::RunnerArchive;
use shared_types::{Digest, DigestAlgorithm, FileHasher, limits::MAX_RUNNER_ARCHIVE_BYTES};

use crate::edge::fair::Fair;

/// The kinds of machines, as `uname -m` calls them.
const KINDS: [&str; 2] = ["x86_64", "aarch64"];

/// The bytes of one read of a file.
const PIECE_BYTES: usize = 64 * 1024;

/// The most archives that are sent at the same time, each with a piece in memory.
const SENT_AT_ONCE: usize = 256;

/// The archives that the server hands out. Clones share them.
#[derive(Debug, Clone)]
pub struct Archives {
    all: Arc<[ArchiveFile]>,
    /// Places to send one, by the address that asks.
    pub(crate) sending: Arc<Fair<IpAddr>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct ArchiveFile {
    pub(crate) arch: &'static str,
    pub(crate) sha256: Digest,
    pub(crate) bytes: u64,
    pub(crate) file: Arc<File>,
}

impl Default for Archives {
    fn default() -> Self {
        Self {
            all: Arc::new([]),
            sending: Fair::new(SENT_AT_ONCE),
        }
    }
}

impl Archives {
    /// Reads the archives in the folder. A missing folder has none.
    ///
    /// # Errors
    /// Fails with [`ArchiveError`], which names a file that cannot be read or is too large.
    pub fn in_folder(folder: &Path) -> Result<Self, ArchiveError> {
        let mut all = Vec::new();
        for arch in KINDS {
            let path = folder.join(name(arch));
            match ArchiveFile::open(arch, &path) {
                Ok(archive) => all.push(archive),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(ArchiveError { path, source }),
            }
        }
        Ok(Self {
            all: all.into(),
            ..Self::default()
        })
    }

    /// The descriptions of all archives.
    pub fn list(&self) -> Vec<RunnerArchive> {
        self.all.iter().map(ArchiveFile::told).collect()
    }

    /// The one for this kind of machine.
    pub(crate) fn of(&self, arch: &str) -> Option<&ArchiveFile> {
        self.all.iter().find(|archive| archive.arch == arch)
    }

    /// The one with this checksum, where it has this name.
    pub(crate) fn named(&self, sha256: &str, asked: &str) -> Option<&ArchiveFile> {
        let sha256 = Digest::from_hex(sha256)?;
        let found = self.all.iter().find(|archive| archive.sha256 == sha256)?;
        (name(found.arch) == asked).then_some(found)
    }
}

impl ArchiveFile {
    fn open(arch: &'static str, path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes > MAX_RUNNER_ARCHIVE_BYTES {
            return Err(io::Error::other(format!(
                "it is larger than {MAX_RUNNER_ARCHIVE_BYTES} bytes"
            )));
        }
        let mut hasher = FileHasher::new(DigestAlgorithm::Sha256);
        let mut whole = (&file).take(bytes);
        let mut piece = vec![0; PIECE_BYTES];
        let mut read = 0;
        loop {
            match whole.read(&mut piece)? {
                0 => break,
                some => {
                    hasher.update(&piece[..some]);
                    read += some as u64;
                }
            }
        }
        if read != bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Self {
            arch,
            sha256: hasher.finish().value,
            bytes,
            file: Arc::new(file),
        })
    }

    pub(crate) fn told(&self) -> RunnerArchive {
        RunnerArchive {
            arch: self.arch.to_owned(),
            sha256: self.sha256.to_string(),
            name: name(self.arch),
            bytes: self.bytes,
        }
    }
}

/// The next piece of a file, from this offset and before `end`.
pub(crate) fn piece(file: &File, offset: u64, end: u64) -> io::Result<Bytes> {
    let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
    let mut piece = vec![0; left.min(PIECE_BYTES)];
    file.read_exact_at(&mut piece, offset)?;
    Ok(piece.into())
}

/// The file name of the archive for this kind of machine.
fn name(arch: &str) -> String {
    format!("gantry-runner-{arch}-linux.tar.gz")
}

/// The reason why the archives cannot be offered.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {source}; make it readable, or take it out of the folder", path.display())]
pub struct ArchiveError {
    path: PathBuf,
    source: io::Error,
}

#[cfg(test)]
mod tests;
