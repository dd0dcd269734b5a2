//! Following a session: the feed over the store.

use async_trait::async_trait;
use server_agent::feed::{self, EventSource};
use server_records::SessionKey;
use server_store::Store;
use shared_types::{SessionEvent, SessionId, TenantId};

use super::Sessions;
use crate::{AppError, OpContext, hints::FollowedLog};

/// The stored events of one session of a tenant.
pub struct StoredEvents {
    store: Store,
    tenant: TenantId,
    session: SessionId,
    _followed: FollowedLog,
}

/// A subscription to a session.
pub type Subscription = feed::Subscription<StoredEvents>;

impl Sessions {
    /// Follows a session from a cursor.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn follow(
        &self,
        ctx: &OpContext,
        session: SessionId,
        after: u64,
    ) -> Result<Subscription, AppError> {
        self.get(ctx, session).await?;
        let of = SessionKey {
            tenant: ctx.tenant,
            session,
        };
        let events = StoredEvents {
            store: self.store.clone(),
            tenant: ctx.tenant,
            session,
            _followed: self.seen.follow(of),
        };
        Subscription::start(events, self.hub.clone(), session, after).await
    }
}

#[async_trait]
impl EventSource for StoredEvents {
    type Error = AppError;

    async fn after(&self, seq: u64, limit: u32) -> Result<Vec<SessionEvent>, AppError> {
        let Self {
            store,
            tenant,
            session,
            _followed: _,
        } = self;
        Ok(store.events_after(*tenant, *session, seq, limit).await?)
    }

    fn stopping(&self) -> AppError {
        AppError::unavailable(std::io::Error::other("the server is stopping"))
    }
}
