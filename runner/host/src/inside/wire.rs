//! Frames on a stream socket: lengths, a head in JSON, bytes, and at most one descriptor.
//!
//! `u32 length of all that follows | u32 length of the head | head | bytes`, little endian. A
//! descriptor goes with a frame's first byte. Both ends of the socket do not block.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    sync::Arc,
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{io::Interest, net::UnixStream};

use crate::OpenFile;

/// Largest frame, in bytes: a request that a link carries (2 MiB) with room for the escapes of JSON.
pub(super) const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Bytes that are read at once, and kept for the next frame.
const READ_BYTES: usize = 64 * 1024;

/// Descriptors that came and whose frame did not yet: one for a frame, and each frame is taken before
/// the next but one arrives.
const MAX_DESCRIPTORS: usize = 2;

/// The reason why frames cannot be read or written any further.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The other end speaks something else.
    #[error("the other end sent a frame that cannot be read: {0}")]
    Malformed(&'static str),
    /// The other end closed the socket.
    #[error("the other end is gone")]
    Gone,
    /// The socket cannot be used.
    #[error("the socket to the other end failed")]
    Socket(#[from] io::Error),
}

/// A frame would be larger than is allowed.
#[derive(Debug, thiserror::Error)]
#[error("it takes more than {MAX_FRAME_BYTES} bytes in a frame")]
pub(super) struct TooLarge;

/// A frame as it arrived.
#[derive(Debug)]
pub(super) struct ProgramWireFrame<T> {
    /// The head of the frame.
    pub(super) head: T,
    /// The bytes that belong to it.
    pub(super) bytes: Vec<u8>,
}

/// A frame that is ready to be sent.
#[derive(Debug)]
pub(super) struct Encoded {
    bytes: Vec<u8>,
    file: Option<OpenFile>,
}

impl Encoded {
    /// A frame of a head and the bytes that belong to it.
    pub(super) fn new<T: Serialize>(head: &T, bytes: &[u8]) -> Result<Self, TooLarge> {
        let head = serde_json::to_vec(head).map_err(|_| TooLarge)?;
        let length = 4 + head.len() + bytes.len();
        let number = |value: usize| {
            let number = u32::try_from(value).ok();
            number.filter(|_| length <= MAX_FRAME_BYTES).ok_or(TooLarge)
        };
        let (whole, part) = (number(length)?, number(head.len())?);
        let mut frame = Vec::with_capacity(4 + length);
        frame.extend_from_slice(&whole.to_le_bytes());
        frame.extend_from_slice(&part.to_le_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(bytes);
        Ok(Self {
            bytes: frame,
            file: None,
        })
    }

    /// The size of the frame in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The same, with the descriptor of this file.
    pub(super) fn with(self, file: OpenFile) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// Sends all of it.
    pub(super) async fn send(&self, socket: &UnixStream) -> Result<(), WireError> {
        let descriptor = self.file.as_ref().map(|file| [file.descriptor()]);
        let mut passed = descriptor.as_ref().map(<[BorrowedFd<'_>; 1]>::as_slice);
        let mut left = &self.bytes[..];
        while !left.is_empty() {
            let send = || send_some(socket, left, passed);
            let sent = socket.async_io(Interest::WRITABLE, send).await?;
            left = left.get(sent..).unwrap_or_default();
            passed = None;
        }
        Ok(())
    }
}

/// The bytes that arrived and were not taken yet.
#[derive(Debug)]
pub(super) struct ProgramInbox {
    socket: Arc<UnixStream>,
    bytes: Vec<u8>,
    /// The buffer for reads.
    room: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl ProgramInbox {
    /// Reads from this socket.
    pub(super) fn new(socket: Arc<UnixStream>) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
            room: vec![0; READ_BYTES],
            descriptors: VecDeque::new(),
        }
    }

    /// The next frame. Cancel-safe.
    ///
    /// # Errors
    /// When there is no next one.
    pub(super) async fn next<T: DeserializeOwned>(
        &mut self,
    ) -> Result<ProgramWireFrame<T>, WireError> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// The descriptor that came with the frame that was taken last; only the kind of a frame tells
    /// that it brings one.
    pub(super) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }

    async fn fill(&mut self) -> Result<(), WireError> {
        let (socket, room, came) = (&self.socket, &mut self.room, &mut self.descriptors);
        let receive = || receive_some(socket, room, came);
        let taken = socket.async_io(Interest::READABLE, receive).await?;
        if taken == 0 {
            return Err(WireError::Gone);
        }
        if self.descriptors.len() > MAX_DESCRIPTORS {
            return Err(WireError::Malformed(
                "it brings descriptors that belong to no frame",
            ));
        }
        self.bytes.extend_from_slice(&self.room[..taken]);
        Ok(())
    }

    fn take<T: DeserializeOwned>(&mut self) -> Result<Option<ProgramWireFrame<T>>, WireError> {
        let Some(length) = self.number(0) else {
            return Ok(None);
        };
        if !(4..=MAX_FRAME_BYTES).contains(&length) {
            return Err(WireError::Malformed("it is too long or too short"));
        }
        let Some(head) = self.number(4) else {
            return Ok(None);
        };
        if head > length - 4 {
            return Err(WireError::Malformed("its head is longer than itself"));
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        let parsed = serde_json::from_slice(&self.bytes[8..8 + head])
            .map_err(|_| WireError::Malformed("its head is not what it should be"))?;
        let bytes = self.bytes[8 + head..4 + length].to_vec();
        self.bytes.drain(..4 + length);
        if self.bytes.len() < READ_BYTES {
            self.bytes.shrink_to(READ_BYTES);
        }
        Ok(Some(ProgramWireFrame {
            head: parsed,
            bytes,
        }))
    }

    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }
}

fn send_some(
    socket: impl AsFd,
    bytes: &[u8],
    descriptor: Option<&[BorrowedFd<'_>]>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = descriptor {
        control.push(SendAncillaryMessage::ScmRights(descriptor));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

fn receive_some(
    socket: impl AsFd,
    room: &mut [u8],
    came: &mut VecDeque<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(room)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            came.extend(descriptors);
        }
    }
    Ok(received.bytes)
}
