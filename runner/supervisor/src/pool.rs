//! Supervisors that wait, so that a command starts at once.
//!
//! Making the files of an operation costs more than its processes, so a thread of its own makes
//! them in advance. Where no supervisor waits, the caller starts one on the spot and pays for it;
//! several callers can do so at once. Supervisors whose commands are forgotten soon after their end
//! wait again, in the same files under another name.

mod fork_server;
mod keeper;
mod spent;
mod starter;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use crate::{Fault, IdleSupervisor, KillChoice, OperationError, ProcessIdentity, Realm, Spent};
use keeper::{Keeper, PoolWishes};
use starter::Starter;

/// The options of a pool.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The program `gantry-supervisor`, as an absolute path: it is started in another directory.
    pub program: PathBuf,
    /// The folder of the operations; it must exist, be this user's alone, and have been recovered.
    pub root: PathBuf,
    /// The beginning of the names of the operations' directories. It differs for each pool that was
    /// ever there, so that no name is given twice.
    pub prefix: String,
    /// The number of supervisors that wait.
    pub waiting: usize,
    /// The way in which they kill their commands.
    pub kill: KillChoice,
    /// A fault for tests; only supervisors of a debug build obey.
    pub fault: Option<Fault>,
    /// The place where they run: in a container its entry process forks them, and `program` is not
    /// used.
    pub realm: Realm,
}

/// The reason why no supervisor waits.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The host reported something.
    #[error("the supervisor cannot be started")]
    Io(#[from] io::Error),
    /// It started and could not prepare itself.
    #[error("the supervisor cannot prepare itself: {reason}")]
    Unfit {
        /// Its words.
        reason: String,
        /// The same as a number of the host's (errno), where it is one.
        errno: Option<i32>,
    },
    /// A supervisor was ordered and did not come: the process that supervisors are forked from has
    /// died with the order, or is stopped.
    #[error("the process that supervisors are forked from does not follow its orders")]
    NotForked(#[source] Option<OperationError>),
    /// It did not come up.
    #[error("the supervisor does not say that it is ready")]
    Silent(#[source] Option<OperationError>),
}

impl PoolError {
    /// The number of the host's (errno) that it comes from, where it comes from one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io(error) => error.raw_os_error(),
            Self::Unfit { errno, .. } => *errno,
            Self::NotForked(_) | Self::Silent(_) => None,
        }
    }
}

/// Waiting supervisors.
#[derive(Debug)]
pub struct SupervisorPool {
    starter: Starter,
    wishes: PoolWishes,
    ready: Mutex<Receiver<Result<IdleSupervisor, PoolError>>>,
}

impl SupervisorPool {
    /// Begins to start supervisors.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn new(options: PoolOptions) -> io::Result<Self> {
        Self::with(Starter::new(options), None)
    }

    /// Starts one supervisor to see that it can be used, and then the others; says who it is, and
    /// so how commands are killed here.
    ///
    /// # Errors
    /// When the program is not there, cannot prepare itself, or is of a version too far away.
    pub fn proven(options: PoolOptions) -> Result<(Self, ProcessIdentity), PoolError> {
        let starter = Starter::new(options);
        let first = starter.start()?;
        let identity = first.identity().clone();
        Ok((Self::with(starter, Some(first))?, identity))
    }

    fn with(starter: Starter, first: Option<IdleSupervisor>) -> io::Result<Self> {
        let wishes = PoolWishes::default();
        let (made, ready) = mpsc::channel();
        let waiting = usize::from(first.is_some());
        if let Some(first) = first {
            // The other end is held here.
            let _ = made.send(Ok(first));
        }
        let keeper = Keeper::new(starter.clone(), wishes.clone(), made, waiting);
        // It ends with this, and is not waited for.
        std::thread::Builder::new()
            .name("supervisors".to_owned())
            .spawn(move || keeper.run())?;
        Ok(Self {
            starter,
            wishes,
            ready: Mutex::new(ready),
        })
    }

    /// A waiting supervisor. Where none waits, one whose command is forgotten is made ready, or
    /// another one started, which takes some milliseconds at most as a rule.
    ///
    /// # Errors
    /// When none waits and none can be started.
    pub fn take(&self) -> Result<IdleSupervisor, PoolError> {
        let ready = self.ready();
        self.refill();
        match ready.or_else(|| self.starter.again()) {
            Some(waiting) => Ok(waiting),
            None => self.start(),
        }
    }

    /// One that waits now. Another one takes its place after [`SupervisorPool::refill`], which is for when it
    /// has its command: nothing else is to keep the host from that.
    pub fn ready(&self) -> Option<IdleSupervisor> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(waiting) = ready.try_recv() {
            self.wishes.taken();
            // A failure may be long past; the attempt below tells whether it lasts.
            match waiting {
                Ok(waiting) if waiting.is_alive() => return Some(waiting),
                Ok(dead) => self.discard(dead),
                Err(_) => {}
            }
        }
        None
    }

    /// Lets others take the place of those that were taken. Never waits.
    pub fn refill(&self) {
        self.wishes.look();
    }

    /// One that is started now, which takes some milliseconds.
    ///
    /// # Errors
    /// When the host does not let it, or it cannot prepare itself.
    pub fn start(&self) -> Result<IdleSupervisor, PoolError> {
        self.starter.start()
    }

    /// Keeps the supervisor of a command that has ended, until the command is forgotten. Never
    /// waits.
    pub fn keep(&self, spent: Spent) {
        self.starter.spent.keep(spent);
    }

    /// A command is forgotten: if the supervisor of this directory was kept, it serves another one,
    /// and what the directory holds is cleared away. Never waits. `false` where the directory is
    /// the caller's to remove.
    pub fn reclaim(&self, directory: &Path) -> bool {
        let reclaimed = self.starter.spent.forget(directory);
        if reclaimed {
            self.wishes.look();
        }
        reclaimed
    }

    /// Ends a supervisor whose command does not come after all, and removes its directory. Never
    /// waits.
    pub fn discard(&self, waiting: IdleSupervisor) {
        self.starter.spent.dismiss(waiting.into_spent());
        self.wishes.look();
    }

    /// A supervisor from those that wait, waiting until there is one.
    ///
    /// # Errors
    /// When there is none in time, or the last one could not be started.
    pub fn take_ready(&self, within: Duration) -> Result<IdleSupervisor, PoolError> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waiting = ready.recv_timeout(within);
            let waiting = waiting.map_err(|_| PoolError::Silent(None))?;
            self.wishes.taken();
            self.refill();
            let waiting = waiting?;
            if waiting.is_alive() {
                return Ok(waiting);
            }
        }
    }
}

impl Drop for SupervisorPool {
    fn drop(&mut self) {
        // The supervisors that wait end when `ready` is dropped. On a host the next daemon finds their
        // directories; a container comes and goes while its daemon lives.
        if self.starter.server.options().realm == Realm::Container {
            let ready = self.ready.get_mut().unwrap_or_else(PoisonError::into_inner);
            while let Ok(waiting) = ready.try_recv() {
                if let Ok(waiting) = waiting {
                    self.starter.spent.dismiss(waiting.into_spent());
                }
            }
        }
        self.wishes.close();
    }
}
