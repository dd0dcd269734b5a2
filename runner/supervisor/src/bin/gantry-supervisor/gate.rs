//! A child that exists before it is known what it is to become: it waits behind its gate.
//!
//! The gate is a socket. It opens when the plan comes through it, with the child's descriptors.
//! Where it closes without a plan, the child ends, and nothing has run. So the slow work (making a
//! process, in its cgroup) is done before a request comes.

mod plan;

use std::{
    ffi::CString,
    io::{self, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use runner_supervisor::{Leaf, NotStarted, ProcessId};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    process::{Pid, Signal, WaitOptions},
};

use crate::{program, sys, victims};
pub(crate) use plan::{ChildPlan, ReceivedPlan};

/// The exit code of a child whose gate was never opened; no process reads it.
const NEVER_RELEASED: i32 = 126;

/// The longest time that the child may take to read its plan: it has nothing else to do.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// A child that waits.
#[derive(Debug)]
pub(crate) struct Gated {
    pid: Pid,
    id: ProcessId,
    gate: UnixStream,
}

/// A child whose gate was opened.
#[derive(Debug)]
pub(crate) struct StartedChild {
    pub(crate) pid: Pid,
    /// Closes without a word where the program is executed.
    gate: OwnedFd,
    handed_over: bool,
}

impl Gated {
    /// Makes the child, in its cgroup before it can do anything. If the host needs memory, it kills
    /// the child sooner than a process whose `oom_score_adj` is `kill_order`.
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
        victims::expose(pid, kill_order);
        let id = ProcessId::of(pid, boot_id).inspect_err(|_| end(pid))?;
        Ok(Self { pid, id, gate })
    }

    /// The child that waits.
    pub(crate) fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Opens the gate. A child that does not take its plan is killed, and is collected as usual.
    pub(crate) fn open(self, plan: &ChildPlan<'_>) -> StartedChild {
        let handed_over = plan.send(&self.gate).is_ok();
        if !handed_over {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
        let _ = self.gate.set_nonblocking(true);
        StartedChild {
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

impl StartedChild {
    /// Of a child that is collected with this status: why it never became its program, if it did
    /// not. One that was sent another signal than SIGKILL has ended by that, as it would have later.
    pub(crate) fn not_executed(
        &self,
        status: Result<i32, i32>,
        program: &[u8],
    ) -> Option<NotStarted> {
        let signalled = matches!(status, Err(signal) if signal != Signal::KILL.as_raw());
        let mut errno = [0; 4];
        match rustix::io::read(&self.gate, &mut errno) {
            Ok(4) => {
                let errno = i32::from_ne_bytes(errno);
                Some(program::not_executed(errno, program))
            }
            // So ends a socket whose far end has not read everything (unix(7)).
            Err(Errno::CONNRESET) => (!signalled).then(killed_before),
            _ => (!signalled && !self.handed_over).then(killed_before),
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
    let Ok(told) = ReceivedPlan::receive(gate) else {
        return NEVER_RELEASED;
    };
    let errno = told.carry_out().raw_os_error().unwrap_or(0);
    // The reader of it may be gone.
    let _ = gate.write_all(&errno.to_ne_bytes());
    // The reason has gone back through the gate.
    sys::NOT_EXECUTED
}

/// Does once in vain what the child will do. Each page of code and memory that a forked process
/// uses for the first time costs it a fault, and so these faults happen while no command waits.
fn rehearse(gate: &UnixStream) -> io::Result<()> {
    let (near, far) = UnixStream::pair()?;
    let gate = gate.as_fd();
    let nothing = [CString::default()];
    let plan = ChildPlan {
        directory: gate,
        stdio: [gate; 3],
        terminal: false,
        user: None,
        confined: false,
        program: &nothing[0],
        argv: &nothing,
        environment: &nothing,
    };
    plan.send(&near)?;
    let told = ReceivedPlan::receive(&far)?;
    // There is no program without a name.
    sys::execute(&told.program, &told.argv, &told.environment);
    Ok(())
}
