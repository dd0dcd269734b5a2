//! What the operator demands that sandboxes keep apart, and whose word on that counts: the server
//! cannot check what a runner reports.

use std::collections::BTreeSet;

use shared_types::{Isolation, RunnerId};

/// The operator's policy. The default demands nothing and believes no runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationPolicy {
    /// What every sandbox has to keep apart before work goes there.
    pub at_least: Isolation,
    /// The runners whose word counts. By id: another runner may come to have a name.
    pub believed: BTreeSet<RunnerId>,
}

impl IsolationPolicy {
    /// Whether what this runner reports counts.
    pub(crate) fn believes(&self, runner: RunnerId) -> bool {
        self.believed.contains(&runner)
    }
}
