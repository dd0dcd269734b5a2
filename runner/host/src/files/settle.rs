//! Finds out what became of a change whose maker died, and removes what it left.

use rustix::{fs::AtFlags, io::Errno};
use shared_sandbox::FileFailure;
use shared_types::Digest;

use super::{Allowance, Failure, content, replace};
use crate::{
    Change, Settled,
    change::is_unfinished_name,
    workspace::{Parents, Target, Workspace},
};

/// Compares the file with what the change found and with what it was to leave.
pub(crate) fn settle(change: &Change, workspace: &Workspace, allowance: &Allowance) -> Settled {
    let (removed, now) = match workspace.locate(&change.path, Parents::Expect) {
        Ok(target) => (
            remove_unfinished(&target, change),
            digest_now(&target, change, allowance),
        ),
        // Without its directory there is no file.
        Err(FileFailure::NotFound { .. }) => (false, Ok(None)),
        Err(failure) => (false, Err(failure.into())),
    };
    match now {
        Ok(now) if now == Some(change.after()) => Settled::Applied(change.outcome()),
        Ok(now) if now == change.before() => Settled::NotApplied,
        // What was never renamed was never applied, whoever changed the file since.
        _ if removed => Settled::NotApplied,
        _ => Settled::Unclear,
    }
}

/// Whether it was there.
fn remove_unfinished(target: &Target, change: &Change) -> bool {
    if !is_unfinished_name(&change.unfinished) {
        return false;
    }
    let name = change.unfinished.as_str();
    match rustix::fs::unlinkat(&target.directory, name, AtFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOENT) => false,
        Err(errno) => {
            tracing::warn!(error = %errno, file.name = name, "failed to remove an unfinished file");
            false
        }
    }
}

fn digest_now(
    target: &Target,
    change: &Change,
    allowance: &Allowance,
) -> Result<Option<Digest>, Failure> {
    match replace::existing(target, &change.path)? {
        Some(_) => content::digest(target, &change.path, allowance).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
