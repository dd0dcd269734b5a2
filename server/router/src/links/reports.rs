//! A runner's reports about the sandboxes of its pool and about its models: stored beside the link, which does not
//! wait for the store.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared_link::server::{MAX_REPORTS, ModelsReport, SandboxReport};
use shared_types::SandboxId;
use tokio::{
    sync::Notify,
    time::{Duration, sleep},
};

use super::{LinkIdentity, LinkServices, handle::LinkHandle};

/// The pause before a store that did not answer is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Reports that are not stored yet: the last one of each sandbox, and no more than one link may have waiting.
#[derive(Debug, Default)]
pub(super) struct Reports {
    new: Mutex<HashMap<SandboxId, SandboxReport>>,
    models: Mutex<Option<ModelsReport>>,
    changed: Notify,
}

/// Stores the reports for as long as the link is there.
pub(super) struct Reporting {
    pub(super) reports: Arc<Reports>,
    pub(super) serving: Arc<LinkServices>,
    pub(super) who: Arc<LinkIdentity>,
    pub(super) link: LinkHandle,
}

impl Reports {
    pub(super) fn add(&self, reports: Vec<SandboxReport>) {
        if reports.is_empty() {
            return;
        }
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        for report in reports {
            if new.len() < MAX_REPORTS || new.contains_key(&report.sandbox) {
                new.insert(report.sandbox, report);
            }
        }
        drop(new);
        self.changed.notify_one();
    }

    /// Adds a report of the models, in place of one that is not stored yet.
    pub(super) fn add_models(&self, report: Option<ModelsReport>) {
        if report.is_some() {
            *self.models() = report;
            self.changed.notify_one();
        }
    }

    fn models(&self) -> MutexGuard<'_, Option<ModelsReport>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> HashMap<SandboxId, SandboxReport> {
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reporting {
    /// Runs until it is aborted.
    pub(super) async fn run(self) {
        loop {
            for report in self.reports.take().into_values() {
                self.store(report).await;
            }
            self.store_models().await;
            self.reports.changed.notified().await;
        }
    }

    async fn store_models(&self) {
        let link = self.link.generation();
        loop {
            // The newest, also where the store was away for long.
            let taken = self.reports.models().take();
            let Some(report) = taken else {
                return;
            };
            let Err(error) = self.serving.rows.models(&self.who, link, &report).await else {
                continue;
            };
            tracing::warn!(runner.id = %self.who.runner, %error, "failed to store the models of a runner");
            self.reports.models().get_or_insert(report);
            sleep(AGAIN_AFTER).await;
        }
    }

    async fn store(&self, report: SandboxReport) {
        loop {
            match self.serving.rows.reported(&self.who, &report).await {
                Ok(false) => return,
                Ok(true) => {
                    // If the link is gone, the reports of the next one lead here again.
                    let _ = self.link.remove_sandbox(report.sandbox).await;
                    return;
                }
                Err(error) => {
                    tracing::warn!(sandbox.id = %report.sandbox, %error, "failed to store how a sandbox is");
                    sleep(AGAIN_AFTER).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{SandboxPrivilege, SandboxState};

    use super::*;

    fn report(sandbox: u128, reason: &str) -> SandboxReport {
        SandboxReport {
            sandbox: SandboxId::from_u128(sandbox),
            state: SandboxState::Failed,
            reason: reason.to_owned(),
            privilege: SandboxPrivilege::Strict,
        }
    }

    #[test]
    fn while_the_store_is_slow_no_more_reports_wait_than_a_pool_can_have_and_of_each_the_last() {
        let reports = Reports::default();
        for sandbox in 0..MAX_REPORTS as u128 + 10 {
            reports.add(vec![report(sandbox, "first")]);
        }
        reports.add(vec![report(1, "last")]);
        let waiting = reports.take();
        assert_eq!(waiting.len(), MAX_REPORTS);
        assert_eq!(waiting[&SandboxId::from_u128(1)].reason, "last");
        reports.add(vec![report(MAX_REPORTS as u128 + 1, "later")]);
        assert_eq!(reports.take().len(), 1, "there is room again");
    }
}
