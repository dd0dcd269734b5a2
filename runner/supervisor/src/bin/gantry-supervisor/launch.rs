//! From the request to a command that runs: start record, fate, release.
//!
//! The order is the promise. The child exists but waits (`gate`); its start is written down; the
//! record becomes the fate by a link that only one can make; then the gate is opened. Whoever dies
//! before the link: the gate is never opened, and the child ends when it sees that.

use std::{ffi::CString, fs::File, io, time::Duration};

use runner_supervisor::{
    Cause, End, ExitRecord, Fate, FaultPoint, FromSupervisor, NotStarted, ProcessId, Request,
    StartRecord, Stream, StreamEnd, Streams, Sync,
};
use rustix::{
    fd::{AsFd, OwnedFd},
    pipe::PipeFlags,
};

use crate::{
    client::Client,
    clock,
    faults::Faults,
    gate::Plan,
    input::Input,
    prepare::{Prepared, never_wait},
    program,
    stream::Pump,
    supervise::{Child, Supervision},
    terminal,
};

/// How long the daemon is given to hear the last words.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Launched {
    /// The command runs.
    Running(Box<Supervision>),
    /// It never will, and everybody who can be told was.
    Over,
}

/// Starts what was asked for.
pub(crate) fn launch(
    mut prepared: Prepared,
    request: &Request,
    inherited: Option<OwnedFd>,
    client: Option<Client>,
    faults: Faults,
) -> Launched {
    let now = clock::monotonic();
    if let Some(orphan_for) = request.terms.orphan_for {
        // A timer on a descriptor that is open takes any time.
        let _ = prepared.orphan.set(orphan_for);
    }
    let Some(child) = prepared.child.take() else {
        never_started(prepared, request, NotStarted::NoProcess, client);
        return Launched::Over;
    };
    let layout = match lay_out(&mut prepared, request, inherited) {
        Ok(layout) => layout,
        Err(reason) => {
            child.close();
            never_started(prepared, request, reason, client);
            return Launched::Over;
        }
    };
    let id = Some(child.id().clone());
    let start = match settle(&prepared, request, id, client.as_ref(), faults) {
        Ok(Some(start)) => start,
        Ok(None) => {
            child.close();
            fenced(prepared, client);
            return Launched::Over;
        }
        Err(error) => {
            child.close();
            let _ = prepared.directory.fence(&error.to_string());
            fenced(prepared, client);
            return Launched::Over;
        }
    };
    let opened = clock::monotonic();
    let child = child.open(&layout.plan(request));
    faults.at(FaultPoint::GateOpened, client.as_ref());
    // The command's ends are its alone from here on: else its output would never end.
    let Layout { ends, .. } = layout;
    let child = Child::new(child, opened, start);
    Launched::Running(Box::new(Supervision::new(
        prepared, request, client, faults, child, ends, now,
    )))
}

/// All that was found and laid for a command.
struct Layout {
    directory: OwnedFd,
    program: CString,
    stdio: Stdio,
    ends: Ends,
}

/// Our ends of what the child reads and writes.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) pumps: Vec<Pump>,
    pub(crate) input: Input,
    pub(crate) terminal: Option<OwnedFd>,
}

/// The child's ends.
struct Stdio {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

impl Layout {
    fn plan<'a>(&'a self, request: &'a Request) -> Plan<'a> {
        let Stdio {
            input,
            output,
            error,
        } = &self.stdio;
        Plan {
            directory: self.directory.as_fd(),
            stdio: [input.as_fd(), output.as_fd(), error.as_fd()],
            terminal: self.ends.terminal.is_some(),
            program: &self.program,
            argv: &request.argv,
            environment: &request.environment,
        }
    }
}

fn lay_out(
    prepared: &mut Prepared,
    request: &Request,
    inherited: Option<OwnedFd>,
) -> Result<Layout, NotStarted> {
    let directory = program::directory(&request.terms.place, inherited)?;
    let program = program::find(request, &directory)?;
    let (stdio, ends) = connect(prepared, request).map_err(host)?;
    Ok(Layout {
        directory,
        program,
        stdio,
        ends,
    })
}

/// Lays the streams.
fn connect(prepared: &mut Prepared, request: &Request) -> io::Result<(Stdio, Ends)> {
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
            let input = Input::new(Some(terminal.master.try_clone()?), true);
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
    let pumps = Stream::ALL
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

fn lay_input(wanted: bool, prepared: &mut Prepared) -> io::Result<(OwnedFd, Input)> {
    if !wanted {
        let nothing = prepared.nothing.take().ok_or(io::ErrorKind::NotFound)?;
        return Ok((nothing, Input::new(None, false)));
    }
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    never_wait(&write)?;
    Ok((read, Input::new(Some(write), false)))
}

/// Makes the start the operation's fate; `None` if it has another one.
fn settle(
    prepared: &Prepared,
    request: &Request,
    child: Option<ProcessId>,
    client: Option<&Client>,
    faults: Faults,
) -> io::Result<Option<StartRecord>> {
    let start = StartRecord {
        operation: request.operation,
        identity: prepared.identity.clone(),
        child,
    };
    prepared.start.write(&Fate::Started(start.clone()))?;
    if request.terms.sync != Sync::Nothing {
        prepared.start.sync()?;
    }
    faults.at(FaultPoint::StartWritten, client);
    let ours = prepared.start.link(&prepared.directory)?;
    if request.terms.sync != Sync::Nothing {
        rustix::fs::fsync(&prepared.directory)?;
    }
    faults.at(FaultPoint::FateLinked, client);
    Ok(ours.then_some(start))
}

fn fenced(prepared: Prepared, client: Option<Client>) {
    if let Some(mut client) = client {
        client.say(&FromSupervisor::Fenced);
        client.finish(LAST_WORDS);
    }
    // A leaf that is left is removed by the daemon that recovers.
    let _ = prepared.leaf.remove();
}

/// It was clear before the gate was opened that there is nothing to run: that is a fate and an end as well.
fn never_started(
    prepared: Prepared,
    request: &Request,
    reason: NotStarted,
    mut client: Option<Client>,
) {
    let no_faults = Faults::none();
    let settled = settle(&prepared, request, None, None, no_faults);
    if !matches!(settled, Ok(Some(_))) {
        fenced(prepared, client);
        return;
    }
    let nothing = StreamEnd {
        offset: 0,
        checksum: Some(0),
    };
    let record = ExitRecord {
        operation: Some(request.operation),
        end: End::NotStarted(reason),
        cause: Cause::Exited,
        out: nothing,
        err: nothing,
        cpu_us: 0,
        max_rss_bytes: 0,
        wall_us: 0,
        kill: prepared.identity.kill,
        tree_gone: true,
    };
    end(
        &prepared,
        &record,
        &mut client,
        request.terms.sync,
        no_faults,
    );
    let _ = prepared.leaf.remove();
}

/// Writes the end down and tells it; whether it is written down.
pub(crate) fn end(
    prepared: &Prepared,
    record: &ExitRecord,
    client: &mut Option<Client>,
    sync: Sync,
    faults: Faults,
) -> bool {
    // What cannot be written is told all the same, and a later daemon finds the operation without
    // an end and without a supervisor, which it calls lost.
    let mut written = prepared.exit.write(record);
    if sync == Sync::All {
        written = written.and_then(|()| prepared.exit.sync());
    }
    faults.at(FaultPoint::ExitWritten, client.as_ref());
    if written.is_ok() {
        // Where a daemon has settled it before, that is its end.
        let _ = prepared.exit.link(&prepared.directory);
        if sync == Sync::All {
            let _ = rustix::fs::fsync(&prepared.directory);
        }
    }
    faults.at(FaultPoint::ExitLinked, client.as_ref());
    if let Some(client) = client {
        client.say(&FromSupervisor::Exited(record.clone()));
        client.finish(LAST_WORDS);
    }
    faults.at(FaultPoint::ExitTold, client.as_ref());
    written.is_ok()
}

fn host(error: io::Error) -> NotStarted {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NotStarted::DiskFull,
        _ => NotStarted::Host(error.to_string()),
    }
}
