//! The sandboxes of this runner: for each, what serves its files and what runs its commands.
//!
//! Operations ask a [`Sandbox`] for what they need, and do not see which kind it is. So another kind is
//! another variant here, and nothing else changes. All workspaces are folders of this host: each has a
//! [`Host`] of its own, and their commands share one folder of supervisors.

use std::{collections::HashMap, time::Duration};

use runner_host::{Change, Host, Performing, Plan, Settled, There, Unplanned, Uploading};
use shared_sandbox::{Download, Exec, Pack, Request, Unpack, Upload};
use shared_types::SandboxId;

use crate::processes::{Processes, Spool};

/// Where operations of one sandbox happen. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Sandbox {
    /// A folder of this host.
    Workspace(Host),
}

/// All sandboxes that are served, by id.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    first: SandboxId,
    commands: Processes,
    served: HashMap<SandboxId, Sandbox>,
}

impl Sandboxes {
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

    /// What runs the commands of workspaces, and keeps what earlier daemons left of them.
    pub(crate) fn commands(&self) -> &Processes {
        &self.commands
    }

    /// Removes what is kept of a command that is forgotten.
    pub(crate) fn forget(&self, spool: Spool) {
        match spool.path().starts_with(self.commands.root()) {
            true => self.commands.forget(spool),
            false => spool.remove(),
        }
    }

    /// Serves a sandbox from now on; one with the same id is replaced.
    pub(crate) fn add(&mut self, id: SandboxId, sandbox: Sandbox) {
        self.served.insert(id, sandbox);
    }

    /// Serves a sandbox no longer. What is under way there goes on.
    pub(crate) fn remove(&mut self, id: SandboxId) {
        self.served.remove(&id);
    }

    /// The sandbox with this id, where it is served.
    pub(crate) fn get(&self, id: SandboxId) -> Option<&Sandbox> {
        self.served.get(&id)
    }

    /// The ids of all that are served.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SandboxId> {
        self.served.keys().copied()
    }

    /// What runs the commands of this sandbox.
    pub(crate) fn processes<'a>(&'a self, sandbox: &'a Sandbox) -> &'a Processes {
        match sandbox {
            Sandbox::Workspace(_) => &self.commands,
        }
    }
}

impl Sandbox {
    /// What it takes to run a command here: [`Host::plan`].
    pub(crate) fn plan(&self, exec: &Exec) -> Result<Plan, Unplanned> {
        match self {
            Self::Workspace(host) => host.plan(exec),
        }
    }

    /// The same where nothing has to be waited for: [`Host::plan_at_once`].
    pub(crate) fn plan_at_once(&self, exec: &Exec) -> Option<Plan> {
        match self {
            Self::Workspace(host) => host.plan_at_once(exec),
        }
    }

    /// Performs a request for files: [`Host::perform`].
    pub(crate) fn perform(&self, request: Request, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.perform(request, run_for),
        }
    }

    /// Serves a file: [`Host::download`].
    pub(crate) fn download(&self, download: Download, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.download(download, run_for),
        }
    }

    /// Serves many files in an archive: [`Host::pack`].
    pub(crate) fn pack(&self, pack: Pack, run_for: Duration) -> Performing {
        match self {
            Self::Workspace(host) => host.pack(pack, run_for),
        }
    }

    /// Takes a file: [`Host::upload`].
    pub(crate) fn upload(&self, upload: Upload, run_for: Duration) -> Uploading {
        match self {
            Self::Workspace(host) => host.upload(upload, run_for),
        }
    }

    /// Takes many files in an archive: [`Host::unpack`].
    pub(crate) fn unpack(&self, unpack: Unpack, run_for: Duration) -> Uploading {
        match self {
            Self::Workspace(host) => host.unpack(unpack, run_for),
        }
    }

    /// Finds out what became of a change whose maker died: [`Host::settle`].
    pub(crate) async fn settle(&self, change: Change, later: Vec<Option<There>>) -> Settled {
        match self {
            Self::Workspace(host) => host.settle(change, later).await,
        }
    }
}
