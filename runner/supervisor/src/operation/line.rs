//! The daemon's end of the socket.

use std::{os::unix::net::UnixStream, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

use super::OperationError;
use crate::{
    FrameError, FromSupervisor, Outbox, ToSupervisor, VERSION, WireFrame, WireInbox, agreed_version,
};

/// The longest time that a supervisor may take to read a frame.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes that wait for a supervisor that does not read; beyond it the sender waits as
/// well.
const WAITING_BYTES: usize = 256 * 1024;

/// A connection to a supervisor.
#[derive(Debug)]
pub(crate) struct SupervisorLine {
    socket: UnixStream,
    inbox: WireInbox,
    outbox: Outbox,
    /// Goes with the next byte.
    descriptor: Option<OwnedFd>,
}

impl SupervisorLine {
    /// Says hello on a new connection.
    pub(crate) fn new(socket: UnixStream) -> Result<Self, OperationError> {
        let mut link = Self {
            socket,
            inbox: WireInbox::default(),
            outbox: Outbox::default(),
            descriptor: None,
        };
        match link.send(&ToSupervisor::Hello { version: VERSION }, &[]) {
            // One that is gone already may have said why; that is read next.
            Ok(()) | Err(OperationError::Gone(_)) => Ok(link),
            Err(error) => Err(error),
        }
    }

    /// Lets a descriptor go with the frame that is sent next.
    pub(crate) fn pass(&mut self, descriptor: OwnedFd) {
        self.descriptor = Some(descriptor);
    }

    /// Sends a frame, as far as the supervisor reads now; the rest goes with [`SupervisorLine::flush`].
    /// Waits only where more than [`WAITING_BYTES`] wait already.
    pub(crate) fn send(&mut self, what: &ToSupervisor, bytes: &[u8]) -> Result<(), OperationError> {
        while self.outbox.len() > WAITING_BYTES {
            if !self.wait(PollFlags::OUT, READS_WITHIN)? {
                return Err(FrameError::Gone.into());
            }
            self.flush()?;
        }
        self.outbox.push(what, bytes)?;
        Ok(self.flush()?)
    }

    /// Sends what the supervisor reads now.
    pub(crate) fn flush(&mut self) -> Result<(), FrameError> {
        let before = self.outbox.len();
        let descriptor = self.descriptor.as_ref().map(AsFd::as_fd);
        self.outbox.flush(&self.socket, descriptor)?;
        if self.outbox.len() < before {
            self.descriptor = None;
        }
        Ok(())
    }

    /// True if something is left to send.
    pub(crate) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next thing that it has said; `None` once the socket is read empty.
    pub(crate) fn hear(&mut self) -> Result<Option<FromSupervisor>, FrameError> {
        loop {
            if let Some(WireFrame { head, .. }) = self.inbox.take()? {
                if let FromSupervisor::Hello { version, .. } = &head
                    && agreed_version(*version).is_none()
                {
                    return Err(FrameError::Malformed("its version is too far from ours"));
                }
                return Ok(Some(head));
            }
            if !self.inbox.fill(&self.socket) {
                return Ok(None);
            }
        }
    }

    /// The next thing that it says, waiting for it at most this long.
    pub(crate) fn receive(
        &mut self,
        within: Duration,
    ) -> Result<Option<FromSupervisor>, FrameError> {
        loop {
            if let Some(said) = self.hear()? {
                return Ok(Some(said));
            }
            if !self.ready(within).map_err(|_| FrameError::Gone)? {
                return Ok(None);
            }
        }
    }

    /// Waits until there is something to hear. In that time it sends what is left to send.
    pub(crate) fn ready(&mut self, within: Duration) -> Result<bool, OperationError> {
        let mut wanted = PollFlags::IN;
        if self.is_behind() {
            wanted |= PollFlags::OUT;
        }
        let ready = self.wait(wanted, within)?;
        self.flush()?;
        Ok(ready)
    }

    /// True if the other end is there, as far as is known.
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

impl AsFd for SupervisorLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
