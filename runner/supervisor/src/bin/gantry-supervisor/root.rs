//! Commands as root, in a container whose template allows them.
//!
//! No program gains rights there. The supervisor, which is root already, starts such a command: the container's
//! `sudo` (`sudo`) asks it on a socket. So a root command comes from the supervisor of the operation that it belongs
//! to, and ends with it.
//!
//! - The socket has no file that root could replace. Each end checks the other one: the supervisor serves
//!   processes of its own command alone, and `sudo` believes only the supervisor that it comes from.
//! - A root command has six capabilities, and a Landlock domain. It can neither signal nor trace the processes
//!   that supervise it, nor change anything in `/proc` and `/sys`. A filter keeps it from changing how these are
//!   scheduled. A user that it cannot be all at once keeps it from changing their limits (`privilege::stand_apart`).
//! - The kernel counts some things by user. A root command can take only so much of them that other processes of
//!   root go on (`limit`).
//! - The other commands have such a domain too, without the scope for signals. Else root could give them files of
//!   others in `/proc` and `/sys`, because Landlock does not look at changes of owners and modes.
//! - The records lie on a mount that no path of the container leads to (`door`), and no file there is given to a
//!   command.

use std::{
    ffi::CString,
    io::{self, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    os::{linux::net::SocketAddrExt as _, unix::net::SocketAddr},
    path::Path,
    time::Duration,
};

use nix::sys::signalfd::SignalFd;
use runner_supervisor::{CommandUser, descendants};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, StatxFlags},
    io::Errno,
    net::{SocketFlags, accept_with},
    process::{Pid, Resource, Rlimit, Signal, getpid, getrlimit, setrlimit},
};
use shared_program::note;

use crate::{
    gate::ReceivedPlan,
    privilege, program,
    sys::{self, Peer},
    victims,
};

/// The folders in which root's programs are looked for.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The longest time that the client may take for its request.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// Folders directly below the root in which root's commands change nothing.
const CLOSED: [&str; 3] = ["proc", "sys", ".gantry"];

/// The most that root's commands may have of things that are counted by user.
const MAX_FILES: u64 = 65_536;
const MAX_PENDING_SIGNALS: u64 = 1024;
const MAX_QUEUE_BYTES: u64 = 65_536;
const MAX_LOCKED_BYTES: u64 = 65_536;

/// The byte before the number in an answer: the number is an exit code, or a signal.
pub(crate) const EXITED: u8 = b'E';
pub(crate) const SIGNALLED: u8 = b'S';

/// An answer, in bytes.
pub(crate) const ANSWER_BYTES: usize = 5;

/// The facts about root that a container's supervisors have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The user that may ask.
    pub(crate) user: CommandUser,
    /// The mount of the records.
    pub(crate) records: u64,
}

impl Rules {
    /// For a container in which this user may be root; the folder of the operations is where this process is.
    ///
    /// # Errors
    /// Where root's commands could not be confined.
    pub(crate) fn found(user: CommandUser) -> io::Result<Self> {
        if !sys::can_confine() {
            return Err(io::Error::other(
                "root's commands cannot be confined here: sudo needs Linux 6.12 or later with Landlock; use a \
                 template without sudo",
            ));
        }
        let records = mount(&rustix::fs::open(
            ".",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)?;
        Ok(Self { user, records })
    }

    /// True if this file lies where the records do, so that no command may have it.
    ///
    /// # Errors
    /// Where that cannot be found out.
    pub(crate) fn is_record(&self, file: impl AsFd) -> io::Result<bool> {
        Ok(mount(&file)? == self.records)
    }
}

/// The mount on which a file was opened.
fn mount(file: &impl AsFd) -> io::Result<u64> {
    let told = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    match told.stx_mask & StatxFlags::MNT_ID.bits() {
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Ok(told.stx_mnt_id),
    }
}

/// The socket at which a supervisor takes requests.
#[derive(Debug)]
pub(crate) struct Desk {
    listener: OwnedFd,
    rules: Rules,
    /// The `oom_score_adj` of this process before it asked the host not to kill it first.
    kill_order: i32,
}

/// The address at which the supervisor of this pid is asked.
pub(crate) fn address(supervisor: i32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("gantry-sudo.{supervisor}"))
}

impl Desk {
    /// The one of this process.
    ///
    /// # Errors
    /// Where another process has its address.
    pub(crate) fn open(rules: Rules, kill_order: i32) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(getpid().as_raw_nonzero().get())?)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: listener.into(),
            rules,
            kill_order,
        })
    }

    pub(crate) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Serves one who asks, in a process of its own. Who may not ask sees the connection close.
    pub(crate) fn attend(&self) {
        let Ok(socket) = accept_with(&self.listener, SocketFlags::CLOEXEC) else {
            return;
        };
        let Some(Peer { user, pid }) = sys::peer(socket.as_fd()) else {
            return;
        };
        let family = descendants(getpid()).unwrap_or_default();
        let is_family = Pid::from_raw(pid).is_some_and(|pid| family.contains(&pid));
        if user != self.rules.user.uid || !is_family {
            return;
        }
        // On a host without room for a process the connection closes.
        let _ = sys::fork_apart(None, socket.as_fd(), || {
            let served = socket
                .try_clone()
                .and_then(|socket| serve(&socket.into(), self.rules, self.kill_order));
            i32::from(served.is_err())
        });
    }
}

/// Starts what is asked for, and tells how it ended. Ends with it.
fn serve(socket: &UnixStream, rules: Rules, kill_order: i32) -> io::Result<()> {
    rustix::process::chdir("/")?;
    socket.set_read_timeout(Some(ASKS_WITHIN))?;
    let told = ReceivedPlan::receive(socket)?;
    socket.set_read_timeout(None)?;
    for descriptor in &told.descriptors {
        if rules.is_record(descriptor)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }
    // Asked to end are the command and this process alike, and the command decides.
    let signals = sys::signals()?;
    let Some(command) = sys::fork(None)? else {
        sys::default_signals();
        let error = become_command(&told);
        let name = told.program.to_string_lossy();
        note!("sudo: {}", in_words(&name, &error));
        // Nothing of its parent is to be done once more here.
        std::process::exit(sys::NOT_EXECUTED);
    };
    victims::expose(command, kill_order);
    // Only the command itself may hold its caller's output open.
    drop(told);
    let answer = accompany(socket, &signals, command)?;
    (&mut &*socket).write_all(&answer)
}

/// Passes signals on until the command ends; what is answered then.
fn accompany(
    socket: &UnixStream,
    signals: &SignalFd,
    command: Pid,
) -> io::Result<[u8; ANSWER_BYTES]> {
    let mut listens = true;
    loop {
        let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
        if listens {
            fds.push(PollFd::new(socket, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let heard = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        sys::asked_to_end(signals);
        if sys::ended_child() == Some(command) {
            let (kind, number) = match sys::collect(command)?.status {
                Ok(code) => (EXITED, code),
                Err(signal) => (SIGNALLED, signal),
            };
            let [a, b, c, d] = number.to_le_bytes();
            return Ok([kind, a, b, c, d]);
        }
        if heard {
            let mut wanted = [0];
            let signal = match rustix::io::read(socket, &mut wanted) {
                Ok(1) => Signal::from_named_raw(i32::from(wanted[0])),
                Err(Errno::INTR) => None,
                // Its client was killed, and a terminal that goes away says as much.
                Ok(_) | Err(_) => {
                    listens = false;
                    Some(Signal::HUP)
                }
            };
            if let Some(signal) = signal
                && rustix::process::kill_process_group(command, signal).is_err()
            {
                // It was made a moment ago, and has no group yet.
                let _ = rustix::process::kill_process(command, signal);
            }
        }
    }
}

/// Becomes the command. Returns only where that fails.
fn become_command(told: &ReceivedPlan) -> io::Error {
    let prepare = || -> io::Result<()> {
        let [directory, input, output, error] = &told.descriptors;
        rustix::stdio::dup2_stderr(error)?;
        // So that signals reach all of it. The caller's terminal stays the caller's.
        rustix::process::setsid()?;
        rustix::process::fchdir(directory)?;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        limit()?;
        privilege::become_root()?;
        sys::confine(&confinement(true)?)?;
        sys::keep_to_itself()
    };
    match prepare() {
        Ok(()) => execute(&told.program, &told.argv, &told.environment),
        Err(error) => error,
    }
}

/// Limits what root takes of what the kernel counts by user, for all that have the same one: the host's root, and
/// what supervises in other containers.
fn limit() -> io::Result<()> {
    // Descriptors that are on their way through sockets are compared with this.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = [
        (Resource::Nofile, MAX_FILES.min(files / 2)),
        (Resource::Sigpending, MAX_PENDING_SIGNALS),
        (Resource::Msgqueue, MAX_QUEUE_BYTES),
        (Resource::Memlock, MAX_LOCKED_BYTES),
    ];
    for (resource, most) in most {
        let most = Some(
            getrlimit(resource)
                .maximum
                .map_or(most, |now| now.min(most)),
        );
        setrlimit(
            resource,
            Rlimit {
                current: most,
                maximum: most,
            },
        )?;
    }
    Ok(())
}

/// The rules that confine commands once they are taken on (`sys::confine`). Commands change what lies in the folders
/// directly below the root, but for [`CLOSED`]. Root's commands signal none but those that come from them as well.
pub(crate) fn confinement(is_root: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir("/")? {
        let name = entry?.file_name();
        if CLOSED.iter().any(|closed| name == *closed) {
            continue;
        }
        let place = rustix::fs::open(Path::new("/").join(name), flags, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode) {
            FileType::Directory => folders.push(place),
            FileType::RegularFile => files.push(place),
            _ => {}
        }
    }
    sys::confinement(&folders, &files, is_root)
}

/// Executes a program of root's. Returns only where that fails.
pub(crate) fn execute(program: &CString, argv: &[CString], environment: &[CString]) -> io::Error {
    let mut told = io::Error::from(io::ErrorKind::NotFound);
    for file in program::in_path(program.as_bytes(), PATH.as_bytes()) {
        let Ok(file) = program::to_c(file) else {
            continue;
        };
        let error = sys::execute(&file, argv, environment);
        let missing = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        );
        if !missing {
            told = error;
        }
    }
    told
}

/// The reason why a program was not executed, in a shell's words.
pub(crate) fn in_words(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{program}: command not found"),
        _ => format!("{program}: {error}"),
    }
}
