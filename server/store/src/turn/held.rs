//! The turns that other replicas work on, of sessions that people follow through this one.

use serde_json::json;
use server_records::SessionKey;
use shared_types::{ReplicaId, TurnId};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{FromRow, Row, Sql, query_as},
};

/// A turn that runs at another live replica, which answers others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTurn {
    /// Its session.
    pub of: SessionKey,
    /// Its id.
    pub turn: TurnId,
    /// The number of the event of its input.
    pub input_seq: u64,
    /// The replica.
    pub replica: ReplicaId,
    /// The host and port at which that replica answers.
    pub address: String,
}

impl Store {
    /// The running turns of these sessions, of any tenants, that another replica has than this one. Left out are those
    /// whose replica is gone, or answers no others.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn turns_held_elsewhere(
        &self,
        here: ReplicaId,
        sessions: impl IntoIterator<Item = SessionKey>,
    ) -> Result<Vec<HeldTurn>, StoreError> {
        // The databases take lists apart in different ways.
        let statement = Sql {
            sqlite: "SELECT turns.tenant_id, session_id, turns.id, input_seq, claimed_by, address
                 FROM json_each($1) AS asked
                 JOIN turns ON tenant_id = json_extract(asked.value, '$[0]')
                     AND session_id = json_extract(asked.value, '$[1]') AND state = 'running'
                 JOIN replicas ON replicas.id = claimed_by
                 WHERE claimed_by <> $2 AND address IS NOT NULL",
            postgres: "SELECT turns.tenant_id, session_id, turns.id, input_seq, claimed_by, address
                 FROM jsonb_array_elements($1::jsonb) AS asked
                 JOIN turns ON tenant_id = asked ->> 0 AND session_id = asked ->> 1
                     AND state = 'running'
                 JOIN replicas ON replicas.id = claimed_by
                 WHERE claimed_by <> $2 AND address IS NOT NULL",
        };
        let sessions = sessions
            .into_iter()
            .map(|of| json!([of.tenant, of.session]));
        let asked = serde_json::Value::from_iter(sessions).to_string();
        let rows = query_as(statement)
            .bind(asked)
            .bind(here.to_string())
            .fetch_all(
                &mut self
                    .read_any("a server follows sessions of all tenants")
                    .await?,
            )
            .await?;
        Ok(rows)
    }
}

impl FromRow for HeldTurn {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            of: SessionKey {
                tenant: row.parsed("tenant_id")?,
                session: row.parsed("session_id")?,
            },
            turn: row.parsed("id")?,
            input_seq: row.count("input_seq")?,
            replica: row.parsed("claimed_by")?,
            address: row.text("address")?,
        })
    }
}
