//! The length of runners' silence. A live replica adds it up piece by piece. So neither a changed wall clock nor a time
//! in which no replica could have heard a runner makes it longer. Each link starts from zero, because a count holds for
//! its generation only.

use std::time::Duration;

use server_records::Duty;
use shared_types::ReplicaId;

use crate::{
    Store, StoreError,
    database::{query, retried},
    duty,
};

impl Store {
    /// Takes the duty to count silence, if no live replica has it. Of several replicas one has it, so that no time is
    /// counted twice.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn take_silence(&self, replica: ReplicaId) -> Result<Duty, StoreError> {
        retried!({
            let mut tx = self.write_any("it is about time").await?;
            let duty = duty::take(&mut tx, duty::SILENCE, replica).await?;
            tx.commit().await?;
            Ok(duty)
        })
    }

    /// Adds a passed time, counted since the last call or since this replica has the duty, to the silence of every
    /// runner that was silent then and still is. A runner that has no link now and had one then starts from zero. Without
    /// the duty it does nothing. Without a tenant: time passes for all.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; nothing was counted.
    pub async fn count_silence(
        &self,
        replica: ReplicaId,
        passed: Duration,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write_any("it is about time").await?;
            query(
                "UPDATE runners SET silent_generation = generation, silent_us =
                 CASE WHEN silent_generation = generation THEN silent_us + $1 ELSE 0 END
             WHERE replica_id IS NULL AND revoked_at IS NULL
                 AND EXISTS (SELECT 1 FROM duties WHERE name = $2 AND duties.replica_id = $3)",
            )
            .bind(micros(passed))
            .bind(duty::SILENCE)
            .bind(replica.to_string())
            .execute(&mut tx)
            .await?;
            tx.commit().await?;
            Ok(())
        })
    }
}

/// A time as silence is stored.
pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
