//! The kernel's news about the host's network: another address, another route.
//!
//! Both come over a netlink socket (rtnetlink(7)), which needs no rights. Where there is none, such as
//! behind a filter of system calls, no news ever comes. News is a reason to look, and no more. It proves
//! neither that the server can be reached, nor that it could not be before.

use std::os::fd::OwnedFd;

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink::SocketAddrNetlink, recv,
        socket_with, sockopt::set_socket_recv_buffer_size,
    },
};
use tokio::io::{Interest, unix::AsyncFd};

/// Addresses and routes, of both versions of IP.
const GROUPS: libc::c_int = libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_ROUTE;

/// Room for one message; of a longer one, the beginning says enough.
const MESSAGE_BYTES: usize = 4096;

/// The bytes of unread news that the kernel keeps, as while a link serves.
const UNREAD_BYTES: usize = 16 * 1024;

/// Length of the header of each message (`struct nlmsghdr`).
const HEADER_BYTES: usize = 16;

/// News since it was made.
pub(crate) struct NetworkNews {
    socket: Option<AsyncFd<OwnedFd>>,
    /// True once there was news; it stays true.
    heard: bool,
}

impl NetworkNews {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        let socket = open();
        if let Err(error) = &socket {
            tracing::debug!(%error, "the kernel does not tell when the network changes");
        }
        Self {
            socket: socket.ok(),
            heard: false,
        }
    }

    /// Waits until the host has got an address or a route.
    pub(crate) async fn heard(&mut self) {
        if self.heard {
            return;
        }
        if let Some(socket) = &self.socket {
            let heard = socket.async_io(Interest::READABLE, next_gain);
            match heard.await {
                Ok(()) => {
                    self.heard = true;
                    return;
                }
                Err(error) => tracing::debug!(%error, "the kernel tells nothing more"),
            }
        }
        std::future::pending().await
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for those who close a registered descriptor; an owned one stays open"
)]
fn open() -> std::io::Result<AsyncFd<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // No protocol is the one of routes.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    set_socket_recv_buffer_size(&socket, UNREAD_BYTES)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS.cast_unsigned()))?;
    AsyncFd::with_interest(socket, Interest::READABLE)
}

/// Reads until something is gained; else it would block.
fn next_gain(socket: &OwnedFd) -> std::io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        match recv(socket, &mut message[..], RecvFlags::empty()) {
            Ok((length, _)) if gains(&message[..length]) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            // More than the socket holds: the network has changed a lot.
            Err(Errno::NOBUFS) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if one of these messages reports an address or a route by which another machine may be reached.
fn gains(mut messages: &[u8]) -> bool {
    while let Some(header) = messages.first_chunk::<HEADER_BYTES>() {
        let [a, b, c, d, e, f, ..] = *header;
        let length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let Some(body) = messages.get(HEADER_BYTES..length.min(messages.len())) else {
            return false;
        };
        if is_gain(u16::from_ne_bytes([e, f]), body) {
            return true;
        }
        // Each begins at a multiple of four.
        let next = length.next_multiple_of(4);
        messages = messages.get(next..).unwrap_or_default();
    }
    false
}

fn is_gain(kind: u16, body: &[u8]) -> bool {
    match (kind, body) {
        // `struct ifaddrmsg`: family, prefix, flags, scope. What leads to the next machines at most is
        // on every interface of a container as well.
        (libc::RTM_NEWADDR, [_, _, _, scope, ..]) => *scope < libc::RT_SCOPE_LINK,
        // `struct rtmsg`: family, lengths, service, table, protocol, scope, type. What the kernel adds
        // by itself goes with an address, but for the network of an IPv4 interface that comes up.
        (libc::RTM_NEWROUTE, [family, _, _, _, table, protocol, _, kind, ..]) => {
            let by_itself = *protocol == libc::RTPROT_KERNEL;
            *kind == libc::RTN_UNICAST
                && *table != libc::RT_TABLE_LOCAL
                && !(by_itself && i32::from(*family) == libc::AF_INET6)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
