//! Server processes, and the signs that they live.
//!
//! A replica lives while it has a row, which it renews. Others watch the number of its renewals, each on its own
//! monotonic clock, so that no wall clock decides. A replica that sees no renewal of another for long enough removes
//! that row. From then on its links are gone and its turns may be taken over. If it lives all the same, epochs and
//! generations refuse its writes, and its next renewal inserts the row again.

use shared_types::{Digest, ReplicaId, Timestamp};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Connection, FromRow, MAX_PAGE, Row, lock_table, page, query, query_as, retried},
};

/// Another replica, as it was renewed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherReplica {
    /// Its id.
    pub id: ReplicaId,
    /// The number of its renewals.
    pub renewals: u64,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// The other live replicas.
    pub others: Vec<OtherReplica>,
    /// True if the replica's row was gone: others may have taken over its links and turns.
    pub was_gone: bool,
    /// Since when the operator lets the replica drain.
    pub draining_since: Option<Timestamp>,
}

/// A server that uses the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    /// Its id.
    pub id: ReplicaId,
    /// The place where it runs.
    pub place: String,
    /// The number of its renewals.
    pub renewals: u64,
    /// When it started.
    pub started_at: Timestamp,
    /// The host and port at which it answers other replicas, where it does.
    pub address: Option<String>,
    /// The version of its program; absent of an earlier release.
    pub version: Option<String>,
    /// Since when the operator lets it drain.
    pub draining_since: Option<Timestamp>,
    /// The runners, of all tenants, whose link it holds.
    pub links: u64,
    /// The turns, of all tenants, that its workers have now. Turns that only wait have no worker.
    pub turns: u64,
}

/// The replica that this process is, as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThisReplica {
    /// Its id.
    pub id: ReplicaId,
    /// The place where it runs: no other process runs at the same place at the same time.
    pub place: String,
    /// The host and port at which it answers other replicas, where it does.
    pub address: Option<String>,
    /// The SHA-256 of the key by which runners know it.
    pub identity: Digest,
    /// Random bytes. The keys of its challenges are made of them.
    pub challenge_salt: Digest,
    /// The version of its program.
    pub version: String,
}

/// Keeps other replicas from starting meanwhile.
const LOCK: &str = "LOCK TABLE replicas IN SHARE ROW EXCLUSIVE MODE";

const WHY: &str = "it is about replicas";

impl Store {
    /// True if other servers may use the database at the same time.
    pub fn is_shared(&self) -> bool {
        self.is_postgres()
    }

    /// The number of servers that have started elsewhere than at this place and did not stop in order. A killed server
    /// counts until another replica has seen that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn replicas_elsewhere(&self, place: &str) -> Result<u64, StoreError> {
        let row = query("SELECT COUNT(*) AS many FROM replicas WHERE place <> $1")
            .bind(place)
            .fetch_one(&mut self.read_any(WHY).await?)
            .await?;
        Ok(row.count("many")?)
    }

    /// The servers that use the database, the oldest first. A killed server counts until another replica has seen that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn replicas(&self) -> Result<Vec<ReplicaRow>, StoreError> {
        let rows = query_as(
            "SELECT replicas.id, place, renewals, started_at, address, version, draining_since,
                 COALESCE(links, 0) AS links, COALESCE(turns, 0) AS turns
             FROM replicas
             LEFT JOIN (SELECT replica_id, COUNT(*) AS links FROM runners
                 WHERE replica_id IS NOT NULL GROUP BY replica_id) AS l ON l.replica_id = replicas.id
             LEFT JOIN (SELECT claimed_by, COUNT(*) AS turns FROM turns
                 WHERE state <> 'ended' AND state = 'running' AND waits_until IS NULL
                 GROUP BY claimed_by) AS t ON t.claimed_by = replicas.id
             ORDER BY started_at, replicas.id LIMIT $1",
        )
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read_any(WHY).await?)
        .await?;
        Ok(rows)
    }

    /// Records that the replica is to drain, since then, or to work again. It hears of it at its next renewal. A
    /// replica that drains already keeps its time. Returns false if there is no such replica.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn drain_replica(
        &self,
        replica: ReplicaId,
        since: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write_any(WHY).await?;
        let found = query(
            "UPDATE replicas SET draining_since =
                 CASE WHEN $2 IS NULL THEN NULL ELSE COALESCE(draining_since, $2) END
             WHERE id = $1",
        )
        .bind(replica.to_string())
        .bind(since.map(Timestamp::as_micros))
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(found == 1)
    }

    /// Records that a server starts at this place, where no other one runs: servers that had started there are dead. If
    /// the database is a file, so are all others. Returns how many links are gone with them; the last-seen times of
    /// their runners stay. Without a tenant: replicas serve all tenants.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if another live replica has another identity; [`StoreError::Unavailable`].
    pub async fn start_replica(
        &self,
        replica: &ThisReplica,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        retried!({
            let mut tx = self.write_any(WHY).await?;
            lock_table(&mut tx, LOCK).await?;
            match tx.is_shared() {
                true => query("DELETE FROM replicas WHERE place = $1").bind(&replica.place),
                false => query("DELETE FROM replicas"),
            }
            .execute(&mut tx)
            .await?;
            let other = query("SELECT 1 FROM replicas WHERE identity <> $1 LIMIT 1")
                .bind(replica.identity.to_string())
                .fetch_optional(&mut tx)
                .await?;
            if other.is_some() {
                return Err(StoreError::Conflict(
                    "another server of this database has another identity key, and runners would trust only one of \
                     the two; give this server the keys of that one (keys/ in its folder), or stop that one first",
                ));
            }
            renew(&mut tx, replica, None, now).await?;
            let ended = take_links_away(&mut tx, replica.id).await?;
            tx.commit().await?;
            Ok(ended)
        })
    }

    /// Renews the replica's row. If the row was removed, inserts it again, with the times as the replica knows them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn renew_replica(
        &self,
        replica: &ThisReplica,
        draining_since: Option<Timestamp>,
        started_at: Timestamp,
    ) -> Result<Renewed, StoreError> {
        retried!({
            let mut tx = self.write_any(WHY).await?;
            let row = renew(&mut tx, replica, draining_since, started_at).await?;
            let others = query_as("SELECT id, renewals FROM replicas WHERE id <> $1 ORDER BY id")
                .bind(replica.id.to_string())
                .fetch_all(&mut tx)
                .await?;
            tx.commit().await?;
            Ok(Renewed {
                others,
                was_gone: row.count("renewals")? == 0,
                draining_since: row.maybe_time("draining_since")?,
            })
        })
    }

    /// The time by the database's clock, by which the servers that share it go; `None` if it is a file.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn database_time(&self) -> Result<Option<Timestamp>, StoreError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let row: Row =
            query("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now")
                .fetch_one(&mut self.read_any(WHY).await?)
                .await?;
        Ok(Some(row.time("now")?))
    }

    /// The random bytes of a live replica's challenges; `None` if it is gone, or of a release that had none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn challenge_salt(&self, replica: ReplicaId) -> Result<Option<Digest>, StoreError> {
        let row: Option<Row> = query(
            "SELECT challenge_salt FROM replicas WHERE id = $1 AND challenge_salt IS NOT NULL",
        )
        .bind(replica.to_string())
        .fetch_optional(&mut self.read_any(WHY).await?)
        .await?;
        Ok(row.map(|row| row.digest("challenge_salt")).transpose()?)
    }

    /// Removes a replica that stops, or one that another replica has seen without a renewal for long enough: then only
    /// if it was not renewed since. Returns true if this call removed it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn end_replica(
        &self,
        replica: ReplicaId,
        unless_renewed_since: Option<u64>,
    ) -> Result<bool, StoreError> {
        let since = unless_renewed_since.map(crate::columns::integer);
        retried!({
            let mut tx = self.write_any(WHY).await?;
            let gone =
                query("DELETE FROM replicas WHERE id = $1 AND renewals = COALESCE($2, renewals)")
                    .bind(replica.to_string())
                    .bind(since)
                    .execute(&mut tx)
                    .await?;
            if gone == 1 {
                query(
                    "UPDATE runners SET replica_id = NULL, connected_at = NULL WHERE replica_id = $1",
                )
                .bind(replica.to_string())
                .execute(&mut tx)
                .await?;
            }
            tx.commit().await?;
            Ok(gone == 1)
        })
    }
}

/// Tells if the replica has a row.
pub(crate) async fn lives(tx: &mut Connection, replica: ReplicaId) -> Result<bool, StoreError> {
    let row = query("SELECT 1 FROM replicas WHERE id = $1")
        .bind(replica.to_string())
        .fetch_optional(tx)
        .await?;
    Ok(row.is_some())
}

/// Renews or inserts the row. The count of a row that was inserted just now is 0.
async fn renew(
    tx: &mut Connection,
    replica: &ThisReplica,
    draining_since: Option<Timestamp>,
    started_at: Timestamp,
) -> Result<Row, StoreError> {
    let row = query(
        "INSERT INTO replicas (id, place, address, version, draining_since, started_at, identity, challenge_salt)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (id) DO UPDATE SET renewals = replicas.renewals + 1
         RETURNING renewals, draining_since",
    )
    .bind(replica.id.to_string())
    .bind(&replica.place)
    .bind(replica.address.clone())
    .bind(&replica.version)
    .bind(draining_since.map(Timestamp::as_micros))
    .bind(started_at.as_micros())
    .bind(replica.identity.to_string())
    .bind(replica.challenge_salt.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row)
}

/// Ends the links of replicas without a row.
async fn take_links_away(tx: &mut Connection, replica: ReplicaId) -> Result<u64, StoreError> {
    let ended = query(
        "UPDATE runners SET replica_id = NULL, connected_at = NULL
         WHERE replica_id <> $1
             AND NOT EXISTS (SELECT 1 FROM replicas WHERE replicas.id = runners.replica_id)",
    )
    .bind(replica.to_string())
    .execute(tx)
    .await?;
    Ok(ended)
}

impl FromRow for ReplicaRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            place: row.text("place")?,
            renewals: row.count("renewals")?,
            started_at: row.time("started_at")?,
            address: row.maybe_text("address")?,
            version: row.maybe_text("version")?,
            draining_since: row.maybe_time("draining_since")?,
            links: row.count("links")?,
            turns: row.count("turns")?,
        })
    }
}

impl FromRow for OtherReplica {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            renewals: row.count("renewals")?,
        })
    }
}
