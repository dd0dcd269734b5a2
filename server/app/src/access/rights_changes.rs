//! Word that rights may be different: what lasts longer than a request asks for its rights again then, and not only
//! now and then.

use shared_types::TenantId;
use tokio::sync::broadcast::{self, error::RecvError};

use super::Access;
use crate::OpContext;

/// Words that a slow receiver may not have heard; it takes more for all.
const UNHEARD: usize = 64;

/// See the module. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct RightsChanges(broadcast::Sender<Option<TenantId>>);

/// Hears of changes in one tenant.
#[derive(Debug)]
pub struct RightsWatch {
    tenant: TenantId,
    changes: broadcast::Receiver<Option<TenantId>>,
}

impl Default for RightsChanges {
    fn default() -> Self {
        Self(broadcast::channel(UNHEARD).0)
    }
}

impl RightsChanges {
    /// Rights may be different in this tenant, or in any.
    pub(crate) fn tell(&self, tenant: Option<TenantId>) {
        // Without a receiver nothing lasts that would ask.
        let _ = self.0.send(tenant);
    }
}

impl Access {
    /// Hears of changes of rights in the tenant from now on.
    pub fn watch_rights(&self, ctx: &OpContext) -> RightsWatch {
        RightsWatch {
            tenant: ctx.tenant,
            changes: self.rights.0.subscribe(),
        }
    }
}

impl RightsWatch {
    /// Waits until rights may be different. Safe to cancel.
    pub async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(tenant) if tenant.is_some_and(|tenant| tenant != self.tenant) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                // The server stops.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
