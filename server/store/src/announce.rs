//! Announces commits. Each method that stores an event, an operation's end or a wait says so here once it is committed.

use std::sync::Arc;

use server_records::CommitListener;
use shared_types::{SessionEvent, SessionId, TenantId};

use crate::Store;

/// The listener of a store; none hears of the commits of an operator's short job.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<dyn CommitListener>>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Store {
    /// The same database; this listener hears of what is committed through it and its clones.
    #[must_use]
    pub fn heard_by(mut self, listener: Arc<dyn CommitListener>) -> Self {
        self.listener = Listener(Some(listener));
        self
    }

    /// These events of the session are committed.
    pub(crate) async fn appended(
        &self,
        tenant: TenantId,
        session: SessionId,
        events: &[SessionEvent],
    ) {
        if let Some(listener) = &self.listener.0
            && !events.is_empty()
        {
            listener.appended(tenant, session, events.to_vec()).await;
        }
    }

    /// An operation's end, a runner's link or the wait of a turn is committed.
    pub(crate) fn waits_changed(&self) {
        if let Some(listener) = &self.listener.0 {
            listener.waits_changed();
        }
    }
}
