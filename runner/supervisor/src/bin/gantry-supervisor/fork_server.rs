//! The process that supervisors are forked from.
//!
//! The daemon starts one, and gives it orders (see `entry` in the library). The socket that comes with an
//! order to supervise is the one for the supervisor. A fork of this small process costs a fraction of a
//! program's start. Every supervisor inherits its cgroup and what it has found out about its host.
//! Supervisors do not need it: it ends with its daemon, and they go on.
//!
//! In a container it is the entry process, and the first of its pid namespace. It outlives every daemon. It
//! takes orders from every process that may connect, and does for a daemon what needs the container's own
//! pids. It ends on SIGTERM, and with it, by the kernel, everything in the container.

use std::{io::IoSliceMut, mem::MaybeUninit, path::Path};

use nix::sys::signalfd::SignalFd;
use runner_supervisor::{FromSupervisor, MAX_ORDER_BYTES, Order};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, accept_with, recvmsg,
    },
};

use crate::{
    client::ControlClient,
    errand,
    sys::{self, Peer},
};

/// Daemons that are connected to an entry process at the same time, at most; the one that came first makes
/// room. There is one as a rule, and one more while it asks for something else.
const DAEMONS: usize = 16;

/// One supervisor is wanted.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// The name of its directory.
    pub(crate) directory: String,
    /// Its daemon.
    pub(crate) client: ControlClient,
}

/// The senders of orders.
#[derive(Debug)]
pub(crate) enum Reception {
    /// The daemon whose child this is.
    Daemon(OwnedFd),
    /// Every daemon that connects.
    Entry {
        /// The socket at which they connect.
        listener: OwnedFd,
        /// Those who did.
        daemons: Vec<OwnedFd>,
        /// SIGTERM.
        signals: SignalFd,
        /// The folder of the operations, which came through a door: commands may be root.
        folder: Option<OwnedFd>,
    },
}

impl Reception {
    /// True if commands may be root here.
    fn has_root(&self) -> bool {
        matches!(
            self,
            Self::Entry {
                folder: Some(_),
                ..
            }
        )
    }

    /// Closes all of it in a supervisor but the folder, whose mount would go with its last descriptor.
    fn leave(self) {
        if let Self::Entry {
            folder: Some(folder),
            ..
        } = self
        {
            std::mem::forget(folder);
        }
    }
}

/// Carries out orders. Returns in each supervisor that it forks, with the order that is its own, and in this
/// process once there is no daemon left to serve.
pub(crate) fn serve(mut reception: Reception) -> Option<Supervised> {
    // The children serve their daemons, and no process needs their exit status.
    sys::ignore_children();
    loop {
        let (order, socket) = match next(&mut reception) {
            ReceivedFork::Order(order, socket) => (order, socket),
            ReceivedFork::Nothing => continue,
            ReceivedFork::End => return None,
        };
        match order {
            Order::Supervise { directory } => {
                let Some(mut client) = ControlClient::new(socket) else {
                    continue;
                };
                match sys::fork(None) {
                    Ok(None) => {
                        reception.leave();
                        sys::heed_children();
                        return Some(Supervised { directory, client });
                    }
                    Ok(Some(_)) => {}
                    Err(error) => client.say(&FromSupervisor::Unfit {
                        reason: error.to_string(),
                        errno: error.raw_os_error(),
                    }),
                }
            }
            errand => errand::send(errand, socket, reception.has_root()),
        }
    }
}

enum ReceivedFork {
    Order(Order, OwnedFd),
    /// It cannot be carried out: the daemon that waits for it sees its socket close.
    Nothing,
    End,
}

fn next(reception: &mut Reception) -> ReceivedFork {
    match reception {
        Reception::Daemon(daemon) => receive(daemon),
        Reception::Entry {
            listener,
            daemons,
            signals,
            folder,
        } => {
            let ready = {
                let all = [&*listener].into_iter().chain(&*daemons);
                let mut fds: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
                fds.push(PollFd::new(signals, PollFlags::IN));
                // An interruption is as good as a look.
                let _ = poll(&mut fds, None);
                fds.iter()
                    .position(|fd| !fd.revents().is_empty())
                    .map(|at| (at, at == fds.len() - 1))
            };
            match ready {
                Some((_, true)) => match sys::asked_to_end(signals) {
                    true => ReceivedFork::End,
                    false => ReceivedFork::Nothing,
                },
                Some((0, false)) => {
                    if let Some(daemon) = welcome(listener, folder.is_some()) {
                        if daemons.len() == DAEMONS {
                            daemons.remove(0);
                        }
                        daemons.push(daemon);
                    }
                    ReceivedFork::Nothing
                }
                Some((at, false)) => match receive(&daemons[at - 1]) {
                    ReceivedFork::End => {
                        daemons.remove(at - 1);
                        ReceivedFork::Nothing
                    }
                    received => received,
                },
                None => ReceivedFork::Nothing,
            }
        }
    }
}

/// A daemon that connects, unless it is another user's. Where root of the container counts as ours, the
/// daemon must come from outside.
fn welcome(listener: &OwnedFd, only_from_outside: bool) -> Option<OwnedFd> {
    let daemon = accept_with(listener, SocketFlags::CLOEXEC).ok()?;
    let Peer { user, pid } = sys::peer(daemon.as_fd())?;
    let is_ours = sys::is_ours(user) && (pid == 0 || !only_from_outside);
    is_ours.then_some(daemon)
}

fn receive(daemon: &OwnedFd) -> ReceivedFork {
    let mut text = [0; MAX_ORDER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [IoSliceMut::new(&mut text)];
    let received = match recvmsg(daemon, &mut room, &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) if received.bytes > 0 => received.bytes,
        Err(Errno::INTR) => return ReceivedFork::Nothing,
        Ok(_) | Err(_) => return ReceivedFork::End,
    };
    let mut socket = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            socket = descriptors.next();
        }
    }
    match (serde_json::from_slice::<Order>(&text[..received]), socket) {
        (Ok(order), Some(socket)) if stays_here(&order) => ReceivedFork::Order(order, socket),
        _ => ReceivedFork::Nothing,
    }
}

/// True if the directory that the order names lies in the folder of the operations.
fn stays_here(order: &Order) -> bool {
    match order {
        Order::Supervise { directory }
        | Order::Settle { directory }
        | Order::AskToEnd { directory }
        | Order::EndByForce { directory, .. }
        | Order::Remove { directory } => {
            let name = Path::new(directory).file_name();
            name.is_some_and(|name| name == directory.as_str())
        }
        Order::Program { argv, .. } => argv.first().is_some_and(|name| name.starts_with('/')),
    }
}
