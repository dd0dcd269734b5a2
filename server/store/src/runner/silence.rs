//! For how long runners have been silent. It is added up piece by piece, by whoever is there to hear
//! them: no wall clock that is set makes it longer, and no time in which nobody could have heard one.
//! Each link begins anew, because what was counted holds for its generation only.

use std::time::Duration;

use shared_types::ReplicaId;

use crate::{
    Store, StoreError,
    database::{query, retried},
};

impl Store {
    /// So much time has passed since this was said last, or since the server was started: every
    /// runner that was silent then, and still is, was silent for so much longer. Those that have no
    /// link now and had one then begin with nothing. Of several replicas one counts, the first by id. Without
    /// a tenant: it is about time.
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
