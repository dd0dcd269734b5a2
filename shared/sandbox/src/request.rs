//! What can be asked of a sandbox. Paths are relative to its root and use `/`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::Digest;

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
}

impl Request {
    /// SHA-256 of the canonical form: its JSON with the fields in the order of their declaration.
    pub fn digest(&self) -> Digest {
        // A request holds only strings, numbers and maps with string keys, so this cannot fail.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Whether it changes nothing, so that it may be sent again and needs no memory.
    pub fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Read(_) | Self::List(_) | Self::Glob(_) | Self::Grep(_)
        )
    }
}

/// Run a process in a process group of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// What to run.
    pub command: Command,
    /// Where to run it; empty is the root.
    pub directory: String,
    /// Set on top of the sandbox's own environment.
    pub environment: BTreeMap<String, String>,
    /// Send stderr into the stream of stdout, so that their order is exact.
    pub merged: bool,
}

/// What a process runs.
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
}

/// List a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The directory; empty is the root.
    pub path: String,
    /// At most this many entries.
    pub max_entries: u32,
}

/// Find files by name, newest first; what `.gitignore` names is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob {
    /// Where to search; empty is the root.
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
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
    /// At most this many lines.
    pub max_matches: u32,
}
