//! What the operator demands that sandboxes keep apart, and whose word on that counts: the server
//! cannot check what a runner reports.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use server_router::links::Links;
use server_store::{Store, StoreError};
use shared_types::{Isolation, ReplicaId, RunnerId, SandboxSpec, TenantId};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

/// How often it is looked for sandboxes that policy forbids: what other replicas were told is found so, and runners
/// that come back.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why nothing happens in a sandbox whose template, or which itself, is named before this.
pub(crate) const SUDO_IS_FORBIDDEN: &str = "gives commands root (sudo), and the tenant's or the operator's policy \
    forbids that; choose another template (gantry sandboxes set RUNNER --template TEMPLATE), or have an admin \
    allow it (gantry config set --tenant sudo allow)";

/// The operator's policy. The default demands nothing and believes no runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationPolicy {
    /// What every sandbox has to keep apart before work goes there.
    pub at_least: Isolation,
    /// The runners whose word counts. By id: another runner may come to have a name.
    pub believed: BTreeSet<RunnerId>,
    /// Whether no command of any tenant may be root in its sandbox.
    pub forbids_sudo: bool,
}

impl IsolationPolicy {
    /// Whether commands of this tenant may be root in their sandbox: neither the operator nor the tenant forbids it.
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

    /// Whether what this runner reports counts.
    pub(crate) fn believes(&self, runner: RunnerId) -> bool {
        self.believed.contains(&runner)
    }
}

/// Has runners stop sandboxes whose commands may be root, once policy forbids that.
pub(crate) struct Forbidding {
    pub(crate) store: Store,
    pub(crate) links: Links,
    pub(crate) policy: Arc<IsolationPolicy>,
    pub(crate) replica: ReplicaId,
    /// A tenant's policy has changed here.
    pub(crate) changed: Arc<Notify>,
}

impl Forbidding {
    /// Looks now and again, until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
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

    /// What is told here and not done is found again, because it still runs.
    async fn look(&self) -> Result<(), StoreError> {
        let of_all = self.policy.forbids_sudo;
        let found = self.store.forbidden_sandboxes(self.replica, of_all).await?;
        for (runner, sandbox, spec) in found {
            let spec = SandboxSpec {
                may_sudo: false,
                ..spec
            };
            let told = self.links.ensure_sandbox(runner, (sandbox, &spec), false);
            told.await;
        }
        Ok(())
    }
}
