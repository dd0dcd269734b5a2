//! Writes the content of an archive beneath a directory.
//!
//! All of the archive is here, in a file without a name. It is read twice. First the changes are worked out and
//! announced, and nothing is changed. Then each file is written in a directory of the change's own, all are synced,
//! and each is renamed into place. Entries that cannot be written are left out and reported, and the rest is written
//! all the same.

use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    path::{Component, Path},
};

use rustix::{
    fd::OwnedFd,
    fs::{FileType, Mode, OFlags, Stat},
    io::Errno,
};
use shared_sandbox::{EntryKind, FileFailure, Outcome, Skipped, Unpack, Unpacked};
use shared_types::{FileDigest, FileHasher, leads_into_its_folder, limits::MAX_ARCHIVE_ENTRIES};

use super::{
    Allowance, Announcer, Failure, MAX_SKIPPED_BYTES, access, content, failure, fit_within,
    invalid, remove, replace, skipped_bytes, step, upload::Staged,
};
use crate::{
    Change, Effect, There,
    workspace::{Parents, PathTarget, Workspace, entry},
};

/// Read from the archive at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// The mode bits that a directory gets at least, so that its entries can be written.
const DIRECTORY_MODE: u32 = 0o700;

/// True if the text of a path leads to something beneath a directory.
pub(super) fn is_beneath(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Puts everything in place, and reports what could not be.
pub(crate) fn unpack(
    asked: &Unpack,
    archive: &Staged,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Result<Unpacked, Failure> {
    let mut plan = UnpackPlan::of(asked, &archive.0, workspace, allowance)?;
    let mut done = Unpacked {
        entries: plan.there + u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
        skipped: std::mem::take(&mut plan.skipped),
    };
    fit_within(MAX_SKIPPED_BYTES, &mut done.skipped, skipped_bytes);
    if plan.steps.is_empty() {
        return Ok(done);
    }
    let unfinished = allowance.unfinished_name();
    let change = Change {
        effects: plan.steps.iter().map(|step| step.effect.clone()).collect(),
        unfinished: Some(unfinished.clone()),
        done: Outcome::Unpacked(done.clone()),
    };
    announcer.announce(change, allowance)?;
    allowance.check()?;
    let place = StagingFolder::make(&plan.steps[0], &unfinished, workspace)?;
    let mut failed = |below: &str, failure| {
        done.entries -= 1;
        done.skipped.push(Skipped {
            path: below.to_owned(),
            failure,
        });
    };
    let mut ready = Vec::new();
    for (number, made) in plan.steps.iter().enumerate() {
        let prepared = match allowance.check() {
            Ok(()) => made.prepare(&archive.0, &place, &number.to_string(), workspace),
            Err(_) => Err(FileFailure::Io {
                reason: "the operation was stopped".to_owned(),
            }),
        };
        match prepared {
            Ok(()) => ready.push((number, made)),
            Err(failure) => failed(&made.below, failure),
        }
        step();
    }
    // Once for all of them: a sync of its own for each takes most of the time.
    let synced = rustix::fs::syncfs(&place.handle);
    for (number, made) in ready {
        let put = match synced {
            Ok(()) => made.put(&place, &number.to_string(), workspace),
            Err(errno) => Err(crate::workspace::failure(&made.path, errno)),
        };
        if let Err(failure) = put {
            failed(&made.below, failure);
        }
        step();
    }
    if let Err(errno) = rustix::fs::syncfs(&place.handle) {
        tracing::debug!(error = %errno, "failed to sync the workspace's file system");
    }
    fit_within(MAX_SKIPPED_BYTES, &mut done.skipped, skipped_bytes);
    // Where it cannot be removed, settling the change finds it again.
    let _ = remove::clear(&place.above, &unfinished, allowance);
    step();
    Ok(done)
}

/// The plan of an unpack.
struct UnpackPlan {
    steps: Vec<UnpackStep>,
    /// Entries that are there already.
    there: u32,
    skipped: Vec<Skipped>,
}

/// One entry that is to be written.
struct UnpackStep {
    /// Its path in the archive.
    below: String,
    /// Its path as it would be asked for.
    path: String,
    content: EntryContent,
    effect: Effect,
}

/// The content of an entry.
enum EntryContent {
    Directory {
        mode: u32,
    },
    File {
        mode: u32,
        /// In microseconds since 1970; absent for the time at which it is written.
        modified_us: Option<i64>,
        at: u64,
        bytes: u64,
        digest: FileDigest,
    },
    Link {
        to: String,
    },
}

impl EntryContent {
    /// True if it is no link, or a link whose text leads to something in the directory that the archive is for. Its
    /// path in the archive is `below`.
    fn leads_nowhere_else(&self, below: &str) -> bool {
        match self {
            Self::Directory { .. } | Self::File { .. } => true,
            Self::Link { to } => leads_into_its_folder(Path::new(below), to),
        }
    }
}

impl UnpackPlan {
    fn of(
        asked: &Unpack,
        archive: &File,
        workspace: &Workspace,
        allowance: &Allowance,
    ) -> Result<Self, Failure> {
        let mut plan = Self {
            steps: Vec::new(),
            there: 0,
            skipped: Vec::new(),
        };
        let mut number = 0;
        let root = workspace.place_of_change(&asked.path);
        read(asked, archive, |below, content| {
            allowance.check()?;
            number += 1;
            if number > MAX_ARCHIVE_ENTRIES {
                return Err(invalid(
                    "the archive has too many entries; send them in parts",
                ));
            }
            let path = Path::new(&asked.path).join(&below);
            let path = path.to_string_lossy().into_owned();
            let is_inside = workspace.place_of_change(&path).starts_with(&root)
                && content.leads_nowhere_else(&below);
            let effect = match is_inside {
                true => effect(&path, &content, workspace, allowance),
                false => Err(FileFailure::OutsideWorkspace { path: path.clone() }.into()),
            };
            match effect {
                Ok(Some(effect)) => plan.steps.push(UnpackStep {
                    below,
                    path,
                    content,
                    effect,
                }),
                Ok(None) => plan.there += 1,
                Err(Failure::File(failure)) => plan.skipped.push(Skipped {
                    path: below,
                    failure,
                }),
                Err(refused) => return Err(refused),
            }
            Ok(())
        })?;
        Ok(plan)
    }
}

/// Goes over the entries of the archive.
fn read(
    asked: &Unpack,
    archive: &File,
    mut each: impl FnMut(String, EntryContent) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unread = |_: io::Error| invalid("the archive cannot be read: it is no tar archive");
    let mut file = archive;
    file.seek(SeekFrom::Start(0)).map_err(unread)?;
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries().map_err(unread)? {
        let mut entry = entry.map_err(unread)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let path = text(&entry.path_bytes());
        let path = path.map(|path| path.trim_end_matches('/').to_owned());
        let Some(path) = path.filter(|path| is_beneath(path)) else {
            return Err(invalid(
                "a path in the archive is no text, or leads out of the directory",
            ));
        };
        let mode = entry.header().mode().map_err(unread)?;
        let content = match entry.header().entry_type() {
            tar::EntryType::Directory => EntryContent::Directory { mode },
            tar::EntryType::Symlink => {
                let to = entry.link_name_bytes().and_then(|to| text(&to));
                EntryContent::Link {
                    to: to.ok_or_else(|| invalid("a link in the archive leads to no text"))?,
                }
            }
            tar::EntryType::Regular => EntryContent::File {
                mode,
                modified_us: modified_us(entry.header()).map_err(unread)?,
                at: entry.raw_file_position(),
                bytes: entry.size(),
                digest: digest(&mut entry, asked.digest).map_err(unread)?,
            },
            _ => {
                return Err(invalid(
                    "the archive holds more than files, directories and symbolic links",
                ));
            }
        };
        each(path, content)?;
    }
    Ok(())
}

/// When an entry was modified; an archive that keeps no times has them all at 0.
fn modified_us(header: &tar::Header) -> io::Result<Option<i64>> {
    let seconds = i64::try_from(header.mtime()?).unwrap_or(i64::MAX);
    Ok((seconds > 0).then(|| seconds.saturating_mul(1_000_000)))
}

/// The digest of an entry, made with what that of the archive is made with.
fn digest(entry: &mut impl Read, archive: FileDigest) -> io::Result<FileDigest> {
    let (mut hasher, mut buffer) = (FileHasher::new(archive.algorithm), vec![0; BUFFER_BYTES]);
    loop {
        match entry.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The effect that the entry needs; nothing, where it is there already.
fn effect(
    path: &str,
    content: &EntryContent,
    workspace: &Workspace,
    allowance: &Allowance,
) -> Result<Option<Effect>, Failure> {
    let (before, after) = match content {
        EntryContent::Directory { .. } => match workspace.open_place(path) {
            Ok(_) => return Ok(None),
            Err(FileFailure::NotFound { .. }) => (There::Nothing, There::Directory),
            Err(failure) => return Err(failure.into()),
        },
        EntryContent::File { digest, .. } => {
            let before = match workspace.locate(path, Parents::Expect) {
                Ok(target) => match replace::existing(&target, path)? {
                    Some(_) => Some(self::content::digest(
                        &target,
                        path,
                        digest.algorithm,
                        allowance,
                    )?),
                    None => None,
                },
                Err(FileFailure::NotFound { .. }) => None,
                Err(failure) => return Err(failure.into()),
            };
            if before == Some(*digest) {
                return Ok(None);
            }
            (There::content(before), There::Content(*digest))
        }
        EntryContent::Link { to } => match link_before(path, workspace)? {
            There::Link(before) if before == *to => return Ok(None),
            before => (before, There::Link(to.clone())),
        },
    };
    let path = match content {
        EntryContent::Link { .. } => workspace.path_of_entry(path),
        EntryContent::Directory { .. } | EntryContent::File { .. } => {
            workspace.path_of_change(path)
        }
    };
    Ok(Some(Effect {
        path,
        before,
        after,
    }))
}

/// The state of the path of a new link: nothing, or another link.
fn link_before(path: &str, workspace: &Workspace) -> Result<There, Failure> {
    let failed = |errno| failure(path, errno);
    let target = match workspace.entry(path) {
        Ok(Some(target)) => target,
        Ok(None) => return Err(failed(Errno::ISDIR)),
        Err(FileFailure::NotFound { .. }) => return Ok(There::Nothing),
        Err(failure) => return Err(failure.into()),
    };
    match entry::look(&target).map_err(failed)? {
        None => Ok(There::Nothing),
        Some(found) if found.identity.kind == EntryKind::Link => {
            target.leads_to().map(There::Link).map_err(failed)
        }
        Some(_) => {
            let path = path.to_owned();
            Err(FileFailure::Exists { path }.into())
        }
    }
}

/// The folder of new files until they are in place.
struct StagingFolder {
    /// The directory in which it is.
    above: OwnedFd,
    handle: OwnedFd,
}

impl StagingFolder {
    /// In the directory of the first entry, where settling the change looks for it.
    fn make(first: &UnpackStep, unfinished: &str, workspace: &Workspace) -> Result<Self, Failure> {
        let failed = |errno| failure(&first.path, errno);
        let above = match &first.content {
            EntryContent::File { .. } => workspace.locate(&first.path, Parents::Make)?.directory,
            EntryContent::Directory { .. } | EntryContent::Link { .. } => {
                workspace.make_parent(&first.path)?.directory
            }
        };
        rustix::fs::mkdirat(&above, unfinished, Mode::from_raw_mode(DIRECTORY_MODE))
            .map_err(failed)?;
        step();
        let handle = entry::open_inner(&above, unfinished).map_err(failed)?;
        Ok(Self { above, handle })
    }
}

impl UnpackStep {
    /// Makes a directory, or what is put in place later.
    fn prepare(
        &self,
        archive: &File,
        place: &StagingFolder,
        name: &str,
        workspace: &Workspace,
    ) -> Result<(), FileFailure> {
        let failed = |errno| crate::workspace::failure(&self.path, errno);
        let made = match &self.content {
            EntryContent::Directory { mode } => {
                let target = workspace.make_parent(&self.path)?;
                let mode = Mode::from_raw_mode(mode & replace::KEPT_MODE | DIRECTORY_MODE);
                match rustix::fs::mkdirat(&target.directory, &target.name, mode) {
                    Err(Errno::EXIST) => Ok(()),
                    made => made,
                }
            }
            EntryContent::Link { to } => rustix::fs::symlinkat(to, &place.handle, name),
            EntryContent::File {
                mode,
                modified_us,
                at,
                bytes,
                ..
            } => {
                let target = workspace.locate(&self.path, Parents::Make)?;
                let before = crate::workspace::stat_entry(&target.directory, &target.name);
                let before = before.map_err(failed)?;
                let before = before.as_ref().map(|before| (&target, before));
                let file = fill(archive, *at, *bytes, place, name, *mode, before);
                file.and_then(|file| match modified_us {
                    Some(modified_us) => access::set(&file, *mode, *modified_us),
                    None => Ok(()),
                })
            }
        };
        made.map_err(failed)
    }

    /// Puts it in place, at once.
    fn put(
        &self,
        place: &StagingFolder,
        name: &str,
        workspace: &Workspace,
    ) -> Result<(), FileFailure> {
        let target = match &self.content {
            EntryContent::Directory { .. } => return Ok(()),
            EntryContent::File { .. } => workspace.locate(&self.path, Parents::Expect)?,
            EntryContent::Link { .. } => workspace.make_parent(&self.path)?,
        };
        let failed = |errno| crate::workspace::failure(&self.path, errno);
        // Since it was looked at first, something else may have come there.
        let now = crate::workspace::stat_entry(&target.directory, &target.name).map_err(failed)?;
        let kind = now.as_ref().map(|now| FileType::from_raw_mode(now.st_mode));
        let wanted = match &self.content {
            EntryContent::Link { .. } => FileType::Symlink,
            _ => FileType::RegularFile,
        };
        if kind.is_some_and(|kind| kind != wanted) {
            return Err(FileFailure::Exists {
                path: self.path.clone(),
            });
        }
        if wanted == FileType::Symlink {
            return rustix::fs::renameat(&place.handle, name, &target.directory, &target.name)
                .map_err(failed);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&place.handle, name, flags, Mode::empty());
        let file = File::from(file.map_err(failed)?);
        replace::put(&file, &place.handle, name, &target, now.as_ref())
            .map_err(|error| crate::workspace::io_failure(&self.path, &error))
    }
}

/// Writes a file of the archive.
fn fill(
    archive: &File,
    mut at: u64,
    mut left: u64,
    place: &StagingFolder,
    name: &str,
    mode: u32,
    before: Option<(&PathTarget, &Stat)>,
) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // No other process reads it before it has the mode that it is to keep.
    let mode = before.map_or(mode & replace::KEPT_MODE, |_| 0o600);
    let file = rustix::fs::openat(&place.handle, name, flags, Mode::from_raw_mode(mode))?;
    let file = File::from(file);
    while left > 0 {
        let wanted = usize::try_from(left).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
        let mut buffer = vec![0; wanted];
        let read = rustix::io::pread(archive, &mut buffer[..], at)?;
        if read == 0 {
            return Err(Errno::IO);
        }
        let mut data = &buffer[..read];
        while !data.is_empty() {
            let written = rustix::io::write(&file, data)?;
            data = &data[written..];
        }
        at += read as u64;
        left -= read as u64;
    }
    if let Some((target, before)) = before {
        access::keep(&file, target, before)?;
    }
    Ok(file)
}
