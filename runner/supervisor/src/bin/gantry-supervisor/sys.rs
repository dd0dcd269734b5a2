//! The system calls of a supervisor: fork, exec, signals, collecting children with their usage.
//!
//! `nix` and `rustix` make them where they have a safe form. The process has one thread, so a fork
//! copies no lock that is held, and the child may do all that its parent may.
#![expect(
    unsafe_code,
    reason = "clone3 into a cgroup, close_range, Landlock, seccomp, dispositions of signals, the pid in siginfo_t and wait4 have no safe form in a library"
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
use runner_supervisor::CommandUser;
use rustix::{
    fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd},
    process::Pid,
};

/// `CLONE_INTO_CGROUP` (clone3(2), Linux 5.7); wider than the type of the other flags.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The last of the ordinary signals.
const LAST_SIGNAL: i32 = 31;

/// The exit code of a child that could not become its program.
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

/// Makes a child that lives another life. Of all open descriptors it has only `kept` and the standard ones, and
/// its signals do what they do by default. In the end it returns its exit code.
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

/// The process at the other end of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) user: u32,
    /// 0 where it is in none of the pid namespaces that can be seen from here.
    pub(crate) pid: i32,
}

/// The user of the process that connected a socket.
pub(crate) fn peer_user(socket: BorrowedFd<'_>) -> Option<u32> {
    Some(peer(socket)?.user)
}

/// The process that connected a socket, or listens at its other end (unix(7), `SO_PEERCRED`).
///
/// `rustix`'s form has no place for a process of another pid namespace, whose pid is 0.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> Option<Peer> {
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
    (got == 0).then_some(Peer {
        user: peer.uid,
        pid: peer.pid,
    })
}

/// True if this user may give orders here.
pub(crate) fn is_ours(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw() || user == 0
}

/// Every signal does again what it does by default, and none is held back.
pub(crate) fn default_signals() {
    // SAFETY: no handler is set.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    // It fails for a wrong argument only.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// Lets the kernel collect children that end.
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

/// Closes descriptors that were inherited by accident: the program that started the daemon may have left some
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
    // SAFETY: the callers state that these descriptors have no owner, or that no owner goes on.
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
    // SAFETY: a descriptor of that number has no owner in a child that is about to become a program.
    match unsafe { libc::dup2(descriptor.as_raw_fd(), number) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Looks at files as this user would, and as no more than that.
pub(crate) fn seeing_as<T>(user: Option<CommandUser>, look: impl FnOnce() -> T) -> T {
    let Some(CommandUser { uid, gid }) = user else {
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
    arriving([Signal::SIGCHLD, Signal::SIGTERM])
}

/// From now on these arrive here and nowhere else.
pub(crate) fn arriving(signals: impl IntoIterator<Item = Signal>) -> io::Result<SignalFd> {
    let set: SigSet = signals.into_iter().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    Ok(SignalFd::with_flags(&set, flags)?)
}

/// True if SIGTERM is among the signals that have arrived.
pub(crate) fn asked_to_end(signals: &SignalFd) -> bool {
    let mut asked = false;
    while let Ok(Some(signal)) = signals.read_signal() {
        asked |= signal.ssi_signo == libc::SIGTERM.unsigned_abs();
    }
    asked
}

/// The oldest Landlock that keeps a process from signalling those outside (Linux 6.12).
const LANDLOCK_WITH_SIGNALS: i64 = 6;

/// Rights of `landlock_add_rule(2)` that change files. For a file: to open it for writing (bit 1) and to cut it
/// (14). For a folder: to remove and make its entries (4 to 12), and to move or link them into another one (13).
const WRITE: u64 = 1 << 1 | 1 << 14;
const CHANGE: u64 = WRITE | 0x3ff0;

/// The value of `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: libc::c_int = 1;

/// `struct landlock_ruleset_attr`, as Linux 6.12 has it.
#[repr(C)]
struct Ruleset {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `LANDLOCK_SCOPE_SIGNAL`.
const SCOPE_SIGNAL: u64 = 1 << 1;

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed_access: u64,
    parent: i32,
}

/// True if this kernel, and the filter of this container, allow [`confine`], with the scope for signals.
pub(crate) fn can_confine() -> bool {
    const VERSION: u32 = 1;
    // SAFETY: with this flag it takes no structure and says its version.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Ruleset>(),
            0usize,
            VERSION,
        )
    };
    version >= LANDLOCK_WITH_SIGNALS
}

/// The rules for [`confine`]. They keep a process from changing files and folders outside these folders and files;
/// and, where it `keeps_signals`, from signalling any process outside.
pub(crate) fn confinement(
    folders: &[OwnedFd],
    files: &[OwnedFd],
    keeps_signals: bool,
) -> io::Result<OwnedFd> {
    let ruleset = Ruleset {
        handled_access_fs: CHANGE,
        handled_access_net: 0,
        scoped: if keeps_signals { SCOPE_SIGNAL } else { 0 },
    };
    // SAFETY: the structure is valid for reading, and the size is its own.
    let made = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const ruleset,
            mem::size_of::<Ruleset>(),
            0u32,
        )
    };
    let made = i32::try_from(succeeded(made)?).map_err(io::Error::other)?;
    // SAFETY: it was just made, and has no other owner. The kernel closes it when a program is executed.
    let made = unsafe { OwnedFd::from_raw_fd(made) };
    let rules = folders.iter().map(|folder| (folder, CHANGE));
    let rules = rules.chain(files.iter().map(|file| (file, WRITE)));
    for (place, allowed_access) in rules {
        let rule = Beneath {
            allowed_access,
            parent: place.as_raw_fd(),
        };
        // SAFETY: the structure is valid for reading, and both descriptors are open.
        let added = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                made.as_raw_fd(),
                PATH_BENEATH,
                &raw const rule,
                0u32,
            )
        };
        succeeded(added)?;
    }
    Ok(made)
}

/// Confines this process, and all that come from it, for good (see [`confinement`]). They trace no process outside
/// either.
pub(crate) fn confine(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    let confined =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0u32) };
    succeeded(confined).map(drop)
}

/// `AUDIT_ARCH_…` (linux/audit.h): whose system calls the numbers below are.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Numbers from here on are of another kind of program (x32) on the same processor.
const OTHER_KIND: u32 = 0x4000_0000;

/// The calls that make an inotify instance.
#[cfg(target_arch = "x86_64")]
const WATCHING: &[libc::c_long] = &[libc::SYS_inotify_init, libc::SYS_inotify_init1];
#[cfg(not(target_arch = "x86_64"))]
const WATCHING: &[libc::c_long] = &[libc::SYS_inotify_init1];

/// Keeps this process, and all that come from it, for good, from changing how others are scheduled. It also keeps
/// them from using up the inotify instances of the host's root: it has the same user, and Landlock does not look
/// at that. Programs for another architecture find no system calls.
pub(crate) fn keep_to_itself() -> io::Result<()> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    // `struct seccomp_data`: number, architecture, address, arguments of 8 bytes each, the low half first.
    const NUMBER: u32 = 0;
    const ARCHITECTURE_AT: u32 = 4;
    const FIRST: u32 = 16;
    const SECOND: u32 = 24;
    let step = |code: u32, k: u32, if_so: u8, if_not: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: if_so,
        jf: if_not,
        k,
    };
    let refuse = |errno: i32| step(RETURN, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs(), 0, 0);
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let number = |number: libc::c_long| u32::try_from(number).unwrap_or(u32::MAX);
    let mut program = vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        step(IF_EQUAL, ARCHITECTURE, 1, 0),
        refuse(libc::ENOSYS),
        step(LOAD, NUMBER, 0, 0),
        step(IF_AT_LEAST, OTHER_KIND, 0, 1),
        refuse(libc::ENOSYS),
    ];
    // All of a user's have few of them together.
    for call in WATCHING {
        program.extend([step(IF_EQUAL, number(*call), 0, 1), refuse(libc::EMFILE)]);
    }
    // The first argument is the process: 0 is the caller.
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        program.extend([
            step(IF_EQUAL, number(call), 0, 4),
            step(LOAD, FIRST, 0, 0),
            step(IF_EQUAL, 0, 0, 1),
            allow,
            refuse(libc::EPERM),
        ]);
    }
    // The first is the kind (of one process: this number), the second the process.
    for (call, one_process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        program.extend([
            step(IF_EQUAL, number(call), 0, 6),
            step(LOAD, FIRST, 0, 0),
            step(IF_EQUAL, one_process, 0, 3),
            step(LOAD, SECOND, 0, 0),
            step(IF_EQUAL, 0, 0, 1),
            allow,
            refuse(libc::EPERM),
        ]);
    }
    program.push(allow);
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter points to so many instructions, which live until it returns.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    succeeded(set.into()).map(drop)
}

fn succeeded(result: i64) -> io::Result<i64> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The report of a collected process, and what it used.
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

/// True if the kernel says that this process has no child, running or not. A subreaper without children has no
/// descendants either: those that lose their parents become its children.
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
