//! Tells what is at a path.

use rustix::io::Errno;
use shared_sandbox::{EntryKind, Found, Stat};

use super::{Failure, failure};
use crate::workspace::{Workspace, entry};

/// The facts about a path: for a symbolic link about the link itself, unless it is to be followed.
pub(super) fn stat(stat: &Stat, workspace: &Workspace) -> Result<Found, Failure> {
    let failed = |errno| failure(&stat.path, errno);
    let named = match stat.follow {
        true => None,
        false => workspace.entry(&stat.path)?,
    };
    let (found, leads_to) = match named {
        None if stat.follow => (
            entry::look_at(workspace.open_any(&stat.path)?).map_err(failed)?,
            None,
        ),
        // The root, or a directory by way of `.` or `..`.
        None => (
            entry::look_at(workspace.open_place(&stat.path)?).map_err(failed)?,
            None,
        ),
        Some(target) => {
            let found = entry::look(&target).map_err(failed)?;
            let found = found.ok_or_else(|| failed(Errno::NOENT))?;
            let leads_to = match found.identity.kind {
                EntryKind::Link => Some(target.leads_to().map_err(failed)?),
                EntryKind::File | EntryKind::Directory | EntryKind::Other => None,
            };
            (found, leads_to)
        }
    };
    let kind = found.identity.kind;
    super::must_be_directory(&stat.path, kind)?;
    let modified = found.stat.stx_mtime;
    Ok(Found {
        kind,
        bytes: match kind {
            EntryKind::File => found.stat.stx_size,
            EntryKind::Directory | EntryKind::Link | EntryKind::Other => 0,
        },
        mode: u32::from(found.stat.stx_mode) & 0o7777,
        modified_us: modified
            .tv_sec
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(modified.tv_nsec / 1000)),
        leads_to,
    })
}
