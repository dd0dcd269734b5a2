//! The orders that the machine's policy is asked about before they are carried out.

use shared_link::runner::{Order, SandboxOrder, SandboxReport};
use shared_types::{SandboxId, SandboxPrivilege, SandboxState};

use super::OperationsService;
use crate::sandboxes::ServedSandbox;

impl OperationsService {
    /// Forbids an operation that the policy does not permit. The policy is not asked again about what has begun.
    pub(super) fn ask_policy(&mut self, order: &mut Order) {
        let asked = order.asked();
        let Some(asked) = asked.filter(|asked| !self.table.remembers(asked.id)) else {
            return;
        };
        // The table refuses what is for a sandbox that is not served.
        let Some(sandbox) = self.sandboxes.get(asked.sandbox) else {
            return;
        };
        if let Err(refusal) = self.guard.permits(asked, sandbox) {
            tracing::warn!(operation.id = %asked.id, reason = refusal.message, "the machine's policy forbids an operation");
            order.forbid(refusal);
        }
    }

    /// The pool does what is wanted of a sandbox; from here on operations may come for it, or not.
    pub(super) fn pooled(&mut self, id: SandboxId, order: SandboxOrder) {
        let Some(pool) = &self.pool else {
            let reason = "this runner makes no sandboxes: start it with --backend docker";
            return self.table.report(failed(id, reason.to_owned()));
        };
        if let SandboxOrder::Ensure { spec, .. } = &order {
            if let Err(refusal) = self.guard.permits_sandbox(spec) {
                self.table.remove_sandbox(id);
                self.sandboxes.remove(id);
                return self.table.report(failed(id, refusal.message));
            }
            let before = self.sandboxes.get(id);
            if before.is_some_and(ServedSandbox::wants_network) && self.guard.cuts_networks() {
                // It loses its network with its next start, and runs with one until then.
                pool.order(id, SandboxOrder::Stop);
            }
        }
        match pool.order(id, order) {
            Some(container) => {
                self.sandboxes.add(id, ServedSandbox::Container(container));
                self.table.add_sandbox(id);
            }
            None => {
                self.table.remove_sandbox(id);
                self.sandboxes.remove(id);
            }
        }
    }
}

/// The report of a sandbox that is not made, for this reason.
fn failed(sandbox: SandboxId, reason: String) -> SandboxReport {
    SandboxReport {
        sandbox,
        state: SandboxState::Failed,
        reason,
        privilege: SandboxPrivilege::Strict,
    }
}
