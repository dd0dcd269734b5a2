//! Frames by hand, for tests that play one of the ends.

use std::{
    io::{IoSlice, Read as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;

/// One end of a socket.
pub(crate) struct Peer(pub(crate) UnixStream);

impl Peer {
    /// It, and the other end.
    pub(crate) fn pair() -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        (Self(ours), theirs)
    }

    pub(crate) fn say(&self, head: &Value) {
        self.send(&frame(head), None);
    }

    pub(crate) fn hand_over(&self, head: &Value, descriptor: &OwnedFd) {
        self.send(&frame(head), Some(descriptor));
    }

    pub(crate) fn send(&self, bytes: &[u8], descriptor: Option<&OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = descriptor.map(|descriptor| [descriptor.as_fd()]);
        if let Some(passed) = &passed {
            control.push(SendAncillaryMessage::ScmRights(passed));
        }
        let sent = sendmsg(
            &self.0,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        assert_eq!(sent, Ok(bytes.len()));
    }

    /// The next frame: its kind, its id (0 where it has none) and what it says.
    pub(crate) async fn heard(&mut self) -> (String, u64, Value) {
        let mut socket = self.0.try_clone().expect("a socket");
        let hear = move || {
            let mut lengths = [0; 8];
            socket.read_exact(&mut lengths).expect("a frame");
            let number = |at: usize| {
                let bytes = lengths[at..at + 4].try_into().expect("four bytes");
                u32::from_le_bytes(bytes) as usize
            };
            let mut rest = vec![0; number(0) - 4];
            socket.read_exact(&mut rest).expect("a whole frame");
            serde_json::from_slice::<Value>(&rest[..number(4)]).expect("JSON")
        };
        let head = tokio::task::spawn_blocking(hear).await.expect("no panic");
        let (kind, said) = head.as_object().and_then(|o| o.iter().next()).expect("one");
        let id = said["id"].as_u64().unwrap_or(0);
        (kind.clone(), id, said.clone())
    }
}

/// A frame without bytes.
pub(crate) fn frame(head: &Value) -> Vec<u8> {
    let head = serde_json::to_vec(head).expect("JSON");
    let length = head.len() as u32;
    let lengths = [(length + 4).to_le_bytes(), length.to_le_bytes()].concat();
    [lengths, head].concat()
}
