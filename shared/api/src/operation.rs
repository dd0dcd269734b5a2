//! Operations of the API's callers: starting one, its state and its end, and the messages of its
//! WebSocket. Binary messages are [`crate::BinaryFrame`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared_types::{
    DigestAlgorithm, FileDigest, OperationId, RunnerId, SessionId, Timestamp, TurnId,
    event::StopReason,
};

use crate::{Problem, StreamName};

messages! {
    /// Starts an operation: exactly one of the requests from `exec` to `unpack`.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct StartOperation {
        /// The name or id of the runner; without one, the user's active runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 63))]
        pub runner: Option<String>,
        /// Run a process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub exec: Option<Exec>,
        /// Read a whole file: its bytes are the operation's stdout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub download: Option<Download>,
        /// Write a whole file: its bytes are the operation's input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub upload: Option<Upload>,
        /// List a directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub list: Option<List>,
        /// Tell what is at a path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stat: Option<Stat>,
        /// Make a directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub make_directory: Option<MakeDirectory>,
        /// Give a file or directory another path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub r#move: Option<Move>,
        /// Remove a file or directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub remove: Option<Remove>,
        /// Read many files of a directory: a tar archive of them is the operation's stdout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pack: Option<Pack>,
        /// Write many files, directories and links: a tar archive of them is the operation's input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub unpack: Option<Unpack>,
        /// How long it may run, in milliseconds, from 1000 (1 s) to 86400000 (24 h); absent for
        /// 24 hours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1000, maximum = 86400000))]
        pub timeout_ms: Option<u64>,
    }

    /// Runs a process: exactly one of `argv` and `script`.
    #[derive(Default)]
    #[serde(deny_unknown_fields)]
    pub struct Exec {
        /// The program, which is looked up in PATH, and its arguments; 4096 words at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 4096))]
        pub argv: Option<Vec<String>>,
        /// A script for the runner's shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 131071))]
        pub script: Option<String>,
        /// The directory to run in, relative to the workspace; empty for the workspace itself.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub directory: String,
        /// Variables on top of the runner's own environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub environment: BTreeMap<String, String>,
        /// Whether it takes input; without, it reads an empty one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub input: bool,
        /// Run it in a terminal of this size: it takes input, and all its output is stdout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub terminal: Option<TerminalSize>,
        /// Whether stderr goes into the stream of stdout, so that their order is exact.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub merged: bool,
        /// Stop it once it has written nothing for so many milliseconds; absent for no such limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86400000))]
        pub idle_timeout_ms: Option<u64>,
    }

    /// The size of a terminal.
    #[derive(Copy, Eq)]
    #[serde(deny_unknown_fields)]
    pub struct TerminalSize {
        /// Its height in characters.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
        pub rows: u16,
        /// Its width in characters.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
        pub columns: u16,
    }

    /// Reads a whole file of any size.
    #[serde(deny_unknown_fields)]
    pub struct Download {
        /// The file, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
        /// What the digest in the operation's end is made with; absent for SHA-256.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub digest: Option<DigestAlgorithm>,
    }

    /// Writes a whole file of any size. Until all of it has come and fits the digest, nothing is
    /// changed. Missing directories are made.
    #[serde(deny_unknown_fields)]
    pub struct Upload {
        /// The file, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
        /// Its size.
        #[cfg_attr(feature = "openapi", schema(maximum = 68719476736_u64))]
        pub bytes: u64,
        /// The digest of its content.
        pub digest: FileDigest,
        /// The permissions of a new file, as `chmod` takes them, less the umask of the runner; absent
        /// for those of an ordinary file. A file that is there keeps its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(maximum = 511))]
        pub mode: Option<u32>,
        /// When the file was modified. With it the file has exactly this time and the permissions in `mode`, also
        /// where another file was there; absent for the time at which it is written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub modified_at: Option<Timestamp>,
    }

    /// Reads many small files of a directory at once. What cannot be read is left out of the archive and
    /// told in the operation's end.
    #[serde(deny_unknown_fields)]
    pub struct Pack {
        /// The directory, relative to the workspace; empty for the workspace itself.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// The files, as paths beneath the directory: at most 1024, and 16 MiB together.
        #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1024))]
        pub entries: Vec<String>,
        /// What the digest of the archive is made with; absent for SHA-256.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub digest: Option<DigestAlgorithm>,
    }

    /// Writes many small files, directories and symbolic links beneath a directory at once. Until all of
    /// the archive has come and fits the digest, nothing is changed. What cannot be written is left out
    /// and told in the operation's end.
    #[serde(deny_unknown_fields)]
    pub struct Unpack {
        /// The directory, relative to the workspace; empty for the workspace itself. It is made where it
        /// is missing.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// The size of the archive, of at most 1024 entries.
        #[cfg_attr(feature = "openapi", schema(maximum = 16777216))]
        pub bytes: u64,
        /// The digest of the archive.
        pub digest: FileDigest,
    }

    /// Lists a directory by name.
    #[serde(deny_unknown_fields)]
    pub struct List {
        /// The directory, relative to the workspace; empty for the workspace itself.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// At most this many entries, from 1 to 1000; absent for 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
        pub limit: Option<u32>,
        /// Whether what lies in the directories beneath it is listed as well. Names are paths beneath the
        /// directory then, each directory comes before what is in it, and links are not followed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub tree: bool,
        /// Only entries behind this one, to go on where another list was cut; empty for all.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub after: String,
    }

    /// Tells what is at a path: of a symbolic link itself, unless it is to be followed.
    #[serde(deny_unknown_fields)]
    pub struct Stat {
        /// The path, relative to the workspace; empty for the workspace itself.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// Whether to tell of what a symbolic link leads to, where that is in the workspace.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub follow: bool,
    }

    /// Makes a directory with its missing parents. One that is there already is no failure.
    #[serde(deny_unknown_fields)]
    pub struct MakeDirectory {
        /// The directory, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
    }

    /// Gives a file, a directory with all that is in it, or a symbolic link itself another path.
    #[serde(deny_unknown_fields)]
    pub struct Move {
        /// Where it is, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub from: String,
        /// Where it is to be, its name included. The directory must be there.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub to: String,
        /// Whether it replaces what is there: a file or link another one, a directory an empty one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub replace: bool,
    }

    /// Removes a file, an empty directory, or a symbolic link itself.
    #[serde(deny_unknown_fields)]
    pub struct Remove {
        /// The path, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
        /// Whether a directory is removed with all that is in it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub tree: bool,
    }

    /// What is at a path.
    #[derive(Eq)]
    pub struct Entry {
        /// `file`, `directory`, `link`, or `other` for a device, pipe or socket.
        #[cfg_attr(feature = "openapi", schema(value_type = EntryKind))]
        pub kind: String,
        /// Its size in bytes; 0 of what is no file.
        pub bytes: u64,
        /// Its permissions: the twelve lowest bits of `st_mode`.
        pub mode: u32,
        /// When its content was changed last.
        pub modified_at: Timestamp,
        /// The path that a symbolic link leads to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub leads_to: Option<String>,
    }

    /// The entries of a directory.
    #[derive(Eq)]
    pub struct Listing {
        /// The entries, by name.
        pub entries: Vec<ListedEntry>,
        /// Whether there are more than were asked for.
        pub more: bool,
    }

    /// An entry that was left out.
    #[derive(Eq)]
    pub struct Skipped {
        /// Its path beneath the directory.
        pub path: String,
        /// Why, in one line.
        pub words: String,
    }

    /// An entry of a directory.
    #[derive(Eq)]
    pub struct ListedEntry {
        /// Its name; in a tree its path beneath the directory. Bytes that are no UTF-8 are replaced.
        pub name: String,
        /// `file`, `directory`, `link`, or `other` for a device, pipe or socket.
        #[cfg_attr(feature = "openapi", schema(value_type = EntryKind))]
        pub kind: String,
        /// Its size in bytes; 0 of what is no file.
        pub bytes: u64,
        /// Its permissions: the twelve lowest bits of `st_mode`.
        #[serde(default)]
        pub mode: u32,
        /// The path that a symbolic link leads to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub leads_to: Option<String>,
        /// Whether bytes of the name, or of where the link leads to, were replaced: it cannot be asked for
        /// by this name.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub is_replaced: bool,
        /// Whether it is a directory of a tree that the runner may not read.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub is_unreadable: bool,
    }

    /// Operations, the newest first.
    pub struct Operations {
        /// The operations.
        pub operations: Vec<Operation>,
        /// Where the next page begins, to be passed as `after`; absent where this is the last one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Why an operation had to stop.
    #[derive(Eq)]
    pub struct Stopped {
        /// The right that ended.
        pub why: StopReason,
        /// The name of the person who has ended it; absent where that person was removed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub by: Option<String>,
    }

    /// One request to one runner.
    pub struct Operation {
        /// Its id.
        pub id: OperationId,
        /// Where it runs.
        pub runner: OperationRunner,
        /// The request in one line, such as `ls -l`.
        pub title: String,
        /// The kind of the request, such as `exec`, `download`, `upload`, `read` or `write`.
        pub kind: String,
        /// The name of the user who started it; absent where an agent did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub started_by: Option<String>,
        /// The session whose agent started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub session: Option<SessionId>,
        /// The turn in which the agent started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub turn: Option<TurnId>,
        /// What it takes as input; absent in a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input: Option<InputKind>,
        /// When it was placed on its runner.
        pub placed_at: Timestamp,
        /// When a caller asked to stop it.
        #[serde(default)]
        pub cancel_requested_at: Option<Timestamp>,
        /// Why it had to stop, where its own user has not asked for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stopped: Option<Stopped>,
        /// Whether it has ended.
        pub state: OperationState,
        /// When the server stored its end.
        #[serde(default)]
        pub ended_at: Option<Timestamp>,
        /// How it ended; absent while it is open, and in a list where it is long.
        #[serde(default)]
        pub end: Option<OperationEnd>,
    }

    /// The runner of an operation. It may have been removed since.
    pub struct OperationRunner {
        /// Its id.
        pub id: RunnerId,
        /// Its name when the operation was placed.
        pub name: String,
    }

    /// How much of an operation's input was taken.
    pub struct InputTaken {
        /// The offset to go on at: the end of what was sent, or less where there was no room for all
        /// of it, or where bytes before it are missing.
        pub offset: u64,
        /// Whether the input has ended: all of it, with its end, was taken.
        pub ended: bool,
    }

    /// Sends a signal to the processes of an operation.
    #[serde(deny_unknown_fields)]
    pub struct SendSignal {
        /// The signal.
        pub signal: Signal,
    }
}

/// What an operation takes as input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum InputKind {
    /// None.
    Nothing,
    /// Bytes.
    Bytes,
    /// What is typed in its terminal.
    Terminal,
}

/// Whether an operation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationState {
    /// It runs, or is on its way to its runner.
    Open,
    /// It has ended; nothing of it changes any more.
    Ended,
}

/// How an operation ended. `words` says it in one line for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationEnd {
    /// A process ended. Without a code and a signal it never started, or its status is not known:
    /// `words` says which.
    Exited {
        /// The code that it returned.
        code: Option<i32>,
        /// The number of the signal that ended it.
        signal: Option<i32>,
        /// Why it ended.
        #[cfg_attr(feature = "openapi", schema(value_type = ExitCause))]
        cause: String,
        /// The end in one line.
        words: String,
        /// Bytes that it wrote to stdout.
        stdout_bytes: u64,
        /// Bytes that it wrote to stderr.
        stderr_bytes: u64,
        /// Milliseconds from its start to its end.
        wall_ms: u64,
    },
    /// A file operation succeeded.
    Done {
        /// The end in one line.
        words: String,
        /// The size of the file, of a download, an upload or a write, or of a pack's archive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The digest of the file, of a download, an upload or a write, or of a pack's archive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<FileDigest>,
        /// What is at the path, of a stat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<Entry>,
        /// What is in the directory, of a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        listing: Option<Listing>,
        /// What was left out, of a pack or an unpack.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<Skipped>,
    },
    /// A file operation could not be done; nothing was changed.
    Failed {
        /// A stable word for programs, such as `not_found`, `not_a_directory` or `denied`.
        #[serde(default)]
        reason: String,
        /// The end in one line.
        words: String,
    },
    /// It was refused and never started.
    Refused {
        /// The end in one line.
        words: String,
    },
    /// What became of it cannot be known.
    Lost {
        /// The end in one line.
        words: String,
    },
}

impl OperationEnd {
    /// The end in one line for people.
    pub fn words(&self) -> &str {
        match self {
            Self::Exited { words, .. }
            | Self::Done { words, .. }
            | Self::Failed { words, .. }
            | Self::Refused { words }
            | Self::Lost { words } => words,
        }
    }
}

/// Why a process ended.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ExitCause {
    /// By itself.
    Exited,
    /// It ran for as long as it was given.
    Timeout,
    /// It was silent for as long as it was given.
    Idle,
    /// It was stopped on request.
    Cancelled,
    /// Its runner stopped, or was cut off for too long.
    Orphaned,
    /// The host ran out of memory.
    OutOfMemory,
    /// Its output found no room on the runner's disk.
    DiskFull,
    /// Its supervisor was killed, and it with it.
    SupervisorLost,
    /// The runner's host restarted.
    HostReboot,
    /// Its sandbox was stopped, and it with it.
    SandboxStopped,
}

/// What an entry of a directory is.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "snake_case")]
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

/// A signal to the processes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT, as control-C sends it in a terminal.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGTERM.
    Terminate,
    /// SIGCONT.
    Continue,
    /// SIGSTOP.
    Stop,
}

/// A text message of the server on an operation's WebSocket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationServerMessage {
    /// The operation as it is now; the first message.
    Operation {
        /// The operation.
        operation: Box<Operation>,
    },
    /// Its runner has it.
    Accepted,
    /// Bytes of an output stream that are not kept any more.
    Gap {
        /// The stream.
        stream: StreamName,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap, where the stream goes on.
        to: u64,
    },
    /// Its runner cannot be reached. The operation goes on, and so does this connection.
    Unreachable {
        /// When the runner was last heard of.
        since: Timestamp,
    },
    /// Its runner is back.
    Reachable,
    /// All input below this offset was taken; send from here on. It may go back, where the runner
    /// lost what it had.
    InputTaken {
        /// The offset.
        offset: u64,
    },
    /// It ended, and all output was sent; the server closes the connection.
    Ended {
        /// The operation with its end.
        operation: Box<Operation>,
    },
    /// A message of the client was refused, or the operation cannot be followed any more.
    Problem {
        /// What happened.
        problem: Problem,
    },
    /// The last message before the server closes a sound connection with code 1012, because it stops or the
    /// connection has reached its greatest age. The operation goes on. Wait a random part of the time, then
    /// connect again with the offsets that you have.
    Reconnect {
        /// The time, in milliseconds.
        within_ms: u32,
    },
}

/// A text message of the client on an operation's WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationClientMessage {
    /// The input ends at this offset.
    InputEnd {
        /// The size of the whole input.
        offset: u64,
    },
    /// The terminal has another size.
    Resize {
        /// Its height in characters.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
        rows: u16,
        /// Its width in characters.
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 65535))]
        columns: u16,
    },
    /// Send a signal to the operation's processes.
    Signal {
        /// The signal.
        signal: Signal,
    },
    /// Output of a download that the client has stored: the server need not keep it.
    Taken {
        /// The stream.
        stream: StreamName,
        /// All bytes below this offset are stored.
        offset: u64,
    },
}
