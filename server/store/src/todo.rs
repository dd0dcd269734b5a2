//! The to-do lists of folders: what a user's sessions left to do there.

use shared_types::{SessionId, TenantId, Timestamp, event::TodoItem};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Connection, Row, query},
};

/// Most folders of a user whose lists are kept; the oldest go.
const LISTS_OF_USER: i64 = 200;

impl Store {
    /// The list that an earlier session of the same user left at this place; empty if there is none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub async fn todo_of_place(
        &self,
        tenant: TenantId,
        session: SessionId,
        place: &str,
    ) -> Result<Vec<TodoItem>, StoreError> {
        let user = self.session_owner(tenant, session).await?;
        let mut connection = self.read(tenant).await?;
        let row: Option<Row> = query(
            "SELECT items FROM todo_lists WHERE tenant_id = $1 AND user_id = $2 AND place = $3",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(place)
        .fetch_optional(&mut connection)
        .await?;
        let Some(row) = row else {
            return Ok(Vec::new());
        };
        // A list that a newer release has written in another form is none for this one.
        Ok(serde_json::from_str(&row.text("items")?).unwrap_or_default())
    }
}

/// Keeps the list of a place.
pub(crate) async fn keep(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    place: &str,
    items: &[TodoItem],
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO todo_lists (tenant_id, user_id, place, items, updated_at)
         SELECT tenant_id, user_id, $3, $4, $5 FROM sessions WHERE tenant_id = $1 AND id = $2
         ON CONFLICT (tenant_id, user_id, place)
         DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(place)
    .bind(serde_json::to_string(items).unwrap_or_default())
    .bind(now.as_micros())
    .execute(&mut *tx)
    .await?;
    query(
        "DELETE FROM todo_lists WHERE tenant_id = $1
             AND user_id = (SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2)
             AND place NOT IN (
                 SELECT place FROM todo_lists WHERE tenant_id = $1
                     AND user_id = (SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2)
                 ORDER BY updated_at DESC, place LIMIT $3)",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(LISTS_OF_USER)
    .execute(tx)
    .await?;
    Ok(())
}

/// Puts the list of a place back to the one before, where it is still the last one that the session wrote.
pub(crate) async fn put_back(
    tx: &mut Connection,
    tenant: TenantId,
    (session, place): (SessionId, &str),
    (last, before): (&[TodoItem], &[TodoItem]),
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "UPDATE todo_lists SET items = $1, updated_at = $2
         WHERE tenant_id = $3 AND place = $5 AND items = $6
             AND user_id = (SELECT user_id FROM sessions WHERE tenant_id = $3 AND id = $4)",
    )
    .bind(serde_json::to_string(before).unwrap_or_default())
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(place)
    .bind(serde_json::to_string(last).unwrap_or_default())
    .execute(tx)
    .await?;
    Ok(())
}
