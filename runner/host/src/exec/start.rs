//! Starts a process: directory, environment, program, pipes.
//!
//! The program is looked up here: with a plain name the standard library would have to fork to
//! see the new PATH, and a fork of a large daemon costs a hundred times a spawn.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Access, AtFlags, FileType},
    io::Errno,
    pipe::PipeFlags,
};
use shared_sandbox::{Command, Exec, NotStarted};
use tokio::net::unix::pipe;

use super::{Group, Place};
use crate::{
    plan,
    workspace::{handle_path, real_path},
};

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) group: Group,
    pub(crate) stdout: pipe::Receiver,
    /// Absent where stderr goes into the stream of stdout.
    pub(crate) stderr: Option<pipe::Receiver>,
}

/// Why there is no process.
#[derive(Debug)]
pub(crate) enum StartError {
    /// It never ran.
    NotStarted(NotStarted),
    /// It may have run for a moment before it was killed.
    Lost(String),
}

/// Starts `exec` in a new process group. Blocks for as long as the host takes to load the
/// program; needs the runtime's context.
pub(crate) fn start(exec: &Exec, place: &Place) -> Result<Started, StartError> {
    let directory = plan::open_directory(exec, &place.workspace).map_err(StartError::NotStarted)?;
    let environment = environment(exec, place, &directory);
    let path = environment.get("PATH").cloned().unwrap_or_default();
    let (program, words) = words(&exec.command, &path, &directory)?;

    let mut command = std::process::Command::new(&program);
    command
        .arg0(&words[0])
        .args(&words[1..])
        .env_clear()
        .envs(&environment)
        .current_dir(handle_path(&directory))
        .process_group(0)
        .stdin(Stdio::null());
    let no_pipe = |error| StartError::NotStarted(NotStarted::Host(format!("no pipe: {error}")));
    let (stdout, stdout_end) = output_pipe().map_err(no_pipe)?;
    let stderr = if exec.merged {
        command.stderr(stdout_end.try_clone().map_err(no_pipe)?);
        None
    } else {
        let (stderr, stderr_end) = output_pipe().map_err(no_pipe)?;
        command.stderr(stderr_end);
        Some(stderr)
    };
    command.stdout(stdout_end);

    // The command holds the pipes' other ends; it is dropped here, so that they can be closed.
    let child = tokio::process::Command::from(command)
        .spawn()
        .map_err(|error| StartError::NotStarted(reason(&error, &words[0])))?;
    let group = Group::of(child)
        .map_err(|error| StartError::Lost(format!("the host cannot observe it: {error}")))?;
    Ok(Started {
        group,
        stdout,
        stderr,
    })
}

/// The base environment, the request's additions, and where it runs.
fn environment(exec: &Exec, place: &Place, directory: &OwnedFd) -> BTreeMap<String, OsString> {
    let mut environment: BTreeMap<String, OsString> = place
        .environment
        .iter()
        .chain(&exec.environment)
        .map(|(name, value)| (name.clone(), value.into()))
        .collect();
    if let Some(directory) = real_path(directory) {
        environment.insert("PWD".to_owned(), directory.into());
    }
    environment
}

/// The program's file, and what it sees as its words.
fn words(
    command: &Command,
    path: &OsString,
    directory: &OwnedFd,
) -> Result<(PathBuf, Vec<String>), StartError> {
    match command {
        Command::Argv(words) => {
            let program = find(&words[0], path, directory).map_err(StartError::NotStarted)?;
            Ok((program, words.clone()))
        }
        Command::Shell(script) => {
            let (program, name) = match find("bash", path, directory) {
                Ok(bash) => (bash, "bash"),
                Err(_) => (PathBuf::from("/bin/sh"), "sh"),
            };
            let words = [name, "-c", script].map(str::to_owned);
            Ok((program, words.to_vec()))
        }
    }
}

/// Looks a program up: one with a slash where it says (from the command's directory), any other
/// in the absolute directories of PATH.
fn find(program: &str, path: &OsString, directory: &OwnedFd) -> Result<PathBuf, NotStarted> {
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![PathBuf::from(program)]
    } else {
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(program))
            .collect()
    };
    let found: Vec<_> = candidates
        .iter()
        .filter(|file| is_file(directory, file))
        .collect();
    let can_run = |file: &&&PathBuf| {
        rustix::fs::accessat(directory, file.as_path(), Access::EXEC_OK, AtFlags::empty()).is_ok()
    };
    match (found.iter().find(can_run), found.first()) {
        (Some(file), _) => Ok((**file).clone()),
        (None, Some(file)) => Err(NotStarted::Denied(file.display().to_string())),
        (None, None) => Err(NotStarted::MissingProgram(program.to_owned())),
    }
}

fn is_file(directory: &OwnedFd, file: &Path) -> bool {
    rustix::fs::statat(directory.as_fd(), file, AtFlags::empty())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn output_pipe() -> std::io::Result<(pipe::Receiver, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(read)?, write))
}

/// Why the host did not start a program that is there.
fn reason(error: &std::io::Error, program: &str) -> NotStarted {
    let program = program.to_owned();
    match Errno::from_io_error(error) {
        Some(Errno::TOOBIG) => NotStarted::TooLarge,
        Some(Errno::NOENT | Errno::NOTDIR) => NotStarted::MissingInterpreter(program),
        Some(Errno::ACCESS | Errno::PERM) => NotStarted::Denied(program),
        Some(Errno::NOEXEC) => NotStarted::NotAProgram(program),
        Some(Errno::AGAIN | Errno::NOMEM) => NotStarted::NoProcess,
        _ => NotStarted::Host(error.to_string()),
    }
}
