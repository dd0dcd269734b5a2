//! A command's input, output and directory: found and laid before its gate is opened.

use std::{ffi::CString, fs::File, io};

use runner_supervisor::{CommandRequest, CommandUser, NotStarted, SpoolStream, Streams};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::FileType,
    pipe::PipeFlags,
    process::{Gid, Uid},
};

use crate::{
    clock,
    gate::ChildPlan,
    input::CommandInput,
    prepare::{Prepared, never_wait},
    program,
    stream::Pump,
    sys, terminal,
};

/// All that was found and laid for a command.
pub(crate) struct Layout {
    directory: OwnedFd,
    program: CString,
    stdio: Stdio,
    confined: bool,
    pub(crate) ends: Ends,
}

/// Our ends of what the child reads and writes.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) pumps: Vec<Pump>,
    pub(crate) input: CommandInput,
    pub(crate) terminal: Option<OwnedFd>,
}

/// The child's ends.
struct Stdio {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

impl Stdio {
    /// Lets the command open its own input and output again (`/dev/stdout`), as every program can.
    fn give_to(&self, user: CommandUser) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        for end in [&self.input, &self.output, &self.error] {
            let mode = rustix::fs::fstat(end)?.st_mode;
            // `/dev/null` belongs to all users already, and they all use the same one.
            if FileType::from_raw_mode(mode) == FileType::Fifo || rustix::termios::isatty(end) {
                rustix::fs::fchown(end, Some(uid), Some(gid))?;
            }
        }
        Ok(())
    }
}

impl Layout {
    /// The plan for the child.
    pub(crate) fn plan<'a>(&'a self, request: &'a CommandRequest) -> ChildPlan<'a> {
        let Stdio {
            input,
            output,
            error,
        } = &self.stdio;
        ChildPlan {
            directory: self.directory.as_fd(),
            stdio: [input.as_fd(), output.as_fd(), error.as_fd()],
            terminal: self.ends.terminal.is_some(),
            user: request.terms.user,
            confined: self.confined,
            program: &self.program,
            argv: &request.argv,
            environment: &request.environment,
        }
    }
}

/// Finds directory and program, and lays the streams.
pub(crate) fn lay_out(
    prepared: &mut Prepared,
    request: &CommandRequest,
    inherited: Option<OwnedFd>,
) -> Result<Layout, NotStarted> {
    let (directory, program) = sys::seeing_as(request.terms.user, || {
        let directory = program::directory(&request.terms.place, inherited)?;
        // A link that a command has made can lead to where its supervisor is itself (`/proc/self/cwd`).
        if let Some(rules) = prepared.rules
            && rules.is_record(&directory).map_err(host)?
        {
            return Err(NotStarted::Host(
                "the directory is none of the sandbox's".to_owned(),
            ));
        }
        let program = program::find(request, &directory)?;
        Ok((directory, program))
    })?;
    let (stdio, ends) = connect(prepared, request).map_err(host)?;
    if let Some(user) = request.terms.user {
        stdio.give_to(user).map_err(host)?;
    }
    Ok(Layout {
        directory,
        program,
        stdio,
        confined: prepared.rules.is_some(),
        ends,
    })
}

/// Lays the streams.
fn connect(prepared: &mut Prepared, request: &CommandRequest) -> io::Result<(Stdio, Ends)> {
    let now = clock::monotonic();
    let bounds = request.terms.spool;
    let mut pipes = std::mem::take(&mut prepared.pipes).into_iter();
    let files: Vec<_> = prepared
        .spools
        .iter()
        .map(File::try_clone)
        .collect::<io::Result<_>>()?;
    let mut next_pipe = || pipes.next().ok_or(io::ErrorKind::NotFound);
    let (stdio, sources, input, terminal) = match request.terms.streams {
        Streams::Pty { rows, columns } => {
            let terminal = terminal::open(rows, columns)?;
            let input = CommandInput::new(Some(terminal.master.try_clone()?), true);
            let source = terminal.master.try_clone()?;
            let stdio = Stdio {
                input: terminal.slave.try_clone()?,
                output: terminal.slave.try_clone()?,
                error: terminal.slave,
            };
            (stdio, vec![source], input, Some(terminal.master))
        }
        Streams::Merged => {
            let (read_end, input) = lay_input(request.terms.stdin, prepared)?;
            let both = next_pipe()?;
            let stdio = Stdio {
                input: read_end,
                output: both.write.try_clone()?,
                error: both.write,
            };
            (stdio, vec![both.read], input, None)
        }
        Streams::Separate => {
            let (read_end, input) = lay_input(request.terms.stdin, prepared)?;
            let (out, err) = (next_pipe()?, next_pipe()?);
            let stdio = Stdio {
                input: read_end,
                output: out.write,
                error: err.write,
            };
            (stdio, vec![out.read, err.read], input, None)
        }
    };
    let pumps = SpoolStream::ALL
        .into_iter()
        .zip(sources)
        .zip(files)
        .map(|((stream, source), file)| Pump::new(stream, Some(source), file, bounds, now))
        .collect();
    let ends = Ends {
        pumps,
        input,
        terminal,
    };
    Ok((stdio, ends))
}

fn lay_input(wanted: bool, prepared: &mut Prepared) -> io::Result<(OwnedFd, CommandInput)> {
    if !wanted {
        let nothing = prepared.nothing.take().ok_or(io::ErrorKind::NotFound)?;
        return Ok((nothing, CommandInput::new(None, false)));
    }
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    never_wait(&write)?;
    Ok((read, CommandInput::new(Some(write), false)))
}

fn host(error: io::Error) -> NotStarted {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NotStarted::DiskFull,
        _ => NotStarted::Host(error.to_string()),
    }
}
