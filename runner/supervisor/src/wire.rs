//! Frames on a stream socket: lengths, a head in JSON, bytes.
//!
//! `u32 length of all that follows | u32 length of the head | head | bytes`, little endian. Both
//! ends read and write without waiting; what is held of a frame is bounded by its largest size.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use serde::{Serialize, de::DeserializeOwned};

/// Largest frame, in bytes: more than words and environment that Linux would take (2 MiB).
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that are read at once, at most.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that are read at once at first: most frames are far shorter, and a runner has many ends
/// that wait.
const FIRST_READ_BYTES: usize = 4 * 1024;

/// The reason why frames cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other end speaks something else.
    #[error("the other end sent a frame that cannot be read: {0}")]
    Malformed(&'static str),
    /// The other end is gone.
    #[error("the other end is gone")]
    Gone,
}

/// A frame as it arrived.
#[derive(Debug)]
pub struct WireFrame<T> {
    /// The head of the frame.
    pub head: T,
    /// The bytes that belong to it.
    pub bytes: Vec<u8>,
}

/// The bytes that arrived and were not taken yet.
#[derive(Debug, Default)]
pub struct WireInbox {
    bytes: Vec<u8>,
    /// The buffer for reads; empty until the first one, larger once much comes.
    room: Vec<u8>,
    descriptor: Option<OwnedFd>,
    closed: bool,
}

impl WireInbox {
    /// Takes what the socket holds now, at most about one frame more than is waiting here; `false`
    /// where it holds nothing. The end of the stream is noticed by [`WireInbox::take`], behind the last
    /// frame.
    pub fn fill(&mut self, socket: impl AsFd) -> bool {
        if self.closed {
            return false;
        }
        if self.room.is_empty() {
            self.room.resize(FIRST_READ_BYTES, 0);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut self.room)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        );
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                // More than one is nothing that this protocol knows; the others are closed here.
                self.descriptor = descriptors.last().or(self.descriptor.take());
            }
        }
        let (taken, found) = match received {
            Ok(message) => {
                self.closed = message.bytes == 0;
                (message.bytes, true)
            }
            Err(Errno::AGAIN) => (0, false),
            Err(Errno::INTR) => (0, true),
            Err(_) => {
                self.closed = true;
                (0, true)
            }
        };
        self.bytes.extend_from_slice(&self.room[..taken]);
        if taken == self.room.len() && taken < READ_BYTES {
            // From scratch, because nothing is left in it that has to be copied.
            self.room = vec![0; READ_BYTES];
        }
        found
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// When there never will be one.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<WireFrame<T>>, FrameError> {
        let Some(length) = self.number(0) else {
            return self.wait();
        };
        if !(4..=MAX_FRAME_BYTES).contains(&length) {
            return Err(FrameError::Malformed("it is too long or too short"));
        }
        let Some(head) = self.number(4) else {
            return self.wait();
        };
        if head > length - 4 {
            return Err(FrameError::Malformed("its head is longer than itself"));
        }
        if self.bytes.len() < 4 + length {
            return self.wait();
        }
        let parsed = serde_json::from_slice(&self.bytes[8..8 + head])
            .map_err(|_| FrameError::Malformed("its head is not what it should be"))?;
        let bytes = self.bytes[8 + head..4 + length].to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some(WireFrame {
            head: parsed,
            bytes,
        }))
    }

    /// The descriptor that came last. The kernel hands it over with the bytes of one read, which
    /// can begin with earlier frames. So only the kind of a frame tells whether it brings one.
    pub fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    fn wait<T>(&self) -> Result<Option<WireFrame<T>>, FrameError> {
        if self.closed {
            Err(FrameError::Gone)
        } else {
            Ok(None)
        }
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }
}

/// The bytes that wait to be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
}

impl Outbox {
    /// Puts a frame into it.
    ///
    /// # Errors
    /// When the frame is too large.
    pub fn push<T: Serialize>(&mut self, head: &T, bytes: &[u8]) -> io::Result<()> {
        let head = serde_json::to_vec(head)?;
        let length = 4 + head.len() + bytes.len();
        let number = |value: usize| {
            u32::try_from(value)
                .ok()
                .filter(|_| length <= MAX_FRAME_BYTES)
                .ok_or_else(|| io::Error::from_raw_os_error(Errno::TOOBIG.raw_os_error()))
        };
        let (whole, part) = (number(length)?, number(head.len())?);
        self.bytes.extend_from_slice(&whole.to_le_bytes());
        self.bytes.extend_from_slice(&part.to_le_bytes());
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// True if everything is sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Sends what the socket takes now, with `descriptor` on the first byte.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn flush(
        &mut self,
        socket: impl AsFd,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), FrameError> {
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        let mut passed = descriptors.as_ref().map(<[BorrowedFd<'_>; 1]>::as_slice);
        while !self.bytes.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if let Some(passed) = passed {
                control.push(SendAncillaryMessage::ScmRights(passed));
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&socket, &[IoSlice::new(&self.bytes)], &mut control, flags) {
                Ok(sent) => {
                    self.bytes.drain(..sent);
                    passed = None;
                }
                // The host being out of buffers passes as well.
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(FrameError::Gone),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
