//! `gantry-runner run`: the operations, the link, and an orderly end of both.
//!
//! The link has a thread and a runtime of its own, so that no workload can starve it.
//!
//! There are two ends:
//!
//! - SIGTERM hands over: nothing new is taken, commands go on under their supervisors, and the
//!   next daemon takes them up. So a service manager can update the runner at any time. A link that
//!   gives up hands over as well, unless the server has proved that it has dismissed the runner:
//!   then commands are stopped at once.
//! - SIGINT ends: commands may finish for a while, then they are stopped.
//!
//! Either way the server takes what is left, and the link says goodbye. It is a goodbye for good
//! only where nothing is left, so that an ephemeral runner is removed then, and only then. A second
//! signal stops all commands, and skips the waiting.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, thread, time::Duration};

use runner_host::WorkspaceError;
use shared_types::{Clock, Entropy, limits::KILL_GRACE};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    time::timeout,
};

mod assembly;
mod serving;

use crate::{
    connection::Transports,
    docker::{DockerOptions, PoolError},
    home::{Home, HomeError},
    journal::JournalError,
    key::KeyError,
    link::{LinkError, LinkKeeper},
    model_server::ModelServer,
    operations::{OperationsHandle, Unfinished},
    policy::PolicySource,
    processes,
    server_url::UrlError,
};

/// After the stop of what runs: the grace between the polite signal and the kill, and a little.
const STOPPED_WITHIN: Duration = KILL_GRACE.saturating_add(Duration::from_secs(2));

/// The longest wait for the server to store the last ends.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(2);

/// After a signal that skips the waiting: only for the polite signal to reach what runs.
const CUT_WITHIN: Duration = Duration::from_secs(1);

/// The longest wait for the link's goodbye.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

/// The options of a daemon.
pub(crate) struct DaemonOptions {
    pub(crate) home: Home,
    /// The longest time for running operations once the daemon has to leave nothing running.
    pub(crate) drain_for: Duration,
    /// The longest wait before the next attempt to reach the server.
    pub(crate) longest_wait: Duration,
    /// The transports that may carry the link.
    pub(crate) transports: Transports,
    /// The longest time for which commands may go on without a link.
    pub(crate) disconnect_for: Duration,
    /// True if a command waits until its records are on the disk.
    pub(crate) sync_before_start: bool,
    /// True if it was started without a terminal and a service manager.
    pub(crate) is_detached: bool,
    /// The program that supervises commands.
    pub(crate) supervisor: PathBuf,
    /// Containers instead of the home's workspaces.
    pub(crate) backend: Option<DockerOptions>,
    /// The place of the machine's own policy.
    pub(crate) policy: PolicySource,
    /// The machine's own model server, which the server may ask.
    pub(crate) model_server: Option<ModelServer>,
    /// The part of the daemon's own environment that commands get.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) facts: HostFacts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// The host's facts.
#[derive(Debug, Clone)]
pub(crate) struct HostFacts {
    /// Another one after every boot.
    pub(crate) boot: String,
    pub(crate) hostname: String,
}

/// The way in which the daemon stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonStop {
    /// Go, and leave what runs to the next daemon.
    HandOver,
    /// Go, and leave nothing running.
    End,
}

/// Runs until a stop is requested, or until the link reports that trying again cannot help.
pub(crate) async fn run(
    options: DaemonOptions,
    mut stop: mpsc::Receiver<DaemonStop>,
) -> Result<(), DaemonError> {
    let drain_for = options.drain_for;
    let mut lock = options.home.lock()?;
    if let Err(error) = lock.note_daemon(options.is_detached) {
        tracing::warn!(%error, "it cannot be noted which process is the daemon");
    }
    // A daemon that was killed may have left it behind.
    options.home.note_link(None);
    options.home.note_containers(options.backend.is_some());
    let (link, service) = assembly::assemble(options).await?;
    let operations = link.operations.clone();
    let goodbye = link.goodbye.clone();
    let mut table = tokio::spawn(service.run());
    let mut linked = on_its_own_thread(link)?;

    let (told, ended) = tokio::select! {
        Some(told) = stop.recv() => (told, None),
        ended = &mut linked => {
            let ended = ended.unwrap_or(Err(DaemonError::Broken("link")));
            (stop_after(&ended), Some(ended))
        }
        broken = &mut table => return Err(match broken {
            Ok(Err(error)) => DaemonError::Journal(error),
            _ => DaemonError::Broken("table of operations"),
        }),
    };
    if told == DaemonStop::HandOver {
        let within = match ended {
            None => FORGOTTEN_WITHIN,
            Some(_) => Duration::ZERO,
        };
        tokio::select! {
            biased;
            Some(_) = stop.recv() => cut(&operations).await,
            () = hand_over(&operations, within) => {}
        }
    } else {
        let patience = match ended {
            None => drain_for,
            Some(_) => Duration::ZERO,
        };
        tokio::select! {
            () = drain(&operations, patience) => {}
            Some(_) = stop.recv() => cut(&operations).await,
        }
    }
    goodbye.cancel();
    if ended.is_none() {
        // A link that does not leave in time is cut by the end of the process.
        let _ = timeout(LEFT_WITHIN, linked).await;
    }
    // Before the runtime ends what listens to the commands: the table would take that for their
    // loss, and write it down.
    table.abort();
    let _ = table.await;
    tracing::info!("runner stopped");
    ended.unwrap_or(Ok(()))
}

/// The stop for running operations once the link has given up: only a dismissal that the server has
/// proved ends them.
fn stop_after(ended: &Result<(), DaemonError>) -> DaemonStop {
    match ended {
        Err(DaemonError::Link(error)) if error.is_dismissal() => DaemonStop::End,
        _ => DaemonStop::HandOver,
    }
}

fn on_its_own_thread(
    link: LinkKeeper,
) -> Result<oneshot::Receiver<Result<(), DaemonError>>, DaemonError> {
    let (ended, wait) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DaemonError::Thread)?;
    let serve = move || {
        // As a task: what a runtime blocks on is polled only between looks at its sockets.
        let served = runtime.block_on(async { tokio::spawn(link.run()).await });
        let result = match served {
            Ok(served) => served.map_err(DaemonError::Link),
            Err(_) => Err(DaemonError::Broken("link")),
        };
        // The receiver is gone where the daemon leaves first.
        let _ = ended.send(result);
    };
    thread::Builder::new()
        .name("link".to_owned())
        .spawn(serve)
        .map_err(DaemonError::Thread)?;
    Ok(wait)
}

/// Takes nothing new, and lets the server take what has ended; what runs goes on.
async fn hand_over(operations: &OperationsHandle, within: Duration) {
    operations.drain().await;
    let mut unfinished = operations.unfinished();
    let taken = unfinished.wait_for(|left| left.unforgotten <= left.running);
    let _ = timeout(within, taken).await;
    let running = unfinished.borrow().running;
    if running > 0 {
        tracing::info!(
            running,
            "commands go on without the daemon, within their time limits; the next one takes them up: start it with `gantry-runner run`"
        );
    }
}

/// Lets what runs end within `patience`, stops the rest, and lets the server take what is left.
async fn drain(operations: &OperationsHandle, patience: Duration) {
    let mut unfinished = operations.unfinished();
    operations.drain().await;
    let running = unfinished.borrow_and_update().running;
    if running > 0 {
        tracing::info!(
            running,
            drain_ms = patience.as_millis() as u64,
            "runner drains"
        );
    }
    let mut until = async |within, done: fn(&Unfinished) -> bool| {
        let waited = timeout(within, unfinished.wait_for(done)).await;
        matches!(waited, Ok(Ok(_)))
    };
    if !until(patience, |left| left.running == 0).await {
        operations.orphan().await;
        until(STOPPED_WITHIN, |left| left.running == 0).await;
    }
    until(FORGOTTEN_WITHIN, |left| left.unforgotten == 0).await;
}

/// Stops everything without waiting for it.
async fn cut(operations: &OperationsHandle) {
    tracing::warn!("told to stop again: leaving at once");
    operations.orphan().await;
    let mut unfinished = operations.unfinished();
    let gone = unfinished.wait_for(|left| left.running == 0);
    // Whatever ignores the polite signal is left behind.
    let _ = timeout(CUT_WITHIN, gone).await;
}

/// One message for each SIGTERM and SIGINT that reaches this process.
pub(crate) fn signals() -> io::Result<mpsc::Receiver<DaemonStop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (told, stop) = mpsc::channel(3);
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => DaemonStop::HandOver,
                _ = interrupt.recv() => DaemonStop::End,
            };
            // More than three say no more than three do.
            let _ = told.try_send(signal);
        }
    });
    Ok(stop)
}

/// The reason why the daemon does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    #[error("this home is not enrolled: run `gantry-runner enrol` first")]
    NotEnrolled,
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("cannot use the workspace: {0}")]
    Workspace(#[from] WorkspaceError),
    #[error("cannot use the journal: {0}")]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Processes(#[from] processes::ProcessesError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error("cannot start the link's thread: {0}")]
    Thread(io::Error),
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Link(LinkError),
    #[error("the {0} has failed")]
    Broken(&'static str),
}

impl DaemonError {
    /// True if only an enrolment helps: this home was not enrolled, or its runner was removed or
    /// locked.
    pub(crate) fn wants_enrolment(&self) -> bool {
        match self {
            Self::NotEnrolled => true,
            Self::Link(error) => error.is_dismissal(),
            _ => false,
        }
    }
}

/// The remedy where the server does not know the runner.
fn remedy(error: &LinkError) -> &'static str {
    match error.is_dismissal() {
        true => "; if this runner was removed, enrol it again with --replace",
        false => "",
    }
}

#[cfg(test)]
mod tests;
