//! A child that exists before it is known what it is to become: it waits behind its gate.
//!
//! The gate is a socket. It opens when the plan comes through it, with the descriptors that the
//! child is to have; where it closes without a plan, the child ends, and nothing has run. So what
//! takes long (making a process, in its cgroup) is done before anybody asks.

use std::{
    ffi::{CStr, CString},
    io::{self, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    os::unix::net::UnixStream,
    time::Duration,
};

use runner_supervisor::{Leaf, NotStarted, ProcessId};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::{Pid, Signal, WaitOptions},
};

use crate::{memory, program, sys};

/// What the child says with its exit code when the gate was never opened; nobody reads it.
const NEVER_RELEASED: i32 = 126;

/// The same when the program could not be executed; the reason goes back through the gate.
const NOT_EXECUTED: i32 = 127;

/// How long the child may take to read its plan: it has nothing else to do.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// Descriptors that come with a plan: the directory, then standard input, output and error.
const DESCRIPTORS: usize = 4;

/// What stands before the strings: their length in bytes, whether there is a terminal, how many
/// words and how many variables.
const HEAD_BYTES: usize = 4 * 4;

/// A child that waits.
#[derive(Debug)]
pub(crate) struct Gated {
    pid: Pid,
    id: ProcessId,
    gate: UnixStream,
}

/// A child whose gate was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) pid: Pid,
    /// Closes without a word where the program is executed.
    gate: OwnedFd,
    handed_over: bool,
}

/// All that a child needs.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Where it runs.
    pub(crate) directory: BorrowedFd<'a>,
    /// Its input, output and error output.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Whether its input is a terminal to be its own.
    pub(crate) terminal: bool,
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a [CString],
    pub(crate) environment: &'a [CString],
}

impl Gated {
    /// Makes the child, in its cgroup before it can do anything. The host is to kill it sooner
    /// than it would have killed somebody with `kill_order`, should it need memory.
    pub(crate) fn fork(leaf: &Leaf, kill_order: i32, boot_id: &str) -> io::Result<Self> {
        let (gate, behind) = UnixStream::pair()?;
        gate.set_write_timeout(Some(READS_WITHIN))?;
        let pid = match leaf.birthplace().map(|place| fork(&behind, Some(place))) {
            Some(Ok(pid)) => pid,
            // No version 2, or a host that does not let children be born there: the gate gives
            // time to move it.
            Some(Err(_)) | None => {
                let pid = fork(&behind, None)?;
                leaf.adopt(pid).inspect_err(|_| end(pid))?;
                pid
            }
        };
        memory::expose(pid, kill_order);
        let id = ProcessId::of(pid, boot_id).inspect_err(|_| end(pid))?;
        Ok(Self { pid, id, gate })
    }

    /// Who waits.
    pub(crate) fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Opens the gate. A child that does not take its plan is killed, and is collected as usual.
    pub(crate) fn open(self, plan: &Plan<'_>) -> Opened {
        let handed_over = plan.send(&self.gate).is_ok();
        if !handed_over {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
        let _ = self.gate.set_nonblocking(true);
        Opened {
            pid: self.pid,
            gate: self.gate.into(),
            handed_over,
        }
    }

    /// The gate is never opened: the child sees that, and is killed in case it cannot.
    pub(crate) fn close(self) {
        drop(self.gate);
        end(self.pid);
    }
}

impl Opened {
    /// Of a child that is collected: why it never became its program, if it did not.
    pub(crate) fn not_executed(&self, program: &[u8]) -> Option<NotStarted> {
        let mut errno = [0; 4];
        match rustix::io::read(&self.gate, &mut errno) {
            Ok(4) => {
                let errno = i32::from_ne_bytes(errno);
                Some(program::not_executed(errno, program))
            }
            // So ends a socket whose far end has not read everything (unix(7)).
            Err(Errno::CONNRESET) => Some(killed_before()),
            _ => (!self.handed_over).then(killed_before),
        }
    }
}

fn killed_before() -> NotStarted {
    NotStarted::Host("its process was killed before it could begin; try again".to_owned())
}

/// Ends a child that has run nothing.
fn end(pid: Pid) {
    // One that is gone already is collected all the same.
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
}

fn fork(behind: &UnixStream, born_in: Option<BorrowedFd<'_>>) -> io::Result<Pid> {
    sys::fork_apart(born_in, behind.as_fd(), || wait_behind(behind))
}

/// The life of the child, unless it becomes the command.
fn wait_behind(mut gate: &UnixStream) -> i32 {
    // Where there is nothing left to do it with, the plan will not be carried out either.
    let _ = rehearse(gate);
    let Ok(told) = Told::receive(gate) else {
        return NEVER_RELEASED;
    };
    let errno = told.carry_out().raw_os_error().unwrap_or(0);
    // Who would hear it may be gone.
    let _ = gate.write_all(&errno.to_ne_bytes());
    NOT_EXECUTED
}

/// Does once in vain what the child will do. Each page of code and memory that a forked process
/// uses for the first time costs it a fault, and so they are paid for while nobody waits.
fn rehearse(gate: &UnixStream) -> io::Result<()> {
    let (near, far) = UnixStream::pair()?;
    let gate = gate.as_fd();
    let nothing = [CString::default()];
    let plan = Plan {
        directory: gate,
        stdio: [gate; 3],
        terminal: false,
        program: &nothing[0],
        argv: &nothing,
        environment: &nothing,
    };
    plan.send(&near)?;
    let told = Told::receive(&far)?;
    // There is no program without a name.
    sys::execute(&told.program, &told.argv, &told.environment);
    Ok(())
}

impl Plan<'_> {
    fn send(&self, mut gate: &UnixStream) -> io::Result<()> {
        let bytes = self.to_bytes()?;
        let [input, output, error] = self.stdio;
        let descriptors = [self.directory, input, output, error];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = sendmsg(
            gate,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        gate.write_all(&bytes[sent..])
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let number = |value: usize| u32::try_from(value).map_err(io::Error::other);
        let mut bytes = vec![0; HEAD_BYTES];
        let strings = self.argv.iter().chain(self.environment);
        for string in [self.program]
            .into_iter()
            .chain(strings.map(CString::as_c_str))
        {
            bytes.extend_from_slice(string.to_bytes_with_nul());
        }
        let head = [
            number(bytes.len() - HEAD_BYTES)?,
            u32::from(self.terminal),
            number(self.argv.len())?,
            number(self.environment.len())?,
        ];
        for (room, value) in bytes.chunks_exact_mut(4).zip(head) {
            room.copy_from_slice(&value.to_le_bytes());
        }
        Ok(bytes)
    }
}

/// A plan as the child has got it.
struct Told {
    descriptors: [OwnedFd; DESCRIPTORS],
    terminal: bool,
    program: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
}

impl Told {
    /// Waits for the gate to open.
    fn receive(mut gate: &UnixStream) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES];
        let (taken, descriptors) = receive(gate, &mut head)?;
        gate.read_exact(&mut head[taken..])?;
        let [length, terminal, words, variables] = numbers(head);
        let mut strings = vec![0; length];
        gate.read_exact(&mut strings)?;
        let mut strings = strings
            .split_inclusive(|byte| *byte == 0)
            .filter_map(|string| CString::from_vec_with_nul(string.to_vec()).ok());
        let program = strings.next().ok_or(io::ErrorKind::InvalidData)?;
        let argv: Vec<_> = strings.by_ref().take(words).collect();
        let environment: Vec<_> = strings.collect();
        if argv.len() != words || environment.len() != variables {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            descriptors,
            terminal: terminal != 0,
            program,
            argv,
            environment,
        })
    }

    /// Becomes the command. Returns only where that fails, and says why.
    fn carry_out(&self) -> io::Error {
        match self.prepare() {
            Ok(()) => sys::execute(&self.program, &self.argv, &self.environment),
            Err(errno) => errno.into(),
        }
    }

    fn prepare(&self) -> Result<(), Errno> {
        let [directory, input, output, error] = &self.descriptors;
        // Only a terminal needs a session of its own. The scheduler gives each new one a share of
        // its own (autogroup), and on a busy host its first turn is milliseconds away.
        if self.terminal {
            rustix::process::setsid()?;
        } else {
            rustix::process::setpgid(None, None)?;
        }
        rustix::process::fchdir(directory)?;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(error)?;
        if self.terminal {
            rustix::process::ioctl_tiocsctty(input)?;
        }
        Ok(())
    }
}

/// The first bytes, and the descriptors that come with them.
fn receive(gate: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, [OwnedFd; DESCRIPTORS])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(bytes)];
    let received = loop {
        match recvmsg(gate, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut descriptors = Vec::with_capacity(DESCRIPTORS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    let descriptors = descriptors.try_into();
    let descriptors = descriptors.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Ok((received.bytes, descriptors))
}

fn numbers(head: [u8; HEAD_BYTES]) -> [usize; HEAD_BYTES / 4] {
    let mut numbers = [0; HEAD_BYTES / 4];
    for (number, bytes) in numbers.iter_mut().zip(head.as_chunks::<4>().0) {
        *number = usize::try_from(u32::from_le_bytes(*bytes)).unwrap_or(0);
    }
    numbers
}
