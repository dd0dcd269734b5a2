//! Takes a whole file of any size, piece by piece.
//!
//! Until all of it has come and has the announced digest, it is in a file without a name, so that
//! neither a failure nor a death leaves anything. Only then is the change announced and the file
//! given its name.

use std::{fs::File, io::Write as _, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
};
use shared_sandbox::{FileFailure, Input, Unpack, Upload, Written};
use shared_types::{
    FileDigest, FileHasher, Refusal, RefusalCode,
    limits::{INPUT_WINDOW_BYTES, MAX_ARCHIVE_BYTES, MAX_TRANSFER_BYTES},
};
use tokio::{runtime::Handle, sync::mpsc, time::sleep};

use super::{
    Allowance, Announcer, Failure, access, failure, invalid, io_failure,
    replace::{self, ReplacementNames},
    stopped, too_slow,
};
use crate::{
    files::write,
    workspace::{Parents, Workspace},
};

/// The bytes that are taken before that is reported, while pieces wait: each report wakes both ends
/// of the link.
const TAKEN_EVERY: u64 = INPUT_WINDOW_BYTES / 4;

/// A file without a name that has all of its content.
#[derive(Debug)]
pub(crate) struct Staged(pub(super) File);

/// The announced content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announcement<'a> {
    /// The path that it is for, as it was asked for.
    pub(crate) path: &'a str,
    pub(crate) bytes: u64,
    pub(crate) digest: FileDigest,
    /// The mode of its file, less what the umask takes away.
    mode: u32,
    /// The most that can come.
    limit: u64,
    /// True if it is put beside other things in the directory, or replaces what is there.
    is_directory: bool,
}

impl<'a> From<&'a Upload> for Announcement<'a> {
    fn from(upload: &'a Upload) -> Self {
        Self {
            path: &upload.path,
            bytes: upload.bytes,
            digest: upload.digest,
            mode: upload
                .mode
                .map_or(replace::NEW_MODE, |mode| mode & replace::KEPT_MODE),
            limit: MAX_TRANSFER_BYTES,
            is_directory: false,
        }
    }
}

impl<'a> From<&'a Unpack> for Announcement<'a> {
    fn from(unpack: &'a Unpack) -> Self {
        Self {
            path: &unpack.path,
            bytes: unpack.bytes,
            digest: unpack.digest,
            // It is read once, here.
            mode: 0o600,
            limit: MAX_ARCHIVE_BYTES,
            is_directory: true,
        }
    }
}

/// Takes the pieces, which follow one another, up to the end of the input. `taken` hears how far.
pub(crate) fn receive(
    announced: Announcement<'_>,
    mut pieces: mpsc::Receiver<Input>,
    workspace: &Workspace,
    allowance: &Allowance,
    mut taken: impl FnMut(u64),
) -> Result<Staged, Failure> {
    let (path, bytes, limit) = (announced.path, announced.bytes, announced.limit);
    if bytes > limit {
        let path = path.to_owned();
        return Err(FileFailure::TooLarge { path, bytes, limit }.into());
    }
    let failed = |error: std::io::Error| io_failure(path, &error);
    let mut file = unnamed(&beside(announced, workspace)?, announced)?;
    let mut hasher = FileHasher::new(announced.digest.algorithm);
    let (mut received, mut told) = (0, 0);
    loop {
        let piece = next(&mut pieces, allowance)?;
        if piece.offset != received {
            return Err(invalid("a piece of the file is missing; send it again"));
        }
        received += piece.data.len() as u64;
        if received > bytes || (piece.end && received < bytes) {
            let path = path.to_owned();
            return Err(FileFailure::OtherSize { path, bytes }.into());
        }
        file.write_all(&piece.data).map_err(failed)?;
        hasher.update(&piece.data);
        if piece.end || pieces.is_empty() || received - told >= TAKEN_EVERY {
            taken(received);
            told = received;
        }
        if piece.end {
            break;
        }
    }
    if hasher.finish() != announced.digest {
        let path = path.to_owned();
        return Err(FileFailure::OtherDigest { path }.into());
    }
    file.sync_all().map_err(failed)?;
    Ok(Staged(file))
}

/// Gives the file its name, and says what was there before.
pub(crate) fn put(
    upload: &Upload,
    staged: &Staged,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Written, Failure> {
    let announced = write::announced(
        &upload.path,
        upload.bytes,
        upload.digest,
        workspace,
        allowance,
        announcer,
    )?;
    let (target, existing) = match announced.found {
        Some(found) => found,
        None => write::make(&upload.path, workspace)?,
    };
    let names = ReplacementNames {
        asked: &upload.path,
        unfinished: &announced.unfinished,
        expected: None,
    };
    replace::name(&target, &staged.0, existing.as_ref(), names, allowance)?;
    if let Some(modified_us) = upload.modified_us {
        let mode = upload.mode.unwrap_or(replace::NEW_MODE);
        access::set(&staged.0, mode, modified_us).map_err(|errno| failure(&upload.path, errno))?;
    }
    Ok(announced.written)
}

/// The next piece; it has to come while there is time.
fn next(pieces: &mut mpsc::Receiver<Input>, allowance: &Allowance) -> Result<Input, Failure> {
    if let Ok(piece) = pieces.try_recv() {
        allowance.check()?;
        return Ok(piece);
    }
    let mut stopping = allowance.stopping.clone();
    Handle::current().block_on(async {
        tokio::select! {
            biased;
            _ = stopping.wanted() => Err(stopped()),
            piece = pieces.recv() => piece.ok_or_else(stopped),
            () = sleep(allowance.left()) => Err(too_slow(allowance.limit)),
        }
    })
}

/// The directory where the file is to be, or the nearest one above it that is there.
fn beside(announced: Announcement<'_>, workspace: &Workspace) -> Result<OwnedFd, Failure> {
    let asked = announced.path;
    if !announced.is_directory {
        match workspace.locate(asked, Parents::Expect) {
            Ok(target) => {
                replace::existing(&target, asked)?;
                return Ok(target.directory);
            }
            Err(FileFailure::NotFound { .. }) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let above = Path::new(asked).ancestors();
    let above = above.skip(usize::from(!announced.is_directory));
    for directory in above.filter_map(Path::to_str) {
        match workspace.open_directory(directory) {
            Err(FileFailure::NotFound { .. }) => {}
            opened => return Ok(opened?),
        }
    }
    let path = asked.to_owned();
    Err(FileFailure::NotFound { path }.into())
}

fn unnamed(directory: &OwnedFd, announced: Announcement<'_>) -> Result<File, Failure> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(announced.mode);
    match rustix::fs::openat(directory, ".", flags, mode) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => Err(Failure::Refused(Refusal::new(
            RefusalCode::Unsupported,
            "the workspace's file system has no unnamed files; put the workspace on a local disk",
        ))),
        Err(errno) => Err(failure(announced.path, errno)),
    }
}
