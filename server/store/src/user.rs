//! People and service accounts of a tenant.

use std::fmt;

use serde::{Deserialize, Serialize};
use shared_types::{TenantId, Timestamp, UserId, limits::MAX_NAME_BYTES};

use crate::{
    Store, StoreError,
    columns::{Columns as _, word},
    database::{Connection, FromRow, Row, query, query_as},
    error::bounded,
};

/// The rights of a user in the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    Owner,
    /// Everything but to change owners.
    Admin,
    /// To work.
    Member,
    /// To look.
    Viewer,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word(self))
    }
}

/// The kind of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserKind {
    /// A person, who signs in.
    Person,
    /// A service account: it has keys, and never signs in.
    Service,
}

/// A user to be made.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Its id.
    pub id: UserId,
    /// Its name, unique in the tenant.
    pub name: String,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// The tenant that it belongs to.
    pub tenant: TenantId,
    /// Its id.
    pub id: UserId,
    /// Its name, unique in the tenant.
    pub name: String,
    /// Its kind.
    pub kind: UserKind,
    /// Its role.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Store {
    /// One user.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn user(&self, tenant: TenantId, user: UserId) -> Result<UserRow, StoreError> {
        let mut connection = self.read(tenant).await?;
        find(&mut connection, tenant, user).await
    }
}

pub(crate) async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    user: &NewUser,
    kind: UserKind,
    role: Role,
    now: Timestamp,
) -> Result<(), StoreError> {
    bounded("the user's name", &user.name, MAX_NAME_BYTES)?;
    query(
        "INSERT INTO users (tenant_id, id, name, user_kind, role, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(tenant.to_string())
    .bind(user.id.to_string())
    .bind(&user.name)
    .bind(word(&kind))
    .bind(word(&role))
    .bind(now.as_micros())
    .execute(tx)
    .await?;
    Ok(())
}

pub(crate) async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<UserRow, StoreError> {
    let row = query_as(
        "SELECT tenant_id, id, name, user_kind, role, created_at FROM users
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .fetch_one(connection)
    .await?;
    Ok(row)
}

impl FromRow for UserRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            id: row.parsed("id")?,
            name: row.text("name")?,
            kind: row.word("user_kind")?,
            role: row.word("role")?,
            created_at: row.time("created_at")?,
        })
    }
}
