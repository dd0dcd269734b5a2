//! The workspaces that the daemon serves: those of its home that can be used, from its start on and
//! whenever the home changes.
//!
//! A workspace that cannot be used is named all the same, with the reason: a user who chose it must
//! not end up in another one.

use std::{collections::BTreeMap, sync::Arc};

use proto::v1;
use runner_host::{Host, HostOptions, WorkspaceError};
use shared_types::{Clock, RunnerId, SandboxId, limits::FILE_OPERATION_WITHIN};
use tokio::sync::watch;

use super::HostFacts;
use crate::{
    home::{EnrolledHome, FileWatch, Home, HomeError, Served, WorkspaceFolder},
    operations::OperationsHandle,
    sandboxes::ServedSandbox,
    workspaces,
};

/// The sandboxes that a daemon lets the server use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offers {
    /// The folders of its home.
    Workspaces,
    /// Sandboxes of a pool, and no folder of the host.
    Pool,
}

/// The workspaces of a daemon.
pub(super) struct ServedWorkspaces {
    runner: RunnerId,
    offers: Offers,
    facts: HostFacts,
    environment: BTreeMap<String, String>,
    clock: Arc<dyn Clock>,
    known: Vec<KnownWorkspace>,
}

struct KnownWorkspace {
    workspace: WorkspaceFolder,
    host: Result<Host, String>,
}

impl ServedWorkspaces {
    /// Opens the workspaces of a home.
    ///
    /// # Errors
    /// None of them can be used; it says why the first one cannot.
    pub(super) fn open(
        enrolled: &EnrolledHome,
        offers: Offers,
        facts: HostFacts,
        environment: BTreeMap<String, String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorkspaceError> {
        let mut serving = Self {
            runner: enrolled.runner,
            offers,
            facts,
            environment,
            clock,
            known: Vec::new(),
        };
        let mut first_error = None;
        for workspace in serving.wanted(enrolled) {
            let opened = serving.open_one(&workspace);
            let host = opened.map_err(|error| {
                let problem = error.to_string();
                first_error.get_or_insert(error);
                problem
            });
            serving.add(workspace, host);
        }
        match first_error {
            Some(error) if serving.hosts().next().is_none() => Err(error),
            _ => Ok(serving),
        }
    }

    fn wanted(&self, enrolled: &EnrolledHome) -> Vec<WorkspaceFolder> {
        match self.offers {
            Offers::Workspaces => workspaces::usable_of(enrolled),
            Offers::Pool => Vec::new(),
        }
    }

    /// The sandbox that the operations of the first workspace name.
    pub(super) fn first(&self) -> SandboxId {
        self.id(crate::home::FIRST_WORKSPACE)
    }

    /// All that can be used.
    pub(super) fn sandboxes(&self) -> impl Iterator<Item = (SandboxId, ServedSandbox)> {
        let usable = self.known.iter().filter_map(|known| {
            let host = known.host.as_ref().ok()?;
            Some((&known.workspace, host))
        });
        usable.map(|(workspace, host)| {
            (
                self.id(&workspace.name),
                ServedSandbox::Workspace(host.clone()),
            )
        })
    }

    /// The runner's description of itself.
    pub(super) fn capabilities(&self) -> v1::Capabilities {
        let sandbox = |known: &KnownWorkspace| v1::Sandbox {
            sandbox: self.id(&known.workspace.name).to_string(),
            name: known.workspace.name.clone(),
            root: known.workspace.folder.display().to_string(),
            isolation: match &known.host {
                Ok(host) => host.isolation().to_string(),
                Err(_) => shared_types::Isolation::none().to_string(),
            },
            problem: known.host.as_ref().err().cloned().unwrap_or_default(),
        };
        v1::Capabilities {
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            hostname: self.facts.hostname.clone(),
            sandboxes: self.known.iter().map(sandbox).collect(),
            features: Vec::new(),
            pool: None,
            ceiling: 0,
        }
    }

    /// The workspaces as they are noted for people.
    pub(super) fn served(&self) -> Vec<Served> {
        let served = |known: &KnownWorkspace| Served {
            name: known.workspace.name.clone(),
            folder: known.workspace.folder.clone(),
            problem: known.host.as_ref().err().cloned(),
        };
        self.known.iter().map(served).collect()
    }

    /// Takes up each change of the home: first the operations know it, then the server. Ends where
    /// the kernel reports no more changes.
    pub(super) async fn follow(
        mut self,
        home: Home,
        mut watch: FileWatch,
        operations: OperationsHandle,
        said: watch::Sender<v1::Capabilities>,
    ) {
        while let Ok(()) = watch.changed().await {
            match home.enrolled() {
                Ok(Some(enrolled)) if enrolled.runner == self.runner => {
                    self.take_up(&enrolled, &operations).await;
                    let mut now = self.capabilities();
                    said.send_if_modified(|before| {
                        now.pool.clone_from(&before.pool);
                        now.features.clone_from(&before.features);
                        now.ceiling = before.ceiling;
                        let changed = *before != now;
                        *before = now;
                        changed
                    });
                    home.note_serving(&self.served());
                }
                // A home that is being enrolled again is no business of this daemon's.
                Ok(_) => {}
                Err(error) => untold(&error),
            }
        }
    }

    async fn take_up(&mut self, enrolled: &EnrolledHome, operations: &OperationsHandle) {
        let wanted = self.wanted(enrolled);
        for before in std::mem::take(&mut self.known) {
            let id = self.id(&before.workspace.name);
            match (wanted.contains(&before.workspace), before.host.is_ok()) {
                (true, true) => self.known.push(before),
                (true, false) => {}
                (false, _) => {
                    operations.remove_sandbox(id).await;
                    let WorkspaceFolder { name, folder } = &before.workspace;
                    tracing::info!(workspace.name = name, workspace = %folder.display(), "a workspace is not served any more");
                }
            }
        }
        let mut kept = std::mem::take(&mut self.known);
        for workspace in wanted {
            match kept.iter().position(|known| known.workspace == workspace) {
                Some(at) => {
                    let known = kept.swap_remove(at);
                    self.known.push(known);
                }
                None => {
                    // One that is kept may be needed to open another beside it.
                    let beside = self.hosts().chain(hosts(&kept)).next().cloned();
                    let opened = self.open_beside(beside.as_ref(), &workspace);
                    let host = opened.map_err(|error| error.to_string());
                    if let Ok(host) = &host {
                        let id = self.id(&workspace.name);
                        let sandbox = ServedSandbox::Workspace(host.clone());
                        operations.add_sandbox(id, sandbox).await;
                    }
                    self.add(workspace, host);
                }
            }
        }
    }

    fn add(&mut self, workspace: WorkspaceFolder, host: Result<Host, String>) {
        let WorkspaceFolder { name, folder } = &workspace;
        match &host {
            Ok(host) => tracing::info!(
                workspace.name = name,
                workspace = %folder.display(),
                isolation = %host.isolation(),
                "a workspace is served"
            ),
            Err(error) => tracing::error!(
                workspace.name = name,
                workspace = %folder.display(),
                error,
                "a workspace is not served; once it can be used, restart the daemon"
            ),
        }
        self.known.push(KnownWorkspace { workspace, host });
    }

    fn open_one(&self, workspace: &WorkspaceFolder) -> Result<Host, WorkspaceError> {
        self.open_beside(self.hosts().next(), workspace)
    }

    fn open_beside(
        &self,
        beside: Option<&Host>,
        workspace: &WorkspaceFolder,
    ) -> Result<Host, WorkspaceError> {
        if let Some(host) = beside {
            return host.beside(&workspace.folder);
        }
        let options = HostOptions {
            root: workspace.folder.clone(),
            environment: self.environment.clone(),
            file_operation_within: FILE_OPERATION_WITHIN,
        };
        Host::open(options, Arc::clone(&self.clock))
    }

    fn hosts(&self) -> impl Iterator<Item = &Host> {
        hosts(&self.known)
    }

    fn id(&self, name: &str) -> SandboxId {
        SandboxId::derive(self.runner, name)
    }
}

fn hosts(known: &[KnownWorkspace]) -> impl Iterator<Item = &Host> {
    known.iter().filter_map(|known| known.host.as_ref().ok())
}

fn untold(error: &HomeError) {
    tracing::error!(%error, "the home has changed and cannot be read; what was served stays so");
}
