//! The daemon's end of the socket.

use std::{os::unix::net::UnixStream, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd},
    io::Errno,
};

use super::OperationError;
use crate::{
    Frame, FrameError, FromSupervisor, Inbox, Outbox, ToSupervisor, VERSION, agreed_version,
};

/// How long a supervisor may take to read what is sent to it.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// A connection to a supervisor.
#[derive(Debug)]
pub(crate) struct Link {
    socket: UnixStream,
    inbox: Inbox,
}

impl Link {
    /// Says hello on a new connection.
    pub(crate) fn new(socket: UnixStream) -> Result<Self, OperationError> {
        let mut link = Self {
            socket,
            inbox: Inbox::default(),
        };
        match link.send(&ToSupervisor::Hello { version: VERSION }, &[], None) {
            // One that is gone already may have said why; that is read next.
            Ok(()) | Err(OperationError::Gone(_)) => Ok(link),
            Err(error) => Err(error),
        }
    }

    /// Sends a frame, waiting for a supervisor that is busy.
    pub(crate) fn send(
        &mut self,
        what: &ToSupervisor,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), OperationError> {
        let mut outbox = Outbox::default();
        outbox.push(what, bytes)?;
        let whole = outbox.len();
        loop {
            let descriptor = descriptor.filter(|_| outbox.len() == whole);
            outbox.flush(&self.socket, descriptor)?;
            if outbox.is_empty() {
                return Ok(());
            }
            if !self.wait(PollFlags::OUT, READS_WITHIN)? {
                return Err(FrameError::Gone.into());
            }
        }
    }

    /// The next thing that it says, waiting for it at most this long.
    pub(crate) fn receive(
        &mut self,
        within: Duration,
    ) -> Result<Option<FromSupervisor>, FrameError> {
        loop {
            if let Some(Frame { head, .. }) = self.inbox.take()? {
                if let FromSupervisor::Hello { version, .. } = &head
                    && agreed_version(*version).is_none()
                {
                    return Err(FrameError::Malformed("its version is too far from ours"));
                }
                return Ok(Some(head));
            }
            let ready = self.wait(PollFlags::IN, within);
            if !ready.map_err(|_| FrameError::Gone)? {
                return Ok(None);
            }
            self.inbox.fill(&self.socket);
        }
    }

    /// Whether the other end is there, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let now = Timespec::default();
        poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().contains(PollFlags::HUP)
    }

    fn wait(&self, flags: PollFlags, within: Duration) -> Result<bool, OperationError> {
        let timeout = Timespec::try_from(within).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        let mut fds = [PollFd::new(&self.socket, flags)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            // Looked at again by the caller, who finds nothing and comes back.
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
