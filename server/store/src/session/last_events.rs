//! The newest events of many sessions, by which a server sees that another one has added to their logs.

use serde_json::json;
use server_records::SessionKey;

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{FromRow, Row, Sql, query_as},
};

struct LastEvent {
    of: SessionKey,
    seq: u64,
}

impl Store {
    /// The numbers of the newest events of these sessions, of any tenants; nothing of those that do not exist.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn last_events(
        &self,
        sessions: impl IntoIterator<Item = SessionKey>,
    ) -> Result<Vec<(SessionKey, u64)>, StoreError> {
        // The databases take lists apart in different ways.
        let statement = Sql {
            sqlite: "SELECT sessions.tenant_id, sessions.id, last_seq FROM json_each($1) AS asked
                 JOIN sessions ON tenant_id = json_extract(asked.value, '$[0]')
                     AND sessions.id = json_extract(asked.value, '$[1]')",
            postgres: "SELECT sessions.tenant_id, sessions.id, last_seq
                 FROM jsonb_array_elements($1::jsonb) AS asked
                 JOIN sessions ON tenant_id = asked ->> 0 AND sessions.id = asked ->> 1",
        };
        let sessions = sessions
            .into_iter()
            .map(|of| json!([of.tenant, of.session]));
        let asked = serde_json::Value::from_iter(sessions).to_string();
        let rows: Vec<LastEvent> = query_as(statement)
            .bind(asked)
            .fetch_all(
                &mut self
                    .read_any("a server follows sessions of all tenants")
                    .await?,
            )
            .await?;
        Ok(rows.into_iter().map(|row| (row.of, row.seq)).collect())
    }
}

impl FromRow for LastEvent {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            of: SessionKey {
                tenant: row.parsed("tenant_id")?,
                session: row.parsed("id")?,
            },
            seq: row.count("last_seq")?,
        })
    }
}
