//! The outcomes of operations. Every kind of end has its own type: nothing is folded into an exit
//! code.

mod download;
mod exit;
mod expected;
mod nearest;

use serde::{Deserialize, Serialize};
use shared_types::{Digest, FileDigest, Refusal, RefusalCode};

use crate::OutputStream;

pub use download::DownloadCheck;
pub use exit::{ExitCause, ExitRecord, ExitStatus, NotStarted, StreamEnd};
pub use expected::{Expects, expected};
pub use nearest::Nearest;

/// The one end of an operation. A terminal state never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A process ended.
    Exited(ExitRecord),
    /// A file was read.
    Read(ReadContent),
    /// A file was written.
    Written(Written),
    /// A file was edited.
    Edited(Edited),
    /// A directory was listed.
    Listed(Listed),
    /// Files were found by name.
    Globbed(Globbed),
    /// Lines were found by content.
    Grepped(Grepped),
    /// A file was read as output.
    Downloaded(Downloaded),
    /// It was found out what is at a path.
    Found(Found),
    /// A directory is there.
    MadeDirectory(MadeDirectory),
    /// Something has another path.
    Moved(Moved),
    /// Something was removed.
    Removed(Removed),
    /// Entries of a directory were read as output.
    Packed(Packed),
    /// Entries of a directory were written.
    Unpacked(Unpacked),
    /// The place was looked at.
    Surveyed(Surveyed),
    /// A file operation could not be done; nothing was changed, unless the failure says so.
    Failed(FileFailure),
    /// It did not start, or its fate is not known ([`shared_types::RefusalCode::Lost`]).
    Refused(Refusal),
}

impl Outcome {
    /// True if it is the end of a command or of a change, which may leave another state behind.
    pub fn tells_of_a_change(&self) -> bool {
        match self {
            Self::Exited(_)
            | Self::Written(_)
            | Self::Edited(_)
            | Self::MadeDirectory(_)
            | Self::Moved(_)
            | Self::Removed(_)
            | Self::Unpacked(_) => true,
            Self::Read(_)
            | Self::Listed(_)
            | Self::Globbed(_)
            | Self::Grepped(_)
            | Self::Downloaded(_)
            | Self::Found(_)
            | Self::Packed(_)
            | Self::Surveyed(_)
            | Self::Failed(_)
            | Self::Refused(_) => false,
        }
    }

    /// The cause of the end, in one word of a closed set, for metrics. For a process it is the word
    /// of its [`ExitCause`], or `not_started`; for work on files `done` or `failed`; for both
    /// `lost` or `refused`.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Exited(ExitRecord {
                status: ExitStatus::NotStarted(_),
                ..
            }) => "not_started",
            Self::Exited(record) => record.cause.word(),
            Self::Read(_)
            | Self::Written(_)
            | Self::Edited(_)
            | Self::Listed(_)
            | Self::Globbed(_)
            | Self::Grepped(_)
            | Self::Downloaded(_)
            | Self::Found(_)
            | Self::MadeDirectory(_)
            | Self::Moved(_)
            | Self::Removed(_)
            | Self::Packed(_)
            | Self::Unpacked(_)
            | Self::Surveyed(_) => "done",
            Self::Failed(_) => "failed",
            Self::Refused(refusal) if refusal.code == RefusalCode::Lost => "lost",
            Self::Refused(_) => "refused",
        }
    }

    /// The size of each output stream in bytes, as far as the outcome says it.
    pub fn output(&self) -> Vec<(OutputStream, u64)> {
        match self {
            Self::Exited(record) => vec![
                (OutputStream::Stdout, record.stdout.offset),
                (OutputStream::Stderr, record.stderr.offset),
            ],
            Self::Downloaded(downloaded) => vec![(OutputStream::Stdout, downloaded.bytes)],
            Self::Packed(packed) => vec![(OutputStream::Stdout, packed.bytes)],
            Self::Read(_)
            | Self::Written(_)
            | Self::Edited(_)
            | Self::Listed(_)
            | Self::Globbed(_)
            | Self::Grepped(_)
            | Self::Found(_)
            | Self::MadeDirectory(_)
            | Self::Moved(_)
            | Self::Removed(_)
            | Self::Unpacked(_)
            | Self::Surveyed(_)
            | Self::Failed(_)
            | Self::Refused(_) => Vec::new(),
        }
    }
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadContent {
    /// The bytes of these lines.
    pub content: Vec<u8>,
    /// The first line that is there, from 1.
    pub first_line: u64,
    /// The number of these lines.
    pub lines: u64,
    /// The size of the whole file in bytes.
    pub file_bytes: u64,
    /// True if the file goes on after these lines.
    pub more: bool,
    /// The digest of the whole file. Absent where the file is too large to be edited, or an earlier release read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
}

/// A file was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its new size in bytes.
    pub bytes: u64,
    /// The digest of what was there before; absent where there was nothing.
    pub before: Option<FileDigest>,
    /// The digest of what is there now.
    pub after: FileDigest,
}

/// A file was read as output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downloaded {
    /// Its size in bytes.
    pub bytes: u64,
    /// The digest of all of it. If the bytes that arrived have another digest, the file was changed
    /// during the download ([`DownloadCheck`]).
    pub digest: FileDigest,
}

/// Entries of a directory were read as output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// The digest of the archive.
    pub digest: FileDigest,
    /// The entries that are not in it.
    pub skipped: Vec<Skipped>,
}

/// Entries of a directory were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpacked {
    /// The number of entries that are there now.
    pub entries: u32,
    /// The entries that were not written.
    pub skipped: Vec<Skipped>,
}

/// An entry that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its path beneath the directory.
    pub path: String,
    /// The reason.
    pub failure: FileFailure,
}

/// A file was edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The line of the first replacement, from 1.
    pub line: u64,
    /// The number of places that were replaced.
    pub replaced: u64,
    /// The digest of what was there before.
    pub before: Digest,
    /// The digest of what is there now.
    pub after: Digest,
}

/// A directory's entries, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The entries.
    pub entries: Vec<ListedEntry>,
    /// True if there are more than were asked for.
    pub more: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedEntry {
    /// Its name, with bytes that are not UTF-8 replaced; in a tree its path beneath the directory.
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// Its size in bytes (files only).
    pub bytes: u64,
    /// The permissions: the twelve lowest bits of `st_mode`.
    #[serde(default)]
    pub mode: u32,
    /// The target of a symbolic link, with bytes that are not UTF-8 replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// True if bytes of the name or of the link's target were replaced, so that no request can name
    /// the entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
    /// True if it is a directory that may not be read (trees only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unreadable: bool,
}

/// The kind of an entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Other,
}

/// The thing at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its kind.
    pub kind: EntryKind,
    /// Its size in bytes (files only).
    pub bytes: u64,
    /// The permissions: the twelve lowest bits of `st_mode`.
    pub mode: u32,
    /// When its content was changed last, in microseconds since 1970; negative before.
    pub modified_us: i64,
    /// The target of a symbolic link, with bytes that are not UTF-8 replaced.
    pub leads_to: Option<String>,
}

/// A directory is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeDirectory {
    /// True if it was made; else it was there already.
    pub made: bool,
}

/// Something has another path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The kind of the thing that was moved.
    pub kind: EntryKind,
    /// True if it took the place of something else.
    pub replaced: bool,
}

/// Something was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The kind of the thing that was removed.
    pub kind: EntryKind,
}

/// The facts about a place that are good to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// The system, such as `Debian GNU/Linux 12 (bookworm), x86_64`.
    pub system: String,
    /// The absolute path of the directory there.
    pub folder: String,
    /// The branch of the git repository in or above the directory; absent where there is none, or it lies outside of
    /// the workspace.
    pub branch: Option<String>,
    /// The instructions, those of the nearest directory last.
    pub instructions: Vec<Instructions>,
    /// Files with instructions or rules that were not read.
    pub unread: Vec<Skipped>,
    /// The nearest file with the project's rules for agents; absent where there is none, it was not read, or an earlier
    /// release looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Box<ProjectFile>>,
    /// Files with extensions, those of the nearest directory first. Of a skill only the beginning is here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Instructions>,
}

/// The file with a project's rules for agents, relative to the project's folder.
pub const PROJECT_FILE: &str = ".gantry/permissions.toml";

/// Most bytes of a file with a project's rules. A longer one is not read at all.
pub const MAX_PROJECT_FILE_BYTES: u64 = 16 * 1024;

/// A file with a project's rules for agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFile {
    /// The file, relative to the root of the sandbox.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// The file: relative to the root of the sandbox, or beginning with `~/` for one of the user.
    pub path: String,
    /// Its beginning; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The size of the whole file, in bytes.
    pub bytes: u64,
    /// True if more of it was left out.
    pub cut: bool,
}

/// Paths that fit a glob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Globbed {
    /// The paths, newest first.
    pub paths: Vec<String>,
    /// True if there are more than were asked for.
    pub more: bool,
    /// The number of `.gitignore` files that were too large to read. The paths that they name are
    /// not left out.
    #[serde(default)]
    pub unread_rules: u32,
}

/// Lines that fit a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grepped {
    /// The lines, by path and line.
    pub matches: Vec<GrepMatch>,
    /// True if there are more than were asked for.
    pub more: bool,
    /// The number of `.gitignore` files that were too large to read. The files that they name are
    /// searched too.
    #[serde(default)]
    pub unread_rules: u32,
    /// The first files that were not searched, or not to their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// The number of further such files.
    #[serde(default)]
    pub more_skipped: u64,
}

/// A line that fits a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrepMatch {
    /// The file.
    pub path: String,
    /// The line's number, from 1.
    pub line: u64,
    /// The line without its end, cut at 500 bytes.
    pub text: String,
}

/// The reason why a file operation could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum FileFailure {
    /// There is no such file or directory.
    #[error("{path:?} does not exist")]
    NotFound {
        /// The path that was asked for.
        path: String,
    },
    /// The path leads out of the workspace.
    #[error("{path:?} leads out of the workspace; use a path relative to the workspace root")]
    OutsideWorkspace {
        /// The path that was asked for.
        path: String,
    },
    /// It is a directory, a device, a pipe or the like.
    #[error("{path:?} is not an ordinary file")]
    NotAFile {
        /// The path that was asked for.
        path: String,
    },
    /// It is not a directory.
    #[error("{path:?} is not a directory")]
    NotADirectory {
        /// The path that was asked for.
        path: String,
    },
    /// The host refused.
    #[error("permission to use {path:?} is denied on the runner's host")]
    Denied {
        /// The path that was asked for.
        path: String,
    },
    /// It holds bytes that are not text.
    #[error("{path:?} is a binary file")]
    Binary {
        /// The path that was asked for.
        path: String,
    },
    /// It is larger than the bound.
    #[error("{path:?} has {bytes} bytes; at most {limit} can be handled at once")]
    TooLarge {
        /// The path that was asked for.
        path: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// The text to be replaced is not in the file.
    #[error("the text to be replaced is not in {path:?}{}", nearest::words(.nearest.as_ref()))]
    NoMatch {
        /// The path that was asked for.
        path: String,
        /// The place that is nearest to the text; absent where an earlier release looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Nearest>,
    },
    /// The text to be replaced is there more than once.
    #[error(
        "the text to be replaced stands {count} times in {path:?}{}; add lines around it until it is unique, or set replace_all to replace every occurrence",
        nearest::at_lines(.lines, *.count)
    )]
    ManyMatches {
        /// The path that was asked for.
        path: String,
        /// The number of places where the text stands.
        count: u64,
        /// The lines where the first of them begin, from 1; empty where an earlier release looked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<u64>,
    },
    /// The pattern cannot be understood.
    #[error("the pattern cannot be used: {reason}")]
    Pattern {
        /// The error in the pattern.
        reason: String,
    },
    /// It was changed by something else.
    #[error("{path:?} was changed {}", changed(*.since_read))]
    Changed {
        /// The path that was asked for.
        path: String,
        /// True if it was changed since the caller read it; else while it was read.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        since_read: bool,
    },
    /// The content that came is not the content that was announced.
    #[error(
        "what came for {path:?} does not have the digest that was announced; nothing was changed, send it again"
    )]
    OtherDigest {
        /// The path that was asked for.
        path: String,
    },
    /// More or less came than was announced.
    #[error(
        "the input for {path:?} does not end after the {bytes} bytes that were announced; nothing was changed, send it again"
    )]
    OtherSize {
        /// The path that was asked for.
        path: String,
        /// The announced size.
        bytes: u64,
    },
    /// Something is there already.
    #[error("{path:?} is there already; choose another path, or ask to replace it")]
    Exists {
        /// The path that was asked for.
        path: String,
    },
    /// It is a directory with something in it.
    #[error("{path:?} is a directory that is not empty; ask for all of it, or empty it first")]
    NotEmpty {
        /// The path that was asked for.
        path: String,
    },
    /// A part of a directory was removed, and the rest is where it was.
    #[error("only a part of {path:?} was removed: {reason}")]
    PartlyRemoved {
        /// The path that was asked for.
        path: String,
        /// The reason why the rest was not removed.
        reason: String,
    },
    /// The disk is full.
    #[error("no space is left on the runner's disk")]
    DiskFull,
    /// The workspace itself was removed.
    #[error(
        "the workspace is gone from the runner's host; make its folder again and restart the runner"
    )]
    WorkspaceGone,
    /// It took too long and was given up.
    #[error("it took longer than {limit_ms} ms and was given up; narrow the search")]
    TooSlow {
        /// The time that it was given.
        limit_ms: u64,
    },
    /// The host reported something else.
    #[error("the runner's host reported: {reason}")]
    Io {
        /// The system's words.
        reason: String,
    },
}

fn changed(since_read: bool) -> &'static str {
    match since_read {
        true => "since it was read: read it again",
        false => "while it was read; try again",
    }
}

impl FileFailure {
    /// The name of its kind, as it is stored and as the API says it.
    pub fn kind(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(kind)) => kind,
            Ok(serde_json::Value::Object(kinds)) => kinds.keys().cloned().collect(),
            // A failure holds only texts and numbers, so it is always JSON with a name.
            Ok(_) | Err(_) => String::new(),
        }
    }
}
