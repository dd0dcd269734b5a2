//! The listener of this process to the store's commits: adds events to the logs that it knows, and tells those who
//! follow sessions, those who watch lists, waits, those whose rights may have ended, and other servers.

use async_trait::async_trait;
use server_agent::{LogCache, feed::LiveHub};
use server_records::{Change, CommitListener, Hint, SessionKey};
use shared_types::{RunnerId, SessionEvent, SessionId, TenantId};

use crate::{
    access::RightsChanges,
    changes::ChangeHub,
    elsewhere::Elsewhere,
    hints::{Outbox, SeenLogs},
};

/// See the module.
#[derive(Clone)]
pub(crate) struct Commits {
    pub(crate) hub: LiveHub,
    pub(crate) logs: LogCache,
    pub(crate) changes: ChangeHub,
    pub(crate) rights: RightsChanges,
    pub(crate) seen: SeenLogs,
    pub(crate) outbox: Outbox,
    pub(crate) elsewhere: Elsewhere,
}

impl Commits {
    pub(crate) fn start(changes: ChangeHub) -> Self {
        Self {
            hub: LiveHub::start(),
            logs: LogCache::new(),
            changes,
            rights: RightsChanges::default(),
            seen: SeenLogs::default(),
            outbox: Outbox::default(),
            elsewhere: Elsewhere::default(),
        }
    }
}

#[async_trait]
impl CommitListener for Commits {
    async fn appended(&self, tenant: TenantId, session: SessionId, events: Vec<SessionEvent>) {
        let of = SessionKey { tenant, session };
        self.outbox.note(Hint::Session(of));
        self.seen.appended(of, &events);
        self.logs.appended(of, &events);
        self.hub.appended(session, events).await;
    }

    fn waits_changed(&self) {
        self.outbox.note(Hint::Waits);
        self.hub.look_at_waits();
    }

    fn link_changed(&self, runner: RunnerId) {
        self.outbox.note(Hint::Link(runner));
    }

    fn cancels_requested(&self) {
        self.outbox.note(Hint::Cancels);
    }

    fn unclaimed(&self, of: SessionKey) {
        self.outbox.note(Hint::Turn(of));
    }

    fn rights_changed(&self, tenant: Option<TenantId>) {
        self.outbox.note(Hint::Rights(tenant));
        self.rights.tell(tenant);
    }

    fn changed(&self, changes: Vec<Change>) {
        for change in &changes {
            self.outbox.note(Hint::List(*change));
        }
        self.changes.tell(changes);
    }
}

#[cfg(test)]
mod tests;
