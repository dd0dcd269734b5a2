//! One sandbox of the pool: a container that is made and started when something is to happen there.
//!
//! The container itself holds nothing that has to stay: its root cannot be written, its files lie in volumes with
//! its name. So where anything is wrong with a container, another one is made, and goes on with the files.

mod make;
mod note;
mod removal;
mod report;
mod start;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use runner_host::{Inhabited, Inside};
use shared_types::{
    Isolation, Refusal, RefusalCode, SandboxId, SandboxNetwork, SandboxPrivilege, SandboxSpec,
    SandboxState,
};
use tokio::task::JoinHandle;

pub(super) use self::note::Note;
use super::Surroundings;
use crate::processes::Processes;

/// The reason why a sandbox does not run whose template policy forbids.
const SUDO_IS_FORBIDDEN: &str = "its template gives commands root (sudo), and the tenant's or the operator's policy \
    forbids that; choose another template (gantry sandboxes set NAME --template TEMPLATE), or have an admin allow \
    it (gantry config set --tenant sudo allow)";

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Container(Arc<ContainerState>);

#[derive(Debug)]
struct ContainerState {
    id: SandboxId,
    /// By which its container, its volumes and its folder are named: `id`, but of one that was made in advance.
    body: SandboxId,
    around: Arc<Surroundings>,
    folder: PathBuf,
    spec: Mutex<SandboxSpec>,
    /// The reason in the last report.
    told: Mutex<String>,
    /// One writes the note at a time.
    noting: Mutex<()>,
    /// Held while a task does something with the container itself.
    life: tokio::sync::Mutex<()>,
    running: Mutex<Option<RunningContainer>>,
    /// When something happened there last, on the clock that goes on while the host is suspended.
    used_at: Mutex<Duration>,
    /// It was removed, or became a sandbox; another one may have its id by now.
    gone: AtomicBool,
    /// It is no sandbox yet, and may be none ever: the server does not know it.
    is_spare: bool,
    /// The removal of the one that had its id before.
    after: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// The parts of a container while it runs. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct RunningContainer {
    /// Runs its commands.
    pub(crate) processes: Processes,
    /// Serves its files.
    pub(crate) files: Inside,
    /// The facts about it.
    pub(crate) inhabited: Arc<Inhabited>,
    /// The privilege that its commands have.
    pub(crate) privilege: SandboxPrivilege,
}

impl Container {
    /// A sandbox with this specification; nothing is started. Where its folder cannot be written, the next daemon
    /// does not know it, and gets its specification from the server again.
    pub(super) fn new(
        id: SandboxId,
        spec: SandboxSpec,
        around: Arc<Surroundings>,
        after: Option<JoinHandle<()>>,
    ) -> Self {
        let container = Self::with_body(id, id, spec, around, false);
        if let Ok(mut removal) = container.0.after.try_lock() {
            *removal = after;
        }
        container.note();
        container
    }

    /// One that is no sandbox: it is tried out, or waits to become one.
    pub(super) fn spare(spec: SandboxSpec, around: Arc<Surroundings>) -> Self {
        let id = SandboxId::generate(&*around.clock, &*around.entropy);
        let container = Self::with_body(id, id, spec, around, true);
        container.note();
        container
    }

    /// One that an earlier daemon has noted in the folder of this body.
    pub(super) fn again(body: SandboxId, note: Note, around: Arc<Surroundings>) -> Self {
        let is_spare = note.sandbox.is_none();
        let id = note.sandbox.unwrap_or(body);
        let container = Self::with_body(id, body, note.spec, around, is_spare);
        *lock(&container.0.told) = note.why;
        container
    }

    fn with_body(
        id: SandboxId,
        body: SandboxId,
        spec: SandboxSpec,
        around: Arc<Surroundings>,
        is_spare: bool,
    ) -> Self {
        let folder = around.root.join(body.to_string());
        let used_at = Mutex::new(around.clock.boot_time());
        Self(Arc::new(ContainerState {
            id,
            body,
            around,
            folder,
            spec: Mutex::new(spec),
            told: Mutex::default(),
            noting: Mutex::default(),
            life: tokio::sync::Mutex::default(),
            running: Mutex::default(),
            used_at,
            gone: AtomicBool::new(false),
            is_spare,
            after: tokio::sync::Mutex::default(),
        }))
    }

    /// Makes this spare one, which runs, the sandbox `id`; `None` where it differs from the spec, does not
    /// run, or that cannot be noted.
    pub(super) fn become_sandbox(&self, id: SandboxId, spec: &SandboxSpec) -> Option<Self> {
        // A start that is under way writes the note too.
        let _life = self.0.life.try_lock().ok()?;
        let running = lock(&self.0.running).clone()?;
        let mut named_alike = SandboxSpec {
            name: spec.name.clone(),
            ..lock(&self.0.spec).clone()
        };
        if running.privilege == SandboxPrivilege::Strict {
            named_alike.may_sudo = spec.may_sudo;
        }
        if named_alike != *spec {
            return None;
        }
        let around = Arc::clone(&self.0.around);
        let sandbox = Self::with_body(id, self.0.body, spec.clone(), around, false);
        self.0.gone.store(true, Ordering::Relaxed);
        // Before anything is put into its volumes, which are found by this alone.
        if let Err(error) = sandbox.try_to_note() {
            tracing::warn!(%error, "failed to note a sandbox");
            self.0.gone.store(false, Ordering::Relaxed);
            return None;
        }
        *lock(&sandbox.0.running) = Some(running);
        Some(sandbox)
    }

    /// True if it was removed, or became another one.
    fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Relaxed)
    }

    /// The id by which its container, its volumes and its folder are named.
    pub(super) fn body(&self) -> SandboxId {
        self.0.body
    }

    /// The id of the sandbox.
    pub(super) fn id(&self) -> SandboxId {
        self.0.id
    }

    /// True if it is no sandbox.
    pub(super) fn is_spare(&self) -> bool {
        self.0.is_spare
    }

    /// True if it is made from this template.
    pub(super) fn is_made_from(&self, template: &str) -> bool {
        lock(&self.0.spec).template == template
    }

    /// The root of its files, as its commands know it.
    pub(crate) fn root(&self) -> &'static str {
        make::WORKSPACE
    }

    /// The isolation that is proved for the pool.
    pub(crate) fn isolation(&self) -> Isolation {
        lock(&self.0.around.isolation).clone()
    }

    /// True if it has a network from its next start on.
    pub(crate) fn wants_network(&self) -> bool {
        lock(&self.0.spec).network == SandboxNetwork::Open
    }

    /// The folder of what is known of it.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &std::path::Path {
        &self.0.folder
    }

    /// The folder of its operations.
    pub(super) fn operations(&self) -> PathBuf {
        self.0.folder.join("operations")
    }

    /// It is to be like this from its next start on. One whose commands may be root, and may not any more, is
    /// stopped.
    pub(super) fn become_like(&self, spec: SandboxSpec) {
        let may_sudo = spec.may_sudo;
        let changed = {
            let mut before = lock(&self.0.spec);
            let changed = *before != spec;
            *before = spec;
            changed
        };
        if changed {
            self.note();
        }
        let running = lock(&self.0.running).clone();
        if !may_sudo && running.is_some_and(|one| one.privilege == SandboxPrivilege::Sudo) {
            self.forget_running();
            let container = self.clone();
            tokio::spawn(async move { container.stop(SUDO_IS_FORBIDDEN).await });
        }
    }

    /// Its parts, where it is known to run.
    pub(crate) fn running(&self) -> Option<RunningContainer> {
        let running = lock(&self.0.running);
        if running.is_some() {
            // Before the lock is gone: nothing that is about to happen there is taken for idle.
            self.is_used();
        }
        running.clone()
    }

    /// Something happens there.
    pub(super) fn is_used(&self) {
        *lock(&self.0.used_at) = self.0.around.clock.boot_time();
    }

    /// True if it runs and nothing has happened there for as long as it may be idle. It is about to be stopped then,
    /// and an operation from now on starts it again.
    pub(super) fn falls_idle(&self) -> bool {
        let idle_for = lock(&self.0.spec).limits.idle_for();
        let mut running = lock(&self.0.running);
        let used_at = *lock(&self.0.used_at);
        let now = self.0.around.clock.boot_time();
        now.saturating_sub(used_at) >= idle_for && running.take().is_some()
    }

    /// It is about to be stopped: an operation from now on starts it again.
    pub(super) fn forget_running(&self) {
        lock(&self.0.running).take();
    }

    /// True if it is believed to run.
    pub(super) fn seems_to_run(&self) -> bool {
        lock(&self.0.running).is_some()
    }

    /// Waits until it runs, and starts it where it does not.
    ///
    /// # Errors
    /// The reason why it cannot run; nothing of the operation was done.
    pub(crate) async fn ready(&self) -> Result<RunningContainer, Refusal> {
        if let Some(running) = self.running()
            && self.listens().await
        {
            return Ok(running);
        }
        let _life = self.0.life.lock().await;
        let mut why = String::new();
        if let Some(running) = self.running() {
            if self.listens().await {
                return Ok(running);
            }
            lock(&self.0.running).take();
            why = self.why_it_stopped().await;
        }
        if let Some(removal) = self.0.after.lock().await.take() {
            // One that panicked has removed what it could.
            let _ = removal.await;
        }
        if self.is_gone() {
            let message = "the sandbox was removed; send the operation again";
            return Err(Refusal::new(RefusalCode::Unavailable, message));
        }
        let started = match self.start(&why).await {
            Ok(running) => {
                *lock(&self.0.running) = Some(running.clone());
                let stopped = self.stop_if_forbidden(&running).await;
                stopped.map(|()| running)
            }
            Err(reason) => Err(reason),
        };
        match started {
            Ok(running) => {
                self.is_used();
                self.report(SandboxState::Running, "");
                Ok(running)
            }
            Err(reason) => {
                tracing::warn!(sandbox.id = %self.0.id, reason, "failed to start a sandbox");
                self.report(SandboxState::Failed, &reason);
                let name = lock(&self.0.spec).name.clone();
                let message = format!("sandbox {name:?} cannot be started: {reason}");
                Err(Refusal::new(RefusalCode::Unavailable, message))
            }
        }
    }

    /// Stops it, with the commands that run there. An operation that comes in that time waits, and starts it again.
    pub(super) async fn stop(&self, reason: &str) {
        self.forget_running();
        let _life = self.0.life.lock().await;
        // A start that was under way has just come to its end.
        self.forget_running();
        self.stop_now(reason).await;
    }

    /// Stops one that has fallen idle, unless something came before and has it run again.
    pub(super) async fn rest(&self) {
        let _life = self.0.life.lock().await;
        if !self.seems_to_run() {
            self.stop_now("it was idle").await;
        }
    }

    async fn stop_now(&self, reason: &str) {
        let stopped = match self.0.around.engine().await {
            Ok(engine) => engine.stop(self.0.body).await,
            Err(error) => Err(error),
        };
        match stopped {
            Ok(()) => {
                tracing::info!(sandbox.id = %self.0.id, reason, "a sandbox is stopped");
                self.report(SandboxState::Stopped, reason);
            }
            Err(error) => {
                tracing::warn!(sandbox.id = %self.0.id, %error, "failed to stop a sandbox");
                self.report(
                    SandboxState::Failed,
                    &format!("it cannot be stopped: {error}"),
                );
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
