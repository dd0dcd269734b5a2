//! Lists a directory, or all that lies beneath it.

use std::{
    collections::BinaryHeap,
    ffi::CString,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Dir, FileType, OFlags},
    io::Errno,
};
use shared_sandbox::{EntryKind, FileFailure, List, Listed, ListedEntry};

use super::{Allowance, Failure, MAX_RESULT_BYTES, bytes, failure, fit, wanted};
use crate::workspace::{Links, Workspace, entry::kind, open_beneath, stat_entry};

/// The most levels of directories in a tree: all of them are open at the same time.
const MAX_DEPTH: usize = 100;

/// The first entries by name behind the one that is named.
pub(super) fn list(
    list: &List,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Listed, Failure> {
    let directory = workspace.open_directory(&list.path)?;
    match list.tree {
        true => tree(list, directory, allowance),
        false => names(list, &directory, allowance),
    }
}

/// Of a large directory only as many names as are wanted are kept.
fn names(list: &List, directory: &OwnedFd, allowance: &Allowance) -> Result<Listed, Failure> {
    let failed = |errno| failure(&list.path, errno);
    let wanted = wanted(list.max_entries);
    let is_behind = |name: &Name| name.shown > list.after;
    let (names, mut more) = smallest(list, directory, wanted, is_behind, allowance)?;
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        allowance.check()?;
        // An entry that is gone by now is left out.
        entries.extend(look(directory, &name, name.shown.clone()).map_err(failed)?);
    }
    more |= fit(&mut entries, size);
    Ok(Listed { entries, more })
}

/// The first names of those that count, so many at most, and whether there are more. No others are kept.
fn smallest(
    list: &List,
    directory: impl AsFd,
    wanted: usize,
    counts: impl Fn(&Name) -> bool,
    allowance: &Allowance,
) -> Result<(Vec<Name>, bool), Failure> {
    let failed = |errno| failure(&list.path, errno);
    let mut names = BinaryHeap::new();
    let mut more = false;
    for entry in Dir::read_from(directory).map_err(failed)? {
        allowance.check()?;
        let name = Name::of(entry.map_err(failed)?.file_name().to_owned());
        if matches!(name.raw.as_bytes(), b"." | b"..") || !counts(&name) {
            continue;
        }
        names.push(name);
        if names.len() > wanted {
            names.pop();
            more = true;
        }
    }
    Ok((names.into_sorted_vec(), more))
}

/// Each directory before what is in it, by name. What is on the way is opened from the handle of its
/// directory, and through no link.
fn tree(list: &List, directory: OwnedFd, allowance: &Allowance) -> Result<Listed, Failure> {
    let failed = |errno| failure(&list.path, errno);
    let wanted = wanted(list.max_entries);
    let after = Path::new(&list.after);
    let open_level =
        |handle, below, after: &Path| ListedDirectory::open(handle, below, after, list, allowance);
    let first = open_level(directory, PathBuf::new(), after)?;
    let (mut levels, mut entries, mut size_so_far) = (vec![first], Vec::new(), 0);
    while let Some(level) = levels.last_mut() {
        allowance.check()?;
        let Some(name) = level.names.next() else {
            if level.more {
                return Ok(Listed {
                    entries,
                    more: true,
                });
            }
            levels.pop();
            continue;
        };
        let below = level.below.join(&name.shown);
        let shown = below.to_string_lossy().into_owned();
        let found = look(&level.handle, &name, shown).map_err(failed)?;
        let Some(mut entry) = found else { continue };
        let is_new = after < below.as_path();
        let opened = match entry.kind == EntryKind::Directory && !name.is_replaced {
            true => Some(open(&level.handle, &name)),
            false => None,
        };
        let inner = match opened {
            Some(Err(Errno::NOENT | Errno::NOTDIR)) => continue,
            Some(Err(_)) => {
                entry.is_unreadable = true;
                None
            }
            Some(Ok(handle)) => Some(handle),
            None => None,
        };
        if is_new {
            size_so_far += size(&entry);
            if entries.len() == wanted || size_so_far > MAX_RESULT_BYTES {
                return Ok(Listed {
                    entries,
                    more: true,
                });
            }
            entries.push(entry);
        }
        if let Some(inner) = inner {
            if levels.len() >= MAX_DEPTH {
                let reason = format!("directories lie more than {MAX_DEPTH} deep in it");
                return Err(FileFailure::Io { reason }.into());
            }
            let after = if is_new { Path::new("") } else { after };
            levels.push(open_level(inner, below, after)?);
        }
    }
    Ok(Listed {
        entries,
        more: false,
    })
}

/// A directory of a tree that is being listed.
struct ListedDirectory {
    handle: OwnedFd,
    /// Its path beneath the directory where the tree begins.
    below: PathBuf,
    names: std::vec::IntoIter<Name>,
    /// It has more names, which were not kept because the result is full before them.
    more: bool,
}

impl ListedDirectory {
    /// The first names that are not behind us with everything beneath them.
    fn open(
        handle: OwnedFd,
        below: PathBuf,
        after: &Path,
        list: &List,
        allowance: &Allowance,
    ) -> Result<Self, Failure> {
        let depth = below.components().count();
        let from = match after.components().nth(depth) {
            Some(Component::Normal(name)) => name.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        // The last name of the page before counts again, because more may lie beneath it. A name with
        // replaced bytes does not: no listing can go on from it.
        let counts = |name: &Name| name.shown > from || (name.shown == from && !name.is_replaced);
        let wanted = wanted(list.max_entries).saturating_add(1);
        let (names, more) = smallest(list, &handle, wanted, counts, allowance)?;
        Ok(Self {
            handle,
            below,
            names: names.into_iter(),
            more,
        })
    }
}

/// A name in a directory, in the order of its shown form, so that a listing can go on from a shown name even
/// if bytes were replaced.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    shown: String,
    raw: CString,
    is_replaced: bool,
}

impl Name {
    fn of(raw: CString) -> Self {
        Self {
            shown: raw.to_string_lossy().into_owned(),
            is_replaced: raw.to_str().is_err(),
            raw,
        }
    }
}

/// The entry, if it is there.
fn look(directory: impl AsFd, name: &Name, shown: String) -> Result<Option<ListedEntry>, Errno> {
    let Some(stat) = stat_entry(&directory, name.raw.as_c_str())? else {
        return Ok(None);
    };
    let kind = kind(FileType::from_raw_mode(stat.st_mode));
    let leads_to = match kind {
        // It may be gone by now.
        EntryKind::Link => rustix::fs::readlinkat(&directory, &name.raw, Vec::new()).ok(),
        EntryKind::File | EntryKind::Directory | EntryKind::Other => None,
    };
    Ok(Some(ListedEntry {
        name: shown,
        kind,
        bytes: match kind {
            EntryKind::File => bytes(stat.st_size),
            EntryKind::Directory | EntryKind::Link | EntryKind::Other => 0,
        },
        mode: stat.st_mode & 0o7777,
        is_replaced: name.is_replaced || leads_to.as_ref().is_some_and(|to| to.to_str().is_err()),
        leads_to: leads_to.map(|to| to.to_string_lossy().into_owned()),
        is_unreadable: false,
    }))
}

/// Opens a directory whose entries can be read and looked at, which are two permissions.
fn open(directory: impl AsFd, name: &Name) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open_beneath(directory, Path::new(&name.shown), flags, Links::Refuse)?;
    stat_entry(&opened, c".")?;
    Ok(opened)
}

fn size(entry: &ListedEntry) -> usize {
    entry.name.len() + entry.leads_to.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests;
