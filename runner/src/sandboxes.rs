//! The sandboxes of this runner: for each, what serves its files and what runs its commands.
//!
//! Operations ask a [`ServedSandbox`] for what they need, and do not see which kind it is. So another kind is
//! another variant here, and nothing else changes. All workspaces are folders of this host: each has a
//! [`Host`] of its own, and their commands share one folder of supervisors. Each container has its own of
//! both.

use std::{collections::HashMap, time::Duration};

use runner_host::{
    Change, CommandPlan, Host, Inside, Performing, SettledChange, There, Unplanned, Uploading,
};
use shared_sandbox::{Download, Exec, Outcome, Pack, Request, Unpack, Upload};
use shared_types::{Refusal, RefusalCode, SandboxId};
use tokio::task::spawn_blocking;

use crate::{docker::Container, processes::Processes};

/// The place where operations of one sandbox happen. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum ServedSandbox {
    /// A folder of this host.
    Workspace(Host),
    /// A container on this host, which may have to be started first.
    Container(Container),
}

/// A command that is worked out, and what is to run it.
pub(crate) type Planned = (CommandPlan, Processes);

/// All sandboxes that are served, by id.
#[derive(Debug)]
pub(crate) struct ServedSandboxes {
    first: SandboxId,
    commands: Processes,
    served: HashMap<SandboxId, ServedSandbox>,
}

impl ServedSandboxes {
    /// None yet. `first` is the sandbox of what a runner wrote down that had only one; the commands of
    /// workspaces are run by `commands`.
    pub(crate) fn new(first: SandboxId, commands: Processes) -> Self {
        Self {
            first,
            commands,
            served: HashMap::new(),
        }
    }

    /// The sandbox of what a runner wrote down that had only one.
    pub(crate) fn first(&self) -> SandboxId {
        self.first
    }

    /// The processes of workspaces' commands, with those that earlier daemons left.
    pub(crate) fn commands(&self) -> &Processes {
        &self.commands
    }

    /// Serves a sandbox from now on; one with the same id is replaced.
    pub(crate) fn add(&mut self, id: SandboxId, sandbox: ServedSandbox) {
        self.served.insert(id, sandbox);
    }

    /// Serves a sandbox no longer. What is under way there goes on.
    pub(crate) fn remove(&mut self, id: SandboxId) {
        self.served.remove(&id);
    }

    /// The sandbox with this id, where it is served.
    pub(crate) fn get(&self, id: SandboxId) -> Option<&ServedSandbox> {
        self.served.get(&id)
    }

    /// The ids of all that are served.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SandboxId> {
        self.served.keys().copied()
    }

    /// The plan of a command, where it needs no wait.
    pub(crate) fn plan_at_once(&self, sandbox: &ServedSandbox, exec: &Exec) -> Option<Planned> {
        match sandbox {
            ServedSandbox::Workspace(host) => {
                Some((host.plan_at_once(exec)?, self.commands.clone()))
            }
            ServedSandbox::Container(container) => {
                let running = container.running()?;
                Some((running.inhabited.plan(exec).ok()?, running.processes))
            }
        }
    }

    /// The plan of a command: waits for the host's file system, and until the sandbox is there.
    pub(crate) fn plan(
        &self,
        sandbox: ServedSandbox,
        exec: Exec,
    ) -> impl Future<Output = Result<Planned, Unplanned>> + Send + 'static {
        let commands = self.commands.clone();
        async move {
            match sandbox {
                ServedSandbox::Workspace(host) => {
                    let plan = spawn_blocking(move || host.plan(&exec)).await;
                    let plan = plan.unwrap_or_else(|error| {
                        tracing::error!(%error, "failed to plan a command");
                        Err(Unplanned::Refused(failed_inside()))
                    });
                    Ok((plan?, commands))
                }
                ServedSandbox::Container(container) => {
                    let running = container.ready().await.map_err(Unplanned::Refused)?;
                    Ok((running.inhabited.plan(&exec)?, running.processes))
                }
            }
        }
    }
}

fn failed_inside() -> Refusal {
    let message = "the runner failed inside before the command started; its log says how";
    Refusal::new(RefusalCode::Fenced, message)
}

impl ServedSandbox {
    /// True for a container that has a network from its next start on.
    pub(crate) fn wants_network(&self) -> bool {
        matches!(self, Self::Container(container) if container.wants_network())
    }

    /// Performs a request for files: [`Host::perform`].
    pub(crate) fn perform(&self, request: Request, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.perform(request, run_for),
            Self::Container(container) => {
                let act = move |files: &Inside| files.perform(request, run_for);
                in_container(container, act)
            }
        }
    }

    /// Serves a file: [`Host::download`].
    pub(crate) fn download(&self, download: Download, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.download(download, run_for),
            Self::Container(container) => {
                let act = move |files: &Inside| files.download(download, run_for);
                in_container(container, act)
            }
        }
    }

    /// Serves many files in an archive: [`Host::pack`].
    pub(crate) fn pack(&self, pack: Pack, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.pack(pack, run_for),
            Self::Container(container) => {
                let act = move |files: &Inside| files.pack(pack, run_for);
                in_container(container, act)
            }
        }
    }

    /// Takes a file: [`Host::upload`].
    pub(crate) fn upload(&self, upload: Upload, run_for: Duration) -> Uploading {
        match self {
            Self::Workspace(host) => host.upload(upload, run_for),
            Self::Container(container) => {
                let act = move |files: &Inside| files.upload(upload, run_for);
                into_container(container, act)
            }
        }
    }

    /// Takes many files in an archive: [`Host::unpack`].
    pub(crate) fn unpack(&self, unpack: Unpack, run_for: Duration) -> Uploading {
        match self {
            Self::Workspace(host) => host.unpack(unpack, run_for),
            Self::Container(container) => {
                let act = move |files: &Inside| files.unpack(unpack, run_for);
                into_container(container, act)
            }
        }
    }

    /// Finds out what became of a change whose maker died: [`Host::settle`].
    pub(crate) async fn settle(&self, change: Change, later: Vec<Option<There>>) -> SettledChange {
        match self {
            Self::Workspace(host) => host.settle(change, later).await,
            Self::Container(container) => match container.ready().await {
                Ok(running) => running.files.settle(change, later).await,
                Err(_) => SettledChange::Unclear,
            },
        }
    }
}

/// Performs it now where the container runs, else once it does.
fn in_container(
    container: &Container,
    act: impl FnOnce(&Inside) -> Performing + Send + 'static,
) -> Performing {
    if let Some(running) = container.running() {
        return act(&running.files);
    }
    let container = container.clone();
    Performing::later(async move {
        let running = container.ready().await.map_err(Outcome::Refused)?;
        Ok(act(&running.files))
    })
}

/// The same for what takes input.
fn into_container(
    container: &Container,
    act: impl FnOnce(&Inside) -> Uploading + Send + 'static,
) -> Uploading {
    if let Some(running) = container.running() {
        return act(&running.files);
    }
    let container = container.clone();
    Uploading::later(async move {
        let running = container.ready().await.map_err(Outcome::Refused)?;
        Ok(act(&running.files))
    })
}
