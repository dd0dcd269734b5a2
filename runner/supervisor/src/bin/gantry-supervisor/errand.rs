//! The work that an entry process does for a daemon, each piece in a process of its own because it
//! can take long.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Write as _},
    os::unix::net::UnixStream,
    path::Path,
};

use runner_supervisor::{
    CommandUser, Directory, Order, OrderOutcome, PROGRAMS_LOCK, RecordError, ask_to_end,
    end_by_force, remove, settle,
};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FlockOperation, Mode, OFlags},
    process::WaitOptions,
};

use crate::{privilege, sys};

/// The descriptor of a program's lock; it has no other but the standard ones.
const LOCK: i32 = 3;

/// Does it, and answers on `socket`. A host that has no room for one more process is answered for.
/// Where commands may be root none of them is to have a descriptor of the records, however it comes by it.
pub(crate) fn send(order: Order, socket: OwnedFd, has_root: bool) {
    let forked = match &order {
        Order::Program { argv, user } => program(argv, *user, &socket, has_root),
        _ => sys::fork_apart(None, socket.as_fd(), || {
            // They have children of their own to look after.
            sys::heed_children();
            answer(&socket, &done(order.clone()));
            0
        }),
    };
    if let Err(error) = forked {
        answer(&socket, &not_begun(&error));
    }
}

fn done(order: Order) -> OrderOutcome {
    let open = |name: String| Directory::open(Path::new(&name));
    let carried_out = || -> Result<(), RecordError> {
        match order {
            Order::Settle { directory } => settle(open(directory)?).map(drop),
            Order::AskToEnd { directory } => ask_to_end(&open(directory)?),
            Order::EndByForce { directory, cause } => {
                end_by_force(open(directory)?, cause).map(drop)
            }
            Order::Remove { directory } => Ok(remove(open(directory)?)?),
            Order::Supervise { .. } | Order::Program { .. } => {
                Err(io::Error::from(io::ErrorKind::Unsupported).into())
            }
        }
    };
    carried_out().map_or_else(|error| failed(&error), |()| OrderOutcome::Done)
}

fn failed(error: &RecordError) -> OrderOutcome {
    let (reason, timed_out) = match error {
        RecordError::Io(io) => (io.to_string(), io.kind() == io::ErrorKind::TimedOut),
        other => (other.to_string(), false),
    };
    OrderOutcome::Failed { reason, timed_out }
}

/// There is no process that does it. Where the container has no room for one more, it may have some later.
fn not_begun(error: &io::Error) -> OrderOutcome {
    let no_room = [io::ErrorKind::WouldBlock, io::ErrorKind::OutOfMemory];
    OrderOutcome::Failed {
        reason: error.to_string(),
        timed_out: no_room.contains(&error.kind()),
    }
}

fn answer(socket: &OwnedFd, answer: &OrderOutcome) {
    let Ok(text) = serde_json::to_vec(answer) else {
        return;
    };
    if let Ok(socket) = socket.try_clone() {
        // The daemon that asked may be gone.
        let _ = UnixStream::from(socket).write_all(&text);
    }
}

/// Becomes a program that reads and writes the socket as its standard input, and holds the lock.
fn program(
    argv: &[String],
    user: CommandUser,
    socket: &OwnedFd,
    has_root: bool,
) -> io::Result<rustix::process::Pid> {
    let words = argv.iter().map(|word| CString::new(word.as_str()));
    let words: Vec<CString> = words.collect::<Result<_, _>>()?;
    sys::fork_apart(None, socket.as_fd(), || {
        let become_it = || -> io::Result<()> {
            let lock = lock()?;
            rustix::stdio::dup2_stdin(socket)?;
            match has_root {
                true => {
                    sys::heed_children();
                    if let Some(program) = sys::fork(None)? {
                        // This process holds the lock for it, and ends with it.
                        rustix::process::waitpid(Some(program), WaitOptions::empty())?;
                        return Ok(());
                    }
                }
                false => sys::move_to(lock.into(), LOCK)?,
            }
            rustix::process::setsid()?;
            rustix::process::chdir("/")?;
            privilege::become_user(user)?;
            Err(sys::execute(&words[0], &words, &[]))
        };
        let _ = become_it();
        sys::NOT_EXECUTED
    })
}

/// Shared with all programs, for as long as this process and what it becomes lives.
fn lock() -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let file = rustix::fs::open(PROGRAMS_LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&file, FlockOperation::LockShared)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn what_finds_no_room_for_a_process_may_be_tried_again() {
        for (errno, again) in [
            (Errno::AGAIN, true),
            (Errno::NOMEM, true),
            (Errno::NOSYS, false),
        ] {
            let OrderOutcome::Failed { timed_out, .. } = not_begun(&errno.into()) else {
                panic!("it is not done");
            };
            assert_eq!(timed_out, again, "{errno}");
        }
    }
}
