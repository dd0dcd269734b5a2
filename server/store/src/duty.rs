//! Duties: work that one replica does for all. A replica has a duty until its row is gone, and another one takes it over
//! then. So no clock decides, and of two replicas none thinks that it has what the other one has.

use server_records::Duty;
use shared_types::ReplicaId;

use crate::{
    StoreError,
    columns::Columns as _,
    database::{Connection, Row, locking, query},
};

/// The duty to count the silence of runners.
pub(crate) const SILENCE: &str = "silence";

/// Takes the duty for this replica, if it has none who lives.
pub(crate) async fn take(
    tx: &mut Connection,
    duty: &str,
    replica: ReplicaId,
) -> Result<Duty, StoreError> {
    let taken = query(
        "INSERT INTO duties (name, replica_id) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET replica_id = excluded.replica_id
             WHERE duties.replica_id <> excluded.replica_id
                 AND NOT EXISTS (SELECT 1 FROM replicas WHERE replicas.id = duties.replica_id)",
    )
    .bind(duty)
    .bind(replica.to_string())
    .execute(&mut *tx)
    .await?;
    if taken == 1 {
        return Ok(Duty::Begun);
    }
    let row: Row = query(locking!(
        "SELECT replica_id FROM duties WHERE name = $1",
        "FOR UPDATE"
    ))
    .bind(duty)
    .fetch_one(tx)
    .await?;
    let holder: ReplicaId = row.parsed("replica_id")?;
    Ok(match holder == replica {
        true => Duty::Continued,
        false => Duty::OfAnother,
    })
}
