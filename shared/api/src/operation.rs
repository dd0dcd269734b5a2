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
        /// Read many files of a directory. A tar archive of them is the operation's stdout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pack: Option<Pack>,
        /// Write many files, directories and links. A tar archive of them is the operation's input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub unpack: Option<Unpack>,
        /// The time limit, in milliseconds, from 1000 (1 s) to 86400000 (24 h); absent for 24 hours.
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
        /// The working directory, relative to the workspace; empty for the workspace itself.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub directory: String,
        /// Variables on top of the runner's own environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub environment: BTreeMap<String, String>,
        /// True if it takes input; otherwise its input is empty.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub input: bool,
        /// Run it in a terminal of this size: it takes input, and all its output is stdout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub terminal: Option<TerminalSize>,
        /// True if stderr goes into the stream of stdout, so that their order is exact.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub merged: bool,
        /// The longest silence, in milliseconds, before it is stopped; absent for no such limit.
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
        /// The algorithm of the digest in the operation's end; absent for SHA-256.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub digest: Option<DigestAlgorithm>,
    }

    /// Writes a whole file of any size. The file changes only after all bytes have arrived and match the digest.
    /// Missing directories are made.
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
        /// The permissions of a new file, as `chmod` takes them, less the runner's umask; absent for those of an
        /// ordinary file. An existing file keeps its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(maximum = 511))]
        pub mode: Option<u32>,
        /// The modification time of the file; absent for the time of writing. With it, the file gets exactly this time
        /// and the permissions in `mode`, even if it replaces another file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub modified_at: Option<Timestamp>,
    }

    /// Reads many small files of a directory at once. Unreadable files are left out of the archive and listed in the
    /// operation's end.
    #[serde(deny_unknown_fields)]
    pub struct Pack {
        /// The directory, relative to the workspace; empty for the workspace itself.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// The files, as paths beneath the directory: at most 1024, and 16 MiB together.
        #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1024))]
        pub entries: Vec<String>,
        /// The algorithm of the archive's digest; absent for SHA-256.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub digest: Option<DigestAlgorithm>,
    }

    /// Writes many small files, directories and symbolic links beneath a directory at once. Nothing changes until the
    /// whole archive has arrived and matches the digest. Entries that cannot be written are left out and listed in the
    /// operation's end.
    #[serde(deny_unknown_fields)]
    pub struct Unpack {
        /// The directory, relative to the workspace; empty for the workspace itself. It is made if it is missing.
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
        /// The most entries to list, from 1 to 1000; absent for 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
        pub limit: Option<u32>,
        /// True to list the directories beneath it as well. Names are then paths beneath the directory, and each
        /// directory comes before its content. Links are not followed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub tree: bool,
        /// The name after which the list begins, to continue a list that was cut; empty for all.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub after: String,
    }

    /// Describes the entry at a path. A symbolic link is described itself, unless `follow` is set.
    #[serde(deny_unknown_fields)]
    pub struct Stat {
        /// The path, relative to the workspace; empty for the workspace itself.
        #[cfg_attr(feature = "openapi", schema(max_length = 4096))]
        pub path: String,
        /// True to describe the target of a symbolic link, if the target is in the workspace.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub follow: bool,
    }

    /// Makes a directory and its missing parents. It also succeeds if the directory exists.
    #[serde(deny_unknown_fields)]
    pub struct MakeDirectory {
        /// The directory, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
    }

    /// Moves a file, a directory with its content, or a symbolic link itself.
    #[serde(deny_unknown_fields)]
    pub struct Move {
        /// The present path, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub from: String,
        /// The new path, including the name. Its directory must exist.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub to: String,
        /// True to replace an existing entry: a file or link replaces another one, a directory an empty one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub replace: bool,
    }

    /// Removes a file, an empty directory, or a symbolic link itself.
    #[serde(deny_unknown_fields)]
    pub struct Remove {
        /// The path, relative to the workspace.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 4096))]
        pub path: String,
        /// True to remove a directory with all its content.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub tree: bool,
    }

    /// The entry at a path.
    #[derive(Eq)]
    pub struct Entry {
        /// `file`, `directory`, `link`, or `other` for a device, pipe or socket.
        #[cfg_attr(feature = "openapi", schema(value_type = EntryKind))]
        pub kind: String,
        /// Its size in bytes; 0 unless it is a file.
        pub bytes: u64,
        /// Its permissions: the twelve lowest bits of `st_mode`.
        pub mode: u32,
        /// When its content last changed.
        pub modified_at: Timestamp,
        /// The target of a symbolic link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub leads_to: Option<String>,
    }

    /// The entries of a directory.
    #[derive(Eq)]
    pub struct Listing {
        /// The entries, by name.
        pub entries: Vec<ListedEntry>,
        /// True if there are more entries than the limit.
        pub more: bool,
    }

    /// An entry that was left out.
    #[derive(Eq)]
    pub struct Skipped {
        /// Its path beneath the directory.
        pub path: String,
        /// The reason, in one line.
        pub words: String,
    }

    /// An entry of a directory.
    #[derive(Eq)]
    pub struct ListedEntry {
        /// Its name; in a tree its path beneath the directory. Invalid UTF-8 is replaced.
        pub name: String,
        /// `file`, `directory`, `link`, or `other` for a device, pipe or socket.
        #[cfg_attr(feature = "openapi", schema(value_type = EntryKind))]
        pub kind: String,
        /// Its size in bytes; 0 unless it is a file.
        pub bytes: u64,
        /// Its permissions: the twelve lowest bits of `st_mode`.
        #[serde(default)]
        pub mode: u32,
        /// The target of a symbolic link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub leads_to: Option<String>,
        /// True if bytes of the name or of the link's target were replaced, so that this name is not a usable path.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub is_replaced: bool,
        /// True if it is a directory of a tree and the runner may not read it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub is_unreadable: bool,
    }

    /// Operations, the newest first.
    pub struct Operations {
        /// The operations.
        pub operations: Vec<Operation>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// The reason why an operation had to stop.
    #[derive(Eq)]
    pub struct Stopped {
        /// The right that ended.
        pub why: StopReason,
        /// The name of the person who ended that right; absent where that person was removed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub by: Option<String>,
    }

    /// One request to one runner.
    pub struct Operation {
        /// Its id.
        pub id: OperationId,
        /// The runner that it runs on.
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
        /// Its kind of input; absent in a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input: Option<InputKind>,
        /// When it was placed on its runner.
        pub placed_at: Timestamp,
        /// When a caller asked to stop it.
        #[serde(default)]
        pub cancel_requested_at: Option<Timestamp>,
        /// The reason why it had to stop, if its own user did not ask for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stopped: Option<Stopped>,
        /// Its state.
        pub state: OperationState,
        /// When the server stored its end.
        #[serde(default)]
        pub ended_at: Option<Timestamp>,
        /// Its end; absent while it is open, and in a list where it is long.
        #[serde(default)]
        pub end: Option<OperationEnd>,
    }

    /// The runner of an operation. The runner may have been removed since.
    pub struct OperationRunner {
        /// Its id.
        pub id: RunnerId,
        /// Its name when the operation was placed.
        pub name: String,
    }

    /// The progress of an operation's input.
    pub struct InputTaken {
        /// The offset to send from next. It is the end of the sent bytes, or less if the server had no room for all of
        /// them or misses bytes before them.
        pub offset: u64,
        /// True if all of the input, with its end, was taken.
        pub ended: bool,
    }

    /// Sends a signal to the processes of an operation.
    #[serde(deny_unknown_fields)]
    pub struct SendSignal {
        /// The signal.
        pub signal: Signal,
    }

    /// The outcome of a request to stop an operation.
    pub struct OperationCancelled {
        /// `cancelled`: it was stopped. `already_exited`: it had ended. `never_started`: it has not started and never
        /// will. `recorded`: its runner is unreachable and will stop it after it reconnects.
        pub answer: String,
    }
}

/// The kind of an operation's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum InputKind {
    /// None.
    Nothing,
    /// Bytes.
    Bytes,
    /// Keys typed in its terminal.
    Terminal,
}

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationState {
    /// It runs, or is on its way to its runner.
    Open,
    /// It has ended and does not change any more.
    Ended,
}

/// The end of an operation. `words` tells it in one line for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum OperationEnd {
    /// A process ended. Without a code and a signal it never started, or its status is unknown; `words` tells which.
    Exited {
        /// The code that it returned.
        code: Option<i32>,
        /// The number of the signal that ended it.
        signal: Option<i32>,
        /// The reason why it ended.
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
        /// The entry at the path, of a stat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<Entry>,
        /// The entries of the directory, of a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        listing: Option<Listing>,
        /// The entries that were left out, of a pack or an unpack.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<Skipped>,
    },
    /// A file operation failed and changed nothing.
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
    /// Its outcome cannot be known.
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

/// The reason why a process ended.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ExitCause {
    /// It exited by itself.
    Exited,
    /// Its time limit was reached.
    Timeout,
    /// It wrote nothing for longer than its idle limit.
    Idle,
    /// It was stopped on request.
    Cancelled,
    /// Its runner stopped, or lost its link for too long.
    Orphaned,
    /// The host ran out of memory.
    OutOfMemory,
    /// The runner's disk had no room for its output.
    DiskFull,
    /// Its supervisor was killed, and the process with it.
    SupervisorLost,
    /// The runner's host restarted.
    HostReboot,
    /// Its sandbox was stopped, and the process with it.
    SandboxStopped,
}

/// The kind of a directory's entry.
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
    /// Bytes of an output stream that are no longer stored.
    Gap {
        /// The stream.
        stream: StreamName,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap, where the stream continues.
        to: u64,
    },
    /// Its runner is unreachable. The operation and this connection continue.
    Unreachable {
        /// When the runner was last connected.
        since: Timestamp,
    },
    /// Its runner is reachable again.
    Reachable,
    /// All input below this offset was taken; send from here on. The offset can go back, if the runner lost input.
    InputTaken {
        /// The offset.
        offset: u64,
    },
    /// The operation ended and all output was sent; the server closes the connection.
    Ended {
        /// The operation with its end.
        operation: Box<Operation>,
    },
    /// The server refused a message of the client, or cannot follow the operation any more.
    Problem {
        /// The problem.
        problem: Problem,
    },
    /// The last message before the server closes a working connection with code 1012, because the server stops or the
    /// connection is too old. The operation continues. Wait a random part of `within_ms`. Then connect again with the
    /// offsets that you have.
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
    /// The client has stored output of a download, so the server need not keep it.
    Taken {
        /// The stream.
        stream: StreamName,
        /// All bytes below this offset are stored.
        offset: u64,
    },
}
