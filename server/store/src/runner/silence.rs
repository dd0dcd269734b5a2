//! The length of runners' silence. A live replica adds it up piece by piece. So neither a changed wall clock nor a time
//! in which no replica could have heard a runner makes it longer. Each link starts from zero, because a count holds for
//! its generation only.

use std::time::Duration;

use shared_types::ReplicaId;

use crate::{
    Store, StoreError,
    database::{query, retried},
};

impl Store {
    /// Adds a passed time, counted since the last call or since the start of the server, to the silence of every runner
    /// that was silent then and still is. A runner that has no link now and had one then starts from zero. Of several
    /// replicas one counts, the first by id. Without a tenant: time passes for all.
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
                 AND $2 = COALESCE((SELECT MIN(id) FROM replicas), $2)",
            )
            .bind(micros(passed))
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
