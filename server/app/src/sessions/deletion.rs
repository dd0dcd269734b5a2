//! Deleting sessions: hidden at once, stopped, and taken away with all that they left once nothing of
//! them runs any more.
//!
//! The mark in the store is the deed; everything behind it is done by one task, again and again until
//! nothing is left, so that a server that is killed in between leaves nothing half-done.

use std::time::Duration;

use server_records::SessionKey;
use server_store::{DeletedSession, Outputs, Store, StoreError, Unended};
use shared_types::{OperationId, SessionId, TenantId};
use tokio_util::sync::CancellationToken;

use super::Sessions;
use crate::{AppError, OpContext, rights::Action, shielded::shielded};

/// The pause before what still runs is looked at again; it doubles up to [`LOOK_AT_MOST`].
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// See [`LOOK_AGAIN`]. An operation whose runner is away may take days to be settled.
const LOOK_AT_MOST: Duration = Duration::from_secs(10 * 60);
/// Sessions and operations that are read at once.
const PAGE: u32 = 100;

impl Sessions {
    /// Deletes a session with its log and all output. No user sees it from now on; its turns and
    /// operations are stopped.
    ///
    /// # Errors
    /// If the user has no such session, or may not delete it.
    pub async fn delete(&self, ctx: &OpContext, session: SessionId) -> Result<(), AppError> {
        self.gate
            .session(ctx, Action::DeleteSession, session)
            .await?;
        let (this, ctx) = (self.clone(), ctx.clone());
        shielded(async move {
            let ending = this.ends.of(&ctx, session, "deleted").await?;
            let (by, now) = (ctx.by(), this.clock.now());
            let deleted = this.store.delete_session(ctx.tenant, session, &by, now);
            deleted.await?;
            this.deletions.notify_one();
            this.ends.run(&ctx, ending);
            Ok(())
        })
        .await
    }
}

/// Finishes deletions; see the module.
pub(super) struct Deletions {
    pub(super) store: Store,
    pub(super) outputs: Outputs,
    pub(super) sessions: Sessions,
}

impl Deletions {
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut pause = LOOK_AGAIN;
        loop {
            let left = tokio::select! {
                left = self.once() => left,
                () = stop.cancelled() => return,
            };
            let left = left.unwrap_or_else(|error| {
                tracing::warn!(%error, "deleted sessions cannot be taken away yet; trying again");
                true
            });
            tokio::select! {
                () = self.sessions.deletions.notified() => pause = LOOK_AGAIN,
                // Another server may have marked one, and be gone before it has finished.
                () = tokio::time::sleep(if left { pause } else { LOOK_AT_MOST }) => {
                    pause = if left { (pause * 2).min(LOOK_AT_MOST) } else { LOOK_AGAIN };
                }
                () = stop.cancelled() => return,
            }
        }
    }

    /// Goes through all of them, and says whether some still run.
    async fn once(&self) -> Result<bool, AppError> {
        let (mut left, mut after) = (false, None);
        loop {
            let page = self.store.deleted_sessions(after.as_ref(), PAGE).await?;
            for session in &page {
                // One that cannot be finished holds up no other.
                left |= !self.finish(session).await.unwrap_or_else(|error| {
                    let session = session.id;
                    tracing::warn!(session.id = %session, %error, "a deleted session cannot be taken away yet; trying again");
                    false
                });
            }
            match page.last() {
                Some(last) if page.len() == PAGE as usize => after = Some(last.clone()),
                _ => return Ok(left),
            }
        }
    }

    /// Stops what runs, and takes the session away if that was all; says whether it did.
    async fn finish(&self, session: &DeletedSession) -> Result<bool, AppError> {
        let (tenant, id) = (session.tenant, session.id);
        let unended = self.store.unended_of_session(tenant, id).await?;
        if !unended.is_empty() {
            self.stop_all(tenant, id, unended).await;
            return Ok(false);
        }
        self.remove_outputs(tenant, id).await?;
        let purged = match self.store.purge_session(tenant, id).await {
            // Another server was faster.
            Err(StoreError::NotFound) => true,
            purged => purged?,
        };
        if purged {
            let session = id;
            self.sessions.turns.forget(SessionKey { tenant, session });
            tracing::info!(session.id = %id, "a deleted session was taken away");
        }
        Ok(purged)
    }

    /// Stops all turns and operations. Those that cannot be stopped now are tried again with the
    /// next look.
    async fn stop_all(&self, tenant: TenantId, session: SessionId, unended: Unended) {
        let Ok(row) = self.store.session(tenant, session).await else {
            return;
        };
        for turn in &unended.turns {
            let stopped = self.sessions.stop(tenant, (row.user, None), session, *turn);
            if let Err(error) = stopped.await {
                tracing::debug!(turn.id = %turn, %error, "a turn of a deleted session cannot be stopped yet");
            }
        }
        for (turn, operation) in unended.operations {
            // A turn that is being stopped stops its own.
            if unended.turns.contains(&turn) {
                continue;
            }
            let under = (SessionKey { tenant, session }, row.epoch);
            let cancelled = (self.sessions.turns).cancel(under, turn, operation);
            if let Err(error) = cancelled.await {
                tracing::debug!(operation.id = %operation, %error, "a command of a deleted session cannot be stopped yet");
            }
        }
    }

    async fn remove_outputs(&self, tenant: TenantId, session: SessionId) -> Result<(), AppError> {
        let mut after: Option<OperationId> = None;
        loop {
            let page = self
                .store
                .operations_of_session(tenant, session, after, PAGE);
            let page = page.await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(*last);
            for operation in page {
                self.outputs.remove(tenant, operation).await?;
            }
        }
    }
}
