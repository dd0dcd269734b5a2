//! File operations beneath the workspace root.
//!
//! They block, so the host runs them on its blocking threads. Each has an [`Allowance`] that its
//! loops ask, and every result has a bound in entries and in bytes, so that it fits a frame.

mod access;
mod announce;
mod content;
mod download;
mod edit;
mod glob;
mod grep;
mod list;
mod make_directory;
mod moving;
mod pack;
mod read;
mod remove;
mod replace;
mod settle;
mod stat;
mod survey;
mod unpack;
mod upload;
mod walk;
mod write;

use std::{sync::Arc, time::Duration};

use rustix::io::Errno;
use shared_sandbox::{Download, EntryKind, FileFailure, Outcome, Pack, Request, Skipped};
use shared_types::{Clock, Refusal, RefusalCode, limits::MAX_INLINE_FILE_BYTES};

use crate::{
    change::unfinished_name,
    performing::Stopping,
    workspace::{PathTarget, Workspace},
};

pub(crate) use announce::{Announcer, unheard};
pub use download::OpenFile;
pub(crate) use settle::settle;
pub(crate) use unpack::unpack;
pub(crate) use upload::{Announcement, put, receive};

/// Most entries of one result, even if more are asked for.
pub(crate) const MAX_RESULTS: usize = 10_000;

/// Most bytes of names and text in one result.
const MAX_RESULT_BYTES: usize = MAX_INLINE_FILE_BYTES;

/// The most bytes that the skipped entries of an archive take as JSON. An end and a change that
/// name them are one line of the journal each.
pub(crate) const MAX_SKIPPED_BYTES: usize = 128 * 1024;

/// Does what the request asks for; an exec is not a file operation.
pub(crate) fn perform(
    request: Request,
    workspace: &Workspace,
    allowance: &Allowance,
    announcer: &Announcer,
) -> Outcome {
    let only_reads = request.only_reads();
    let outcome = match request {
        Request::Read(read) => read::read(&read, workspace, allowance).map(Outcome::Read),
        Request::Write(write) => {
            write::write(&write, workspace, allowance, announcer).map(Outcome::Written)
        }
        Request::Edit(edit) => {
            edit::edit(&edit, workspace, allowance, announcer).map(Outcome::Edited)
        }
        Request::List(list) => list::list(&list, workspace, allowance).map(Outcome::Listed),
        Request::Glob(glob) => glob::glob(&glob, workspace, allowance).map(Outcome::Globbed),
        Request::Grep(grep) => grep::grep(&grep, workspace, allowance).map(Outcome::Grepped),
        Request::Survey(asked) => {
            survey::survey(&asked, workspace, allowance).map(Outcome::Surveyed)
        }
        Request::Stat(stat) => stat::stat(&stat, workspace).map(Outcome::Found),
        Request::MakeDirectory(make) => {
            make_directory::make_directory(&make, workspace, allowance, announcer)
                .map(Outcome::MadeDirectory)
        }
        Request::Move(asked) => {
            moving::rename(&asked, workspace, allowance, announcer).map(Outcome::Moved)
        }
        Request::Remove(remove) => {
            remove::remove(&remove, workspace, allowance, announcer).map(Outcome::Removed)
        }
        Request::Exec(_)
        | Request::Download(_)
        | Request::Upload(_)
        | Request::Pack(_)
        | Request::Unpack(_) => Err(Failure::Refused(Refusal::new(
            RefusalCode::Unsupported,
            "this is not an operation on files that has its result at once",
        ))),
    };
    match outcome {
        Ok(changed) if !only_reads => changed,
        // A removed directory can still be read by its handle, and is empty.
        Ok(read) => match workspace.is_gone() {
            true => Outcome::Failed(FileFailure::WorkspaceGone),
            false => read,
        },
        Err(failure) => failure.in_workspace(workspace).into(),
    }
}

/// A path that a request changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The file that it leads to.
    File(String),
    /// The entry itself, which may be a link.
    Entry(String),
}

/// The paths that a request changes as soon as it begins; a read changes none.
pub(crate) fn changed(request: &Request) -> Vec<Changed> {
    let (file, entry) = (
        |path: &String| Changed::File(path.clone()),
        |path: &String| Changed::Entry(path.clone()),
    );
    match request {
        Request::Write(write) => vec![file(&write.path)],
        Request::Edit(edit) => vec![file(&edit.path)],
        Request::MakeDirectory(make) => vec![file(&make.path)],
        Request::Move(asked) => vec![entry(&asked.from), entry(&asked.to)],
        Request::Remove(remove) => vec![entry(&remove.path)],
        Request::Read(_)
        | Request::List(_)
        | Request::Glob(_)
        | Request::Grep(_)
        | Request::Survey(_)
        | Request::Stat(_) => Vec::new(),
        // They have ways of their own.
        Request::Exec(_)
        | Request::Download(_)
        | Request::Upload(_)
        | Request::Pack(_)
        | Request::Unpack(_) => Vec::new(),
    }
}

/// Serves a whole file.
pub(crate) fn download(
    download: &Download,
    workspace: &Workspace,
    allowance: &Allowance,
    hand_over: impl FnOnce(OpenFile),
) -> Outcome {
    let outcome = download::download(download, workspace, allowance, hand_over);
    let outcome = outcome.map_err(|failure| failure.in_workspace(workspace));
    outcome.map_or_else(Outcome::from, Outcome::Downloaded)
}

/// Serves many files in an archive.
pub(crate) fn pack(
    pack: &Pack,
    workspace: &Workspace,
    allowance: &Allowance,
    hand_over: impl FnOnce(OpenFile),
) -> Outcome {
    let outcome = pack::pack(pack, workspace, allowance, hand_over);
    let outcome = outcome.map_err(|failure| failure.in_workspace(workspace));
    outcome.map_or_else(Outcome::from, Outcome::Packed)
}

/// The reason why a file operation has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    File(FileFailure),
    Refused(Refusal),
}

impl Failure {
    /// Whatever fails in a workspace that was removed fails because of that.
    pub(crate) fn in_workspace(self, workspace: &Workspace) -> Self {
        match self {
            Self::File(_) if workspace.is_gone() => Self::File(FileFailure::WorkspaceGone),
            failure => failure,
        }
    }
}

impl From<FileFailure> for Failure {
    fn from(failure: FileFailure) -> Self {
        Self::File(failure)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::File(failure) => Self::Failed(failure),
            Failure::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

/// The entry that is asked for, where it is one that can be moved and removed.
fn named(asked: &str, workspace: &Workspace) -> Result<PathTarget, Failure> {
    workspace.entry(asked)?.ok_or_else(|| {
        invalid(
            "the workspace itself, `.` and `..` cannot be moved or removed; name something in it",
        )
    })
}

/// A path that ends in a slash is one of a directory.
fn must_be_directory(asked: &str, kind: EntryKind) -> Result<(), Failure> {
    let names_directory = asked.ends_with('/') || asked.ends_with("/.");
    match names_directory && kind != EntryKind::Directory {
        true => Err(failure(asked, Errno::NOTDIR)),
        false => Ok(()),
    }
}

/// Something was changed on the disk. Tests kill the process here.
pub(crate) fn step() {
    #[cfg(test)]
    crate::testing::step();
}

/// The time that an operation has, and the request to stop it.
#[derive(Debug)]
pub(crate) struct Allowance {
    clock: Arc<dyn Clock>,
    ends: Duration,
    limit: Duration,
    stopping: Stopping,
}

impl Allowance {
    /// From now on for `limit`.
    pub(crate) fn new(clock: Arc<dyn Clock>, limit: Duration, stopping: Stopping) -> Self {
        Self {
            ends: clock.monotonic().saturating_add(limit),
            clock,
            limit,
            stopping,
        }
    }

    /// The time that is left.
    fn left(&self) -> Duration {
        self.ends.saturating_sub(self.clock.monotonic())
    }

    /// The name of new content until it is in place.
    fn unfinished_name(&self) -> String {
        unfinished_name(std::process::id(), self.clock.now())
    }

    /// Checks that the operation may go on.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.stopping.now().is_some() {
            return Err(stopped());
        }
        if self.clock.monotonic() >= self.ends {
            return Err(too_slow(self.limit));
        }
        Ok(())
    }
}

/// A caller ended the operation before it changed anything.
pub(crate) fn stopped() -> Failure {
    Failure::Refused(Refusal::new(
        RefusalCode::Fenced,
        "the operation was stopped before it was done; nothing was changed",
    ))
}

/// The operation's time is over.
pub(crate) fn too_slow(limit: Duration) -> Failure {
    Failure::File(FileFailure::TooSlow {
        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The request makes no sense.
fn invalid(message: &str) -> Failure {
    Failure::Refused(Refusal::new(RefusalCode::Invalid, message))
}

/// The failure that the errno means for the path that was asked for.
fn failure(asked: &str, errno: Errno) -> Failure {
    Failure::File(crate::workspace::failure(asked, errno))
}

/// The failure that the error means for the path that was asked for.
fn io_failure(asked: &str, error: &std::io::Error) -> Failure {
    Failure::File(crate::workspace::io_failure(asked, error))
}

/// `size` of a file as the contract counts it.
fn bytes(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}

/// The number of results that were asked for, within the bound.
fn wanted(asked: u32) -> usize {
    usize::try_from(asked).map_or(MAX_RESULTS, |asked| asked.min(MAX_RESULTS))
}

/// The size in a result, as JSON with the comma behind it, of an entry that was left out.
fn skipped_bytes(skipped: &Skipped) -> usize {
    serde_json::to_vec(skipped).map_or(0, |json| json.len() + 1)
}

/// Drops what goes beyond the bound in bytes; says whether anything did.
fn fit<T>(results: &mut Vec<T>, size: impl Fn(&T) -> usize) -> bool {
    fit_within(MAX_RESULT_BYTES, results, size)
}

/// The same with another bound.
fn fit_within<T>(most: usize, results: &mut Vec<T>, size: impl Fn(&T) -> usize) -> bool {
    let mut total = 0;
    let fitting = results
        .iter()
        .take_while(|result| {
            total += size(result);
            total <= most
        })
        .count();
    let dropped = fitting < results.len();
    results.truncate(fitting);
    dropped
}

#[cfg(test)]
mod tests;
