//! The turns of all sessions, and those of one.

use std::sync::Arc;

use async_trait::async_trait;
use server_records::{
    ClaimedTurn, IfRunning, LogRows, NextTurn, PortError, SessionError, SessionKey, SessionTurns,
    TurnFailures, TurnRows, UnfinishedTurn, WaitsOver,
};
use shared_types::{CallWait, Epoch, ReplicaId, Timestamp, TurnId, event::TurnSettings};

use super::logs::SessionLogRows;
use crate::Store;

/// The turns of all sessions.
pub(super) struct AllTurns {
    pub(super) store: Store,
}

#[async_trait]
impl TurnRows for AllTurns {
    async fn unfinished(
        &self,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError> {
        Ok(self.store.unfinished_turns(after, limit).await?)
    }

    async fn queued(
        &self,
        since: Timestamp,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError> {
        Ok(self.store.queued_turns(since, after, limit).await?)
    }

    async fn to_wake(
        &self,
        over: WaitsOver,
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<UnfinishedTurn>, PortError> {
        Ok(self.store.turns_to_wake(over, after, limit).await?)
    }

    async fn next_wait_over_at(&self, now: Timestamp) -> Result<Option<Timestamp>, PortError> {
        Ok(self.store.next_wait_over_at(now).await?)
    }

    async fn let_go_of_left(&self, replica: ReplicaId) -> Result<(), PortError> {
        let left = self.store.let_go_of_left(None, None, replica).await;
        left.map(drop).map_err(PortError::new)
    }

    fn of(&self, session: SessionKey) -> Arc<dyn SessionTurns> {
        let store = self.store.clone();
        Arc::new(TurnsOf { store, of: session })
    }
}

/// The turns of one session.
struct TurnsOf {
    store: Store,
    of: SessionKey,
}

#[async_trait]
impl SessionTurns for TurnsOf {
    async fn epoch(&self) -> Result<Epoch, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.session(tenant, session).await?.epoch)
    }

    async fn next(&self, over: WaitsOver) -> Result<NextTurn, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.next_turn(tenant, session, over).await?)
    }

    async fn claim(
        &self,
        replica: ReplicaId,
        if_running: IfRunning,
        unless_set: &TurnSettings,
        now: Timestamp,
    ) -> Result<Option<ClaimedTurn>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let claimed =
            (self.store).claim_turn(tenant, session, replica, if_running, unless_set, now);
        Ok(claimed.await?)
    }

    async fn is_to_stop(&self, turn: TurnId) -> Result<bool, SessionError> {
        let row = self.store.turn(self.of.tenant, turn).await?;
        Ok(row.cancel_requested_at.is_some())
    }

    async fn park(
        &self,
        turn: TurnId,
        held: Epoch,
        calls: &[CallWait],
    ) -> Result<(), SessionError> {
        let parked = self.store.park_turn(self.of.tenant, turn, held, calls);
        Ok(parked.await?)
    }

    async fn let_go(&self, turn: TurnId, held: Epoch) -> Result<(), SessionError> {
        self.store.let_go_turn(self.of.tenant, turn, held).await?;
        self.offer();
        Ok(())
    }

    async fn let_go_of_left(&self, replica: ReplicaId) -> Result<(), SessionError> {
        let SessionKey { tenant, session } = self.of;
        let left = self
            .store
            .let_go_of_left(Some(tenant), Some(session), replica);
        if left.await? > 0 {
            self.offer();
        }
        Ok(())
    }

    fn offer(&self) {
        self.store.unclaimed(self.of);
    }

    async fn count_failure(&self, turn: TurnId, held: Epoch) -> Result<TurnFailures, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let counted = self.store.count_failure(tenant, session, turn, held);
        Ok(counted.await?)
    }

    fn log(&self) -> Arc<dyn LogRows> {
        Arc::new(SessionLogRows {
            store: self.store.clone(),
            of: self.of,
        })
    }
}
