//! The isolation that the operator demands of sandboxes, and the runners whose reports of it count:
//! the server cannot check a report.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use server_router::links::Links;
use server_store::{Store, StoreError};
use shared_types::{Isolation, ReplicaId, RunnerId, SandboxSpec, TenantId};
use tokio::{sync::Notify, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Parts, settings::Settings};

/// The pause between two searches for sandboxes that policy forbids. A search finds those whose policy another
/// replica changed, and those of runners that link again.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The reason that nothing happens in a sandbox. The name of the sandbox or of its template goes
/// before it.
pub(crate) const SUDO_IS_FORBIDDEN: &str = "gives commands root (sudo), and the tenant's or the operator's policy \
    forbids that; choose another template (gantry sandboxes set RUNNER --template TEMPLATE), or have an admin \
    allow it (gantry config set --tenant sudo allow)";

/// The operator's policy. The default demands nothing and believes no runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationPolicy {
    /// The isolation that every sandbox must have before work goes there.
    pub at_least: Isolation,
    /// The runners whose word counts. By id: another runner may come to have a name.
    pub believed: BTreeSet<RunnerId>,
    /// True if no command of any tenant may be root in its sandbox.
    pub forbids_sudo: bool,
}

impl IsolationPolicy {
    /// True if commands of this tenant may be root in their sandbox: neither the operator nor the tenant forbids it.
    ///
    /// # Errors
    /// If the tenant's settings cannot be read.
    pub(crate) async fn may_sudo(
        &self,
        store: &Store,
        tenant: TenantId,
    ) -> Result<bool, StoreError> {
        Ok(!self.forbids_sudo && store.may_sudo(tenant).await?)
    }
}

/// Has runners stop sandboxes whose commands may be root, once policy forbids that.
pub(crate) struct Forbidding {
    store: Store,
    links: Links,
    policy: Arc<IsolationPolicy>,
    replica: ReplicaId,
    /// A tenant's policy has changed here.
    changed: Arc<Notify>,
}

impl Forbidding {
    pub(crate) fn start(parts: &Parts, links: &Links, settings: &Settings, tasks: &TaskTracker) {
        let forbidding = Self {
            store: parts.store.clone(),
            links: links.clone(),
            policy: parts.isolation.clone(),
            replica: parts.replica,
            changed: settings.policy_changed(),
        };
        tasks.spawn(forbidding.run(parts.stop.clone()));
    }

    /// Looks now and again, until `stop`.
    async fn run(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "sandboxes whose root is forbidden cannot be found; looking again");
            }
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = self.changed.notified() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Tells the runners of forbidden sandboxes. A sandbox whose runner did not act still runs, so
    /// the next search finds it again.
    async fn look(&self) -> Result<(), StoreError> {
        let of_all = self.policy.forbids_sudo;
        let found = self.store.forbidden_sandboxes(self.replica, of_all).await?;
        for (runner, sandbox, spec) in found {
            let spec = SandboxSpec {
                may_sudo: false,
                ..spec
            };
            let told = self.links.ensure_sandbox(runner, sandbox, &spec, false);
            told.await;
        }
        Ok(())
    }
}
