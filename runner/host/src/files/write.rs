//! Writes a whole file.

use rustix::fs::Stat;
use shared_sandbox::{FileFailure, Outcome, Write, Written};
use shared_types::{DigestAlgorithm, FileDigest, limits::MAX_INLINE_FILE_BYTES};

use super::{
    Allowance, Announcer, Failure, content,
    replace::{self, ReplacementNames},
};
use crate::{
    Change,
    change::Digests,
    workspace::{Parents, PathTarget, Workspace},
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
    let after = DigestAlgorithm::Sha256.of(&write.content);
    let announced = announced(&write.path, bytes, after, workspace, allowance, announcer)?;
    let (target, existing) = match announced.found {
        Some(found) => found,
        None => make(&write.path, workspace)?,
    };
    let names = ReplacementNames {
        asked: &write.path,
        unfinished: &announced.unfinished,
        expected: None,
    };
    let before = existing.as_ref();
    replace::replace(&target, &write.content, before, names, allowance)?;
    Ok(announced.written)
}

/// The place of a file, and the file that is there now.
pub(super) type TargetState = (PathTarget, Option<Stat>);

/// The whole file may be written.
pub(super) struct Announced {
    /// The outcome then.
    pub(super) written: Written,
    /// The name of the new content until it is in place.
    pub(super) unfinished: String,
    /// Its place, unless its directory is missing.
    pub(super) found: Option<TargetState>,
}

/// Announces that the whole file is to be written, with so many bytes of this digest.
pub(super) fn announced(
    path: &str,
    bytes: u64,
    after: FileDigest,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Announced, Failure> {
    let found = find(path, workspace)?;
    let before = match &found {
        Some((target, Some(_))) => Some(content::digest(target, path, after.algorithm, allowance)?),
        _ => None,
    };
    let written = Written {
        bytes,
        before,
        after,
    };
    let unfinished = allowance.unfinished_name();
    announcer.announce(
        Change::of_content(
            workspace.path_of_change(path),
            unfinished.clone(),
            Digests { before, after },
            Outcome::Written(written.clone()),
        ),
        allowance,
    )?;
    Ok(Announced {
        written,
        unfinished,
        found,
    })
}

/// Makes the file's missing directories.
pub(super) fn make(path: &str, workspace: &Workspace) -> Result<TargetState, Failure> {
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

/// The place of the file and the file that is there now; `None` where its directory is missing,
/// which is made only after the change was announced.
fn find(asked: &str, workspace: &Workspace) -> Result<Option<TargetState>, Failure> {
    let target = match workspace.locate(asked, Parents::Expect) {
        Ok(target) => target,
        Err(FileFailure::NotFound { .. }) => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    let existing = replace::existing(&target, asked)?;
    Ok(Some((target, existing)))
}
