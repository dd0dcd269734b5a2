//! The slow preparation before there is a request: files, pipes, the cgroup.

use std::{fs::File, io, path::Path};

use nix::sys::signalfd::SignalFd;
use runner_supervisor::{
    Directory, FaultPoint, GapLog, Ground, KillChoice, Leaf, LeafNames, ProcessId, ProcessIdentity,
    RecordFile, SpoolStream, boot_id,
};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::OFlags,
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    pipe::PipeFlags,
};

use crate::{
    clock::BootTimer,
    gate::Gated,
    input,
    root::{Desk, Rules},
    stream, sys, victims,
};

/// A pipe as large as an ordinary user may make it.
const PIPE_BYTES: usize = 1024 * 1024;

/// Connections that wait to be taken.
const BACKLOG: i32 = 4;

/// A pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Ours, never waited for.
    pub(crate) read: OwnedFd,
    /// The command's.
    pub(crate) write: OwnedFd,
}

/// The facts that hold for every supervisor of this host, found out once.
#[derive(Debug)]
pub(crate) struct SupervisorHost {
    boot_id: String,
    ground: Ground,
    /// The names of the places of its trees.
    names: LeafNames,
    /// The `oom_score_adj` of this process before it asked the host not to kill it first.
    kill_order: i32,
    /// In a container whose commands may be root.
    rules: Option<Rules>,
}

impl SupervisorHost {
    /// Finds it out, and puts this process, and all that it forks, where supervisors are to be. The
    /// folder of the operations is where this process is.
    pub(crate) fn settle_in(choice: KillChoice, rules: Option<Rules>) -> io::Result<Self> {
        let ground = Ground::read(choice);
        ground.step_aside();
        Ok(Self {
            boot_id: boot_id()?,
            ground,
            names: LeafNames::below(Path::new("."))?,
            kill_order: victims::protect(),
            rules,
        })
    }
}

/// The files of a command's records.
#[derive(Debug)]
pub(crate) struct Records {
    /// Of its start.
    pub(crate) fate: RecordFile,
    pub(crate) exit: RecordFile,
}

/// A supervisor that waits for its request.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) directory: Directory,
    pub(crate) identity: ProcessIdentity,
    pub(crate) leaf: Leaf,
    pub(crate) signals: SignalFd,
    pub(crate) listener: OwnedFd,
    pub(crate) orphan: BootTimer,
    pub(crate) records: Records,
    /// One for each stream.
    pub(crate) spools: Vec<File>,
    pub(crate) gaps: GapLog,
    /// One for each stream, until they are used.
    pub(crate) pipes: Vec<Pipe>,
    /// The input of a command that reads nothing, until it is used.
    pub(crate) nothing: Option<OwnedFd>,
    /// The child that becomes the command, until it is released.
    pub(crate) child: Option<Gated>,
    /// The buffer for reads.
    pub(crate) buffer: Vec<u8>,
    /// In a container whose commands may be root.
    pub(crate) rules: Option<Rules>,
    /// The socket at which root's commands are requested.
    pub(crate) desk: Option<Desk>,
}

/// Makes everything in the directory of this name, which is the operation's.
pub(crate) fn prepare(
    host: &SupervisorHost,
    directory: &str,
    failing: impl Fn(FaultPoint),
) -> io::Result<Prepared> {
    rustix::process::chdir(directory)?;
    let directory = Directory::open(Path::new("."))?;
    let supervisor = ProcessId::of(rustix::process::getpid(), &host.boot_id)?;
    let signals = sys::signals()?;
    let spools = SpoolStream::ALL
        .into_iter()
        .map(|stream| directory.create_file(stream.file_name()))
        .collect::<io::Result<_>>()?;
    let gaps = GapLog::create(&directory)?;
    let records = Records {
        fate: RecordFile::create(&directory, "fate")?,
        exit: RecordFile::create(&directory, "exit")?,
    };
    let listener = listen_at("sock", SocketType::STREAM)?;
    let pipes = vec![pipe()?, pipe()?];
    let nothing = Some(input::nothing()?);
    let orphan = BootTimer::new()?;
    // Where a command of the container has taken its address there is no sudo.
    let desk = host
        .rules
        .and_then(|rules| Desk::open(rules, host.kill_order).ok());
    let ready = RecordFile::create(&directory, "ready")?;
    let leaf = Leaf::create(&host.ground, &host.names.of(&supervisor))?;
    failing(FaultPoint::Placed);
    let identity = ProcessIdentity {
        supervisor,
        kill: leaf.method(),
        cgroup: leaf.path(),
    };
    let child = ready
        .write(&identity)
        .and_then(|()| ready.link(&directory))
        .inspect(|_| failing(FaultPoint::Identified))
        .and_then(|_| Gated::fork(&leaf, host.kill_order, &host.boot_id));
    let child = child.inspect_err(|_| drop(leaf.remove()))?;
    Ok(Prepared {
        directory,
        identity,
        leaf,
        signals,
        listener,
        orphan,
        records,
        spools,
        gaps,
        pipes,
        nothing,
        child: Some(child),
        buffer: vec![0; stream::READ_BYTES],
        rules: host.rules,
        desk,
    })
}

impl Prepared {
    /// Clears away what a command has left, and makes what the next one needs.
    pub(crate) fn renew(
        &mut self,
        host: &SupervisorHost,
        failing: impl Fn(FaultPoint),
    ) -> io::Result<()> {
        failing(FaultPoint::AskedAgain);
        self.directory.clear()?;
        for spool in &self.spools {
            spool.set_len(0)?;
        }
        self.gaps.clear()?;
        self.orphan.stop()?;
        self.leaf.renew()?;
        failing(FaultPoint::Cleared);
        self.pipes = vec![pipe()?, pipe()?];
        self.nothing = Some(input::nothing()?);
        let child = Gated::fork(&self.leaf, host.kill_order, &host.boot_id)?;
        self.child = Some(child);
        Ok(())
    }
}

/// Listens at this name in the current folder. The socket never blocks: a connection can be gone
/// before it is taken. A name that a dead process has left is taken over.
pub(crate) fn listen_at(name: &str, kind: SocketType) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    let address = SocketAddrUnix::new(name)?;
    match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            rustix::fs::unlink(name)?;
            rustix::net::bind(&socket, &address)?;
        }
        bound => bound?,
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn pipe() -> io::Result<Pipe> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // A host that allows less makes the pump turn more often, no more.
    let _ = rustix::pipe::fcntl_setpipe_size(&read, PIPE_BYTES);
    never_wait(&read)?;
    Ok(Pipe { read, write })
}

/// Makes reads and writes through this description return at once.
pub(crate) fn never_wait(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}
