//! Writes a whole file.

use std::{io::Read as _, path::Path};

use sha2::{Digest as _, Sha256};
use shared_sandbox::{FileFailure, Write, Written};
use shared_types::{Digest, limits::MAX_INLINE_FILE_BYTES};

use super::{Allowance, Failure, failure, io_failure, replace};
use crate::workspace::{Links, Parents, Target, Workspace, open_ordinary};

/// Read at once when the old content's digest is computed.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes the file and says what was there before.
pub(super) fn write(
    write: &Write,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Written, Failure> {
    let bytes = write.content.len() as u64;
    if write.content.len() > MAX_INLINE_FILE_BYTES {
        return Err(too_large(&write.path, bytes).into());
    }
    let target = workspace.locate(&write.path, Parents::Make)?;
    let existing = replace::existing(&target, &write.path)?;
    let before = match existing {
        Some(_) => Some(digest(&target, &write.path, allowance)?),
        None => None,
    };
    replace::replace(
        &target,
        &write.content,
        existing.as_ref(),
        &write.path,
        allowance,
    )?;
    Ok(Written {
        bytes,
        before,
        after: Digest::of(&write.content),
    })
}

/// The content goes beyond what one operation may carry.
pub(super) fn too_large(asked: &str, bytes: u64) -> FileFailure {
    FileFailure::TooLarge {
        path: asked.to_owned(),
        bytes,
        limit: MAX_INLINE_FILE_BYTES as u64,
    }
}

fn digest(target: &Target, asked: &str, allowance: &Allowance) -> Result<Digest, Failure> {
    let (mut file, _) = open_ordinary(&target.directory, Path::new(&target.name), Links::Refuse)
        .map_err(|errno| failure(asked, errno))?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        allowance.check()?;
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => hasher.update(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io_failure(asked, &error)),
        }
    }
    Ok(Digest::from_slice(&hasher.finalize()).expect("SHA-256 has 32 bytes"))
}
