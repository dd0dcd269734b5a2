//! Announces commits. Each method that stores an event, an operation's end or a wait says so here once it is committed.
//!
//! No method says that a list or a right changed: every transaction notes the tables that its statements write
//! (`tables`), and its commit tells. The listener is of this process. It passes hints on to other servers
//! ([`server_records::HintWire`]), and no transaction waits for that.

mod noted;
mod tables;

use std::sync::Arc;

use server_records::{CommitListener, SessionKey, Whose};
use shared_types::{RunnerId, SessionEvent, SessionId, TenantId, UserId};

pub(crate) use self::noted::{Noted, Statement};
#[cfg(test)]
pub(crate) use self::tables::is_listed;
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Row, query},
};

/// The listener of a store; none hears of the commits of an operator's short job.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<dyn CommitListener>>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Listener {
    /// This was written, and is committed.
    pub(crate) fn tell(&self, noted: Noted, tenant: Option<TenantId>) {
        let Some(listener) = &self.0 else {
            return;
        };
        for tenant in noted.rights(tenant) {
            listener.rights_changed(tenant);
        }
        let changes = noted.changes(tenant);
        if !changes.is_empty() {
            listener.changed(changes);
        }
    }
}

impl Store {
    /// The person whose list a change is about; `None` for everyone, or where its subject is gone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn reader_of(
        &self,
        tenant: TenantId,
        whose: Whose,
    ) -> Result<Option<UserId>, StoreError> {
        let (statement, id) = match whose {
            Whose::Everyone => return Ok(None),
            Whose::User(user) => return Ok(Some(user)),
            Whose::OfSession(id) => (
                "SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2",
                id.to_string(),
            ),
            Whose::OfOperation(id) => (
                "SELECT COALESCE(operations.user_id, sessions.user_id) AS user_id FROM operations
                 LEFT JOIN sessions
                     ON sessions.tenant_id = operations.tenant_id AND sessions.id = session_id
                 WHERE operations.tenant_id = $1 AND operations.id = $2",
                id.to_string(),
            ),
            Whose::OfCredential(id) => (
                "SELECT user_id FROM credentials WHERE tenant_id = $1 AND id = $2",
                id.to_string(),
            ),
        };
        let row: Option<Row> = query(statement)
            .bind(tenant.to_string())
            .bind(id)
            .fetch_optional(&mut self.read(tenant).await?)
            .await?;
        let user = row.map(|row| row.maybe_parsed("user_id")).transpose()?;
        Ok(user.flatten())
    }

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

    /// A new link of a runner, the end of one, or the end of the runner is committed.
    pub(crate) fn link_changed(&self, runner: RunnerId) {
        if let Some(listener) = &self.listener.0 {
            listener.link_changed(runner);
        }
    }

    /// A wish to stop an operation is committed.
    pub(crate) fn cancel_requested(&self) {
        if let Some(listener) = &self.listener.0 {
            listener.cancels_requested();
        }
    }

    /// A turn of the session waits for a worker, and this replica begins none.
    pub(crate) fn unclaimed(&self, of: SessionKey) {
        if let Some(listener) = &self.listener.0 {
            listener.unclaimed(of);
        }
    }

    /// An operation's end, a runner's link or the wait of a turn is committed.
    pub(crate) fn waits_changed(&self) {
        if let Some(listener) = &self.listener.0 {
            listener.waits_changed();
        }
    }
}
