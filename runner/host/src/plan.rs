//! The plan of a command: worked out, nothing started.
//!
//! A supervisor runs the plan. The directory goes with it as a handle, so that it stays beneath the
//! workspace if something is renamed. The supervisor looks the program up, in the plan's own PATH.
//! A container has paths of its own (`inside`).

mod inside;
mod shell;

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr, OsString},
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    time::Duration,
};

use rustix::fd::OwnedFd;
use shared_sandbox::{
    Command, Exec, ExitCause, ExitRecord, ExitStatus, FileFailure, NotStarted, Outcome, Retention,
    StreamEnd, TerminalSize,
};
use shared_types::{Refusal, RefusalCode, limits::MAX_COMMAND_BYTES};

use crate::{
    environment,
    workspace::{Workspace, real_path},
};

pub use inside::{Account, Inhabited};
pub(crate) use shell::Shells;

/// The type of a terminal whose type is not given: today's viewers all understand it.
const DEFAULT_TERMINAL: &str = "xterm-256color";

/// Everything that a supervisor needs to run a command.
#[derive(Debug)]
pub struct CommandPlan {
    /// The program and its words; at least one. A program without a slash is looked up in PATH of
    /// the environment below.
    pub argv: Vec<CString>,
    /// The complete environment, each `NAME=value`.
    pub environment: Vec<CString>,
    /// The directory where it runs.
    pub directory: Whereabouts,
    /// The account whose rights it has, if not its supervisor's.
    pub account: Option<Account>,
    /// Send stderr into the stream of stdout, so that their order is exact.
    pub merged: bool,
    /// True if it takes input; in a terminal it always does.
    pub input: bool,
    /// Run it in a terminal of this size.
    pub terminal: Option<TerminalSize>,
    /// The part of its output that is kept.
    pub retention: Retention,
    /// The longest time for which it may write nothing.
    pub idle_for: Option<Duration>,
}

/// The directory that a command runs in.
#[derive(Debug)]
pub enum Whereabouts {
    /// This one, opened only as a place to be in.
    Handle(OwnedFd),
    /// Of a container: the one that has this path there when the command starts.
    Path(PathBuf),
}

/// The reason why there is no plan. Nothing was started, so this is the end of the request
/// (`Outcome::from`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unplanned {
    /// The request makes no sense anywhere.
    Refused(Refusal),
    /// It cannot run here and now.
    NotStarted(NotStarted),
}

impl From<Unplanned> for Outcome {
    fn from(why: Unplanned) -> Self {
        match why {
            Unplanned::Refused(refusal) => Self::Refused(refusal),
            Unplanned::NotStarted(reason) => Self::Exited(ExitRecord {
                status: ExitStatus::NotStarted(reason),
                cause: ExitCause::Exited,
                stdout: StreamEnd::default(),
                stderr: StreamEnd::default(),
                wall_ms: 0,
                cpu_us: 0,
                max_rss_bytes: 0,
                tree_gone: true,
            }),
        }
    }
}

/// Works the plan out. `base` is the complete base environment of commands.
pub(crate) fn plan(
    exec: &Exec,
    workspace: &Workspace,
    base: &BTreeMap<String, String>,
    shells: &Shells,
) -> Result<CommandPlan, Unplanned> {
    check(exec).map_err(Unplanned::Refused)?;
    let directory = open_directory(exec, workspace).map_err(Unplanned::NotStarted)?;
    let variables = variables(exec, base, &directory);
    let shell = || shells.find(path_of(&variables));
    let words = words(&exec.command, shell).map_err(Unplanned::NotStarted)?;
    put_together(exec, words, variables, Whereabouts::Handle(directory))
}

/// The plan, where it needs nothing of the host's file system, which may block: for a command in
/// the root, with a shell that is known.
pub(crate) fn plan_at_once(
    exec: &Exec,
    workspace: &Workspace,
    base: &BTreeMap<String, String>,
    shells: &Shells,
) -> Option<CommandPlan> {
    check(exec).ok()?;
    let directory = workspace.place_at_once(&exec.directory)?;
    let variables = variables(exec, base, &directory);
    let known = shells.known(path_of(&variables));
    let shell = || known.ok_or(NotStarted::MissingShell);
    let words = words(&exec.command, shell).ok()?;
    put_together(exec, words, variables, Whereabouts::Handle(directory)).ok()
}

fn put_together(
    exec: &Exec,
    words: Vec<String>,
    variables: BTreeMap<String, OsString>,
    directory: Whereabouts,
) -> Result<CommandPlan, Unplanned> {
    let environment = variables.into_iter().map(|(name, value)| {
        let mut variable = name.into_bytes();
        variable.push(b'=');
        variable.extend(value.into_vec());
        variable
    });
    Ok(CommandPlan {
        argv: strings(words.into_iter().map(String::into_bytes))?,
        environment: strings(environment)?,
        directory,
        account: None,
        merged: exec.merged,
        input: exec.input,
        terminal: exec.terminal,
        retention: exec.retention,
        idle_for: exec
            .idle_for_ms
            .map(|idle_for| Duration::from_millis(idle_for.get())),
    })
}

fn path_of(variables: &BTreeMap<String, OsString>) -> &OsStr {
    variables.get("PATH").map_or(OsStr::new(""), |path| path)
}

/// Checks that it can be asked for at all.
pub(crate) fn check(exec: &Exec) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
    let texts = match &exec.command {
        Command::Argv(words) if words.first().is_none_or(String::is_empty) => {
            return refuse("the command is empty; name a program".to_owned());
        }
        Command::Argv(words) => words.as_slice(),
        Command::Shell(script) => std::slice::from_ref(script),
    };
    for text in texts {
        if text.len() > MAX_COMMAND_BYTES {
            return refuse(format!(
                "the command has {} bytes where at most {MAX_COMMAND_BYTES} are possible; write it to a file and run that",
                text.len()
            ));
        }
        if text.contains('\0') {
            return refuse("the command holds a NUL byte; write it to a file instead".to_owned());
        }
    }
    environment::check_additions(&exec.environment)
}

/// The directory to run in.
pub(crate) fn open_directory(exec: &Exec, workspace: &Workspace) -> Result<OwnedFd, NotStarted> {
    let opened = workspace.open_place(&exec.directory);
    // A directory that was removed can still be opened by its handle.
    if workspace.is_gone() {
        return Err(NotStarted::WorkspaceGone);
    }
    opened.map_err(|failure| match failure {
        FileFailure::NotFound { path } | FileFailure::NotADirectory { path } => {
            NotStarted::MissingDirectory(path)
        }
        FileFailure::OutsideWorkspace { path } => NotStarted::OutsideWorkspace(path),
        FileFailure::Denied { path } => NotStarted::Denied(path),
        FileFailure::Io { reason } => NotStarted::Host(reason),
        other => NotStarted::Host(other.to_string()),
    })
}

/// The base environment, the request's additions, and where it runs.
fn variables(
    exec: &Exec,
    base: &BTreeMap<String, String>,
    directory: &OwnedFd,
) -> BTreeMap<String, OsString> {
    let mut variables = asked_for(exec, base);
    if let Some(directory) = real_path(directory) {
        variables.insert("PWD".to_owned(), directory.into());
    }
    variables
}

/// The base environment and the request's additions.
fn asked_for(exec: &Exec, base: &BTreeMap<String, String>) -> BTreeMap<String, OsString> {
    let mut variables: BTreeMap<String, OsString> = base
        .iter()
        .chain(&exec.environment)
        .map(|(name, value)| (name.clone(), value.into()))
        .collect();
    if exec.terminal.is_some() {
        variables
            .entry("TERM".to_owned())
            .or_insert_with(|| DEFAULT_TERMINAL.into());
    }
    variables
}

fn words<'a>(
    command: &Command,
    shell: impl FnOnce() -> Result<&'a str, NotStarted>,
) -> Result<Vec<String>, NotStarted> {
    match command {
        Command::Argv(words) => Ok(words.clone()),
        Command::Shell(script) => Ok([shell()?, "-c", script].map(str::to_owned).to_vec()),
    }
}

/// Words as system calls take them; [`check`] has seen that none holds a NUL, the kernel's paths
/// never do.
fn strings(words: impl Iterator<Item = Vec<u8>>) -> Result<Vec<CString>, Unplanned> {
    words
        .map(|word| {
            CString::new(word).map_err(|_| {
                let message = "the environment holds a NUL byte; leave it out";
                Unplanned::Refused(Refusal::new(RefusalCode::Invalid, message))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
