//! Finds files by name.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::Stat;
use shared_sandbox::{FileFailure, Glob, Globbed};

use super::{Allowance, Failure, fit, walk::Start, wanted};
use crate::workspace::Workspace;

/// The newest files that fit. Of many only as many as are wanted are kept.
pub(super) fn glob(
    glob: &Glob,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Globbed, Failure> {
    let pattern = matcher(&glob.pattern)?;
    let start = Start::at(&glob.path, workspace)?;
    let wanted = wanted(glob.max_paths);
    // The oldest is at the top, to be dropped first; of two as old the one that is later by path.
    let mut newest: BinaryHeap<(Reverse<(i64, u64)>, PathBuf)> = BinaryHeap::new();
    let mut more = false;
    let seen = start.walk(allowance, |below| {
        if pattern.is_match(below)
            && let Ok(stat) = start.stat(below)
        {
            newest.push((Reverse(modified(&stat)), below.to_owned()));
            if newest.len() > wanted {
                newest.pop();
                more = true;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let newest = newest.into_sorted_vec().into_iter();
    let mut paths: Vec<String> = newest.map(|(_, below)| start.shown(&below)).collect();
    more |= fit(&mut paths, String::len) || seen.part;
    Ok(Globbed {
        paths,
        more,
        unread_rules: seen.unread_rules,
    })
}

/// A matcher of whole paths, in which only `**` crosses a `/`; a pattern without a `/` fits names at any depth.
///
/// # Errors
/// [`FileFailure::Pattern`] in one line.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, Failure> {
    let unusable = |reason: String| Failure::File(FileFailure::Pattern { reason });
    let (is_name, pattern) = (
        !pattern.contains('/'),
        pattern.strip_prefix("./").unwrap_or(pattern),
    );
    if pattern.is_empty() {
        return Err(unusable("it is empty; ** fits every file".to_owned()));
    }
    if Path::new(pattern).is_absolute() {
        let reason = "it begins with a /; a glob is relative to the directory that is searched";
        return Err(unusable(reason.to_owned()));
    }
    let any_depth = if is_name { "**/" } else { "" };
    GlobBuilder::new(&format!("{any_depth}{pattern}"))
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| unusable(error.kind().to_string()))
}

/// Seconds and nanoseconds of the last change of the content.
fn modified(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}
