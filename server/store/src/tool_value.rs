//! The values of people that stand for variables in the addresses and headers of tool servers. Each is a secret.

use serde_json::json;
use shared_types::{TenantId, Timestamp, UserId};

use crate::{
    By, SealedSecret, Store, StoreError, audit,
    columns::Columns as _,
    database::{Connection, Row, lock_user, query, retried},
    room::Room,
    secret,
};

/// The values of a user.
const VALUES: Room = Room {
    count: "SELECT COUNT(*) AS used FROM tool_values WHERE tenant_id = $1 AND user_id = $2",
    has: "you have",
    at_most: 100,
    what: "values for tool servers",
    remedy: "remove one with: gantry mcp values remove NAME",
};

/// A value of a user, without what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolValueRow {
    /// Its name.
    pub name: String,
    /// The host to which it may be sent, with its port where the address has one.
    pub host: String,
    /// The time of its last change.
    pub changed_at: Timestamp,
}

impl Store {
    /// A user's values, by their names.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn tool_values(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<ToolValueRow>, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT name, host, changed_at FROM tool_values WHERE tenant_id = $1 AND user_id = $2 ORDER BY name",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        let values = rows.iter().map(|row| {
            Ok(ToolValueRow {
                name: row.text("name")?,
                host: row.text("host")?,
                changed_at: row.time("changed_at")?,
            })
        });
        values.collect()
    }

    /// One of a user's values, and the host to which it may be sent.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has none of this name.
    pub async fn tool_value(
        &self,
        tenant: TenantId,
        user: UserId,
        name: &str,
    ) -> Result<(SealedSecret, String), StoreError> {
        let mut connection = self.read(tenant).await?;
        let row: Row = query(
            "SELECT host, secret_id FROM tool_values WHERE tenant_id = $1 AND user_id = $2 AND name = $3",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(name)
        .fetch_one(&mut connection)
        .await?;
        let sealed = secret::one(&mut connection, tenant, row.parsed("secret_id")?).await?;
        Ok((sealed, row.text("host")?))
    }

    /// Sets one of a user's values with its host, or removes it where there is none to set.
    ///
    /// # Errors
    /// [`StoreError::Full`] above 100 of the user; [`StoreError::NotFound`] if there is none to remove.
    pub async fn put_tool_value(
        &self,
        tenant: TenantId,
        user: UserId,
        (name, value): (&str, Option<(&SealedSecret, &str)>),
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            let removed = remove(&mut tx, tenant, user, Some(name)).await?;
            let kind = match value {
                Some((value, host)) => {
                    secret::put(&mut tx, tenant, value, now).await?;
                    query(
                        "INSERT INTO tool_values (tenant_id, user_id, name, host, secret_id, changed_at)
                         VALUES ($1, $2, $3, $4, $5, $6)",
                    )
                    .bind(tenant.to_string())
                    .bind(user.to_string())
                    .bind(name)
                    .bind(host)
                    .bind(value.id.to_string())
                    .bind(now.as_micros())
                    .execute(&mut tx)
                    .await?;
                    VALUES.must_hold(&mut tx, tenant, &user.to_string()).await?;
                    "tool_value.set"
                }
                None if removed == 0 => return Err(StoreError::NotFound),
                None => "tool_value.removed",
            };
            let entry = by.entry(
                kind,
                user,
                json!({ "name": name, "host": value.map(|(_, host)| host) }),
            );
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }
}

/// Removes the values of a user who leaves the tenant.
pub(crate) async fn remove_of_user(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    remove(tx, tenant, user, None).await.map(drop)
}

/// Removes one value, or all of them. Returns their number.
async fn remove(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    name: Option<&str>,
) -> Result<usize, StoreError> {
    let rows: Vec<Row> = query(
        "DELETE FROM tool_values WHERE tenant_id = $1 AND user_id = $2 AND ($3 = '' OR name = $3)
         RETURNING secret_id",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(name.unwrap_or_default())
    .fetch_all(&mut *tx)
    .await?;
    secret::remove_of(tx, tenant, &rows).await?;
    Ok(rows.len())
}
