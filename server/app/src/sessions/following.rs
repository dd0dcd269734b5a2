//! Following a session: the feed over the store.

use async_trait::async_trait;
use server_agent::feed::{self, EventSource};
use server_store::Store;
use shared_types::{SessionEvent, SessionId, TenantId};

use crate::AppError;

/// The stored events of one session of a tenant.
pub struct StoredEvents {
    pub(super) store: Store,
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
}

/// A subscription to a session.
pub type Subscription = feed::Subscription<StoredEvents>;

#[async_trait]
impl EventSource for StoredEvents {
    type Error = AppError;

    async fn after(&self, seq: u64, limit: u32) -> Result<Vec<SessionEvent>, AppError> {
        let Self {
            store,
            tenant,
            session,
        } = self;
        Ok(store.events_after(*tenant, *session, seq, limit).await?)
    }

    fn stopping(&self) -> AppError {
        AppError::unavailable(std::io::Error::other("the server is stopping"))
    }
}
