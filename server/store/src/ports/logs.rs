//! The log of one session.

use async_trait::async_trait;
use server_records::{Appended, CallEnd, LogRows, SessionError, SessionKey, StoredEvent};
use shared_types::{Epoch, Event, Timestamp};

use crate::Store;

/// See the module.
pub(super) struct SessionLogRows {
    pub(super) store: Store,
    pub(super) of: SessionKey,
}

#[async_trait]
impl LogRows for SessionLogRows {
    async fn read_from(&self, seq: u64) -> Result<Vec<StoredEvent>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.log_from(tenant, session, seq).await?)
    }

    async fn append(
        &self,
        epoch: Epoch,
        events: &[Event],
        now: Timestamp,
    ) -> Result<Appended, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let appended = self.store.append(tenant, session, epoch, events, now);
        Ok(appended.await?)
    }

    async fn append_end(
        &self,
        epoch: Epoch,
        end: &CallEnd<'_>,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        let SessionKey { tenant, session } = self.of;
        let appended = self.store.append_end(tenant, session, epoch, end, now);
        Ok(appended.await?)
    }
}
