//! The orders of a daemon to the process that supervisors are forked from.
//!
//! On the daemon's own host that process is its child (`pool::fork_server`). In a container it is the entry
//! process, which outlives the daemon and listens at [`ORDERS`] in the folder of the operations. The entry
//! process also does what only a process of the container can do, because the records name pids as they are
//! seen there.
//!
//! An order is one message (JSON) on a `SOCK_SEQPACKET` socket. A descriptor goes with it: the socket for the
//! answer. That socket is closed without an answer where the order is not carried out.

use std::{
    io::{self, IoSlice, Read as _},
    mem::MaybeUninit,
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags},
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
        SocketFlags, SocketType, connect, sendmsg, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use serde::{Deserialize, Serialize};

use crate::{Cause, CommandUser};

/// The entry process's socket, in the folder of the operations.
pub const ORDERS: &str = "orders";

/// A file in the folder of the operations on which each [`Order::Program`] holds a shared lock (flock(2))
/// for its whole life. Who gets an exclusive one knows that none of them lives.
pub const PROGRAMS_LOCK: &str = "programs.lock";

/// Largest order, in bytes.
pub const MAX_ORDER_BYTES: usize = 8 * 1024;

/// Longest answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// The longest wait for the entry process to accept a connection. In a paused container it never accepts one.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait for an answer: the tree of a command may have to be killed before.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Order {
    /// Fork a supervisor, which serves this directory and speaks its own protocol on the socket.
    Supervise {
        /// Its name in the folder of the operations.
        directory: String,
    },
    /// Find out what became of this directory's operation, and write it down.
    Settle {
        /// Its name.
        directory: String,
    },
    /// Ask its command to end where its supervisor is stopped.
    AskToEnd {
        /// Its name.
        directory: String,
    },
    /// End its command, for this reason, and its supervisor.
    EndByForce {
        /// Its name.
        directory: String,
        /// The reason.
        cause: Cause,
    },
    /// Remove what its supervisor has left, and it.
    Remove {
        /// Its name.
        directory: String,
    },
    /// Run a program with the socket as its standard input, as this user. It ends with its socket or by
    /// itself; its exit status is not reported.
    Program {
        /// The program and its words, not empty; absolute.
        argv: Vec<String>,
        /// The user whose rights it has.
        user: CommandUser,
    },
}

/// The result of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderOutcome {
    /// It is done; the records say what came of it.
    Done,
    /// It could not be done.
    Failed {
        /// The host's words.
        reason: String,
        /// The supervisor neither answers nor ends: it may be tried again.
        timed_out: bool,
    },
}

/// A connection on which orders are given.
#[derive(Debug)]
pub struct Orders {
    socket: OwnedFd,
}

impl Orders {
    /// On a socket that is connected already.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// To the entry process whose folder of operations this is.
    ///
    /// # Errors
    /// `NotFound` and `ConnectionRefused` where it does not run, and so nothing of its container does;
    /// `WouldBlock` where it runs and accepts no connection for some seconds.
    pub fn connect(root: &Path) -> io::Result<Self> {
        Self::connect_within(root, Some(ACCEPTS_WITHIN))
    }

    /// True if an entry process listens in this folder of operations. Never waits: a paused one listens, but
    /// has no room for another connection.
    pub fn listens(root: &Path) -> bool {
        let connected = Self::connect_within(root, None);
        connected.map_or_else(|error| is_busy(&error), |_| true)
    }

    /// Waits that long until there is room, or not at all.
    fn connect_within(root: &Path, wait: Option<Duration>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(root, flags, Mode::empty())?;
        // Through `/proc`, because a socket's address has only 108 bytes.
        let path = format!("/proc/self/fd/{}/{ORDERS}", folder.as_raw_fd());
        let flags = match wait {
            Some(_) => SocketFlags::CLOEXEC,
            None => SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        };
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // It bounds `connect` as well (unix(7) waits for room as a sender does).
        set_socket_timeout(&socket, Timeout::Send, wait)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket })
    }

    /// Gives an order; returns the socket for the answer.
    ///
    /// # Errors
    /// When no process takes orders.
    pub fn give(&self, order: &Order) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        let text = serde_json::to_vec(order)?;
        if text.len() > MAX_ORDER_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let descriptors = [far.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        // Few orders wait at a time: where there is no room, the process does not read.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(&text)], &mut control, flags)?;
        Ok(near)
    }
}

/// Has the entry process of this folder carry out an order; `None` where it does not run, so that nothing of
/// its container does. An entry process that accepts no connection, or does not answer, is a time-out.
pub(crate) fn ask(root: &Path, order: &Order) -> io::Result<Option<OrderOutcome>> {
    ask_within(root, order, ACCEPTS_WITHIN, ANSWERS_WITHIN)
}

fn ask_within(
    root: &Path,
    order: &Order,
    accepts: Duration,
    answers: Duration,
) -> io::Result<Option<OrderOutcome>> {
    let asked = ask_once(root, order, accepts, answers);
    asked.map_err(|error| match is_busy(&error) {
        true => io::ErrorKind::TimedOut.into(),
        false => error,
    })
}

fn ask_once(
    root: &Path,
    order: &Order,
    accepts: Duration,
    answers: Duration,
) -> io::Result<Option<OrderOutcome>> {
    let orders = match Orders::connect_within(root, Some(accepts)) {
        Ok(orders) => orders,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let answer = orders.give(order)?;
    answer.set_read_timeout(Some(answers))?;
    let mut text = Vec::new();
    answer.take(MAX_ANSWER_BYTES).read_to_end(&mut text)?;
    if text.is_empty() {
        // It was killed in the middle, as a rule with its container.
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(Some(serde_json::from_slice(&text)?))
}

/// True if a process is there and has no time (`EAGAIN`).
fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The folder of the operations that this directory is in, and its name there.
pub(crate) fn place(directory: &Path) -> io::Result<(PathBuf, String)> {
    let root = directory.parent();
    let name = directory.file_name().and_then(|name| name.to_str());
    match root.zip(name) {
        Some((root, name)) => Ok((root.to_owned(), name.to_owned())),
        None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{bind, listen};

    use super::*;

    /// Too short for a person to notice.
    const AT_ONCE: Duration = Duration::from_millis(10);

    /// Listens as the entry process of a paused container does: it accepts no connection.
    fn paused(root: &Path) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.expect("a socket");
        let address = SocketAddrUnix::new(root.join(ORDERS)).expect("a short path");
        bind(&socket, &address).expect("a free name");
        listen(&socket, 2).expect("it listens");
        socket
    }

    #[test]
    fn who_asks_a_paused_container_hears_in_time_that_it_does_not_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let order = Order::Settle {
            directory: "op".to_owned(),
        };
        assert!(!Orders::listens(root));
        let _socket = paused(root);
        // First it is the answer that does not come, then there is no room to wait for it: those who have gone
        // take it too.
        for _ in 0..4 {
            assert!(Orders::listens(root));
            let asked = ask_within(root, &order, AT_ONCE, AT_ONCE);
            let error = asked.expect_err("nobody answers");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        let error = Orders::connect_within(root, Some(AT_ONCE)).expect_err("no room");
        assert!(is_busy(&error), "{error}");
        assert!(Orders::listens(root));
    }
}
