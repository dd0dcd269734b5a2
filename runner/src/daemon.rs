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

use runner_host::OpenError;
use runner_supervisor::{KillChoice, Realm};
use shared_types::{Clock, Entropy, limits::KILL_GRACE};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

mod serving;

use self::serving::{Offers, Serving};
use crate::{
    backoff::Backoff,
    connection::Transports,
    docker::{Pool, PoolError, PoolOptions, Template},
    endpoints::Endpoints,
    home::{Enrolled, Home, HomeError},
    journal::{Journal, JournalError, Repair},
    key::KeyError,
    link::{Introduction, LinkError, LinkKeeper},
    operations::{Found, Operations, OperationsService, Unfinished},
    processes::{self, ProcessOptions, Processes},
    room,
    sandboxes::{Sandbox, Sandboxes},
    server_url::UrlError,
};

/// Supervisors that wait for a command, so that it starts at once.
const SUPERVISORS_WAITING: usize = 8;

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
    /// The part of the daemon's own environment that commands get.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) facts: HostFacts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// The Docker engine that makes sandboxes, and its templates.
#[derive(Debug, Clone)]
pub(crate) struct DockerOptions {
    /// The engine's socket.
    pub(crate) socket: String,
    /// At least one; the first is the default.
    pub(crate) templates: Vec<Template>,
    /// Containers of each that wait for a new sandbox.
    pub(crate) warm: usize,
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
pub(crate) enum Stop {
    /// Go, and leave what runs to the next daemon.
    HandOver,
    /// Go, and leave nothing running.
    End,
}

/// Runs until a stop is requested, or until the link reports that trying again cannot help.
pub(crate) async fn run(
    options: DaemonOptions,
    mut stop: mpsc::Receiver<Stop>,
) -> Result<(), DaemonError> {
    let drain_for = options.drain_for;
    let mut lock = options.home.lock()?;
    if let Err(error) = lock.note_daemon(options.is_detached) {
        tracing::warn!(%error, "it cannot be noted which process is the daemon");
    }
    // A daemon that was killed may have left it behind.
    options.home.note_link(None);
    options.home.note_containers(options.backend.is_some());
    let (link, service) = assemble(options).await?;
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
    if told == Stop::HandOver {
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
fn stop_after(ended: &Result<(), DaemonError>) -> Stop {
    match ended {
        Err(DaemonError::Link(error)) if error.is_dismissal() => Stop::End,
        _ => Stop::HandOver,
    }
}

/// Reads the home, takes up what earlier daemons left, and puts the parts together.
async fn assemble(options: DaemonOptions) -> Result<(LinkKeeper, OperationsService), DaemonError> {
    // Before the home is read, so that no change of it is missed.
    let watch = options.home.watch();
    let enrolled = options.home.enrolled()?.ok_or(DaemonError::NotEnrolled)?;
    let endpoints = Endpoints::parse(&enrolled.servers, enrolled.allow_plain_text)?;
    let endpoints = endpoints.over(options.transports);
    let key = options.home.key()?;
    say_start(&enrolled, &endpoints);
    let serving = Serving::open(
        &enrolled,
        options
            .backend
            .as_ref()
            .map_or(Offers::Workspaces, |_| Offers::Pool),
        options.facts.clone(),
        options.environment,
        options.clock.clone(),
    )?;
    options.home.note_serving(&serving.served());
    let pooled = match options.backend {
        Some(docker) => Some(
            Pool::open(PoolOptions {
                runner: enrolled.runner,
                socket: docker.socket,
                templates: docker.templates,
                warm: docker.warm,
                root: options.home.sandboxes(),
                supervisor: options.supervisor.clone(),
                clock: options.clock.clone(),
                entropy: options.entropy.clone(),
            })
            .await?,
        ),
        None => None,
    };
    let mut capable = serving.capabilities();
    if let Some((pool, _)) = &pooled {
        capable.pool = Some(pool.facts().await);
    }
    let (said, capabilities) = watch::channel(capable);
    let introduction = Introduction {
        runner: enrolled.runner,
        capabilities,
    };
    let (clock, entropy) = (options.clock.as_ref(), options.entropy.as_ref());
    let opened = Journal::open(&options.home.journal(), clock, entropy)?;
    report(opened.repaired.as_ref());
    let supervisors = ProcessOptions {
        supervisor: options.supervisor,
        root: options.home.commands(),
        waiting: SUPERVISORS_WAITING,
        kill: KillChoice::Strongest,
        realm: Realm::Host,
    };
    let (processes, mut left) =
        Processes::open(supervisors, options.clock.clone(), entropy).await?;
    let mut sandboxes = Sandboxes::new(serving.first(), processes);
    for (id, sandbox) in serving.sandboxes() {
        sandboxes.add(id, sandbox);
    }
    let pool = pooled.map(|(pool, left_there)| {
        left.extend(left_there);
        for (id, container) in pool.sandboxes() {
            sandboxes.add(id, Sandbox::Container(container));
        }
        tokio::spawn(pool.clone().look_after(said.clone()));
        pool
    });
    let (operations, service) = Operations::open(Found {
        sandboxes,
        pool,
        left,
        journal: opened.journal,
        id: opened.id,
        entries: opened.records,
        repaired: opened.repaired,
        boot: options.facts.boot,
        sync_before_start: options.sync_before_start,
        disconnect_for: options.disconnect_for,
        clock: options.clock.clone(),
        entropy: options.entropy.clone(),
        #[cfg(test)]
        fault: None,
    })
    .await?;
    match watch {
        Ok(watch) => {
            let home = (options.home.clone(), watch);
            tokio::spawn(serving.follow(home, operations.clone(), said));
        }
        Err(error) => {
            tracing::warn!(%error, "a new workspace counts only after a restart of the daemon");
        }
    }
    let link = LinkKeeper {
        endpoints,
        room: room::watch(options.home.clone()),
        home: options.home,
        enrolled,
        key,
        introduction,
        operations,
        clock: options.clock,
        entropy: options.entropy,
        backoff: Backoff::new(options.longest_wait),
        goodbye: CancellationToken::new(),
    };
    Ok((link, service))
}

fn say_start(enrolled: &Enrolled, endpoints: &Endpoints) {
    tracing::info!(
        runner.id = %enrolled.runner,
        runner.name = enrolled.name,
        servers = endpoints.texts().join(" "),
        "runner starts"
    );
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

/// Says what was done to the journal.
fn report(repaired: Option<&Repair>) {
    match repaired {
        Some(Repair::Cut { bytes }) => {
            tracing::warn!(
                bytes,
                "the journal ended in an unfinished record, which was cut off"
            );
        }
        Some(Repair::SetAside { kept, damage }) => tracing::error!(
            kept = %kept.display(),
            damage,
            "the journal was damaged: it is set aside, and what it remembered behind the damage is lost"
        ),
        None => {}
    }
}

/// Takes nothing new, and lets the server take what has ended; what runs goes on.
async fn hand_over(operations: &Operations, within: Duration) {
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
async fn drain(operations: &Operations, patience: Duration) {
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
async fn cut(operations: &Operations) {
    tracing::warn!("told to stop again: leaving at once");
    operations.orphan().await;
    let mut unfinished = operations.unfinished();
    let gone = unfinished.wait_for(|left| left.running == 0);
    // Whatever ignores the polite signal is left behind.
    let _ = timeout(CUT_WITHIN, gone).await;
}

/// One message for each SIGTERM and SIGINT that reaches this process.
pub(crate) fn signals() -> io::Result<mpsc::Receiver<Stop>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (told, stop) = mpsc::channel(3);
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => Stop::HandOver,
                _ = interrupt.recv() => Stop::End,
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
    Workspace(#[from] OpenError),
    #[error("cannot use the journal: {0}")]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Processes(#[from] processes::OpenError),
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
