//! The engine's log of a session over the store: one session, one epoch (docs/internals/contracts.md#c2).

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use async_trait::async_trait;
use server_agent::{Live, LiveSink, LogError, SessionLog, feed::LiveHub};
use server_store::{CallEnd, Store, StoreError};
use shared_sandbox::Outcome;
use shared_types::{Clock, Epoch, Event, OperationId, SessionEvent, SessionId, TenantId};

use crate::{log_cache::LogCache, measured::Counted};

/// Writes of one worker to one session.
pub(crate) struct StoredLog {
    pub(crate) store: Store,
    pub(crate) logs: LogCache,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    /// The number of the event of the worker's claim, until the log was read for the first time; 0 where there is
    /// none. What the turn goes on from stands before it; later all is needed that came since.
    pub(crate) claimed_at: AtomicU64,
    pub(crate) counted: Counted,
    /// Set where the turn has ended, and the session had no other one left.
    pub(crate) was_last: Arc<AtomicBool>,
}

#[async_trait]
impl SessionLog for StoredLog {
    async fn load(&self) -> Result<Arc<Vec<SessionEvent>>, LogError> {
        let claimed_at = self.claimed_at.swap(0, Relaxed);
        let (at_least, now) = ((claimed_at > 0).then_some(claimed_at), self.clock.now());
        let log = (self.logs)
            .load(&self.store, (self.tenant, self.session), at_least, now)
            .await;
        let log = log.map_err(refused)?;
        self.counted.loaded(&log);
        Ok(log)
    }

    async fn record(&self, events: Vec<Event>) -> Result<(), LogError> {
        let now = self.clock.now();
        let appended = self
            .store
            .append(self.tenant, self.session, self.epoch, &events, now)
            .await
            .map_err(refused)?;
        self.counted.recorded(&events, now);
        self.was_last.store(appended.turns_left == Some(0), Relaxed);
        Ok(())
    }

    async fn record_end(
        &self,
        ended: Event,
        operation: OperationId,
        outcome: &Outcome,
    ) -> Result<(), LogError> {
        let (tenant, session, now) = (self.tenant, self.session, self.clock.now());
        let end = CallEnd {
            event: &ended,
            operation,
            outcome,
        };
        let stored = (self.store).append_end(tenant, session, self.epoch, &end, now);
        stored.await.map_err(refused)?;
        self.counted.recorded(&[ended], now);
        Ok(())
    }
}

fn refused(error: StoreError) -> LogError {
    match error {
        StoreError::StaleEpoch { .. } => LogError::StaleEpoch,
        passing if passing.is_passing() => LogError::Unavailable(passing.to_string()),
        other => LogError::Refused(other.to_string()),
    }
}

/// The live events that the engine shows of one session.
pub(crate) struct SessionSink {
    pub(crate) hub: LiveHub,
    pub(crate) session: SessionId,
}

impl LiveSink for SessionSink {
    fn publish(&self, live: Live) {
        self.hub.publish(self.session, live);
    }
}
