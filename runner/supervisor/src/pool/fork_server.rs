//! The daemon's end of the process that supervisors are forked from.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::PoolOptions;
use crate::{
    Fault, Order, Orders, ProcessId, Realm,
    process::{ProcessStat, boot_id},
};

/// The process, spawned where there is none; another one where it has died.
#[derive(Debug)]
pub(super) struct ForkServer {
    options: PoolOptions,
    running: Mutex<Option<RunningForkServer>>,
}

#[derive(Debug)]
struct RunningForkServer {
    orders: Orders,
    /// `None` for a container's entry process, which is no child of this process.
    child: Option<Child>,
}

/// The process that got an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerId(Option<u32>);

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
    /// closes without a word where there will be none, and who was ordered to fork it.
    pub(super) fn order(&self, directory: &str) -> io::Result<(UnixStream, ServerId)> {
        let order = Order::Supervise {
            directory: directory.to_owned(),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = &*running
            && let Ok(near) = before.orders.give(&order)
        {
            return Ok((near, before.id()));
        }
        // It has died, or there was none yet.
        let another = running.insert(match self.options.realm {
            Realm::Host => RunningForkServer::spawn(&self.options)?,
            Realm::Container => RunningForkServer::connect(&self.options.root)?,
        });
        Ok((another.orders.give(&order)?, another.id()))
    }

    /// Ends a server that does not carry out its order, with the supervisor that it may have forked
    /// for the directory of this name; the next order spawns another. A server that another order
    /// has spawned since stays.
    pub(super) fn end(&self, server: ServerId, directory: &str) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = running.take_if(|running| running.id() == server) {
            before.kill_unborn(&self.options.root, directory);
        }
    }
}

impl RunningForkServer {
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
        Ok(Self {
            orders: Orders::new(socket),
            child: Some(child),
        })
    }

    fn connect(root: &Path) -> io::Result<Self> {
        Ok(Self {
            orders: Orders::connect(root)?,
            child: None,
        })
    }

    /// It is collected only when this is dropped, so that no other process has the number while it
    /// counts.
    fn id(&self) -> ServerId {
        ServerId(self.child.as_ref().map(Child::id))
    }

    /// Kills supervisors that were forked and did not get as far as their own directory, or no
    /// further than into this one. The daemon does not know of them, and a stopped one would stay.
    /// A supervisor that is just being made is lost with them, and ordered again.
    fn kill_unborn(&self, root: &Path, directory: &str) {
        let Some(child) = &self.child else {
            return;
        };
        let (Ok(boot), Ok(all), Ok(root)) = (boot_id(), ProcessStat::all(), fs::canonicalize(root))
        else {
            return;
        };
        let places = [root.join(directory), root];
        for stat in all {
            if u32::try_from(stat.parent) != Ok(child.id()) {
                continue;
            }
            let place = fs::read_link(format!("/proc/{}/cwd", stat.pid));
            if place.is_ok_and(|place| places.contains(&place)) {
                // One that the host keeps ends when it finds its directory gone.
                let _ = ProcessId::from_stat(&stat, &boot).kill(&boot);
            }
        }
    }
}

impl Drop for RunningForkServer {
    fn drop(&mut self) {
        // Supervisors do not need it. A supervisor that was ordered and does not come was promised
        // to no caller.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
