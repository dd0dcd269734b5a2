//! Lists a directory.

use std::{collections::BinaryHeap, ffi::CString};

use rustix::fs::{Dir, FileType};
use shared_sandbox::{EntryKind, List, Listed, ListedEntry};

use super::{Allowance, Failure, bytes, failure, fit, wanted};
use crate::workspace::{Workspace, entry::kind, stat_entry};

/// The first entries by name. Of a large directory only as many names as are wanted are kept.
pub(super) fn list(
    list: &List,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Listed, Failure> {
    let failed = |errno| failure(&list.path, errno);
    let directory = workspace.open_directory(&list.path)?;
    let wanted = wanted(list.max_entries);
    let mut names: BinaryHeap<CString> = BinaryHeap::new();
    let mut more = false;
    for entry in Dir::read_from(&directory).map_err(failed)? {
        allowance.check()?;
        let entry = entry.map_err(failed)?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        names.push(entry.file_name().to_owned());
        if names.len() > wanted {
            names.pop();
            more = true;
        }
    }
    let mut entries = Vec::with_capacity(names.len());
    for name in names.into_sorted_vec() {
        allowance.check()?;
        // What is gone by now is no entry any more.
        let Some(stat) = stat_entry(&directory, name.as_c_str()).map_err(failed)? else {
            continue;
        };
        let kind = kind(FileType::from_raw_mode(stat.st_mode));
        entries.push(ListedEntry {
            name: name.to_string_lossy().into_owned(),
            kind,
            bytes: match kind {
                EntryKind::File => bytes(stat.st_size),
                _ => 0,
            },
        });
    }
    more |= fit(&mut entries, |entry| entry.name.len());
    Ok(Listed { entries, more })
}
