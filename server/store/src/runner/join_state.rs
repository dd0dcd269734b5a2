//! Finds copies of a runner's folder (contract B4).
//!
//! Each time a runner proves its key it shows the join state that it stored last and is given the
//! next one, which counts once a link has used it. So the same state may be asked for twice (the
//! answer was lost on the way), but an older one than a link has used can only come from a copy,
//! or from the original after its copy came first: either way the identity is locked.

use serde_json::json;
use shared_types::{RunnerId, TenantId, Timestamp};

use super::entry;
use crate::{
    Actor, Store, StoreError, audit,
    columns::{Columns as _, integer},
    database::Row,
};

/// What became of a join state that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinState {
    /// The next one.
    Renewed(u64),
    /// It comes from a copy. The runner is locked, from now on or already.
    Locked,
}

impl Store {
    /// Takes the join state that a runner shows and hands out the next one, or locks the runner;
    /// the lock is audited. Without a tenant: it is how a runner that shows up is told whose it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also where the runner is revoked.
    pub async fn renew_join_state(
        &self,
        runner: RunnerId,
        shown: u64,
        now: Timestamp,
    ) -> Result<JoinState, StoreError> {
        let mut tx = self.write().await?;
        let row: Row = sqlx::query(
            "SELECT tenant_id, join_state, offered_join_state, locked_at FROM runners
             WHERE id = $1 AND revoked_at IS NULL",
        )
        .bind(runner.to_string())
        .fetch_one(&mut *tx)
        .await?;
        let (used, offered) = (row.count("join_state")?, row.count("offered_join_state")?);
        if row.maybe_time("locked_at")?.is_some() {
            return Ok(JoinState::Locked);
        }
        let Some(next) = next(shown, used, offered) else {
            sqlx::query("UPDATE runners SET locked_at = $1 WHERE id = $2")
                .bind(now.as_micros())
                .bind(runner.to_string())
                .execute(&mut *tx)
                .await?;
            let detail = json!({ "shown": shown, "used": used });
            let locked = entry(Actor::System, "runner.locked", runner, detail);
            audit::record(&mut tx, row.parsed("tenant_id")?, &locked, now).await?;
            tx.commit().await?;
            return Ok(JoinState::Locked);
        };
        sqlx::query("UPDATE runners SET join_state = $1, offered_join_state = $2 WHERE id = $3")
            .bind(integer(shown))
            .bind(integer(next))
            .bind(runner.to_string())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(JoinState::Renewed(next))
    }

    /// A link uses the join state that its token names: older ones come from copies from now on.
    /// Answers whether it still counts; if not, or if the runner is locked, nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn use_join_state(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        state: u64,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let used = sqlx::query(
            "UPDATE runners SET join_state = $1
             WHERE tenant_id = $2 AND id = $3 AND offered_join_state = $1 AND locked_at IS NULL",
        )
        .bind(integer(state))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(used.rows_affected() == 1)
    }
}

/// The state to hand out to whoever shows `shown`; none for a copy.
fn next(shown: u64, used: u64, offered: u64) -> Option<u64> {
    if shown == offered {
        Some(offered + 1)
    } else if shown == used && offered == used + 1 {
        // It was handed out, and no link has used it: the answer was lost.
        Some(offered)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_that_no_link_has_left_behind_is_renewed() {
        assert_eq!(next(0, 0, 0), Some(1), "the first connect");
        assert_eq!(next(0, 0, 1), Some(1), "its answer was lost");
        assert_eq!(
            next(1, 0, 1),
            Some(2),
            "it was stored, but no link came of it"
        );
        assert_eq!(next(1, 1, 1), Some(2), "the second connect");
        assert_eq!(next(0, 1, 1), None, "a copy from before the first link");
        assert_eq!(next(5, 1, 1), None, "one that was never handed out");
    }
}
