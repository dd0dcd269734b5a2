//! What the operator demands that sandboxes keep apart, and whose word on that counts: the server
//! cannot check what a runner reports.

use std::collections::BTreeSet;

use server_store::{Store, StoreError};
use shared_types::{Isolation, RunnerId, TenantId};

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
