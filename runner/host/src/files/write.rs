//! Writes a whole file.

use rustix::fs::Stat;
use shared_sandbox::{FileFailure, Write, Written};
use shared_types::{Digest, limits::MAX_INLINE_FILE_BYTES};

use super::{Allowance, Announcer, Failure, content, replace};
use crate::{
    Change, Done,
    workspace::{Parents, Target, Workspace},
};

/// Writes the file and says what was there before.
pub(super) fn write(
    write: &Write,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Written, Failure> {
    let bytes = write.content.len() as u64;
    if write.content.len() > MAX_INLINE_FILE_BYTES {
        return Err(too_large(&write.path, bytes).into());
    }
    let after = Digest::of(&write.content);
    let (written, change, found) =
        announced(&write.path, bytes, after, workspace, allowance, announcer)?;
    let (target, existing) = match found {
        Some(found) => found,
        None => make(&write.path, workspace)?,
    };
    replace::replace(
        &target,
        &write.content,
        existing.as_ref(),
        &change,
        allowance,
    )?;
    Ok(written)
}

/// Where a file is to be, and what is there now.
pub(super) type Found = (Target, Option<Stat>);

/// Announces that the whole file is to be written, with so many bytes of this digest. Says where
/// it is to be, unless its directory is missing.
pub(super) fn announced(
    path: &str,
    bytes: u64,
    after: Digest,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<(Written, Change, Option<Found>), Failure> {
    let found = find(path, workspace)?;
    let before = match &found {
        Some((target, Some(_))) => Some(content::digest(target, path, allowance)?),
        _ => None,
    };
    let written = Written {
        bytes,
        before,
        after,
    };
    let change = Change {
        path: path.to_owned(),
        unfinished: allowance.unfinished_name(),
        done: Done::Written(written.clone()),
    };
    announcer.announce(change.clone(), allowance)?;
    Ok((written, change, found))
}

/// Makes the file's missing directories.
pub(super) fn make(path: &str, workspace: &Workspace) -> Result<Found, Failure> {
    let target = workspace.locate(path, Parents::Make)?;
    let existing = replace::existing(&target, path)?;
    Ok((target, existing))
}

/// The content goes beyond what one operation may carry.
pub(super) fn too_large(asked: &str, bytes: u64) -> FileFailure {
    FileFailure::TooLarge {
        path: asked.to_owned(),
        bytes,
        limit: MAX_INLINE_FILE_BYTES as u64,
    }
}

/// Where the file is to be and what is there now; `None` where its directory is missing, which
/// is made only after the change was announced.
fn find(asked: &str, workspace: &Workspace) -> Result<Option<Found>, Failure> {
    let target = match workspace.locate(asked, Parents::Expect) {
        Ok(target) => target,
        Err(FileFailure::NotFound { .. }) => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    let existing = replace::existing(&target, asked)?;
    Ok(Some((target, existing)))
}
