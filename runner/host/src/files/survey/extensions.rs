//! The files with extensions that a project has: skills, roles of subagents, hooks, tool servers and plugins. The
//! runner finds and reads them, and does not understand them.

use std::{fs::File, io::Read as _, os::unix::ffi::OsStrExt as _, path::Path};

use rustix::fs::Dir;
use shared_sandbox::{FileFailure, Instructions, Skipped};

use super::{
    super::{Allowance, Failure, bytes},
    MAX_LEVELS,
};
use crate::workspace::{Workspace, io_failure};

/// Files that are read as a whole, relative to a directory.
const FILES: [&str; 6] = [
    ".gantry/hooks.json",
    ".gantry/hooks.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".gantry/mcp.json",
    ".mcp.json",
];

/// Folders with one folder for each extension, and the file in it.
const FOLDERS: [(&str, &str); 4] = [
    (".gantry/skills", "SKILL.md"),
    (".claude/skills", "SKILL.md"),
    (".agents/skills", "SKILL.md"),
    (".gantry/plugins", "plugin.json"),
];

/// Folders with one Markdown file for each extension.
const NOTES: [&str; 3] = [".gantry/agents", ".claude/agents", ".claude/commands"];

/// Of a skill only the beginning is read: its head stands there.
const SKILL_BYTES: u64 = 4 * 1024;

/// Most bytes of any other file.
const FILE_BYTES: u64 = 64 * 1024;

/// Most extensions of one folder. The first by name count.
const MAX_ENTRIES: usize = 100;

/// Most names of one folder that are looked at.
const MAX_NAMES: usize = 1000;

/// The files with extensions from this directory up, those of the nearest directory first. Names of files that are there
/// and were not read go to `unread`.
pub(super) fn extensions(
    workspace: &Workspace,
    directory: &Path,
    most: u64,
    allowance: &Allowance,
    unread: &mut Vec<Skipped>,
) -> Result<Vec<Instructions>, Failure> {
    let (mut left, mut found) = (most, Vec::new());
    for level in directory.ancestors().take(MAX_LEVELS) {
        for path in paths(workspace, level) {
            allowance.check()?;
            match read(workspace, &path, &mut left) {
                Ok(file) => found.extend(file),
                Err(failure) => unread.push(Skipped { path, failure }),
            }
        }
    }
    Ok(found)
}

/// The paths of the files that may be there, in one level of the project.
fn paths(workspace: &Workspace, level: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for file in FILES {
        paths.extend(text(&level.join(file)));
    }
    for (folder, file) in FOLDERS {
        let folder = level.join(folder);
        for name in names(workspace, &folder) {
            paths.extend(text(&folder.join(name).join(file)));
        }
    }
    for folder in NOTES {
        let folder = level.join(folder);
        let notes = names(workspace, &folder).into_iter();
        for name in notes.filter(|name| name.ends_with(".md")) {
            paths.extend(text(&folder.join(name)));
        }
    }
    paths
}

fn text(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

/// The first names of a folder, sorted; none where it is not there. Names that are hidden, or no UTF-8, are left out.
fn names(workspace: &Workspace, folder: &Path) -> Vec<String> {
    let opened = text(folder).and_then(|folder| workspace.open_directory(&folder).ok());
    let Some(entries) = opened.and_then(|folder| Dir::read_from(folder).ok()) else {
        return Vec::new();
    };
    let names = entries.take(MAX_NAMES).filter_map(|entry| {
        let entry = entry.ok()?;
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
        Some(name.to_str()?.to_owned())
    });
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names.truncate(MAX_ENTRIES);
    names
}

/// Reads a file within the room that is left; nothing where it is not there.
fn read(
    workspace: &Workspace,
    path: &str,
    left: &mut u64,
) -> Result<Option<Instructions>, FileFailure> {
    let (file, stat) = match workspace.open_file(path) {
        Ok(opened) => opened,
        Err(FileFailure::NotFound { .. } | FileFailure::NotADirectory { .. }) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let (size, is_skill) = (bytes(stat.st_size), path.ends_with("/SKILL.md"));
    let limit = if is_skill { SKILL_BYTES } else { FILE_BYTES };
    // What counts as a whole is never read in part.
    if !is_skill && size > limit || size.min(limit) > *left {
        let limit = limit.min(*left);
        let path = path.to_owned();
        return Err(FileFailure::TooLarge {
            path,
            bytes: size,
            limit,
        });
    }
    let content = beginning(file, limit).map_err(|error| io_failure(path, &error))?;
    *left = left.saturating_sub(content.len() as u64);
    let cut = size > content.len() as u64;
    Ok(Some(Instructions {
        path: path.to_owned(),
        text: match cut {
            true => crate::text::cut_lossy(&content, content.len()),
            false => String::from_utf8_lossy(&content).into_owned(),
        },
        bytes: size,
        cut,
    }))
}

fn beginning(file: File, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(content)
}
