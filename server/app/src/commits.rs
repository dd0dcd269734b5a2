//! The listener of this process to the store's commits: adds events to the logs that it knows, and tells those who
//! follow sessions, those who watch lists, and waits.

use async_trait::async_trait;
use server_agent::{LogCache, feed::LiveHub};
use server_records::{Change, CommitListener, SessionKey};
use shared_types::{SessionEvent, SessionId, TenantId};

use crate::changes::ChangeHub;

/// See the module.
#[derive(Clone)]
pub(crate) struct Commits {
    pub(crate) hub: LiveHub,
    pub(crate) logs: LogCache,
    pub(crate) changes: ChangeHub,
}

impl Commits {
    pub(crate) fn start(changes: ChangeHub) -> Self {
        Self {
            hub: LiveHub::start(),
            logs: LogCache::new(),
            changes,
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

    fn changed(&self, changes: Vec<Change>) {
        self.changes.tell(changes);
    }
}

#[cfg(test)]
mod tests;
