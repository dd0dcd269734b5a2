//! Supervisors that wait, so that a command starts at once.
//!
//! Making the files of an operation costs more than its processes, so it is done before anybody
//! asks, by a thread of its own. Whoever takes one when none waits starts one on the spot, and pays
//! for it; several can do so at once. Supervisors whose commands are forgotten soon after their end
//! wait again, in the same files under another name.

mod fork_server;
mod spent;

use std::{
    io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use crate::{
    Directory, Fault, FromSupervisor, Identity, KillChoice, OperationError, Spent, ToSupervisor,
    Waiting, operation::Link, recover,
};
use fork_server::ForkServer;
use spent::SpentOnes;

/// How long a supervisor may take to make its files.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// While at least half of the supervisors wait, others are started only after nobody has taken one
/// for this long: a command that has just begun has the host to itself.
const REFILL_AFTER: Duration = Duration::from_millis(10);

/// How often it is looked for supervisors that were not wanted again and have ended.
const CLEAR_EVERY: Duration = Duration::from_secs(1);

/// How supervisors are started.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The program `gantry-supervisor`, as an absolute path: it is started in another directory.
    pub program: PathBuf,
    /// The folder of the operations; it must exist, be this user's alone, and have been recovered.
    pub root: PathBuf,
    /// What the names of the operations' directories begin with: another one for each pool that
    /// was ever there, so that no name is given twice.
    pub prefix: String,
    /// How many wait.
    pub waiting: usize,
    /// How their commands are to be killed.
    pub kill: KillChoice,
    /// A fault for tests; only supervisors of a debug build obey.
    pub fault: Option<Fault>,
}

/// Why no supervisor waits.
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
    /// It was ordered, and nobody came: the process that supervisors are forked from has died with
    /// the order, or is stopped.
    #[error("the process that supervisors are forked from does not do what it is told")]
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

/// What the pool's thread is told.
#[derive(Debug)]
enum Wish {
    /// One was taken.
    Taken,
    /// One can serve another command, or is to end.
    Look,
    /// Start no more.
    Close,
}

/// Waiting supervisors.
#[derive(Debug)]
pub struct Pool {
    starter: Starter,
    wishes: Sender<Wish>,
    ready: Mutex<Receiver<Result<Waiting, PoolError>>>,
}

impl Pool {
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
    pub fn proven(options: PoolOptions) -> Result<(Self, Identity), PoolError> {
        let starter = Starter::new(options);
        let first = starter.start()?;
        let identity = first.identity().clone();
        Ok((Self::with(starter, Some(first))?, identity))
    }

    fn with(starter: Starter, first: Option<Waiting>) -> io::Result<Self> {
        let (wishes, heard) = mpsc::channel();
        let (made, ready) = mpsc::channel();
        let waiting = usize::from(first.is_some());
        if let Some(first) = first {
            // The other end is held here.
            let _ = made.send(Ok(first));
        }
        let keeper = Keeper {
            starter: starter.clone(),
            heard,
            made,
            waiting,
            open: true,
        };
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
    pub fn take(&self) -> Result<Waiting, PoolError> {
        match self.ready().or_else(|| self.starter.again()) {
            Some(waiting) => Ok(waiting),
            None => self.start(),
        }
    }

    /// One that waits now.
    pub fn ready(&self) -> Option<Waiting> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(waiting) = ready.try_recv() {
            // The thread can only be gone when this is.
            let _ = self.wishes.send(Wish::Taken);
            // A failure may be long past; the attempt below tells whether it lasts.
            match waiting {
                Ok(waiting) if waiting.is_alive() => return Some(waiting),
                Ok(dead) => self.discard(dead),
                Err(_) => {}
            }
        }
        None
    }

    /// One that is started now, which takes some milliseconds.
    ///
    /// # Errors
    /// When the host does not let it, or it cannot prepare itself.
    pub fn start(&self) -> Result<Waiting, PoolError> {
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
            // The thread can only be gone when this is.
            let _ = self.wishes.send(Wish::Look);
        }
        reclaimed
    }

    /// Ends a supervisor whose command does not come after all, and removes its directory. Never
    /// waits.
    pub fn discard(&self, waiting: Waiting) {
        self.starter.spent.dismiss(waiting.into_spent());
        // The thread can only be gone when this is.
        let _ = self.wishes.send(Wish::Look);
    }

    /// A supervisor from those that wait, waiting until there is one.
    ///
    /// # Errors
    /// When there is none in time, or the last one could not be started.
    pub fn take_ready(&self, within: Duration) -> Result<Waiting, PoolError> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waiting = ready.recv_timeout(within);
            let waiting = waiting.map_err(|_| PoolError::Silent(None))?;
            let _ = self.wishes.send(Wish::Taken);
            let waiting = waiting?;
            if waiting.is_alive() {
                return Ok(waiting);
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Those that wait see that nobody will ask, when `ready` is dropped.
        let _ = self.wishes.send(Wish::Close);
    }
}

/// Starts supervisors.
#[derive(Debug, Clone)]
struct Starter {
    server: Arc<ForkServer>,
    spent: Arc<SpentOnes>,
    /// The next name.
    next: Arc<AtomicU32>,
}

impl Starter {
    fn new(options: PoolOptions) -> Self {
        Self {
            server: Arc::new(ForkServer::new(options)),
            spent: Arc::default(),
            next: Arc::default(),
        }
    }

    /// A name that no directory ever had.
    fn name(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.server.options().prefix)
    }

    /// One that has served another command before.
    fn again(&self) -> Option<Waiting> {
        while let Some(mut spent) = self.spent.take() {
            match again(&mut spent, &self.name()) {
                Ok(identity) => {
                    let Spent { directory, link } = spent;
                    return Some(Waiting::new(directory, identity, link));
                }
                // As good as one that was not kept.
                Err(_) => self.spent.dismiss(spent),
            }
        }
        None
    }

    fn start(&self) -> Result<Waiting, PoolError> {
        match self.try_start() {
            Err(PoolError::NotForked(cause)) => {
                if cause.is_none() {
                    // One that is stopped would keep the next order waiting as well.
                    self.server.end();
                }
                self.try_start()
            }
            started => started,
        }
    }

    fn try_start(&self) -> Result<Waiting, PoolError> {
        let name = self.name();
        let root = &self.server.options().root;
        let directory = Directory::create(&root.join(&name))?;
        let socket = self.server.order(&name).map_err(PoolError::from);
        match socket.and_then(greeting) {
            Ok((identity, link)) => Ok(Waiting::new(directory, identity, link)),
            Err(error) => {
                // It has been asked for nothing, so nothing was promised to anybody. One that has
                // died may have made a cgroup, which the next daemon removes.
                let nobody = matches!(directory.identity(), Ok(None));
                if nobody || matches!(error, PoolError::Unfit { .. }) {
                    let _ = directory.remove();
                }
                Err(match error {
                    PoolError::Silent(cause) if nobody => PoolError::NotForked(cause),
                    error => error,
                })
            }
        }
    }
}

/// One that has served is asked to wait again. The new name is given once everything is cleared
/// away, so that a directory of that name never holds anything older, not even after a host's
/// death.
fn again(spent: &mut Spent, name: &str) -> Result<Identity, PoolError> {
    let asked = spent.link.send(&ToSupervisor::Again, &[]);
    asked.map_err(|error| PoolError::Silent(Some(error)))?;
    let identity = ready(&mut spent.link)?;
    spent.directory.rename(name)?;
    Ok(identity)
}

/// What a new supervisor says when it is ready.
fn greeting(socket: UnixStream) -> Result<(Identity, Link), PoolError> {
    let mut link = Link::new(socket).map_err(|error| PoolError::Silent(Some(error)))?;
    let identity = ready(&mut link)?;
    Ok((identity, link))
}

fn ready(link: &mut Link) -> Result<Identity, PoolError> {
    match link.receive(READY_WITHIN) {
        Ok(Some(FromSupervisor::Hello { identity, .. })) => Ok(identity),
        Ok(Some(FromSupervisor::Unfit { reason, errno })) => {
            Err(PoolError::Unfit { reason, errno })
        }
        Ok(Some(FromSupervisor::Refused { reason })) => Err(PoolError::Unfit {
            reason,
            errno: None,
        }),
        Ok(_) => Err(PoolError::Silent(None)),
        Err(error) => Err(PoolError::Silent(Some(error.into()))),
    }
}

/// What the pool's thread holds.
struct Keeper {
    starter: Starter,
    heard: Receiver<Wish>,
    made: Sender<Result<Waiting, PoolError>>,
    /// How many wait to be taken; a failure is one of them, so that nothing is tried in vain until
    /// somebody asks.
    waiting: usize,
    open: bool,
}

impl Keeper {
    fn run(mut self) {
        let mut calm = true;
        loop {
            let wanted = self.wanted();
            let missing = self.open && self.waiting < wanted;
            let mut patience = self.starter.spent.are_left().then_some(CLEAR_EVERY);
            if missing && (calm || self.waiting * 2 < wanted) {
                let again = self.starter.again().map(Ok);
                let started = again.unwrap_or_else(|| self.starter.start());
                self.waiting += 1;
                self.open = self.made.send(started).is_ok();
                patience = Some(Duration::ZERO);
            } else if missing {
                patience = Some(REFILL_AFTER);
            }
            let heard = match patience {
                Some(patience) => self.heard.recv_timeout(patience),
                None => self.heard.recv().map_err(RecvTimeoutError::from),
            };
            calm = heard.is_err();
            match heard {
                Ok(wish) => self.hear(wish),
                Err(RecvTimeoutError::Timeout) => self.clear(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(wish) = self.heard.try_recv() {
                self.hear(wish);
            }
        }
    }

    fn wanted(&self) -> usize {
        self.starter.server.options().waiting
    }

    /// Removes what nobody wanted to use again.
    fn clear(&self) {
        for directory in self.starter.spent.ended() {
            recover::clear_leaf(&directory);
            // What stays is found by the next daemon.
            let _ = directory.remove();
        }
    }

    fn hear(&mut self, wish: Wish) {
        match wish {
            Wish::Taken => self.waiting = self.waiting.saturating_sub(1),
            Wish::Look => {}
            Wish::Close => self.open = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::{KillMethod, Outbox, ProcessId};

    #[test]
    fn a_supervisor_of_a_version_too_far_away_is_not_used() {
        let (near, far) = UnixStream::pair().expect("a socket");
        let hello = FromSupervisor::Hello {
            version: 99,
            identity: Identity {
                supervisor: ProcessId {
                    pid: 1,
                    start_ticks: 1,
                    boot_id: String::new(),
                },
                kill: KillMethod::Sweep,
                cgroup: None,
            },
            input: 0,
            last_id: 0,
        };
        let mut outbox = Outbox::default();
        outbox.push(&hello, &[]).expect("short");
        outbox.flush(&far, None).expect("sent");
        let error = greeting(near).expect_err("it speaks another version");
        let reason = error.source().and_then(|source| source.source());
        assert!(reason.is_some_and(|reason| reason.to_string().contains("version is too far")));
    }
}
