//! The daemon's end of the process that supervisors are forked from.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socketpair,
    },
};

use super::PoolOptions;
use crate::Fault;

/// The process, spawned where there is none; another one where it has died.
#[derive(Debug)]
pub(super) struct ForkServer {
    options: PoolOptions,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    socket: OwnedFd,
    child: Child,
}

impl ForkServer {
    pub(super) fn new(options: PoolOptions) -> Self {
        Self {
            options,
            running: Mutex::default(),
        }
    }

    pub(super) fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Orders a supervisor for the directory of this name. What comes back is its socket, which
    /// closes without a word where there will be none.
    pub(super) fn order(&self, directory: &str) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = &*running
            && before.order(directory, &far).is_ok()
        {
            return Ok(near);
        }
        // It has died, or there was none yet.
        let another = Running::spawn(&self.options)?;
        running.insert(another).order(directory, &far)?;
        Ok(near)
    }

    /// Ends one that does not do what was ordered; the next order spawns another.
    pub(super) fn end(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = None;
    }
}

impl Running {
    fn spawn(options: &PoolOptions) -> io::Result<Self> {
        let (socket, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut command = Command::new(&options.program);
        command
            .arg(options.kill.to_string())
            .env_clear()
            .current_dir(&options.root)
            .stdin(far)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(fault) = options.fault {
            command.env(Fault::VARIABLE, fault.to_string());
        }
        let child = command.spawn()?;
        Ok(Self { socket, child })
    }

    fn order(&self, directory: &str, client: &UnixStream) -> io::Result<()> {
        let descriptors = [client.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        // Few orders wait at a time: one that finds no room finds somebody who does not read.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let message = [IoSlice::new(directory.as_bytes())];
        sendmsg(&self.socket, &message, &mut control, flags)?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Supervisors do not need it, and one that was ordered and does not come was promised to
        // nobody.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
