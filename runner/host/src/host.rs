//! The host: performs requests, each in a task of its own.

use std::{collections::BTreeMap, fmt, path::Path, path::PathBuf, sync::Arc, time::Duration};

use shared_sandbox::{Exec, Outcome, Request};
use shared_types::{Clock, Isolation, Refusal, RefusalCode};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::Instrument;

use self::turns::Changes;
pub use self::turns::HeldTurn;
use crate::{
    Change, CommandPlan, HostEvent, Performing, SettledChange, There, Unplanned, WorkspaceError,
    files::{self, Allowance, Announcer, stopped, too_slow},
    performing::{EVENTS_WAITING, Stopping},
    plan::{self, Shells},
    workspace::Workspace,
};

/// Operations that only read files and run at once; others wait for their turn.
const READS_AT_ONCE: usize = 8;

/// The time beyond its limit for which an operation may hang in the host's file system before it is
/// given up.
pub(crate) const HANGS_AT_MOST: Duration = Duration::from_secs(5);

/// The options of a host.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The workspace root, which must exist; absolute, as people know it.
    pub root: PathBuf,
    /// The complete base environment of commands, allow-listed already
    /// (see [`crate::allowed_environment`]).
    pub environment: BTreeMap<String, String>,
    /// The most time for a file operation.
    pub file_operation_within: Duration,
}

/// A host with one workspace. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    workspace: Arc<Workspace>,
    environment: Arc<BTreeMap<String, String>>,
    shells: Arc<Shells>,
    clock: Arc<dyn Clock>,
    file_operation_within: Duration,
    reads: Arc<Semaphore>,
    changes: Changes,
}

impl Host {
    /// Opens the workspace root; from here on it is found by its handle, not by its path.
    ///
    /// # Errors
    /// When the root cannot serve as a workspace; the text says what to do.
    pub fn open(options: HostOptions, clock: Arc<dyn Clock>) -> Result<Self, WorkspaceError> {
        Ok(Self {
            workspace: Arc::new(Workspace::open(&options.root)?),
            environment: Arc::new(options.environment),
            shells: Arc::new(Shells::new(Arc::clone(&clock))),
            clock,
            file_operation_within: options.file_operation_within,
            reads: Arc::new(Semaphore::new(READS_AT_ONCE)),
            changes: Changes::default(),
        })
    }

    /// Opens another workspace of the same host, with the same environment. Changes wait for one another
    /// also where one workspace lies in the other, and all count towards the same bounds.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn beside(&self, root: &Path) -> Result<Self, WorkspaceError> {
        Ok(Self {
            workspace: Arc::new(Workspace::open(root)?),
            ..self.clone()
        })
    }

    /// The workspace root as it was given.
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// The path by which the kernel knows the workspace root now; nothing where it tells none.
    pub fn real_root(&self) -> Option<PathBuf> {
        self.workspace.real_root()
    }

    /// The isolation of commands from the host: none, so far.
    pub fn isolation(&self) -> Isolation {
        Isolation::none()
    }

    /// Plans a command; nothing is started. Asks the host's file system, which can hang, so call it
    /// where blocking does no harm.
    ///
    /// # Errors
    /// When the request makes no sense, or cannot run here and now; either is its end.
    pub fn plan(&self, exec: &Exec) -> Result<CommandPlan, Unplanned> {
        plan::plan(exec, &self.workspace, &self.environment, &self.shells)
    }

    /// Plans a command where that needs nothing of the host's file system, so that it may be called
    /// anywhere. `None` means only that the caller must ask [`Host::plan`].
    pub fn plan_at_once(&self, exec: &Exec) -> Option<CommandPlan> {
        plan::plan_at_once(exec, &self.workspace, &self.environment, &self.shells)
    }

    /// Performs a request for files in a task of its own, for at most `run_for`, and returns at once.
    /// Needs the context of a tokio runtime with IO and time.
    pub fn perform(&self, request: Request, run_for: Duration) -> Performing {
        let (events, receiver) = mpsc::channel(EVENTS_WAITING);
        let (stop, stopping) = Stopping::pair();
        let span = tracing::debug_span!("host.perform", request.kind = request.kind());
        let host = self.clone();
        let told = events.clone();
        let work = async move { host.file_operation(request, run_for, told, stopping).await };
        tokio::spawn(
            async move {
                let end = settled(tokio::spawn(work.in_current_span())).await;
                // The receiver may be gone, and that changes nothing.
                let _ = events.send(end.into()).await;
            }
            .instrument(span),
        );
        Performing {
            events: receiver,
            stop,
        }
    }

    /// Finds out what became of a change that was announced to a process that died before it
    /// said the end, and removes what it left unfinished. Nothing else is changed. Files are read
    /// whole, for at most the time of a file operation. `later` says for each effect what the next
    /// change of its path found there, where one was made; then that counts.
    pub async fn settle(&self, change: Change, later: Vec<Option<There>>) -> SettledChange {
        let limit = self.file_operation_within;
        let (_stop, stopping) = Stopping::pair();
        let paths = change.effects.iter();
        let paths = paths.map(|effect| files::Changed::Entry(effect.path.clone()));
        let turn = self.changes.turn(&self.workspace, paths.collect());
        let Ok(Some(turn)) = timeout(limit, turn).await else {
            return SettledChange::Unclear;
        };
        let allowance = Allowance::new(Arc::clone(&self.clock), limit, stopping);
        let workspace = Arc::clone(&self.workspace);
        let work = tokio::task::spawn_blocking(move || {
            let settled = files::settle(&change, later, &workspace, &allowance);
            drop(turn);
            settled
        });
        match timeout(limit.saturating_add(HANGS_AT_MOST), work).await {
            Ok(Ok(settled)) => settled,
            Ok(Err(_)) | Err(_) => SettledChange::Unclear,
        }
    }

    async fn file_operation(
        &self,
        request: Request,
        run_for: Duration,
        events: mpsc::Sender<HostEvent>,
        mut stopping: Stopping,
    ) -> RequestEnd {
        let limit = run_for.min(self.file_operation_within);
        let only_reads = request.only_reads();
        let allowance = Allowance::new(Arc::clone(&self.clock), limit, stopping.clone());
        let changed = files::changed(&request);
        let turn = async {
            match changed.is_empty() {
                true => Some(OneOf::Reads(
                    Arc::clone(&self.reads).acquire_owned().await.ok()?,
                )),
                false => {
                    let turn = self.changes.turn(&self.workspace, changed);
                    Some(OneOf::Changes(turn.await?))
                }
            }
        };
        let turn = tokio::select! {
            biased;
            _ = stopping.wanted() => return Outcome::from(stopped()).into(),
            turn = turn => turn,
            () = sleep(limit) => return Outcome::from(too_slow(limit)).into(),
        };
        let held = match &turn {
            Some(OneOf::Changes(held)) => held.clone(),
            Some(OneOf::Reads(_)) | None => HeldTurn::default(),
        };
        let workspace = Arc::clone(&self.workspace);
        let announcer = Announcer::new(events);
        let work = tokio::task::spawn_blocking(move || {
            let outcome = files::perform(request, &workspace, &allowance, &announcer);
            drop(turn);
            RequestEnd::from(outcome)
        });
        let end = match timeout(limit.saturating_add(HANGS_AT_MOST), settled(work)).await {
            Ok(end) => end,
            Err(_) if only_reads => Outcome::from(too_slow(limit)).into(),
            Err(_) => {
                lost("the host's file system did not answer in time; read the file to see").into()
            }
        };
        RequestEnd { held, ..end }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("root", &self.root()).finish()
    }
}

/// The end of a request.
struct RequestEnd {
    outcome: Outcome,
    held: HeldTurn,
}

impl From<Outcome> for RequestEnd {
    /// The end of what held no turn.
    fn from(outcome: Outcome) -> Self {
        let held = HeldTurn::default();
        Self { outcome, held }
    }
}

impl From<RequestEnd> for HostEvent {
    fn from(end: RequestEnd) -> Self {
        Self::Ended(end.outcome, end.held)
    }
}

/// A turn that is dropped once the work is done.
#[expect(dead_code, reason = "what they hold is given back with them")]
enum OneOf {
    Reads(OwnedSemaphorePermit),
    Changes(HeldTurn),
}

/// The work's end; it has one even where the work panics.
async fn settled(work: JoinHandle<RequestEnd>) -> RequestEnd {
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to perform a request");
        lost("the runner failed inside; its log says how").into()
    })
}

/// It is not known if it was done.
pub(crate) fn lost(reason: &str) -> Outcome {
    let message = format!("what became of the operation is not known: {reason}");
    Outcome::Refused(Refusal::new(RefusalCode::Lost, message))
}

mod transfer;
mod turns;

#[cfg(test)]
mod tests;
