//! Walks over the files beneath a directory, in the order of their paths, without what
//! `.gitignore` files name and without `.git`.
//!
//! The kernel opens every directory and file from the handle where the walk began, and through no symbolic link,
//! so that a rename in between leads nowhere. The target of a link is seen by the link's path, where it is in the
//! workspace: it is opened from the workspace's root. No directory is entered by a link from within itself, nor
//! twice. The rules are the `ignore` crate's; its own walker opens by path and would wait for a pipe called
//! `.gitignore`.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read as _,
    ops::ControlFlow,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::{
    fd::OwnedFd,
    fs::{Dir, FileType, OFlags, Stat},
    io::Errno,
};

use super::{Allowance, Failure, failure};
use crate::workspace::{Links, Workspace, open_beneath, open_ordinary, real_path, stat_entry};

/// Most names that wait to be visited, over all open directories; more are left out, and said to be.
const MAX_PENDING: usize = 200_000;

/// The largest `.gitignore` that is read; a larger one is counted. Compiled, it takes some forty times its size.
const MAX_GITIGNORE_BYTES: u64 = 64 * 1024;

/// The `.gitignore` files of a directory and of all above it are read up to so many bytes together.
const MAX_RULES_BYTES: u64 = 256 * 1024;

const GITIGNORE: &str = ".gitignore";

/// The start of a walk.
#[derive(Debug)]
pub(super) struct Start {
    root: OwnedFd,
    handle: OwnedFd,
    /// Its path beneath the workspace root.
    place: PathBuf,
    /// The rules of the directories above it.
    rules: Option<Arc<Rules>>,
    /// `.gitignore` files above it that are too large.
    unread_rules: u32,
}

/// The facts about a walk that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WalkFacts {
    /// It was stopped, or left something out to keep its bound.
    pub(super) part: bool,
    /// So many `.gitignore` files were too large, so that what they name was seen as well.
    pub(super) unread_rules: u32,
}

/// The rules of one directory's `.gitignore`, and of those above it.
#[derive(Debug)]
struct Rules {
    own: Gitignore,
    above: Option<Arc<Rules>>,
    /// Of these files and those above.
    bytes: u64,
}

/// A file system and a number in it, by which a directory is known again.
type FileIdentity = (u64, u64);

/// A directory that is being visited.
struct VisitedDirectory {
    identity: FileIdentity,
    /// Its path below the start.
    below: PathBuf,
    names: std::vec::IntoIter<(OsString, FileType)>,
    rules: Option<Arc<Rules>>,
}

impl Start {
    /// Begins at the directory that is asked for, and reads the `.gitignore` files above it. A start that they
    /// name themselves is walked all the same, because it was asked for.
    pub(super) fn at(asked: &str, workspace: &Workspace) -> Result<Self, Failure> {
        let handle = workspace.open_directory(asked)?;
        let root = workspace.open_directory("")?;
        // Only a directory that was moved out of the workspace since has no place in it.
        let place = workspace
            .place_of(&handle)
            .ok_or_else(|| failure(asked, Errno::NOENT))?;
        let (mut rules, mut unread_rules) = (None, 0);
        let above: Vec<&Path> = place.ancestors().skip(1).collect();
        for directory in above.into_iter().rev() {
            rules = Rules::read(&root, directory, directory, rules, &mut unread_rules);
        }
        Ok(Self {
            root,
            handle,
            place,
            rules,
            unread_rules,
        })
    }

    /// The path beneath the workspace root of what lies `below` the start.
    pub(super) fn shown(&self, below: &Path) -> String {
        self.place.join(below).to_string_lossy().into_owned()
    }

    /// Opens a file that the walk found.
    pub(super) fn open(&self, below: &Path) -> Result<(File, Stat), Errno> {
        match open_ordinary(&self.handle, below, Links::Refuse) {
            Err(Errno::LOOP) => open_ordinary(&self.root, &self.place.join(below), Links::Follow),
            opened => opened,
        }
    }

    /// Opens the target of a link in the workspace.
    fn follow(&self, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = Path::new(".").join(&self.place).join(below);
        open_beneath(&self.root, &path, flags, Links::Follow)
    }

    /// The host's facts about a file that the walk found; it need not be readable.
    pub(super) fn stat(&self, below: &Path) -> Result<Stat, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = match open_beneath(&self.handle, below, flags, Links::Refuse) {
            Err(Errno::LOOP) => self.follow(below, flags)?,
            opened => opened?,
        };
        rustix::fs::fstat(file)
    }

    /// Visits every ordinary file, and link to one, by its path below the start, until `visit` breaks. A file that
    /// cannot be read, or has gone since, is passed over.
    pub(super) fn walk(
        &self,
        allowance: &Allowance,
        mut visit: impl FnMut(&Path) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<WalkFacts, Failure> {
        let mut walk = Walk {
            start: self,
            allowance,
            levels: Vec::new(),
            pending: 0,
            linked: HashSet::new(),
            seen: WalkFacts {
                part: false,
                unread_rules: self.unread_rules,
            },
        };
        walk.enter(PathBuf::new(), self.rules.clone())?;
        while let Some(level) = walk.levels.last_mut() {
            allowance.check()?;
            let Some((name, kind)) = level.names.next() else {
                walk.levels.pop();
                continue;
            };
            walk.pending -= 1;
            let below = level.below.join(&name);
            let rules = level.rules.clone();
            let is_directory = kind == FileType::Directory;
            if Rules::name(rules.as_ref(), &self.place.join(&below), is_directory) {
                continue;
            }
            if is_directory {
                walk.enter(below, rules)?;
            } else if visit(&below)?.is_break() {
                walk.seen.part = true;
                break;
            }
        }
        Ok(walk.seen)
    }
}

/// A walk under way.
struct Walk<'a> {
    start: &'a Start,
    allowance: &'a Allowance,
    levels: Vec<VisitedDirectory>,
    /// Names in all levels.
    pending: usize,
    /// Directories that were entered by way of a link.
    linked: HashSet<FileIdentity>,
    seen: WalkFacts,
}

impl Walk<'_> {
    /// Reads a directory's entries; one that cannot be read is passed over.
    fn enter(&mut self, below: PathBuf, above: Option<Arc<Rules>>) -> Result<(), Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = Path::new(".").join(&below);
        let (opened, is_linked) =
            match open_beneath(&self.start.handle, &path, flags, Links::Refuse) {
                Err(Errno::LOOP) => (self.start.follow(&below, flags), true),
                opened => (opened, false),
            };
        let Ok(directory) = opened else {
            return Ok(());
        };
        let Ok(stat) = rustix::fs::fstat(&directory) else {
            return Ok(());
        };
        let identity = (stat.st_dev, stat.st_ino);
        if is_linked
            && (self.levels.iter().any(|level| level.identity == identity)
                || is_of_git(&directory)
                || !self.linked.insert(identity))
        {
            return Ok(());
        }
        let Ok(entries) = Dir::read_from(&directory) else {
            return Ok(());
        };
        let mut names = Vec::new();
        let mut has_rules = false;
        for entry in entries.flatten() {
            self.allowance.check()?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if [".", "..", ".git"].iter().any(|skipped| name == *skipped) {
                continue;
            }
            has_rules |= name == GITIGNORE;
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(&directory, name),
                kind => kind,
            };
            let kind = match kind {
                FileType::Symlink => self.kind_behind(&below.join(name)),
                kind => kind,
            };
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                continue;
            }
            if self.pending >= MAX_PENDING {
                self.seen.part = true;
                break;
            }
            self.pending += 1;
            names.push((name.to_owned(), kind));
        }
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let rules = if has_rules {
            Rules::read(
                &directory,
                Path::new(""),
                &self.start.place.join(&below),
                above,
                &mut self.seen.unread_rules,
            )
        } else {
            above
        };
        self.levels.push(VisitedDirectory {
            identity,
            below,
            names: names.into_iter(),
            rules,
        });
        Ok(())
    }
}

impl Walk<'_> {
    /// The kind of a link's target, where that is in the workspace.
    fn kind_behind(&self, below: &Path) -> FileType {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let there = self.start.follow(below, flags);
        let stat = there.and_then(rustix::fs::fstat);
        stat.map_or(FileType::Unknown, |stat| {
            FileType::from_raw_mode(stat.st_mode)
        })
    }
}

/// True if a link led into git's own folder.
fn is_of_git(directory: &OwnedFd) -> bool {
    let place = real_path(directory).unwrap_or_default();
    place.components().any(|part| part.as_os_str() == ".git")
}

/// Some file systems do not say in the directory what an entry is.
fn kind_of(directory: &OwnedFd, name: &OsStr) -> FileType {
    match stat_entry(directory, name) {
        Ok(Some(stat)) => FileType::from_raw_mode(stat.st_mode),
        _ => FileType::Unknown,
    }
}

impl Rules {
    /// The rules of `path` beneath `handle`, which is `place` beneath the workspace root; those
    /// `above` where it has none of its own, or too many, which is counted.
    fn read(
        handle: &OwnedFd,
        path: &Path,
        place: &Path,
        above: Option<Arc<Self>>,
        unread: &mut u32,
    ) -> Option<Arc<Self>> {
        let Ok((file, _)) = open_ordinary(handle, &path.join(GITIGNORE), Links::Refuse) else {
            return above;
        };
        let before = above.as_ref().map_or(0, |above| above.bytes);
        let room = MAX_GITIGNORE_BYTES.min(MAX_RULES_BYTES - before);
        let mut text = Vec::new();
        let Ok(length) = file.take(room + 1).read_to_end(&mut text) else {
            return above;
        };
        let bytes = before + length as u64;
        if length as u64 > room {
            *unread = unread.saturating_add(1);
            return above;
        }
        let root = if place.as_os_str().is_empty() {
            Path::new(".")
        } else {
            place
        };
        let mut builder = GitignoreBuilder::new(root);
        for line in String::from_utf8_lossy(&text).lines() {
            // A line that is no rule is passed over, as git does.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(own) => Some(Arc::new(Self { own, above, bytes })),
            Err(_) => above,
        }
    }

    /// True if the nearest rules that match the path exclude it.
    fn name(rules: Option<&Arc<Self>>, path: &Path, is_directory: bool) -> bool {
        let mut next = rules;
        while let Some(rules) = next {
            match rules.own.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => next = rules.above.as_ref(),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
