//! The system calls of a supervisor: fork, exec, signals, collecting children with their usage.
//!
//! `nix` and `rustix` make them where they have a safe form. The process has one thread, so a fork
//! copies no lock that is held, and the child may do all that its parent may.
#![expect(
    unsafe_code,
    reason = "clone3 into a cgroup, close_range, dispositions of signals, the pid in siginfo_t and wait4 have no safe form in a library"
)]

use std::{
    ffi::{CStr, CString},
    io, mem,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::execve,
};
use runner_supervisor::User;
use rustix::{
    fd::{AsRawFd, BorrowedFd, OwnedFd},
    process::Pid,
};

/// `CLONE_INTO_CGROUP` (clone3(2), Linux 5.7); wider than the type of the other flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The last of the ordinary signals.
const LAST_SIGNAL: i32 = 31;

/// What a child says with its exit code that could not become its program.
pub(crate) const NOT_EXECUTED: i32 = 127;

/// Makes a child that goes on here, on a copy; `born_in` is the cgroup where it begins to exist.
/// `None` in the child.
pub(crate) fn fork(born_in: Option<BorrowedFd<'_>>) -> io::Result<Option<Pid>> {
    // SAFETY: all fields are integers, for which zero is a value.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD.unsigned_abs().into();
    if let Some(cgroup) = born_in {
        arguments.flags = CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    // SAFETY: without shared memory and without a stack of its own the child goes on here, on a
    // copy, as after fork(2). This process has no other thread, so no lock is copied while held.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut arguments,
            mem::size_of::<libc::clone_args>(),
        )
    };
    let pid = match pid {
        0.. => pid,
        // Containers refuse clone3 as a rule, whose arguments their filter cannot look into.
        _ if born_in.is_none()
            && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) =>
        {
            // SAFETY: as above.
            i64::from(unsafe { libc::fork() })
        }
        _ => pid,
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(i32::try_from(pid).map_err(io::Error::other)?))
}

/// Makes a child that lives another life: of all that is open here it has only `kept` and the
/// standard descriptors, its signals do what they do by default, and in the end it returns the code
/// to end with.
pub(crate) fn fork_apart(
    born_in: Option<BorrowedFd<'_>>,
    kept: BorrowedFd<'_>,
    life: impl FnOnce() -> i32,
) -> io::Result<Pid> {
    if let Some(pid) = fork(born_in)? {
        return Ok(pid);
    }
    let kept = kept.as_raw_fd().unsigned_abs();
    // This process never returns, so it neither uses nor drops anything else that it has copied.
    close_range(3, kept - 1);
    close_range(kept + 1, u32::MAX);
    default_signals();
    let code = life();
    // SAFETY: nothing runs after it.
    unsafe { libc::_exit(code) }
}

/// Becomes a program. Returns only where that fails, with the reason.
pub(crate) fn execute(program: &CStr, argv: &[CString], environment: &[CString]) -> io::Error {
    match execve(program, argv, environment) {
        Ok(never) => match never {},
        Err(errno) => errno.into(),
    }
}

/// The user of whoever connected a socket (unix(7), `SO_PEERCRED`).
///
/// `rustix`'s form has no place for a process of another pid namespace, whose pid is 0.
pub(crate) fn peer_user(socket: BorrowedFd<'_>) -> Option<u32> {
    // SAFETY: all fields are integers, for which zero is a value.
    let mut peer: libc::ucred = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(mem::size_of::<libc::ucred>()).ok()?;
    // SAFETY: both pointers are valid for writing, and the length is that of the structure.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (got == 0).then_some(peer.uid)
}

/// Whether this user may give orders here.
pub(crate) fn is_ours(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == 0
}

/// Every signal does again what it does by default, and none is held back.
fn default_signals() {
    // SAFETY: no handler is set.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    // It fails for a wrong argument only.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// Children that end need nobody who collects them.
pub(crate) fn ignore_children() {
    // SAFETY: no handler is set.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
}

/// Children that end wait to be collected.
pub(crate) fn heed_children() {
    // SAFETY: no handler is set.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Closes what was inherited by accident: whoever started the daemon may have left descriptors
/// open, and no command may get them. Must come first, before anything here is opened.
pub(crate) fn close_inherited() {
    // Nothing in this process owns a descriptor above standard error yet.
    close_range(3, u32::MAX);
}

/// Closes all descriptors between these two, which nothing here uses any more.
fn close_range(first: u32, last: u32) {
    if first > last {
        return;
    }
    // SAFETY: the callers say that nobody owns them, or that nobody goes on who does.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed == 0 {
        return;
    }
    // A container's filter may not know that call.
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers: Vec<i32> = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number: &i32| (first..=last).contains(&number.unsigned_abs()))
        .collect();
    for number in numbers {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}

/// Gives a descriptor this number, under which a program inherits it.
pub(crate) fn move_to(descriptor: OwnedFd, number: i32) -> io::Result<()> {
    if descriptor.as_raw_fd() == number {
        rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::empty())?;
        mem::forget(descriptor);
        return Ok(());
    }
    // SAFETY: nobody owns a descriptor of that number in a child that is about to become a program.
    match unsafe { libc::dup2(descriptor.as_raw_fd(), number) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Looks at files as this user would, and as no more than that.
pub(crate) fn seeing_as<T>(user: Option<User>, look: impl FnOnce() -> T) -> T {
    let Some(User { uid, gid }) = user else {
        return look();
    };
    // SAFETY: they change what this thread may do with files, and no memory. With another user than root
    // the rights of root to files go as well (setfsuid(2), capabilities(7)).
    let before = unsafe { (libc::setfsgid(gid), libc::setfsuid(uid)) };
    let seen = look();
    // SAFETY: as above.
    unsafe {
        libc::setfsuid(before.1.unsigned_abs());
        libc::setfsgid(before.0.unsigned_abs());
    }
    seen
}

/// From now on SIGCHLD and SIGTERM arrive here and nowhere else.
pub(crate) fn signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.add(Signal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok(SignalFd::with_flags(&set, flags)?)
}

/// Whether SIGTERM is among the signals that have arrived.
pub(crate) fn asked_to_end(signals: &SignalFd) -> bool {
    let mut asked = false;
    while let Ok(Some(signal)) = signals.read_signal() {
        asked |= signal.ssi_signo == libc::SIGTERM.unsigned_abs();
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
///
/// `nix`'s form refuses a child that a real-time signal ended, and `rustix`'s hides the pid.
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

/// Whether the kernel says that this process has no child, running or not. A subreaper that has
/// none has no descendants either: those that lose their parents become its children.
pub(crate) fn is_childless() -> bool {
    let flags =
        WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT | WaitPidFlag::__WALL;
    waitid(Id::All, flags) == Err(Errno::ECHILD)
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
