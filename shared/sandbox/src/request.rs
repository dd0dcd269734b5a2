//! The requests that a sandbox accepts. Paths are relative to its root and use `/`.

mod kinds;

use std::{collections::BTreeMap, num::NonZeroU64};

use serde::{Deserialize, Serialize};
use shared_types::{Digest, DigestAlgorithm, FileDigest};

/// One request to one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Run a process.
    Exec(Exec),
    /// Read lines of a file.
    Read(Read),
    /// Write a whole file.
    Write(Write),
    /// Replace text in a file.
    Edit(Edit),
    /// List a directory.
    List(List),
    /// Find files by name.
    Glob(Glob),
    /// Find lines by content.
    Grep(Grep),
    /// Read a whole file of any size, as output.
    Download(Download),
    /// Write a whole file of any size, from input.
    Upload(Upload),
    /// Tell what is at a path.
    Stat(Stat),
    /// Make a directory.
    MakeDirectory(MakeDirectory),
    /// Give a file, directory or link another path.
    Move(Move),
    /// Remove a file, directory or link.
    Remove(Remove),
    /// Read many files, directories and links of a directory, as output.
    Pack(Pack),
    /// Write many files, directories and links to a directory.
    Unpack(Unpack),
    /// Tell what is good to know about the place before any work there.
    Survey(Survey),
}

impl Request {
    /// SHA-256 of the canonical form: its JSON with the fields in the order of their declaration.
    pub fn digest(&self) -> Digest {
        // A request holds only strings, numbers and maps with string keys, so this cannot fail.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Run a process in a process group of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The command to run.
    pub command: Command,
    /// The directory to run it in; empty is the root.
    pub directory: String,
    /// Set on top of the sandbox's own environment.
    pub environment: BTreeMap<String, String>,
    /// Send stderr into the stream of stdout, so that their order is exact.
    pub merged: bool,
    /// Take input ([`crate::Controls::input`]); else the process reads an empty one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub input: bool,
    /// Run it in a terminal of this size: it takes input, and all output is stdout.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminal: Option<TerminalSize>,
    /// The part of its output that is kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retention: Retention,
    /// Stop it once it has written nothing for so many milliseconds (monotonic clock; time in which
    /// it waits for its output to be taken does not count).
    #[serde(default, skip_serializing_if = "is_default")]
    pub idle_for_ms: Option<NonZeroU64>,
}

impl Exec {
    /// Runs this at the root with the sandbox's own environment, without input.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            directory: String::new(),
            environment: BTreeMap::new(),
            merged: false,
            input: false,
            terminal: None,
            retention: Retention::Bounded,
            idle_for_ms: None,
        }
    }
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Its height in characters.
    pub rows: u16,
    /// Its width in characters.
    pub columns: u16,
}

/// The part of a process's output that is kept until it is durable with the caller
/// (docs/internals/contracts.md#a8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// Its head and its tail; what lies between becomes a gap. The process is never slowed.
    #[default]
    Bounded,
    /// All of it: where too much is not durable yet, the process waits.
    All,
    /// The part that its reader has not confirmed ([`crate::Controls::commit`]): where that is too much, the
    /// process waits.
    None,
}

/// A command: a program with arguments, or a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The program (looked up in PATH) and its arguments, not empty.
    Argv(Vec<String>),
    /// A script for `/bin/sh -c` (bash where the host has it).
    Shell(String),
}

/// Read lines of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The file.
    pub path: String,
    /// The first line wanted, from 1.
    pub first_line: u64,
    /// At most this many lines.
    pub max_lines: u64,
    /// At most this many bytes, cut at a line's end where one fits.
    pub max_bytes: u64,
}

/// Write a whole file: a temporary file beside it, synced, renamed into place. Missing parents are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The file.
    pub path: String,
    /// Its whole new content.
    pub content: Vec<u8>,
}

/// Replace `old`, which must stand in the file exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The file.
    pub path: String,
    /// The text to be replaced, not empty.
    pub old: String,
    /// The text to stand there instead.
    pub new: String,
    /// Replace it wherever it stands, at least once.
    pub every: bool,
    /// The digest of the file as the caller has seen it; a file with another one is left as it is. A runner of an
    /// earlier release refuses a request with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expected: Option<FileDigest>,
}

/// Tell what is good to know about the place before any work there: the system, the branch, and the instructions that
/// people wrote for agents. In each directory from the root down these are `AGENTS.md`, or `CLAUDE.md` where there is
/// none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The directory of the work; empty is the root.
    pub path: String,
    /// Most bytes of all instructions together. Those of the nearest directory come first.
    pub max_bytes: u64,
    /// Also the instructions of the user of the machine, outside of the workspace.
    pub of_user: bool,
    /// Most bytes of all files with extensions together; 0 if they are not looked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub extension_bytes: u64,
}

/// List a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The directory; empty is the root.
    pub path: String,
    /// At most this many entries.
    pub max_entries: u32,
    /// Also what lies in the directories beneath it, whose entries then have paths instead of names.
    /// Links are not followed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tree: bool,
    /// Only entries behind this one; empty is all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after: String,
}

/// Find files by name, newest first; what `.gitignore` names is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// The directory to search; empty is the root.
    pub path: String,
    /// A glob such as `src/**/*.rs`, relative to `path`.
    pub pattern: String,
    /// At most this many paths.
    pub max_paths: u32,
}

/// Find lines by content; what `.gitignore` names and binary files are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grep {
    /// The file or directory to search; empty is the root.
    pub path: String,
    /// A regular expression (syntax of the Rust `regex` crate), matched line by line.
    pub pattern: String,
    /// Only in files whose path below `path` fits this glob; empty is all.
    pub files: String,
    /// True if upper and lower case are the same.
    pub ignore_case: bool,
    /// At most this many lines.
    pub max_matches: u32,
}

/// Read a whole file of any size: its bytes are the operation's stdout. The end carries their
/// digest ([`crate::DownloadCheck`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Download {
    /// The file.
    pub path: String,
    /// The algorithm of its digest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub algorithm: DigestAlgorithm,
    /// A file of more bytes is refused before any is sent; 0 for no bound.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_bytes: u64,
}

/// Write a whole file of any size: its bytes are the operation's input, which has to end exactly
/// where the file does. Until all of it has come and fits the digest, nothing is changed; then it
/// is synced and renamed into place. Missing parents are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Of its whole new content.
    pub digest: FileDigest,
    /// The permissions of a new file, less what the host's umask takes away; absent for those of an
    /// ordinary file. A file that is there keeps its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Option<u32>,
    /// When it was modified, in microseconds since 1970. With it the file has exactly this time and the permissions
    /// in `mode`, also where another file was there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub modified_us: Option<i64>,
}

/// Tell what is at a path: of a symbolic link itself, unless it is to be followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// The path; empty is the root.
    pub path: String,
    /// Tell of what a link leads to, where that is in the workspace.
    #[serde(default, skip_serializing_if = "is_default")]
    pub follow: bool,
}

/// Make a directory, with its missing parents. One that is there already is no failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakeDirectory {
    /// The directory.
    pub path: String,
}

/// Give a file, a directory with all that is in it, or a symbolic link itself another path in the
/// workspace, at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The path of the thing to move.
    pub from: String,
    /// The new path, its name included. Its directory must exist.
    pub to: String,
    /// Replace what is there: a file or link by one of them, an empty directory by a directory.
    pub replace: bool,
}

/// Remove a file, an empty directory, or a symbolic link itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    /// The path to remove; never the root.
    pub path: String,
    /// Remove a directory with all that is in it.
    pub tree: bool,
}

/// Read many small files, directories and links of a directory at once: a tar archive of them is the
/// operation's stdout. The end carries its digest, and what could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    /// The directory; empty is the root.
    pub path: String,
    /// The paths to read, beneath the directory.
    pub entries: Vec<String>,
    /// The algorithm of the archive's digest.
    #[serde(default, skip_serializing_if = "is_default")]
    pub algorithm: DigestAlgorithm,
}

/// Write many files, directories and links beneath a directory at once, which is made with its missing
/// parents: a tar archive of them is the operation's input. Until all of it has come and fits the
/// digest, nothing is changed. Then each file is put in place as by [`Upload`]. The end tells what could
/// not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpack {
    /// The directory; empty is the root.
    pub path: String,
    /// The size of the archive.
    pub bytes: u64,
    /// Of the archive.
    pub digest: FileDigest,
}

/// True for a default value. Defaults are left out of the canonical form, so that a new field leaves the digest of
/// old requests unchanged.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_asks_for_nothing_new_has_the_digest_that_it_always_had() {
        let exec = Exec::new(Command::Shell("true".into()));
        let canonical = serde_json::to_string(&Request::Exec(exec.clone())).expect("JSON");
        let expected = r#"{"exec":{"command":{"shell":"true"},"directory":"","environment":{},"merged":false}}"#;
        assert_eq!(canonical, expected);
        let read: Request = serde_json::from_str(expected).expect("an exec");
        assert_eq!(read, Request::Exec(exec.clone()));
        let asks = Exec {
            input: true,
            ..exec.clone()
        };
        assert_ne!(Request::Exec(asks).digest(), Request::Exec(exec).digest());
        let mut edit = Edit {
            path: "a".into(),
            old: "b".into(),
            new: "c".into(),
            every: false,
            expected: None,
        };
        let canonical = serde_json::to_string(&Request::Edit(edit.clone())).expect("JSON");
        let expected = r#"{"edit":{"path":"a","old":"b","new":"c","every":false}}"#;
        assert_eq!(canonical, expected);
        let before = Request::Edit(edit.clone()).digest();
        edit.expected = Some(Digest::of(b"a").into());
        assert_ne!(Request::Edit(edit).digest(), before);
    }
}
