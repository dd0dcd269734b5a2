//! The records in an operation's directory: who supervises, what its fate is, how it ended.
//!
//! A record is one line of text, `VERSION KIND CRC32 JSON`, so that a person can read it, a torn
//! one is noticed, and fields can be added. The files of records are made in advance with blank
//! lines in them, so that a full disk cannot keep an end from being written down.

use std::{fs::File, io, os::unix::fs::FileExt, path::PathBuf, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shared_types::OperationId;

use crate::{
    Directory, ProcessId, VERSION, agreed_version,
    request::{millis, millis_always},
    tree::KillMethod,
};

/// The most bytes of a host's reason that are kept.
pub const MAX_REASON_BYTES: usize = 512;

/// Room that is made in advance for a record, in bytes.
const ROOM: usize = 4096;

/// Largest record that is read, in bytes.
const MAX_RECORD_BYTES: usize = 16 * 1024;

/// The supervisor of an operation, and its means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The supervisor.
    pub supervisor: ProcessId,
    /// The way in which it kills.
    pub kill: KillMethod,
    /// The cgroup that it made for the command.
    pub cgroup: Option<PathBuf>,
}

/// The fate of an operation; linked once, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was started; its end is in the exit record.
    Started(StartRecord),
    /// It never ran and never will. This is its end as well.
    Fenced {
        /// The process that decided so, and the reason.
        reason: String,
    },
}

/// A start, written down before the gate is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRecord {
    /// The operation.
    pub operation: OperationId,
    /// The supervisor of the operation.
    pub identity: ProcessIdentity,
    /// The command's first process; absent where it was clear before that there is none.
    pub child: Option<ProcessId>,
    /// The limits of its time, for the process that must enforce them in the supervisor's place;
    /// absent from the record of an earlier program.
    #[serde(default)]
    pub times: Option<CommandTimes>,
    /// The daemon's own words about the operation (see [`CommandTerms`](crate::CommandTerms)); absent from the
    /// record of an earlier program.
    #[serde(default)]
    pub claim: Option<String>,
}

/// The times that a command was given (see [`CommandTerms`](crate::CommandTerms)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTimes {
    /// When it began, on the monotonic clock of the host's boot, in milliseconds.
    pub began_ms: u64,
    /// The longest time that it may run (monotonic clock).
    #[serde(default, with = "millis")]
    pub run_for: Option<Duration>,
    /// The longest time that it may go on without a renewal (boot-time clock).
    #[serde(default, with = "millis")]
    pub orphan_for: Option<Duration>,
    /// Between the polite signal and the kill.
    #[serde(with = "millis_always")]
    pub kill_grace: Duration,
}

impl CommandTimes {
    /// The time that is left to run for a command that began in this boot of the host.
    pub fn run_left(&self) -> Option<Duration> {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
        let ran = now.saturating_sub(Duration::from_millis(self.began_ms));
        self.run_for.map(|run_for| run_for.saturating_sub(ran))
    }
}

/// The end of an operation; linked once, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The operation; absent where its start record is damaged.
    pub operation: Option<OperationId>,
    /// The command's own report.
    pub end: ReportedEnd,
    /// The cause of the end.
    pub cause: Cause,
    /// All of stdout, of the merged stream, or of the terminal.
    pub out: SpoolEnd,
    /// All of stderr.
    pub err: SpoolEnd,
    /// Processor time of the first process and of those that it waited for, in microseconds.
    pub cpu_us: u64,
    /// The largest resident size of one of them, in bytes.
    pub max_rss_bytes: u64,
    /// From the opening of the gate to the end of the first process, in microseconds.
    pub wall_us: u64,
    /// The means that would have killed (or has killed) the tree.
    pub kill: KillMethod,
    /// True if it is proven that no process of the tree is left.
    pub tree_gone: bool,
}

/// A command's own report of its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedEnd {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It never ran.
    NotStarted(NotStarted),
    /// It is not known: its supervisor died, or the host does not let it go.
    Unknown,
}

/// The reason why a command never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum NotStarted {
    /// There is no such program, or it is in no directory of PATH.
    #[error("there is no program {0:?}; install it, or name its file")]
    MissingProgram(String),
    /// The program names an interpreter or loader that is not there.
    #[error("the interpreter or loader of {0:?} does not exist")]
    MissingInterpreter(String),
    /// There is no such directory.
    #[error("there is no directory {0:?} to run in")]
    MissingDirectory(String),
    /// The host refuses.
    #[error("the host does not allow to execute {0:?}; make it executable, or run its interpreter")]
    Denied(String),
    /// It is no program.
    #[error("{0:?} is not a program for this host; a script needs a first line like #!/bin/sh")]
    NotAProgram(String),
    /// Words and environment together are larger than the host allows (`E2BIG`).
    #[error("words and environment together are larger than the host allows; use a file")]
    TooLarge,
    /// The host has no room for one more process.
    #[error("the host allows no further process now; try again later")]
    NoProcess,
    /// The disk is full.
    #[error("no space is left on the disk; free some")]
    DiskFull,
    /// Something else.
    #[error("the host said: {0}")]
    Host(String),
}

/// The cause of a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// By itself.
    Exited,
    /// It ran for as long as it was given.
    Timeout,
    /// It was silent for as long as it was given.
    Idle,
    /// It was stopped on request.
    Cancelled,
    /// It was not renewed in time, or the host asked its supervisor to stop.
    Orphaned,
    /// The host ran out of memory and killed it, or a process that it reported.
    OutOfMemory,
    /// Its output found no room on the disk.
    DiskFull,
    /// Its supervisor died.
    SupervisorLost,
    /// The host restarted.
    HostReboot,
    /// The container that it ran in was stopped.
    SandboxStopped,
}

/// The end of an output stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolEnd {
    /// Bytes that were taken from the command.
    pub offset: u64,
    /// CRC-32 (IEEE) of all of them, also of those that are not kept; absent where not all of
    /// them could be seen.
    pub checksum: Option<u32>,
}

/// The reason why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is damaged or unfinished: its writer's host died.
    #[error("the record {name:?} is damaged")]
    Damaged {
        /// The file.
        name: String,
    },
    /// It was written by a version too far away.
    #[error(
        "the record {name:?} has version {version}; this program reads {VERSION} and its neighbours, so use a closer one"
    )]
    Version {
        /// The file.
        name: String,
        /// Its version.
        version: u32,
    },
    /// The host reported something.
    #[error("the record cannot be read or written")]
    Io(#[from] io::Error),
}

/// A record to be written once, on room that was made in advance.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    name: &'static str,
}

impl RecordFile {
    /// Makes it, under the record's name with `.new` behind it.
    ///
    /// # Errors
    /// When the host refuses, or the disk is full.
    pub fn create(directory: &Directory, name: &'static str) -> io::Result<Self> {
        let file = directory.create_file(&format!("{name}.new"))?;
        make_room(&file)?;
        Ok(Self { file, name })
    }

    /// Writes the record; no other process sees it yet.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn write<T: Serialize>(&self, record: &T) -> io::Result<()> {
        self.file.write_all_at(&to_line(self.name, record)?, 0)
    }

    /// Writes it through to the disk.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Gives it its name; `false` where that is taken, and then it does not count.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn link(&self, directory: &Directory) -> io::Result<bool> {
        directory.link(&format!("{}.new", self.name), self.name)
    }
}

/// Makes room for a record, so that it can be written on a full disk.
pub(crate) fn make_room(file: &File) -> io::Result<()> {
    file.write_all_at(&[b'\n'; ROOM], 0)
}

/// One record as its line.
pub(crate) fn to_line<T: Serialize>(kind: &str, record: &T) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(record)?;
    let checksum = crc32fast::hash(json.as_bytes());
    Ok(format!("{VERSION} {kind} {checksum:08x} {json}\n").into_bytes())
}

/// The record in a line; `name` is for the error.
pub(crate) fn from_line<T: DeserializeOwned>(
    kind: &str,
    line: &[u8],
    name: &str,
) -> Result<T, RecordError> {
    let damaged = || RecordError::Damaged {
        name: name.to_owned(),
    };
    let line = std::str::from_utf8(line).map_err(|_| damaged())?;
    let mut parts = line.splitn(4, ' ');
    let mut part = || parts.next().ok_or_else(damaged);
    let version: u32 = part()?.parse().map_err(|_| damaged())?;
    agreed_version(version).ok_or_else(|| RecordError::Version {
        name: name.to_owned(),
        version,
    })?;
    let kind_fits = part()? == kind;
    let checksum = u32::from_str_radix(part()?, 16).map_err(|_| damaged())?;
    let json = part()?;
    if !kind_fits || crc32fast::hash(json.as_bytes()) != checksum {
        return Err(damaged());
    }
    serde_json::from_str(json).map_err(|_| damaged())
}

/// The first record of a file.
pub(crate) fn read<T: DeserializeOwned>(
    kind: &str,
    file: &File,
    name: &str,
) -> Result<T, RecordError> {
    let mut bytes = vec![0; MAX_RECORD_BYTES];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    let line = bytes[..length]
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or_else(|| RecordError::Damaged {
            name: name.to_owned(),
        })?;
    from_line(kind, &bytes[..line], name)
}

/// The host's words, as long as is kept of them.
pub(crate) fn reason(error: &dyn std::fmt::Display) -> String {
    let mut text = error.to_string();
    let mut end = MAX_REASON_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests;
