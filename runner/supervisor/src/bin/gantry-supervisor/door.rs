//! The way of an entry process to the folder of the operations, in a container whose commands may be root.
//!
//! Root there could change every file that a path leads to, and the daemon follows the entries of that folder
//! with the rights of the host's root. So the folder is not mounted. The daemon hands it through a door, as a
//! mount of its own that has no path and whose `..` is itself. The door is open once, before there is any
//! command.

use std::{
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    time::Duration,
};

use rustix::{
    fd::{AsFd as _, OwnedFd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix,
        SocketFlags, SocketType, connect, recvmsg, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::sys::{self, Peer};

/// The longest wait for the daemon.
const OPENS_WITHIN: Duration = Duration::from_secs(15);

/// Goes through the door at this path. What comes back keeps the folder there.
///
/// # Errors
/// Where no daemon of the host opens it.
pub(crate) fn enter(path: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(OPENS_WITHIN))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let from_outside = Peer { user: 0, pid: 0 };
    if sys::peer(socket.as_fd()) != Some(from_outside) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(&mut byte)];
    recvmsg(&socket, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let folder = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    });
    let folder = folder.ok_or(io::ErrorKind::UnexpectedEof)?;
    rustix::process::fchdir(&folder)?;
    Ok(folder)
}
