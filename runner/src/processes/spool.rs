//! The files on disk of a command.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Weak,
};

use bytes::Bytes;
use runner_supervisor::{Directory, Realm, SpoolReader, SpoolStream, SupervisorPool};
use shared_sandbox::OutputStream;
use tokio::task::spawn_blocking;

use super::control::index;

/// The unit of `st_blocks` (stat(2)), in bytes.
const BLOCK_BYTES: u64 = 512;

/// The directory of one operation. Its files are opened when they are read, and stay open.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    realm: Realm,
    /// The pool that its supervisor came from, as long as that is there.
    pool: Weak<SupervisorPool>,
    readers: [Option<SpoolReader>; 2],
}

/// The thing at an offset of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpoolRead {
    /// These bytes, at least one.
    Bytes(Bytes),
    /// Bytes that were not kept; the output goes on at `until`.
    Gap {
        /// An offset behind the one that was asked for.
        until: u64,
    },
    /// Nothing yet, or nothing any more.
    Nothing,
}

impl Spool {
    pub(super) fn new(path: PathBuf, realm: Realm, pool: Weak<SupervisorPool>) -> Self {
        Self {
            path,
            realm,
            pool,
            readers: [None, None],
        }
    }

    /// The name of the directory below the root.
    pub(crate) fn name(&self) -> &str {
        super::name(&self.path)
    }

    /// Reads at most `max` bytes from `offset` on. What was written a moment ago is in memory, so
    /// this waits for no disk as a rule.
    ///
    /// # Errors
    /// When the host refuses.
    pub(crate) fn read(
        &mut self,
        stream: OutputStream,
        offset: u64,
        max: usize,
    ) -> io::Result<SpoolRead> {
        let reader = match &mut self.readers[index(stream)] {
            Some(reader) => reader,
            closed => closed.insert(open(&self.path, stream)?),
        };
        let mut bytes = Vec::with_capacity(max);
        Ok(match reader.append_to(&mut bytes, offset)? {
            runner_supervisor::SpoolPiece::Bytes(_) => SpoolRead::Bytes(bytes.into()),
            runner_supervisor::SpoolPiece::Gap { until }
            | runner_supervisor::SpoolPiece::Evicted { until } => SpoolRead::Gap { until },
            runner_supervisor::SpoolPiece::Nothing => SpoolRead::Nothing,
        })
    }

    /// Closes the files until the next read: an operation that has ended may wait for long.
    pub(crate) fn close(&mut self) {
        self.readers = [None, None];
    }

    /// The bytes that both streams take on the disk, without what was dropped or evicted.
    ///
    /// # Errors
    /// When the host refuses.
    pub(crate) fn bytes_on_disk(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for stream in SpoolStream::ALL {
            let file = self.path.join(stream.file_name());
            bytes += fs::metadata(file)?.blocks() * BLOCK_BYTES;
        }
        Ok(bytes)
    }

    /// Gives supervisor and files to another command where that is possible; else removes all, off the
    /// async threads. What stays because the host refuses is found by the next daemon.
    pub(crate) fn forget(self) {
        let pool = self.pool.upgrade();
        if pool.is_some_and(|pool| pool.reclaim(&self.path)) {
            return;
        }
        spawn_blocking(move || {
            let name = self.name();
            let removed = Directory::open(&self.path);
            let removed = removed.and_then(|directory| self.realm.remove(directory));
            if let Err(error) = removed {
                tracing::warn!(%error, process.directory = name, "failed to remove a command's files");
            }
        });
    }
}

fn open(path: &Path, stream: OutputStream) -> io::Result<SpoolReader> {
    let stream = match stream {
        OutputStream::Stdout => SpoolStream::Out,
        OutputStream::Stderr => SpoolStream::Err,
    };
    SpoolReader::open(&Directory::open(path)?, stream)
}
