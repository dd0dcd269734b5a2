//! The system calls that only exist as `unsafe`: fork, signals, collecting with usage.
//!
//! The process has one thread, so a fork copies no lock that somebody holds. Between fork and exec
//! the child makes plain system calls on memory that was prepared before, and nothing else.
#![expect(
    unsafe_code,
    reason = "clone3 into a cgroup, signalfd, wait4 and ioctl have no safe form in a library that we use"
)]

use std::{
    ffi::{CStr, CString},
    io, mem, ptr,
    time::Duration,
};

use rustix::{
    fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    process::Pid,
};

/// `CLONE_INTO_CGROUP` (clone3(2), Linux 5.7); wider than the type of the other flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What the child says with its exit code when the gate was never opened; nobody reads it.
const NEVER_RELEASED: i32 = 126;

/// The same when the program could not be executed; the reason goes through a pipe.
const NOT_EXECUTED: i32 = 127;

/// The last of the ordinary signals.
const LAST_SIGNAL: i32 = 31;

/// All that a child needs.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Where it waits for one byte.
    pub(crate) gate: BorrowedFd<'a>,
    /// The other end, to be closed in the child: else it would never see the supervisor die.
    pub(crate) gate_opener: BorrowedFd<'a>,
    /// Where it reports why it could not execute.
    pub(crate) report: BorrowedFd<'a>,
    /// Where it runs.
    pub(crate) directory: BorrowedFd<'a>,
    /// Its input, output and error output; none of them numbered below 3.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Whether its input is a terminal to be its own.
    pub(crate) terminal: bool,
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a [CString],
    pub(crate) environment: &'a [CString],
}

/// Makes the child; `born_in` is the cgroup where it begins to exist.
pub(crate) fn fork(plan: &Plan<'_>, born_in: Option<BorrowedFd<'_>>) -> io::Result<Pid> {
    let argv = pointers(plan.argv);
    let environment = pointers(plan.environment);
    // SAFETY: all fields are integers, for which zero is a value.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD.unsigned_abs().into();
    if let Some(cgroup) = born_in {
        arguments.flags = CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    // SAFETY: without shared memory and without a stack of its own the child goes on here, on a
    // copy, as after fork(2). This process has no other thread.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut arguments,
            mem::size_of::<libc::clone_args>(),
        )
    };
    if pid == 0 {
        // SAFETY: this is the child, and the pointers lead into vectors that live until it execs.
        unsafe { become_command(plan, &argv, &environment) }
    }
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    Pid::from_raw(pid)
        .filter(|_| pid > 0)
        .ok_or_else(io::Error::last_os_error)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// # Safety
/// Only in a child that has its memory for itself; the lists must end with null.
unsafe fn become_command(
    plan: &Plan<'_>,
    argv: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> ! {
    // SAFETY: system calls with descriptors that are open and pointers that are valid; none of
    // them allocates or takes a lock.
    unsafe {
        libc::close(plan.gate_opener.as_raw_fd());
        // Only a terminal needs a session of its own. The scheduler gives each new one a share of
        // its own (autogroup), and on a busy host its first turn is milliseconds away.
        if plan.terminal {
            libc::setsid();
        } else {
            libc::setpgid(0, 0);
        }
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        let mut ready = libc::fchdir(plan.directory.as_raw_fd()) == 0;
        for (number, source) in (0..).zip(plan.stdio) {
            ready &= libc::dup2(source.as_raw_fd(), number) == number;
        }
        if plan.terminal {
            ready &= libc::ioctl(0, libc::TIOCSCTTY, 0) == 0;
        }
        let failed = if ready { 0 } else { *libc::__errno_location() };
        let mut byte = 0_u8;
        let mut read = -1;
        while read < 0 {
            read = libc::read(plan.gate.as_raw_fd(), (&raw mut byte).cast(), 1);
            if read < 0 && *libc::__errno_location() != libc::EINTR {
                break;
            }
        }
        if read != 1 {
            libc::_exit(NEVER_RELEASED);
        }
        let mut error = failed;
        if ready {
            libc::execve(plan.program.as_ptr(), argv.as_ptr(), environment.as_ptr());
            error = *libc::__errno_location();
        }
        let report = error.to_ne_bytes();
        libc::write(
            plan.report.as_raw_fd(),
            report.as_ptr().cast(),
            report.len(),
        );
        libc::_exit(NOT_EXECUTED)
    }
}

/// Closes what was inherited by accident: whoever started the daemon may have left descriptors
/// open, and no command may get them. Must come first, before anything here is opened.
pub(crate) fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above standard error yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}

/// From now on SIGCHLD and SIGTERM arrive here and nowhere else.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is read, and the descriptor is new.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Whether SIGTERM is among the signals that have arrived.
pub(crate) fn asked_to_end(signals: &OwnedFd) -> bool {
    let mut asked = false;
    let mut bytes = [0; mem::size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(signals, &mut bytes) == Ok(bytes.len()) {
        // The signal's number is the first field of signalfd_siginfo.
        let number = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        asked |= number == libc::SIGTERM.unsigned_abs();
    }
    asked
}

/// What a collected process reported and used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collected {
    /// Its code, or the signal that ended it.
    pub(crate) status: Result<i32, i32>,
    pub(crate) cpu: Duration,
    pub(crate) max_rss_bytes: u64,
}

/// A child that has ended and is not collected yet.
pub(crate) fn ended_child() -> Option<Pid> {
    // SAFETY: all fields are integers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is valid for writing.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) };
    // SAFETY: waitid has filled the part of the union that holds the pid, or left it zero.
    let pid = unsafe { info.si_pid() };
    Pid::from_raw(pid).filter(|_| result == 0)
}

/// Collects a process that has ended.
pub(crate) fn collect(pid: Pid) -> io::Result<Collected> {
    let mut status = 0;
    // SAFETY: all fields are integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid for writing.
    let collected = unsafe {
        libc::wait4(
            pid.as_raw_nonzero().get(),
            &raw mut status,
            libc::WNOHANG,
            &raw mut usage,
        )
    };
    if collected != pid.as_raw_nonzero().get() {
        return Err(io::Error::last_os_error());
    }
    let status = if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(libc::WTERMSIG(status))
    };
    Ok(Collected {
        status,
        cpu: duration(usage.ru_utime).saturating_add(duration(usage.ru_stime)),
        // getrusage(2): in kilobytes.
        max_rss_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    })
}

fn duration(time: libc::timeval) -> Duration {
    let micros = time
        .tv_sec
        .saturating_mul(1_000_000)
        .saturating_add(time.tv_usec);
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
