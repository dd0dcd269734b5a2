//! `gantry-runner run`: the operations, the link, and an orderly end of both.
//!
//! The link has a thread and a runtime of its own, so that no workload can starve it. The end: take
//! nothing new, let what runs finish for a while, stop the rest, let the server take what is left,
//! say goodbye. A second signal skips the waiting.

use std::{collections::BTreeMap, io, sync::Arc, thread, time::Duration};

use proto::v1;
use runner_host::{Host, HostOptions, OpenError};
use shared_types::{
    Clock, Entropy, Incarnation, JournalId, SandboxId,
    limits::{FILE_OPERATION_WITHIN, KILL_GRACE},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::{
    enrolment::EnrolmentError,
    home::{Home, HomeError},
    key::KeyError,
    link::{Introduction, Link, LinkError},
    operations::{Operations, Unfinished},
    server_url::{ServerUrl, UrlError},
};

/// What the runner calls its only sandbox; with the runner's id it gives the sandbox's id.
const SANDBOX: &str = "workspace";

/// After the stop of what runs: the grace between the polite signal and the kill, and a little.
const STOPPED_WITHIN: Duration = KILL_GRACE.saturating_add(Duration::from_secs(2));

/// How long the server may take to store what ended last.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(2);

/// After a second signal: only for the polite signal to reach what runs.
const CUT_WITHIN: Duration = Duration::from_secs(1);

/// How long the link may take to say goodbye.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

/// What a daemon is started with.
pub(crate) struct DaemonOptions {
    pub(crate) home: Home,
    /// How long running operations may go on after the first signal.
    pub(crate) drain_for: Duration,
    /// The longest wait before the next attempt to reach the server.
    pub(crate) longest_wait: Duration,
    /// What commands get of the daemon's own environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) facts: HostFacts,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

/// What the host says of itself.
#[derive(Debug, Clone)]
pub(crate) struct HostFacts {
    /// Another one after every boot.
    pub(crate) boot: String,
    pub(crate) hostname: String,
}

/// Runs until it is told to stop (a second time: at once), or until the link says that trying
/// again cannot help.
pub(crate) async fn run(
    options: DaemonOptions,
    mut stop: mpsc::Receiver<()>,
) -> Result<(), DaemonError> {
    let drain_for = options.drain_for;
    let _lock = options.home.lock()?;
    let (link, service) = assemble(options)?;
    let operations = link.operations.clone();
    let goodbye = link.goodbye.clone();
    let mut table = tokio::spawn(service.run());
    let mut linked = on_its_own_thread(link)?;

    let ended = tokio::select! {
        Some(()) = stop.recv() => None,
        ended = &mut linked => Some(ended.unwrap_or(Err(DaemonError::Broken("link")))),
        _ = &mut table => return Err(DaemonError::Broken("table of operations")),
    };
    let patience = if ended.is_none() {
        drain_for
    } else {
        Duration::ZERO
    };
    tokio::select! {
        () = drain(&operations, patience) => {}
        Some(()) = stop.recv() => cut(&operations).await,
    }
    goodbye.cancel();
    if let Some(ended) = ended {
        return ended;
    }
    // A link that does not leave in time is cut by the end of the process.
    let _ = timeout(LEFT_WITHIN, linked).await;
    tracing::info!("runner stopped");
    Ok(())
}

/// Reads the home and puts the parts together.
fn assemble(
    options: DaemonOptions,
) -> Result<(Link, crate::operations::OperationsService), DaemonError> {
    let enrolled = options.home.enrolled()?.ok_or(DaemonError::NotEnrolled)?;
    let url = ServerUrl::parse(&enrolled.server, enrolled.allow_plain_text)?;
    let key = options.home.key()?;
    let host = Host::open(
        HostOptions {
            root: enrolled.workspace.clone(),
            environment: options.environment,
            kill_grace: KILL_GRACE,
            file_operation_within: FILE_OPERATION_WITHIN,
        },
        options.clock.clone(),
    )?;
    let incarnation = Incarnation {
        journal: JournalId::generate(options.clock.as_ref(), options.entropy.as_ref()),
        boot: options.facts.boot.clone(),
    };
    let sandbox = SandboxId::derive(enrolled.runner, SANDBOX);
    let introduction = Introduction {
        runner: enrolled.runner,
        capabilities: capabilities(&options.facts, sandbox, &host),
    };
    tracing::info!(
        runner.id = %enrolled.runner,
        runner.name = enrolled.name,
        server = %url,
        workspace = %host.root().display(),
        isolation = %host.isolation(),
        "runner starts"
    );
    let (operations, service) = Operations::new(host, incarnation, sandbox);
    let link = Link {
        url,
        home: options.home,
        enrolled,
        key,
        introduction,
        operations,
        clock: options.clock,
        entropy: options.entropy,
        longest_wait: options.longest_wait,
        goodbye: CancellationToken::new(),
    };
    Ok((link, service))
}

fn capabilities(facts: &HostFacts, sandbox: SandboxId, host: &Host) -> v1::Capabilities {
    v1::Capabilities {
        os: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        hostname: facts.hostname.clone(),
        sandboxes: vec![v1::Sandbox {
            sandbox: sandbox.to_string(),
            name: SANDBOX.to_owned(),
            root: host.root().display().to_string(),
            isolation: host.isolation().to_string(),
        }],
        features: Vec::new(),
    }
}

fn on_its_own_thread(
    link: Link,
) -> Result<oneshot::Receiver<Result<(), DaemonError>>, DaemonError> {
    let (ended, wait) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DaemonError::Thread)?;
    let serve = move || {
        let result = runtime.block_on(link.run()).map_err(DaemonError::Link);
        // Nobody waits any more where the daemon leaves first.
        let _ = ended.send(result);
    };
    thread::Builder::new()
        .name("link".to_owned())
        .spawn(serve)
        .map_err(DaemonError::Thread)?;
    Ok(wait)
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
pub(crate) fn signals() -> io::Result<mpsc::Receiver<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (told, stop) = mpsc::channel(2);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // More than two say no more than two do.
            let _ = told.try_send(());
        }
    });
    Ok(stop)
}

/// Why the daemon does not start, or ended.
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
    #[error("cannot start the link's thread: {0}")]
    Thread(io::Error),
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Link(LinkError),
    #[error("the {0} has failed")]
    Broken(&'static str),
}

/// What helps where the server takes the runner for nobody of its own.
fn remedy(error: &LinkError) -> &'static str {
    match error {
        LinkError::Refused(status) | LinkError::Connect(EnrolmentError::Refused(status))
            if status.code() != Code::FailedPrecondition =>
        {
            "; if this runner was removed, enrol it again with --replace"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
