//! Finds out what became of a change whose maker died, and removes what it left.

use rustix::io::Errno;
use shared_sandbox::{EntryKind, FileFailure};

use super::{Allowance, Failure, content, failure, remove};
use crate::{
    Change, Effect, SettledChange, There,
    change::is_unfinished_name,
    workspace::{Parents, PathTarget, Workspace, entry},
};

/// Compares what is at each path with what the change found there and with what it was to leave.
/// `later` says for each effect what the next change of its path found, where there was one: then
/// that counts.
pub(crate) fn settle(
    change: &Change,
    later: Vec<Option<There>>,
    workspace: &Workspace,
    allowance: &Allowance,
) -> SettledChange {
    let mut later = later.into_iter();
    let mut found: Vec<_> = change
        .effects
        .iter()
        .map(|effect| match later.next().flatten() {
            Some(found) => Some(found),
            None => now(effect, workspace, allowance).ok(),
        })
        .collect();
    let left = remove_unfinished(change, workspace, allowance);
    // Only what was removed is put aside.
    if left && change.removes() {
        found[0] = Some(There::Nothing);
    }
    change.judged(&found, left)
}

/// Removes the file with the unfinished name; returns `true` if it was there.
fn remove_unfinished(change: &Change, workspace: &Workspace, allowance: &Allowance) -> bool {
    let (Some(effect), Some(name)) = (change.effects.first(), change.unfinished.as_deref()) else {
        return false;
    };
    if !is_unfinished_name(name) {
        return false;
    }
    let Ok(Some(PathTarget { directory, .. })) = target(effect, workspace) else {
        return false;
    };
    remove::clear(&directory, name, allowance).unwrap_or_else(|failure| {
        tracing::warn!(
            ?failure,
            file.name = name,
            "failed to remove what a change has left"
        );
        let name = name.into();
        entry::look(&PathTarget { directory, name }).is_ok_and(|there| there.is_some())
    })
}

/// The state of the effect's path.
fn now(effect: &Effect, workspace: &Workspace, allowance: &Allowance) -> Result<There, Failure> {
    let failed = |errno| failure(&effect.path, errno);
    let target = match target(effect, workspace) {
        Ok(target) => target.ok_or_else(|| failed(Errno::INVAL))?,
        // Without its directory there is nothing.
        Err(FileFailure::NotFound { .. }) => return Ok(There::Nothing),
        Err(failure) => return Err(failure.into()),
    };
    match entry::look(&target).map_err(failed)? {
        None => Ok(There::Nothing),
        Some(entry) => match (entry.identity.kind, effect.algorithm()) {
            (EntryKind::File, Some(algorithm)) => {
                let digest = content::digest(&target, &effect.path, algorithm, allowance);
                digest.map(There::Content)
            }
            (EntryKind::Link, None) if effect.is_of_link() => {
                target.leads_to().map(There::Link).map_err(failed)
            }
            _ => Ok(There::This(entry.identity)),
        },
    }
}

/// The place of the effect: for content the file that its path leads to, else the entry itself.
fn target(effect: &Effect, workspace: &Workspace) -> Result<Option<PathTarget>, FileFailure> {
    match effect.algorithm().is_some() {
        true => workspace.locate(&effect.path, Parents::Expect).map(Some),
        false => workspace.entry(&effect.path),
    }
}

#[cfg(test)]
mod tests;
