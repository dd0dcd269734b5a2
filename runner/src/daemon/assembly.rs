//! The assembly of the daemon from its home and its options. The order counts: the watch is set before the home is
//! read, and the journal is open before the remains of earlier daemons are taken up.

use std::path::PathBuf;

use proto::v1;
use runner_supervisor::{KillChoice, Realm};
use shared_link::runner::MODELS_FEATURE;
use shared_types::RunnerId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    DaemonError, DaemonOptions,
    serving::{Offers, ServedWorkspaces},
};
use crate::{
    backoff::Backoff,
    docker::{ContainerPool, PoolOptions},
    endpoints::Endpoints,
    home::EnrolledHome,
    journal::{Journal, JournalError, OpenedJournal, Repair},
    link::{Introduction, LinkKeeper},
    model_server::KnownModels,
    operations::{JournalEntry, OperationsHandle, OperationsParts, OperationsService},
    policy::Guard,
    processes::{LeftOperation, ProcessOptions, Processes},
    room,
    sandboxes::{ServedSandbox, ServedSandboxes},
};

/// Supervisors that wait for a command, so that it starts at once.
const SUPERVISORS_WAITING: usize = 8;

/// The remains of earlier daemons, each with its directory.
type Remains = Vec<(PathBuf, LeftOperation)>;

/// Reads the home, takes up the remains of earlier daemons, and puts the parts together.
pub(super) async fn assemble(
    options: DaemonOptions,
) -> Result<(LinkKeeper, OperationsService), DaemonError> {
    // Before the home is read, so that no change of it is missed.
    let watch = options.home.watch();
    let enrolled = options.home.enrolled()?.ok_or(DaemonError::NotEnrolled)?;
    let endpoints =
        Endpoints::parse(&enrolled.servers, enrolled.allow_plain_text)?.over(options.transports);
    let key = options.home.key()?;
    say_start(&enrolled, &endpoints);
    let serving = open_workspaces(&options, &enrolled)?;
    let (pool, left_in_pool) = open_pool(&options, enrolled.runner).await?;
    let mut described = capabilities(&serving, pool.as_ref()).await;
    let models = match options.model_server.clone() {
        Some(server) => {
            described.features.push(MODELS_FEATURE.to_owned());
            KnownModels::of(server)
        }
        None => KnownModels::none(),
    };
    let (said, capabilities) = watch::channel(described);
    let guard = Guard::open(options.policy.clone(), said.clone());
    let journal = open_journal(&options)?;
    let (commands, left) = open_commands(&options).await?;
    let sandboxes = sandboxes(commands, &serving, pool.as_ref());
    if let Some(pool) = pool.clone() {
        tokio::spawn(pool.look_after(said.clone()));
    }
    let (operations, service) = OperationsHandle::open(OperationsParts {
        sandboxes,
        pool,
        left: left.into_iter().chain(left_in_pool).collect(),
        journal,
        guard,
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
            let home = options.home.clone();
            tokio::spawn(serving.follow(home, watch, operations.clone(), said));
        }
        Err(error) => {
            tracing::warn!(%error, "a new workspace counts only after a restart of the daemon");
        }
    }
    let link = LinkKeeper {
        endpoints,
        room: room::watch(options.home.clone()),
        home: options.home,
        introduction: Introduction {
            runner: enrolled.runner,
            capabilities,
        },
        model_server: options.model_server,
        models,
        enrolled,
        key,
        operations,
        clock: options.clock,
        entropy: options.entropy,
        backoff: Backoff::new(options.longest_wait),
        goodbye: CancellationToken::new(),
    };
    Ok((link, service))
}

fn say_start(enrolled: &EnrolledHome, endpoints: &Endpoints) {
    tracing::info!(
        runner.id = %enrolled.runner,
        runner.name = enrolled.name,
        servers = endpoints.texts().join(" "),
        "runner starts"
    );
}

fn open_workspaces(
    options: &DaemonOptions,
    enrolled: &EnrolledHome,
) -> Result<ServedWorkspaces, DaemonError> {
    let offers = match options.backend {
        Some(_) => Offers::Pool,
        None => Offers::Workspaces,
    };
    let (facts, environment) = (options.facts.clone(), options.environment.clone());
    let serving =
        ServedWorkspaces::open(enrolled, offers, facts, environment, options.clock.clone())?;
    options.home.note_serving(&serving.served());
    Ok(serving)
}

async fn open_pool(
    options: &DaemonOptions,
    runner: RunnerId,
) -> Result<(Option<ContainerPool>, Remains), DaemonError> {
    let Some(docker) = options.backend.clone() else {
        return Ok((None, Remains::new()));
    };
    let (pool, left) = ContainerPool::open(PoolOptions {
        runner,
        docker,
        root: options.home.sandboxes(),
        supervisor: options.supervisor.clone(),
        clock: options.clock.clone(),
        entropy: options.entropy.clone(),
    })
    .await?;
    Ok((Some(pool), left))
}

async fn capabilities(
    serving: &ServedWorkspaces,
    pool: Option<&ContainerPool>,
) -> v1::Capabilities {
    let mut capabilities = serving.capabilities();
    if let Some(pool) = pool {
        capabilities.pool = Some(pool.facts().await);
    }
    capabilities
}

/// Opens the journal, and logs its repair.
fn open_journal(options: &DaemonOptions) -> Result<OpenedJournal<JournalEntry>, JournalError> {
    let (clock, entropy) = (options.clock.as_ref(), options.entropy.as_ref());
    let opened = Journal::open(&options.home.journal(), clock, entropy)?;
    match &opened.repaired {
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
    Ok(opened)
}

async fn open_commands(options: &DaemonOptions) -> Result<(Processes, Remains), DaemonError> {
    let supervision = ProcessOptions {
        supervisor: options.supervisor.clone(),
        root: options.home.commands(),
        waiting: SUPERVISORS_WAITING,
        kill: KillChoice::Strongest,
        realm: Realm::Host,
    };
    let opened = Processes::open(supervision, options.clock.clone(), &*options.entropy);
    Ok(opened.await?)
}

/// All sandboxes that are served from the start.
fn sandboxes(
    commands: Processes,
    serving: &ServedWorkspaces,
    pool: Option<&ContainerPool>,
) -> ServedSandboxes {
    let mut sandboxes = ServedSandboxes::new(serving.first(), commands);
    for (id, sandbox) in serving.sandboxes() {
        sandboxes.add(id, sandbox);
    }
    for (id, container) in pool.into_iter().flat_map(ContainerPool::sandboxes) {
        sandboxes.add(id, ServedSandbox::Container(container));
    }
    sandboxes
}
