//! Takes a whole file of any size, piece by piece.
//!
//! Until all of it has come and has the digest that was announced, it is in a file without a name,
//! of which neither a failure nor a death leaves anything. Only then is the change announced and
//! the file given its name.

use std::{fs::File, io::Write as _, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
    io::Errno,
};
use sha2::{Digest as _, Sha256};
use shared_sandbox::{FileFailure, Input, Upload, Written};
use shared_types::{
    Digest, Refusal, RefusalCode,
    limits::{INPUT_WINDOW_BYTES, MAX_TRANSFER_BYTES},
};
use tokio::{runtime::Handle, sync::mpsc, time::sleep};

use super::{
    Allowance, Announcer, Failure, failure, invalid, io_failure,
    replace::{self, Names},
    stopped, too_slow,
};
use crate::{
    files::write,
    workspace::{Parents, Workspace},
};

/// How much is taken before that is said, while pieces wait: each word wakes both ends of the link.
const TAKEN_EVERY: u64 = INPUT_WINDOW_BYTES / 4;

/// A file without a name that has all of its content.
#[derive(Debug)]
pub(crate) struct Staged(File);

/// Takes the pieces, which follow one another, up to the end of the input. `taken` hears how far.
pub(crate) fn receive(
    upload: &Upload,
    mut pieces: mpsc::Receiver<Input>,
    workspace: &Workspace,
    allowance: &Allowance,
    mut taken: impl FnMut(u64),
) -> Result<Staged, Failure> {
    if upload.bytes > MAX_TRANSFER_BYTES {
        let (path, bytes, limit) = (upload.path.clone(), upload.bytes, MAX_TRANSFER_BYTES);
        return Err(FileFailure::TooLarge { path, bytes, limit }.into());
    }
    let failed = |error: std::io::Error| io_failure(&upload.path, &error);
    let mut file = unnamed(&beside(upload, workspace)?, upload)?;
    let (mut hasher, mut received, mut told) = (Sha256::new(), 0, 0);
    loop {
        let piece = next(&mut pieces, allowance)?;
        if piece.offset != received {
            return Err(invalid("a piece of the file is missing; send it again"));
        }
        received += piece.data.len() as u64;
        if received > upload.bytes || (piece.end && received < upload.bytes) {
            let (path, bytes) = (upload.path.clone(), upload.bytes);
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
    if Digest::from_slice(&hasher.finalize()) != Some(upload.digest) {
        let path = upload.path.clone();
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
    let names = Names {
        asked: &upload.path,
        unfinished: &announced.unfinished,
    };
    replace::name(&target, &staged.0, existing.as_ref(), names, allowance)?;
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
fn beside(upload: &Upload, workspace: &Workspace) -> Result<OwnedFd, Failure> {
    match workspace.locate(&upload.path, Parents::Expect) {
        Ok(target) => {
            replace::existing(&target, &upload.path)?;
            return Ok(target.directory);
        }
        Err(FileFailure::NotFound { .. }) => {}
        Err(failure) => return Err(failure.into()),
    }
    let above = Path::new(&upload.path).ancestors().skip(1);
    for directory in above.filter_map(Path::to_str) {
        match workspace.open_directory(directory) {
            Err(FileFailure::NotFound { .. }) => {}
            opened => return Ok(opened?),
        }
    }
    let path = upload.path.clone();
    Err(FileFailure::NotFound { path }.into())
}

fn unnamed(directory: &OwnedFd, upload: &Upload) -> Result<File, Failure> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(replace::NEW_MODE);
    match rustix::fs::openat(directory, ".", flags, mode) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => Err(Failure::Refused(Refusal::new(
            RefusalCode::Unsupported,
            "the workspace's file system has no unnamed files; put the workspace on a local disk",
        ))),
        Err(errno) => Err(failure(&upload.path, errno)),
    }
}
