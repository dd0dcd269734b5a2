//! Serves a whole file of any size: opened once, its bytes read where a reader asks, its digest
//! computed beside that.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _, Write as _},
    sync::Arc,
};

use bytes::Bytes;
use rustix::{
    buffer::spare_capacity,
    fd::{AsFd as _, BorrowedFd},
    fs::Stat,
};
use shared_program::files::{self, State};
use shared_sandbox::{Download, Downloaded, FileFailure};
use shared_types::{FileHasher, limits::MAX_TRANSFER_BYTES};

use super::{Allowance, Failure, bytes, io_failure, pack::scratch};
use crate::workspace::Workspace;

/// Read at once for the digest.
const BUFFER_BYTES: usize = 256 * 1024;

/// A file that is open to be read, even if its name is gone.
#[derive(Debug, Clone)]
pub struct OpenFile {
    file: Arc<File>,
    bytes: u64,
}

impl OpenFile {
    /// A file that no process writes to any more.
    pub(crate) fn new(file: File, bytes: u64) -> Self {
        let file = Arc::new(file);
        Self { file, bytes }
    }

    /// Its descriptor.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its size when it was opened; nothing is read beyond.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The content from `from` on, at most `max` bytes of it; nothing where the file has become
    /// shorter.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn read(&self, from: u64, max: usize) -> io::Result<Bytes> {
        let left = self.bytes.saturating_sub(from);
        let wanted = usize::try_from(left).map_or(max, |left| left.min(max));
        if wanted == 0 {
            return Ok(Bytes::new());
        }
        let mut buffer = Vec::with_capacity(wanted);
        rustix::io::pread(&self.file, spare_capacity(&mut buffer), from)?;
        Ok(buffer.into())
    }
}

/// Opens the file, hands it over, and computes its digest.
pub(super) fn download(
    download: &Download,
    workspace: &Workspace,
    allowance: &Allowance,
    hand_over: impl FnOnce(OpenFile),
) -> Result<Downloaded, Failure> {
    let (file, before) = workspace.open_file(&download.path)?;
    let failed = |error: io::Error| io_failure(&download.path, &error);
    let lies = files::lies_about_its_size(&file, state(&before)).map_err(failed)?;
    let (file, before) = match lies {
        true => read_to_end(download, &file, workspace, allowance)?,
        false => (file, before),
    };
    let file = OpenFile::new(file, bytes(before.st_size));
    let limit = download.max_bytes;
    if limit > 0 && file.bytes > limit {
        let (path, bytes) = (download.path.clone(), file.bytes);
        return Err(FileFailure::TooLarge { path, bytes, limit }.into());
    }
    hand_over(file.clone());
    let changed = || FileFailure::Changed {
        path: download.path.clone(),
        since_read: false,
    };
    let (mut hasher, mut at) = (FileHasher::new(download.algorithm), 0);
    while at < file.bytes {
        allowance.check()?;
        match file.read(at, BUFFER_BYTES) {
            Ok(data) if data.is_empty() => return Err(changed().into()),
            Ok(data) => {
                hasher.update(&data);
                at += data.len() as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let after = rustix::fs::fstat(&file.file).map_err(|errno| failed(errno.into()))?;
    if files::settled(state(&before), state(&after), file.bytes).is_none() {
        return Err(changed().into());
    }
    Ok(Downloaded {
        bytes: file.bytes,
        digest: hasher.finish(),
    })
}

/// Copies a file whose size says nothing into a file that has a size.
fn read_to_end(
    download: &Download,
    mut file: &File,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<(File, Stat), Failure> {
    let failed = |error: io::Error| io_failure(&download.path, &error);
    let limit = match download.max_bytes {
        0 => MAX_TRANSFER_BYTES,
        bound => bound.min(MAX_TRANSFER_BYTES),
    };
    let mut whole = scratch(workspace).map_err(failed)?;
    let (mut buffer, mut read) = (vec![0; BUFFER_BYTES], 0);
    loop {
        allowance.check()?;
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                whole.write_all(&buffer[..length]).map_err(failed)?;
                read += length as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if read > limit {
            return Err(FileFailure::TooLarge {
                path: download.path.clone(),
                bytes: read,
                limit,
            }
            .into());
        }
    }
    let stat = rustix::fs::fstat(&whole).map_err(|errno| failed(errno.into()))?;
    Ok((whole, stat))
}

/// The figures that differ once a file was written to, unless a program hides it. A rename or a
/// removal makes no difference.
pub(super) fn state(stat: &Stat) -> State {
    State {
        bytes: bytes(stat.st_size),
        modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
    }
}
