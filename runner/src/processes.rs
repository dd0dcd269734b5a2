//! Commands under supervisors: the daemon's side of what outlives it.
//!
//! A command belongs to its supervisor, a process of its own (see `runner-supervisor`). Here each
//! command has a task that listens to it and passes wishes on. Nothing that happens to this daemon
//! changes what the command does. The caller notes the name of the supervisor's directory before it
//! starts the command; after a restart [`Processes::open`] finds its result by that name. Output
//! lies in files and is read from them ([`Spool`]); an event only says how far.
//!
//! Slow work (starting a supervisor on the spot, looking after a dead one's tree, removing a
//! directory) runs on the runtime's threads for blocking work.

mod control;
mod ending;
mod left;
mod outcome;
mod overdue;
mod passing;
mod spool;
mod task;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use runner_host::{Account, CommandPlan, Whereabouts};
use runner_supervisor::{
    CommandRequest, CommandTerms, CommandUser, Directory, Fate, KillChoice, PoolError, PoolOptions,
    Realm, SpoolBounds, StartRecord, Streams, SupervisorPool, Sync, WorkingDirectory,
};
use shared_sandbox::{NotStarted, Outcome, TerminalSize};
use shared_types::{Clock, Entropy, OperationId, Refusal};
use tokio::{
    sync::{Semaphore, mpsc},
    task::spawn_blocking,
};

pub(crate) use control::Control;
pub(crate) use left::LeftOperation;
use overdue::Overdue;
pub(crate) use passing::PassingControls;
pub(crate) use spool::{Spool, SpoolRead};
use task::Supervised;

/// Supervisors that are started at once where none waits.
const STARTS_AT_ONCE: usize = 8;

/// Events that wait for a slow reader; one event reports all new output.
const EVENTS_WAITING: usize = 2;

/// Room on the disk that is never taken for output, at most, in bytes.
const KEPT_FREE_AT_MOST: u64 = 1024 * 1024 * 1024;

/// The options for the supervision of commands.
#[derive(Debug, Clone)]
pub(crate) struct ProcessOptions {
    /// The program `gantry-supervisor`, absolute.
    pub(crate) supervisor: PathBuf,
    /// The folder of the operations' directories, this daemon's alone; made where it is missing.
    pub(crate) root: PathBuf,
    /// The number of supervisors that wait for a command.
    pub(crate) waiting: usize,
    /// The way in which commands are killed.
    pub(crate) kill: KillChoice,
    /// The place where they run: on this host, or in the container that has the folder as well.
    pub(crate) realm: Realm,
}

/// The terms of a command beside its plan.
#[derive(Debug, Clone)]
pub(crate) struct ProcessTerms {
    /// The longest time that it may run (monotonic clock).
    pub(crate) run_for: Duration,
    /// The longest time that it may go on without a renewal (boot-time clock).
    pub(crate) orphan_for: Duration,
    /// Between the polite signal and the kill.
    pub(crate) kill_grace: Duration,
    /// The part of each output stream that is kept on disk.
    pub(crate) spool: SpoolBounds,
    /// The files that are synced to the disk before the supervisor goes on.
    pub(crate) sync: Sync,
    /// The claim in the start record, for a daemon whose journal does not know the command.
    pub(crate) claim: Option<String>,
}

/// Commands under supervisors. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Processes {
    pool: Arc<SupervisorPool>,
    starts: Arc<Semaphore>,
    root: Arc<Path>,
    realm: Realm,
    clock: Arc<dyn Clock>,
}

/// A supervisor that waits for its command. Dropped, it ends, nothing ever runs in it, and its
/// directory is removed.
#[derive(Debug)]
pub(crate) struct WaitingSupervisor {
    /// Until it is started.
    supervisor: Option<runner_supervisor::IdleSupervisor>,
    name: String,
    pool: Arc<SupervisorPool>,
}

/// A command under its supervisor. Dropping it changes nothing for the command.
#[derive(Debug)]
pub(crate) struct Process {
    /// Passes wishes on.
    pub(crate) control: Control,
    /// Its events; the last is [`ProcessEvent::Ended`].
    pub(crate) events: mpsc::Receiver<ProcessEvent>,
    /// Its output.
    pub(crate) spool: Spool,
}

/// An event of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEvent {
    /// So many bytes of stdout and of stderr can be read. It reports everything since the last
    /// event; the first event, which may report none, comes when the command runs.
    Output([u64; 2]),
    /// Its input below this offset is taken.
    InputTaken(u64),
    /// The control with this id is done, now or before, or cannot be.
    Done(u64, Result<(), Refusal>),
    /// It ended, and all its output can be read. Sent once.
    Ended(ProcessEnd),
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// The end of its operation.
    Outcome(Outcome),
    /// It never ran and never will in this directory, so it may be started again in another one.
    Fenced,
}

/// The reason why commands cannot be run here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessesError {
    /// There is no supervisor.
    #[error(
        "there is no program {0:?}; put gantry-supervisor beside gantry-runner, or name it with --supervisor"
    )]
    MissingSupervisor(PathBuf),
    /// It is of no use.
    #[error(
        "the supervisor {program:?} cannot be used; install the one that came with this runner"
    )]
    UnfitSupervisor {
        /// The program.
        program: PathBuf,
        /// Its error.
        source: PoolError,
    },
    /// The folder is of no use.
    #[error("the folder {root:?} of the operations cannot be used")]
    Root {
        /// The folder.
        root: PathBuf,
        /// The host's error.
        source: io::Error,
    },
}

impl Processes {
    /// Settles what earlier daemons left, by the names of the directories, and then begins to have
    /// supervisors wait. Names are never given twice.
    ///
    /// # Errors
    /// When the supervisor is missing or unfit, or the folder cannot be used.
    pub(crate) async fn open(
        options: ProcessOptions,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
    ) -> Result<(Self, Vec<(PathBuf, LeftOperation)>), ProcessesError> {
        let left = left::left_behind(&options.root, options.realm, &clock).await;
        let left = left.map_err(|source| ProcessesError::Root {
            root: options.root.clone(),
            source,
        })?;
        let processes = Self::begin(options, clock, entropy).await?;
        Ok((processes, left))
    }

    /// Begins to have supervisors wait, where nothing is left of earlier daemons, or was settled.
    ///
    /// # Errors
    /// When the supervisor is missing or unfit, or the folder cannot be used.
    pub(crate) async fn begin(
        options: ProcessOptions,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
    ) -> Result<Self, ProcessesError> {
        let mut prefix = [0; 8];
        entropy.fill(&mut prefix);
        let prefix = format!("{:016x}", u64::from_be_bytes(prefix));
        let program = options.supervisor.clone();
        let root = Arc::from(options.root.as_path());
        let realm = options.realm;
        let pool = PoolOptions {
            program: options.supervisor,
            root: options.root,
            prefix,
            waiting: options.waiting,
            kill: options.kill,
            fault: None,
            realm,
        };
        let pool = run_blocking(move || prepared(pool)).await;
        let pool = pool.map_err(|source| unusable(program, source))?;
        Ok(Self {
            pool: Arc::new(pool),
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
            root,
            realm,
            clock,
        })
    }

    /// The remains of earlier daemons below `root`, settled.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub(crate) async fn left(
        root: &Path,
        realm: Realm,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<Vec<(PathBuf, LeftOperation)>> {
        left::left_behind(root, realm, clock).await
    }

    /// The folder of the directories.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// True if the disk of the directories has less room than is to be kept free
    /// (docs/internals/contracts.md#a11): a twentieth of it, but no more than
    /// [`KEPT_FREE_AT_MOST`].
    pub(crate) fn disk_is_short(&self) -> bool {
        // A host that does not tell shows it by the first write that fails.
        rustix::fs::statvfs(&*self.root).is_ok_and(|disk| {
            let kept_free = disk.f_blocks / 20;
            let most = KEPT_FREE_AT_MOST / disk.f_frsize.max(1);
            disk.f_bavail < kept_free.min(most)
        })
    }

    /// A supervisor that waits now.
    pub(crate) fn ready(&self) -> Option<WaitingSupervisor> {
        let ready = self.pool.ready();
        ready.map(|supervisor| self.waiting(supervisor))
    }

    /// A supervisor that waits; started off the async threads where none does.
    ///
    /// # Errors
    /// When the host has no room for one. Nothing was started.
    pub(crate) async fn take(&self) -> Result<WaitingSupervisor, NotStarted> {
        if let Some(waiting) = self.ready() {
            return Ok(waiting);
        }
        let turn = Arc::clone(&self.starts).acquire_owned().await;
        let pool = Arc::clone(&self.pool);
        let started = run_blocking(move || {
            let started = pool.take();
            drop(turn);
            started
        });
        match started.await {
            Ok(waiting) => Ok(self.waiting(waiting)),
            Err(error) => Err(outcome::no_supervisor(&error)),
        }
    }

    fn waiting(&self, supervisor: runner_supervisor::IdleSupervisor) -> WaitingSupervisor {
        WaitingSupervisor {
            name: name(supervisor.directory().path()).to_owned(),
            supervisor: Some(supervisor),
            pool: Arc::clone(&self.pool),
        }
    }

    /// Starts the command, and passes on to it what waits. The end is truthful also where the
    /// supervisor dies in that time: then the operation is fenced. Needs the runtime's context;
    /// never waits.
    pub(crate) fn start(
        &self,
        mut waiting: WaitingSupervisor,
        operation: OperationId,
        plan: CommandPlan,
        terms: ProcessTerms,
        passing: PassingControls,
    ) -> Process {
        let streams = match plan.terminal {
            Some(TerminalSize { rows, columns }) => Streams::Pty { rows, columns },
            None if plan.merged => Streams::Merged,
            None => Streams::Separate,
        };
        let (place, handle) = match plan.directory {
            Whereabouts::Handle(handle) => (WorkingDirectory::Inherited, Some(handle)),
            Whereabouts::Path(path) => (WorkingDirectory::Path(path), None),
        };
        let user = plan
            .account
            .map(|Account { uid, gid }| CommandUser { uid, gid });
        let request = CommandRequest {
            operation,
            argv: plan.argv,
            environment: plan.environment,
            terms: CommandTerms {
                place,
                user,
                streams,
                stdin: plan.input,
                run_for: Some(terms.run_for),
                idle_for: plan.idle_for,
                orphan_for: Some(terms.orphan_for),
                kill_grace: terms.kill_grace,
                spool: terms.spool,
                sync: terms.sync,
                claim: terms.claim,
            },
        };
        let supervisor = waiting.supervisor.take();
        let supervisor = supervisor.expect("it is taken out here only, and then dropped");
        let path = supervisor.directory().path().to_owned();
        let started = supervisor.start(&request, handle);
        self.pool.refill();
        let started = started.map_err(|(_, error)| error);
        let clock = Arc::clone(&self.clock);
        let overdue = Overdue::new(clock, Some(terms.run_for), Some(terms.orphan_for));
        let pool = Some(Arc::clone(&self.pool));
        let of = Supervised {
            path,
            realm: self.realm,
            pool,
        };
        task::spawn(of, started, passing, overdue, terms.kill_grace)
    }

    /// The start record in a directory that an earlier daemon left; `None` where there is none that
    /// can be read.
    pub(crate) async fn start_record(path: PathBuf) -> Option<StartRecord> {
        run_blocking(move || match Directory::open(&path).ok()?.fate().ok()?? {
            Fate::Started(start) => Some(start),
            Fate::Fenced { .. } => None,
        })
        .await
    }

    /// Keeps a directory whose records cannot be read under a name that no daemon looks at.
    pub(crate) async fn set_aside(path: PathBuf) {
        let to = left::set_aside(&path);
        let from = path.clone();
        let moved = run_blocking(move || std::fs::rename(from, to)).await;
        if let Err(error) = moved {
            tracing::warn!(%error, process.directory = %path.display(), "failed to set a directory aside");
        }
    }
}

impl WaitingSupervisor {
    /// The name of its directory below the root, to be noted before the start.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for WaitingSupervisor {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            self.pool.discard(supervisor);
        }
    }
}

/// Names are made here, of letters and digits.
pub(crate) fn name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

/// A full disk refuses what is new, and nothing else: what runs is to be taken up all the same.
fn prepared(options: PoolOptions) -> Result<SupervisorPool, PoolError> {
    match SupervisorPool::proven(options.clone()) {
        Ok((pool, identity)) => {
            tracing::info!(
                process.kill = identity.kill.as_str(),
                "commands are supervised"
            );
            Ok(pool)
        }
        Err(error) if outcome::no_supervisor(&error) == NotStarted::DiskFull => {
            tracing::warn!(
                %error,
                folder = %options.root.display(),
                "the disk is full; no command begins until some of it is free"
            );
            Ok(SupervisorPool::new(options)?)
        }
        Err(error) => Err(error),
    }
}

fn unusable(program: PathBuf, source: PoolError) -> ProcessesError {
    match &source {
        PoolError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            ProcessesError::MissingSupervisor(program)
        }
        _ => ProcessesError::UnfitSupervisor { program, source },
    }
}

/// Runs slow work where it blocks no other task.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down, and with it the task that waits here.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests;
