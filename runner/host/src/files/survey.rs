//! Tells what is good to know about a place before any work there: the system, the branch, and the instructions and
//! rules that people wrote for agents. Nothing of it makes the survey fail but a folder that is not there: what cannot be read is
//! named.

mod extensions;

use std::{
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use shared_sandbox::{
    FileFailure, Instructions, MAX_PROJECT_FILE_BYTES, PROJECT_FILE, ProjectFile, Skipped, Survey,
    Surveyed,
};
use shared_types::clean::clean_line;

use super::{Allowance, Failure, bytes};
use crate::{
    inside::user_entry,
    workspace::{Links, Workspace, failure, io_failure, open_ordinary, real_path},
};

/// The names of a file with instructions in a directory; the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The user's own instructions, below the home; the first that is there counts.
const OF_USER: [&str; 2] = [".config/gantry/AGENTS.md", ".claude/CLAUDE.md"];

/// Most levels of directories whose instructions are read, from the nearest up.
const MAX_LEVELS: usize = 16;

/// Most bytes of the file that names the branch, or the system.
const MAX_SMALL_BYTES: u64 = 4096;

/// Longest name of a branch or a system, in bytes.
const MAX_NAME: usize = 256;

/// A file with instructions that was found.
struct InstructionFile {
    path: String,
    file: File,
    bytes: u64,
}

/// Looks at the place.
pub(super) fn survey(
    asked: &Survey,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Surveyed, Failure> {
    let directory = workspace.open_directory(&asked.path)?;
    let folder = real_path(&directory).unwrap_or_default();
    let relative = workspace.relative(&asked.path)?;
    let names = relative.components();
    let names = names.filter(|part| matches!(part, Component::Normal(_)));
    let relative: PathBuf = names.collect();
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for level in relative.ancestors().take(MAX_LEVELS) {
        allowance.check()?;
        look_for(
            &NAMES.map(|name| level.join(name)),
            &mut found,
            &mut unread,
            |path| workspace.open_file(path),
        );
    }
    if let Some(home) = home().filter(|_| asked.of_user) {
        let names = OF_USER.map(PathBuf::from);
        look_for(&names, &mut found, &mut unread, |path| {
            let opened = open_ordinary(&home, Path::new(path), Links::Follow);
            opened.map_err(|errno| failure(path, errno))
        });
        // The names say whose they are.
        let of_user = |path: &mut String| {
            if OF_USER.contains(&path.as_str()) {
                path.insert_str(0, "~/");
            }
        };
        found.iter_mut().for_each(|found| of_user(&mut found.path));
        unread
            .iter_mut()
            .for_each(|unread: &mut Skipped| of_user(&mut unread.path));
    }
    let mut left = asked.max_bytes;
    let mut instructions = Vec::new();
    for found in found {
        allowance.check()?;
        let path = found.path.clone();
        match read(found, &mut left) {
            Ok(read) => instructions.push(read),
            Err(error) => unread.push(Skipped {
                failure: io_failure(&path, &error),
                path,
            }),
        }
    }
    instructions.reverse();
    let project = match project(workspace, &relative) {
        Ok(project) => project,
        Err(skipped) => {
            unread.push(skipped);
            None
        }
    };
    let extensions = match asked.extension_bytes {
        0 => Vec::new(),
        most => extensions::extensions(workspace, &relative, most, allowance, &mut unread)?,
    };
    Ok(Surveyed {
        system: system(),
        folder: folder.to_string_lossy().into_owned(),
        branch: branch(workspace, &relative),
        instructions,
        unread,
        project: project.map(Box::new),
        extensions,
    })
}

/// The nearest file with the project's rules, from the directory up. One that is there and is not read hides those above
/// it. Rules count as a whole, so that a file is never read in part.
fn project(workspace: &Workspace, directory: &Path) -> Result<Option<ProjectFile>, Skipped> {
    let levels = directory.ancestors().take(MAX_LEVELS);
    let paths = levels.filter_map(|level| level.join(PROJECT_FILE).to_str().map(str::to_owned));
    for path in paths {
        let opened = workspace.open_file(&path);
        let read = opened.and_then(|(file, stat)| whole_text(&path, file, bytes(stat.st_size)));
        match read {
            Ok(text) => return Ok(Some(ProjectFile { path, text })),
            Err(FileFailure::NotFound { .. } | FileFailure::NotADirectory { .. }) => {}
            Err(failure) => return Err(Skipped { path, failure }),
        }
    }
    Ok(None)
}

/// The text of a file with rules.
fn whole_text(path: &str, file: File, size: u64) -> Result<String, FileFailure> {
    let limit = MAX_PROJECT_FILE_BYTES;
    let mut content = Vec::new();
    // One byte more tells if the file has grown beyond.
    let read = file.take(limit + 1).read_to_end(&mut content);
    let read = read.map_err(|error| io_failure(path, &error))?;
    let (path, bytes) = (path.to_owned(), size.max(read as u64));
    if bytes > limit {
        return Err(FileFailure::TooLarge { path, bytes, limit });
    }
    String::from_utf8(content).map_err(|_| FileFailure::Binary { path })
}

/// Opens the first of these files that is there. One that is there and is not opened hides those behind it.
fn look_for(
    names: &[PathBuf],
    found: &mut Vec<InstructionFile>,
    unread: &mut Vec<Skipped>,
    open: impl Fn(&str) -> Result<(File, rustix::fs::Stat), FileFailure>,
) {
    for path in names.iter().filter_map(|path| path.to_str()) {
        let path = path.to_owned();
        match open(&path) {
            Ok((file, stat)) => {
                let bytes = bytes(stat.st_size);
                return found.push(InstructionFile { path, file, bytes });
            }
            Err(FileFailure::NotFound { .. } | FileFailure::NotADirectory { .. }) => {}
            Err(failure) => return unread.push(Skipped { path, failure }),
        }
    }
}

/// Reads as much of a file as is left of the room.
fn read(found: InstructionFile, left: &mut u64) -> std::io::Result<Instructions> {
    let InstructionFile { path, file, bytes } = found;
    let mut content = Vec::new();
    // One byte more tells if there is more.
    file.take(left.saturating_add(1))
        .read_to_end(&mut content)?;
    let room = usize::try_from(*left).unwrap_or(usize::MAX);
    let cut = content.len() > room;
    content.truncate(room);
    *left -= content.len() as u64;
    let shown = match cut {
        true => crate::text::cut_lossy(&content, room),
        false => String::from_utf8_lossy(&content).into_owned(),
    };
    Ok(Instructions {
        path,
        text: shown,
        bytes,
        cut,
    })
}

/// The home of the user, as the table of users has it.
fn home() -> Option<File> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let (_, home) = user_entry(&users, rustix::process::getuid().as_raw())?;
    let is_own = home != "/";
    is_own.then(|| File::open(home).ok()).flatten()
}

/// The name of the system and the kind of its processor.
fn system() -> String {
    let release = File::open("/etc/os-release").ok().and_then(beginning);
    let name = release.as_deref().and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(line.trim_matches('"').to_owned())
    });
    let name = name.unwrap_or_else(|| std::env::consts::OS.to_owned());
    clean_line(&format!("{name}, {}", std::env::consts::ARCH), MAX_NAME)
}

/// The branch of the repository in or above the directory.
fn branch(workspace: &Workspace, directory: &Path) -> Option<String> {
    let head = directory.ancestors().take(MAX_LEVELS).find_map(|level| {
        let head = level.join(".git/HEAD");
        let (file, _) = workspace.open_file(head.to_str()?).ok()?;
        beginning(file)
    })?;
    let head = head.trim_end();
    let name = match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        // No branch: a commit.
        None => format!("{} (detached)", head.get(..12)?),
    };
    Some(clean_line(&name, MAX_NAME))
}

/// The beginning of a small file, where it is text.
fn beginning(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_SMALL_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
