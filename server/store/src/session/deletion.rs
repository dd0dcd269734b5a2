//! The end of a session. A deletion hides it from everyone at once. Its rows go once nothing of it runs any more,
//! because its runner's reports about its operations need them until then.

use serde_json::json;
use shared_types::{OperationId, SessionId, TenantId, Timestamp, TurnId};

use crate::{
    AuditEntry, By, Store, StoreError, agent, audit,
    columns::Columns as _,
    database::{Connection, Row, page, query, retried},
    request_key,
};

/// A session that was deleted and still has rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedSession {
    /// Its tenant.
    pub tenant: TenantId,
    /// The session.
    pub id: SessionId,
    /// When it was deleted.
    pub at: Timestamp,
}

/// The turns and operations of a deleted session that still have to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unended {
    /// Its turns that have not ended.
    pub turns: Vec<TurnId>,
    /// Its operations without an outcome, and their turns.
    pub operations: Vec<(TurnId, OperationId)>,
}

impl Unended {
    /// True if nothing has to end.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.operations.is_empty()
    }
}

impl Store {
    /// Deletes a session, and all agents below it. From now on no user sees it, and it takes no message and has no links.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if it is deleted already.
    pub async fn delete_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let entry = entry(by, "session.deleted", session, json!({}));
            audit::record(&mut tx, tenant, &entry, now).await?;
            mark_below(&mut tx, tenant, session, now).await?;
            let deleted = mark(&mut tx, tenant, session, now).await?;
            if deleted == 0 {
                return Err(StoreError::NotFound);
            }
            // One may have begun until the session was locked.
            mark_below(&mut tx, tenant, session, now).await?;
            tx.commit().await
        })
    }

    /// The sessions of all tenants that were deleted and still have rows, the oldest deletion first,
    /// `limit` at most, beginning behind that one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn deleted_sessions(
        &self,
        after: Option<&DeletedSession>,
        limit: u32,
    ) -> Result<Vec<DeletedSession>, StoreError> {
        let after_at = after.map_or(i64::MIN, |after| after.at.as_micros());
        let after_id = after.map(|after| after.id.to_string()).unwrap_or_default();
        let rows = query(
            "SELECT tenant_id, id, deleted_at FROM sessions
             WHERE deleted_at IS NOT NULL AND (deleted_at > $1 OR deleted_at = $1 AND id > $2)
             ORDER BY deleted_at, id LIMIT $3",
        )
        .bind(after_at)
        .bind(after_id)
        .bind(page(limit))
        .fetch_all(&mut self.read_any("sessions of all tenants are deleted").await?)
        .await?;
        let sessions = rows.iter().map(|row| {
            Ok(DeletedSession {
                tenant: row.parsed("tenant_id")?,
                id: row.parsed("id")?,
                at: row.time("deleted_at")?,
            })
        });
        sessions.collect()
    }

    /// The turns and operations of a session that have not ended.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unended_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<Unended, StoreError> {
        unended(&mut self.read(tenant).await?, tenant, session).await
    }

    /// The operations of a session, by id, `limit` at most, beginning behind that one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn operations_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        after: Option<OperationId>,
        limit: u32,
    ) -> Result<Vec<OperationId>, StoreError> {
        let rows = query(
            "SELECT operations.id FROM turns
             JOIN operations ON operations.tenant_id = turns.tenant_id AND operations.turn_id = turns.id
             WHERE turns.tenant_id = $1 AND turns.session_id = $2 AND operations.id > $3
             ORDER BY operations.id LIMIT $4",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(after.map(|id| id.to_string()).unwrap_or_default())
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        rows.iter().map(|row| Ok(row.parsed("id")?)).collect()
    }

    /// Removes all rows of a deleted session, unless something of it has not ended. Then it removes nothing and returns
    /// false.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session, or it is not deleted.
    pub async fn purge_session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            // Takes the session's lock, like every transaction on one.
            let deleted = query(
                "UPDATE sessions SET last_seq = last_seq
                 WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NOT NULL",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .execute(&mut tx)
            .await?;
            if deleted == 0 {
                return Err(StoreError::NotFound);
            }
            if !unended(&mut tx, tenant, session).await?.is_empty() {
                return Ok(false);
            }
            for statement in [
                "DELETE FROM turn_waits WHERE tenant_id = $1 AND turn_id IN
                     (SELECT id FROM turns WHERE tenant_id = $1 AND session_id = $2)",
                "DELETE FROM operations WHERE tenant_id = $1 AND turn_id IN
                     (SELECT id FROM turns WHERE tenant_id = $1 AND session_id = $2)",
                "DELETE FROM approvals WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM steers WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM turns WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM chat_texts WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM events WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM session_images WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM session_texts WHERE tenant_id = $1 AND session_id = $2",
                "DELETE FROM settings WHERE tenant_id = $1 AND subject = $2",
                "DELETE FROM sessions WHERE tenant_id = $1 AND id = $2",
            ] {
                query(statement)
                    .bind(tenant.to_string())
                    .bind(session.to_string())
                    .execute(&mut tx)
                    .await?;
            }
            // Forgets an answer that was stored after the deletion.
            request_key::forget_answers(&mut tx, tenant, &session.to_string()).await?;
            tx.commit().await?;
            Ok(true)
        })
    }
}

async fn mark_below(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    now: Timestamp,
) -> Result<(), StoreError> {
    for agent in agent::below(tx, tenant, session).await? {
        mark(tx, tenant, agent, now).await?;
    }
    Ok(())
}

/// Hides a session and ends its links; returns 0 if there is none that is not deleted.
async fn mark(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let deleted = query(
        "UPDATE sessions SET deleted_at = $1
         WHERE tenant_id = $2 AND id = $3 AND deleted_at IS NULL",
    )
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(session.to_string())
    .execute(&mut *tx)
    .await?;
    if deleted > 0 {
        delete_links(tx, tenant, session).await?;
        request_key::forget_answers(tx, tenant, &session.to_string()).await?;
    }
    Ok(deleted)
}

pub(super) fn entry(
    by: &By,
    kind: &'static str,
    session: SessionId,
    detail: serde_json::Value,
) -> AuditEntry {
    by.entry(kind, session, detail)
}

/// Returns the number of links that it ended.
pub(super) async fn delete_links(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<u64, StoreError> {
    let ended = query("DELETE FROM session_links WHERE tenant_id = $1 AND session_id = $2")
        .bind(tenant.to_string())
        .bind(session.to_string())
        .execute(tx)
        .await?;
    Ok(ended)
}

async fn unended(
    connection: &mut Connection,
    tenant: TenantId,
    session: SessionId,
) -> Result<Unended, StoreError> {
    let turns: Vec<Row> = query(
        "SELECT id FROM turns WHERE tenant_id = $1 AND session_id = $2 AND state <> 'ended'
         ORDER BY input_seq",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_all(&mut *connection)
    .await?;
    let operations: Vec<Row> = query(
        "SELECT operations.id, turns.id AS turn_id FROM turns
         JOIN operations ON operations.tenant_id = turns.tenant_id AND operations.turn_id = turns.id
         WHERE turns.tenant_id = $1 AND turns.session_id = $2 AND operations.outcome IS NULL
         ORDER BY operations.id",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_all(connection)
    .await?;
    let turns = turns.iter().map(|row| row.parsed("id"));
    let operations = operations
        .iter()
        .map(|row| Ok((row.parsed("turn_id")?, row.parsed("id")?)));
    Ok(Unended {
        turns: turns.collect::<Result<_, sqlx::Error>>()?,
        operations: operations.collect::<Result<_, sqlx::Error>>()?,
    })
}
