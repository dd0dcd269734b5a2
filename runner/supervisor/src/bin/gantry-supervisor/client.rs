//! The daemon on the socket: one at a time, and none is fine as well.

use runner_supervisor::{
    FromSupervisor, Outbox, ToSupervisor, VERSION, WireFrame, WireInbox, agreed_version,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, OwnedFd},
    net::{SocketFlags, sockopt::socket_peercred},
    process::Pid,
};

use crate::{clock::timespec, sys};

/// Answers that wait for a daemon that does not read; one that lets more wait is cut off.
const WAITING_BYTES: usize = 256 * 1024;

/// A connected daemon.
#[derive(Debug)]
pub(crate) struct ControlClient {
    socket: OwnedFd,
    inbox: WireInbox,
    outbox: Outbox,
    greeted: bool,
    gone: bool,
}

impl ControlClient {
    /// Takes a connection, unless it is another user's.
    pub(crate) fn new(socket: OwnedFd) -> Option<Self> {
        sys::is_ours(sys::peer_user(socket.as_fd())?).then(|| Self {
            socket,
            inbox: WireInbox::default(),
            outbox: Outbox::default(),
            greeted: false,
            gone: false,
        })
    }

    /// Takes a connection that waits at the listener.
    pub(crate) fn accept(listener: &OwnedFd) -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Self::new(rustix::net::accept_with(listener, flags).ok()?)
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// True if something waits to be sent.
    pub(crate) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "faults only"))]
    pub(crate) fn pid(&self) -> Option<Pid> {
        Some(socket_peercred(&self.socket).ok()?.pid)
    }

    /// Reads what there is.
    pub(crate) fn fill(&mut self) {
        self.inbox.fill(&self.socket);
    }

    /// The next frame of a daemon that has said hello. One that speaks nonsense is cut off.
    pub(crate) fn next(&mut self) -> Option<WireFrame<ToSupervisor>> {
        while !self.gone {
            match self.inbox.take::<ToSupervisor>() {
                Ok(None) => return None,
                Ok(Some(frame)) => match frame.head {
                    ToSupervisor::Hello { version } => self.greet(version),
                    _ if !self.greeted => self.refuse("say hello first"),
                    _ => return Some(frame),
                },
                Err(_) => self.gone = true,
            }
        }
        None
    }

    /// The descriptor that came with a request.
    pub(crate) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.inbox.descriptor()
    }

    fn greet(&mut self, version: u32) {
        self.greeted = agreed_version(version).is_some();
        if !self.greeted {
            self.refuse(&format!(
                "this supervisor speaks version {VERSION} and its neighbours, not {version}"
            ));
        }
    }

    /// Says why, and cuts it off.
    fn refuse(&mut self, reason: &str) {
        self.say(&FromSupervisor::Refused {
            reason: reason.to_owned(),
        });
        self.gone = true;
    }

    /// Says something, as soon as the daemon reads.
    pub(crate) fn say(&mut self, what: &FromSupervisor) {
        if self.outbox.push(what, &[]).is_err() || self.outbox.len() > WAITING_BYTES {
            self.gone = true;
        }
        self.flush();
    }

    pub(crate) fn flush(&mut self) {
        if !self.gone && self.outbox.flush(&self.socket, None).is_err() {
            self.gone = true;
        }
    }

    /// Waits a moment for a daemon that is slow to read the last words.
    pub(crate) fn finish(&mut self, within: std::time::Duration) {
        if self.is_behind() && !self.gone {
            let mut fds = [PollFd::new(&self.socket, PollFlags::OUT)];
            // Whatever comes of it: the records say the same.
            let _ = poll(&mut fds, Some(&timespec(within)));
            self.flush();
        }
    }
}
