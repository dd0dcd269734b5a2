//! The process that supervisors are forked from.
//!
//! The daemon starts one, and orders supervisors from it: a message is the name of an operation's
//! directory, with the socket that the supervisor is to serve. A fork of this small process costs
//! a fraction of a program's start, and what it has found out of its host, and the cgroup that it
//! sits in, every supervisor inherits. Supervisors do not need it: it ends with its daemon, and
//! they go on.

use std::{io::IoSliceMut, mem::MaybeUninit};

use runner_supervisor::{FromSupervisor, MAX_NAME_BYTES};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};

use crate::{client::Client, sys};

/// One supervisor is wanted.
#[derive(Debug)]
pub(crate) struct Order {
    /// The name of its directory.
    pub(crate) directory: String,
    /// Its daemon.
    pub(crate) client: Client,
}

/// Forks a supervisor for each order. Returns in each of them, with the order that is its own, and
/// in this process once there is no daemon left.
pub(crate) fn serve(daemon: OwnedFd) -> Option<Order> {
    // They serve their daemons, and nobody else is to be told how they ended.
    sys::ignore_children();
    loop {
        let mut order = match receive(&daemon) {
            Received::Order(order) => order,
            Received::Nothing => continue,
            Received::End => return None,
        };
        match sys::fork(None) {
            Ok(None) => {
                sys::heed_children();
                return Some(order);
            }
            Ok(Some(_)) => {}
            Err(error) => order.client.say(&FromSupervisor::Unfit {
                reason: error.to_string(),
                errno: error.raw_os_error(),
            }),
        }
    }
}

enum Received {
    Order(Order),
    /// It cannot be carried out: whoever waits for it sees its socket close.
    Nothing,
    End,
}

fn receive(daemon: &OwnedFd) -> Received {
    let mut name = [0; MAX_NAME_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(&mut name)];
    let received = match recvmsg(daemon, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) if received.bytes > 0 => received.bytes,
        Err(Errno::INTR) => return Received::Nothing,
        Ok(_) | Err(_) => return Received::End,
    };
    let mut socket = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            socket = descriptors.next();
        }
    }
    let directory = std::str::from_utf8(&name[..received]).ok();
    match (directory, socket.and_then(Client::new)) {
        (Some(directory), Some(client)) => Received::Order(Order {
            directory: directory.to_owned(),
            client,
        }),
        _ => Received::Nothing,
    }
}
