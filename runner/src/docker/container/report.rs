//! The state of a container, as the engine shows it and as the server learns it.

use shared_link::runner::SandboxReport;
use shared_types::SandboxState;

use super::{Container, lock};
use crate::docker::engine::{self, ContainerStatus, EngineError};

impl Container {
    /// Goes on with a container that an earlier daemon has left running.
    pub(in crate::docker) async fn go_on(&self) {
        if self.seems_to_run() {
            return;
        }
        if self.listens().await {
            // A failure is reported.
            let _ = self.ready().await;
        } else if lock(&self.0.told).is_empty()
            && let Ok(_life) = self.0.life.try_lock()
        {
            // It stopped while no daemon was there.
            let reason = self.why_it_stopped().await;
            self.report(SandboxState::Stopped, &reason);
        }
    }

    /// Looks whether a container that is taken to run does, and tells what has changed. `paused`: whether the engine
    /// says that it is paused, or why the engine says nothing.
    pub(in crate::docker) async fn check(&self, paused: Result<bool, &EngineError>) {
        let told = lock(&self.0.told).clone();
        let was_kept = told == self.is_paused() || told == EngineError::Away.to_string();
        let may_go_on = was_kept && matches!(paused, Ok(false));
        if !(self.seems_to_run() || may_go_on) {
            return;
        }
        // The task that stops or starts it now knows better.
        let Ok(life) = self.0.life.try_lock() else {
            return;
        };
        let listens = self.listens().await;
        match (self.seems_to_run(), paused) {
            (true, Ok(true)) => self.has_stopped(&self.is_paused()),
            (true, _) if !listens => {
                let reason = self.why_it_stopped().await;
                self.has_stopped(&reason);
            }
            (true, Err(error)) if told != error.to_string() => {
                self.report(SandboxState::Running, &error.to_string());
            }
            (true, Ok(false)) if !told.is_empty() => self.report(SandboxState::Running, ""),
            // The reason why it did not run is over, or is known only now.
            (false, Ok(false)) if was_kept && listens => {
                drop(life);
                self.go_on().await;
            }
            (false, Ok(false)) if was_kept => {
                let reason = self.why_it_stopped().await;
                self.report(SandboxState::Stopped, &reason);
            }
            _ => {}
        }
    }

    fn has_stopped(&self, reason: &str) {
        if lock(&self.0.running).take().is_none() {
            return;
        }
        tracing::warn!(sandbox.id = %self.0.id, reason, "a sandbox has stopped");
        self.report(SandboxState::Stopped, reason);
    }

    /// The reason of one whose container is paused: nothing in it takes or answers anything.
    pub(super) fn is_paused(&self) -> String {
        let name = engine::name(self.0.body);
        format!("its container is paused: run `docker unpause {name}` on the runner's host")
    }

    /// The reason why a container does not run that was believed to.
    pub(super) async fn why_it_stopped(&self) -> String {
        let found = match self.0.around.engine().await {
            Ok(engine) => engine.find(self.0.body).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(ContainerStatus::Nothing) => {
                "its container was removed by hand; the next operation makes another one with the same files"
                    .to_owned()
            }
            Ok(ContainerStatus::Container {
                out_of_memory: true,
                ..
            }) => "its memory was used up".to_owned(),
            Ok(ContainerStatus::Container { exit_code, .. }) => {
                format!("its container ended (exit code {exit_code}): it was stopped by hand, or its engine was")
            }
            Err(error) => error.to_string(),
        }
    }

    /// Tells of one that an earlier daemon has noted, and has not been looked at yet.
    pub(in crate::docker) fn report_again(&self) {
        let why = lock(&self.0.told).clone();
        self.report(SandboxState::Stopped, &why);
    }

    pub(in crate::docker) fn report(&self, state: SandboxState, reason: &str) {
        if self.0.is_spare {
            return;
        }
        let before = std::mem::replace(&mut *lock(&self.0.told), reason.to_owned());
        // The next daemon reports why it does not run; the state of a running one it finds out again.
        let is_at_rest = matches!(state, SandboxState::Stopped | SandboxState::Failed);
        if before != reason && (is_at_rest || state == SandboxState::Running) {
            self.note();
        }
        let running = lock(&self.0.running).as_ref().map(|one| one.privilege);
        let template = lock(&self.0.spec).template.clone();
        self.0.around.reports.add(SandboxReport {
            sandbox: self.0.id,
            state,
            reason: reason.to_owned(),
            privilege: running.unwrap_or_else(|| self.0.around.privilege(&template)),
        });
    }
}
