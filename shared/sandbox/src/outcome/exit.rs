//! The end of a process: its own report, and the cause.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The process's own report.
    pub status: ExitStatus,
    /// The cause of the end.
    pub cause: ExitCause,
    /// The whole of stdout (and of stderr, where they are merged).
    pub stdout: StreamEnd,
    /// The whole of stderr.
    pub stderr: StreamEnd,
    /// Wall time from start to end, in milliseconds.
    pub wall_ms: u64,
    /// Processor time of the first process and of those that it waited for, in microseconds; 0
    /// where it is not known.
    pub cpu_us: u64,
    /// The largest resident size of one of them, in bytes; 0 where it is not known.
    pub max_rss_bytes: u64,
    /// True if every process of the tree is known to be gone. `false` is reported, not hidden:
    /// without a cgroup, and with the supervisor killed, it cannot be known.
    pub tree_gone: bool,
}

/// A process's report of its own end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It never ran.
    NotStarted(NotStarted),
    /// It ran, and its report is lost; the cause tells why. Its output is known as far as the
    /// streams' ends say.
    Unknown,
}

/// The reason why a process never ran. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum NotStarted {
    /// There is no such program, or it is in no directory of PATH.
    #[error("there is no program {0:?} on the runner's host; install it, or name its file")]
    MissingProgram(String),
    /// The program names an interpreter or loader that is not there.
    #[error(
        "the interpreter that {0:?} names in its first line, or its loader, does not exist; install it"
    )]
    MissingInterpreter(String),
    /// The host has neither bash nor sh.
    #[error(
        "the runner's host has neither bash nor sh in PATH; install one, or run a program by its words"
    )]
    MissingShell,
    /// There is no such directory to run in.
    #[error("there is no directory {0:?} in the workspace; make it, or name another one")]
    MissingDirectory(String),
    /// The directory to run in lies outside the workspace.
    #[error(
        "the directory {0:?} leads out of the workspace; name one relative to the workspace root"
    )]
    OutsideWorkspace(String),
    /// The workspace itself was removed.
    #[error(
        "the workspace is gone from the runner's host; make its folder again and restart the runner"
    )]
    WorkspaceGone,
    /// The host does not allow to enter or to execute it.
    #[error(
        "the runner's host does not allow to enter or execute {0:?}; change its permissions, or run it with its interpreter"
    )]
    Denied(String),
    /// It is no program.
    #[error(
        "{0:?} is not a program for the runner's host; a script needs a first line like #!/bin/sh"
    )]
    NotAProgram(String),
    /// Words and environment together are larger than the host allows (`E2BIG`).
    #[error(
        "words and environment together are larger than the runner's host allows; write them to a file"
    )]
    TooLarge,
    /// The host has no room for one more process.
    #[error("the runner's host allows no further process now; end others, or try again later")]
    NoProcess,
    /// The disk is full.
    #[error("no space is left on the runner's disk; free some")]
    DiskFull,
    /// The host reported something else.
    #[error("the runner's host reported: {0}")]
    Host(String),
}

/// The cause of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// By itself.
    Exited,
    /// It ran for as long as it was given.
    Timeout,
    /// It was silent for as long as it was given.
    Idle,
    /// It was stopped on request.
    Cancelled,
    /// The runner stopped, or was cut off for too long.
    Orphaned,
    /// The host ran out of memory and killed it.
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

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::NotStarted(why) => write!(f, "it could not be started: {why}"),
            Self::Unknown => f.write_str("it is not known what it had done"),
        }
    }
}

impl ExitCause {
    /// Its name, as it is stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Timeout => "timeout",
            Self::Idle => "idle",
            Self::Cancelled => "cancelled",
            Self::Orphaned => "orphaned",
            Self::OutOfMemory => "out_of_memory",
            Self::DiskFull => "disk_full",
            Self::SupervisorLost => "supervisor_lost",
            Self::HostReboot => "host_reboot",
            Self::SandboxStopped => "sandbox_stopped",
        }
    }
}

impl fmt::Display for ExitCause {
    /// Completes "it ended …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exited => "by itself",
            Self::Timeout => "at its time limit",
            Self::Idle => "because it was silent for too long",
            Self::Cancelled => "because it was stopped",
            Self::Orphaned => "because the runner stopped or was cut off for too long",
            Self::OutOfMemory => "because its sandbox or host ran out of memory",
            Self::DiskFull => "because its output found no room on the runner's disk",
            Self::SupervisorLost => "because its supervisor on the runner's host was killed",
            Self::HostReboot => "because the runner's host restarted",
            Self::SandboxStopped => "because its sandbox was stopped or restarted",
        })
    }
}

/// The end of an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Bytes that the process wrote.
    pub offset: u64,
    /// CRC-32 (IEEE) of all of them; absent where not all could be seen.
    pub checksum: Option<u32>,
}

impl Default for StreamEnd {
    /// A stream to which nothing was written.
    fn default() -> Self {
        Self {
            offset: 0,
            checksum: Some(0),
        }
    }
}
