//! Finds out what became of a change whose maker died, and removes what it left.

use rustix::{fs::AtFlags, io::Errno};
use shared_sandbox::FileFailure;

use super::{Allowance, Failure, content, replace};
use crate::{
    Change, Effect, Settled, There,
    change::is_unfinished_name,
    workspace::{Parents, Target, Workspace},
};

/// Compares what is at each path with what the change found there and with what it was to leave.
/// `later` says for each effect what the next change of its path found, where there was one: then
/// that counts.
pub(crate) fn settle(
    change: &Change,
    later: Vec<Option<There>>,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Settled {
    let removed = remove_unfinished(change, workspace);
    let mut later = later.into_iter();
    let found: Vec<_> = change
        .effects
        .iter()
        .map(|effect| match later.next().flatten() {
            Some(found) => Some(found),
            None => now(effect, workspace, allowance).ok(),
        })
        .collect();
    change.judged(&found, removed)
}

/// Whether it was there.
fn remove_unfinished(change: &Change, workspace: &Workspace) -> bool {
    let (Some(effect), Some(name)) = (change.effects.first(), change.unfinished.as_deref()) else {
        return false;
    };
    if !is_unfinished_name(name) {
        return false;
    }
    let Ok(target) = workspace.locate(&effect.path, Parents::Expect) else {
        return false;
    };
    match rustix::fs::unlinkat(&target.directory, name, AtFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOENT) => false,
        Err(errno) => {
            tracing::warn!(error = %errno, file.name = name, "failed to remove an unfinished file");
            false
        }
    }
}

/// What is at the path of the effect.
fn now(effect: &Effect, workspace: &Workspace, allowance: &Allowance) -> Result<There, Failure> {
    let target = match workspace.locate(&effect.path, Parents::Expect) {
        Ok(target) => target,
        // Without its directory there is no file.
        Err(FileFailure::NotFound { .. }) => return Ok(There::Nothing),
        Err(failure) => return Err(failure.into()),
    };
    look(&target, &effect.path, allowance)
}

fn look(target: &Target, path: &str, allowance: &Allowance) -> Result<There, Failure> {
    match replace::existing(target, path)? {
        Some(_) => content::digest(target, path, allowance).map(There::Content),
        None => Ok(There::Nothing),
    }
}

#[cfg(test)]
mod tests;
