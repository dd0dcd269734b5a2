//! Supervisors that wait, so that a command starts at once.
//!
//! Making the files of an operation costs more than its processes, so it is done before anybody
//! asks. One thread starts supervisors and collects those that have ended. Whoever takes one when
//! none waits starts one on the spot, and pays for it; several can do so at once.

use std::{
    collections::VecDeque,
    io,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use rustix::fd::OwnedFd;

use crate::{
    Directory, Fault, FromSupervisor, Identity, KillChoice, OperationError, Waiting,
    operation::{Link, Process},
};

/// How long a supervisor may take to make its files.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// While supervisors are left to be collected, it is looked whether they have ended this often.
const COLLECT_EVERY: Duration = Duration::from_millis(200);

/// While at least half of the supervisors wait, others are started only after nobody has taken one
/// for this long: a command that has just begun has the host to itself.
const REFILL_AFTER: Duration = Duration::from_millis(10);

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
            Self::Silent(_) => None,
        }
    }
}

/// What the pool's thread is told.
#[derive(Debug)]
pub(crate) enum Wish {
    /// One was taken.
    Taken,
    /// One is left to be collected.
    Collect(Child),
    /// Start no more.
    Close,
}

/// Waiting supervisors.
#[derive(Debug)]
pub struct Pool {
    starter: Starter,
    ready: Mutex<Receiver<Result<Waiting, PoolError>>>,
}

impl Pool {
    /// Begins to start supervisors.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn new(options: PoolOptions) -> io::Result<Self> {
        let (wishes, heard) = mpsc::channel();
        Self::with(Starter::new(options, wishes), heard, None)
    }

    /// Starts one supervisor to see that it can be used, and then the others; says who it is, and
    /// so how commands are killed here.
    ///
    /// # Errors
    /// When the program is not there, cannot prepare itself, or is of a version too far away.
    pub fn proven(options: PoolOptions) -> Result<(Self, Identity), PoolError> {
        let (wishes, heard) = mpsc::channel();
        let starter = Starter::new(options, wishes);
        let first = starter.start()?;
        let identity = first.identity().clone();
        Ok((Self::with(starter, heard, Some(first))?, identity))
    }

    fn with(starter: Starter, heard: Receiver<Wish>, first: Option<Waiting>) -> io::Result<Self> {
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
            left: VecDeque::new(),
            open: true,
        };
        // It stays for as long as an operation is held, to collect its supervisor, and is not waited
        // for.
        std::thread::Builder::new()
            .name("supervisors".to_owned())
            .spawn(move || keeper.run())?;
        Ok(Self {
            starter,
            ready: Mutex::new(ready),
        })
    }

    /// A waiting supervisor. Starts one where none waits, which takes some milliseconds.
    ///
    /// # Errors
    /// When none waits and none can be started.
    pub fn take(&self) -> Result<Waiting, PoolError> {
        match self.ready() {
            Some(waiting) => Ok(waiting),
            None => self.start(),
        }
    }

    /// One that waits now.
    pub fn ready(&self) -> Option<Waiting> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(waiting) = ready.try_recv() {
            // The thread can only be gone when this is.
            let _ = self.starter.wishes.send(Wish::Taken);
            // A failure may be long past; the attempt below tells whether it lasts.
            if let Ok(waiting) = waiting
                && waiting.is_alive()
            {
                return Some(waiting);
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

    /// A supervisor from those that wait, waiting until there is one.
    ///
    /// # Errors
    /// When there is none in time, or the last one could not be started.
    pub fn take_ready(&self, within: Duration) -> Result<Waiting, PoolError> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let waiting = ready.recv_timeout(within);
            let waiting = waiting.map_err(|_| PoolError::Silent(None))?;
            let _ = self.starter.wishes.send(Wish::Taken);
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
        let _ = self.starter.wishes.send(Wish::Close);
    }
}

/// Starts supervisors.
#[derive(Debug, Clone)]
struct Starter {
    options: PoolOptions,
    wishes: Sender<Wish>,
    /// The next name.
    next: Arc<AtomicU32>,
}

impl Starter {
    fn new(options: PoolOptions, wishes: Sender<Wish>) -> Self {
        Self {
            options,
            wishes,
            next: Arc::default(),
        }
    }

    fn start(&self) -> Result<Waiting, PoolError> {
        let directory = self.directory()?;
        match self.greeted(&directory) {
            Ok((identity, link, process)) => Ok(Waiting::new(directory, identity, link, process)),
            Err(error) => {
                // It has been asked for nothing, so nothing was promised to anybody. With a record
                // it made a cgroup, which the next daemon removes.
                if matches!(directory.identity(), Ok(None)) {
                    let _ = directory.remove();
                }
                Err(error)
            }
        }
    }

    /// Starts one in this directory, and waits until it is ready.
    fn greeted(&self, directory: &Directory) -> Result<(Identity, Link, Process), PoolError> {
        let (near, far) = UnixStream::pair()?;
        let mut command = Command::new(&self.options.program);
        command
            .arg(self.options.kill.to_string())
            .env_clear()
            .current_dir(directory.path())
            .stdin(OwnedFd::from(far))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(fault) = self.options.fault {
            command.env(Fault::VARIABLE, fault.to_string());
        }
        let child = command.spawn()?;
        // It holds the other end of the socket, which must be the supervisor's alone.
        drop(command);
        let mut process = Process::new(child, self.wishes.clone());
        let greeting = greeting(near);
        if greeting.is_err() {
            process.kill();
        }
        let (identity, link) = greeting?;
        Ok((identity, link, process))
    }

    fn directory(&self) -> io::Result<Directory> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.options.prefix);
        Directory::create(&self.options.root.join(name))
    }
}

/// What a supervisor says when it is ready.
fn greeting(socket: UnixStream) -> Result<(Identity, Link), PoolError> {
    let mut link = Link::new(socket).map_err(|error| PoolError::Silent(Some(error)))?;
    match link.receive(READY_WITHIN) {
        Ok(Some(FromSupervisor::Hello { identity, .. })) => Ok((identity, link)),
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
    left: VecDeque<Child>,
    open: bool,
}

impl Keeper {
    fn run(mut self) {
        let mut calm = true;
        loop {
            let wanted = self.starter.options.waiting;
            let missing = self.open && self.waiting < wanted;
            let mut patience = (!self.left.is_empty()).then_some(COLLECT_EVERY);
            if missing && (calm || self.waiting * 2 < wanted) {
                let started = self.starter.start();
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
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(wish) = self.heard.try_recv() {
                self.hear(wish);
            }
            self.left
                .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        }
    }

    fn hear(&mut self, wish: Wish) {
        match wish {
            Wish::Taken => self.waiting = self.waiting.saturating_sub(1),
            Wish::Collect(child) => self.left.push_back(child),
            Wish::Close => self.open = false,
        }
    }
}
