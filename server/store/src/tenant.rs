//! Tenants, and the creation of the first one.

use serde_json::json;
use shared_types::{TenantId, Timestamp, UserId, limits::MAX_NAME_BYTES};

use crate::{
    Actor, AuditEntry, AuditOrigin, NewUser, Role, Store, StoreError, UserKind, audit,
    columns::Columns as _,
    database::{Connection, FromRow, Row, lock_table, query, query_as},
    error::bounded,
    user,
};

/// A tenant to be made.
#[derive(Debug, Clone)]
pub struct NewTenant {
    /// Its id.
    pub id: TenantId,
    /// Its name for people.
    pub name: String,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRow {
    /// Its id.
    pub id: TenantId,
    /// Its name for people.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The first tenant and its first owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// The tenant.
    pub tenant: TenantId,
    /// Its owner.
    pub owner: UserId,
    /// True if this call made them.
    pub created: bool,
}

impl Store {
    /// Makes the first tenant and its owner, both or neither, if there is no tenant yet. Otherwise returns those that
    /// exist.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a name of more than 63 bytes.
    pub async fn bootstrap(
        &self,
        tenant: &NewTenant,
        owner: &NewUser,
        now: Timestamp,
    ) -> Result<Bootstrap, StoreError> {
        let mut tx = self.write_any("there may be no tenant yet").await?;
        lock_table(&mut tx, "LOCK TABLE tenants IN SHARE ROW EXCLUSIVE MODE").await?;
        if let Some((tenant, owner)) = first_owner(&mut tx).await? {
            return Ok(Bootstrap {
                tenant,
                owner,
                created: false,
            });
        }
        create(&mut tx, tenant, owner, now).await?;
        tx.commit().await?;
        Ok(Bootstrap {
            tenant: tenant.id,
            owner: owner.id,
            created: true,
        })
    }

    /// Makes another tenant and its owner, both or neither.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a name of more than 63 bytes; [`StoreError::Conflict`] if one of the
    /// ids exists.
    pub async fn create_tenant(
        &self,
        tenant: &NewTenant,
        owner: &NewUser,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant.id).await?;
        create(&mut tx, tenant, owner, now).await?;
        tx.commit().await
    }

    /// The oldest tenant and its oldest owner. Without a tenant: a server that starts finds its tenant with it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn first_owner(&self) -> Result<Option<(TenantId, UserId)>, StoreError> {
        let mut connection = self
            .read_any("a server that starts finds the tenant that it has")
            .await?;
        first_owner(&mut connection).await
    }

    /// One tenant.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn tenant(&self, tenant: TenantId) -> Result<TenantRow, StoreError> {
        let row = query_as("SELECT id, name, created_at FROM tenants WHERE id = $1")
            .bind(tenant.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(row)
    }
}

/// Makes a tenant with its owner.
async fn create(
    tx: &mut Connection,
    tenant: &NewTenant,
    owner: &NewUser,
    now: Timestamp,
) -> Result<(), StoreError> {
    bounded("the tenant's name", &tenant.name, MAX_NAME_BYTES)?;
    query("INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, $3)")
        .bind(tenant.id.to_string())
        .bind(&tenant.name)
        .bind(now.as_micros())
        .execute(&mut *tx)
        .await?;
    user::insert(tx, tenant.id, owner, UserKind::Person, Role::Owner, now).await?;
    let made = AuditEntry {
        actor: Actor::System,
        kind: "tenant.created",
        subject: tenant.id.to_string(),
        detail: json!({ "name": tenant.name, "owner": owner.id }),
        origin: AuditOrigin::default(),
    };
    audit::record(tx, tenant.id, &made, now).await?;
    Ok(())
}

async fn first_owner(
    connection: &mut Connection,
) -> Result<Option<(TenantId, UserId)>, StoreError> {
    let row: Option<Row> = query(
        "SELECT users.tenant_id, users.id FROM users
         JOIN tenants ON tenants.id = users.tenant_id
         WHERE users.role = 'owner' AND users.removed_at IS NULL
         ORDER BY tenants.created_at, tenants.id, users.created_at, users.id LIMIT 1",
    )
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok((row.parsed("tenant_id")?, row.parsed("id")?)))
        .transpose()
}

impl FromRow for TenantRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            name: row.text("name")?,
            created_at: row.time("created_at")?,
        })
    }
}
