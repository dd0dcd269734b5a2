//! The listener of this process to the store's commits: adds events to the logs that it knows, and tells watchers and
//! waits.

use async_trait::async_trait;
use server_agent::{LogCache, feed::LiveHub};
use server_records::{CommitListener, SessionKey};
use shared_types::{SessionEvent, SessionId, TenantId};

/// See the module.
#[derive(Clone)]
pub(crate) struct Commits {
    pub(crate) hub: LiveHub,
    pub(crate) logs: LogCache,
}

impl Commits {
    pub(crate) fn start() -> Self {
        Self {
            hub: LiveHub::start(),
            logs: LogCache::new(),
        }
    }
}

#[async_trait]
impl CommitListener for Commits {
    async fn appended(&self, tenant: TenantId, session: SessionId, events: Vec<SessionEvent>) {
        self.logs.appended(SessionKey { tenant, session }, &events);
        self.hub.appended(session, events).await;
    }

    fn waits_changed(&self) {
        self.hub.look_at_waits();
    }
}

#[cfg(test)]
mod tests;
