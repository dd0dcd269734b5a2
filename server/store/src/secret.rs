//! Secrets at rest. A secret is sealed (encrypted) by a data key of its tenant, and a data key is wrapped by a master
//! key, which is not in the database. The store has only the sealed forms: `server_app::vault` makes and opens them.

use std::fmt;

use shared_types::{SecretId, TenantId, Timestamp};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{Connection, FromRow, Row, page, query, query_as, retried},
};

/// Largest sealed secret, in bytes.
pub const MAX_SEALED_BYTES: usize = 64 * 1024;

/// A data key of a tenant, wrapped by a master key.
#[derive(Clone, PartialEq, Eq)]
pub struct DataKeyRow {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its number in the tenant, from 1.
    pub version: u32,
    /// The id of the master key that wraps it.
    pub master_key: String,
    /// The wrapped key.
    pub wrapped: Vec<u8>,
}

/// A secret as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// Its id.
    pub id: SecretId,
    /// The number of its text, from 1; each new text has the next one.
    pub version: u32,
    /// The version of the data key that seals it.
    pub data_key: u32,
    /// The sealed text.
    pub sealed: Vec<u8>,
}

/// The number of data keys that a master key wraps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKeyInUse {
    /// The id of the master key.
    pub id: String,
    /// The number of data keys.
    pub data_keys: u64,
}

/// Narrows `secrets` to those that depend on the master key `$1`.
macro_rules! of_master_key {
    () => {
        "WHERE (tenant_id, data_key_version) IN
             (SELECT tenant_id, version FROM data_keys WHERE master_key = $1)"
    };
}

impl Store {
    /// The newest data key of the tenant, if it has any.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn newest_data_key(
        &self,
        tenant: TenantId,
    ) -> Result<Option<DataKeyRow>, StoreError> {
        let row = query_as(
            "SELECT tenant_id, version, master_key, wrapped FROM data_keys WHERE tenant_id = $1
             ORDER BY version DESC LIMIT 1",
        )
        .bind(tenant.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        Ok(row)
    }

    /// One data key of the tenant.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn data_key(&self, tenant: TenantId, version: u32) -> Result<DataKeyRow, StoreError> {
        data_key(&mut self.read(tenant).await?, tenant, version).await
    }

    /// Stores a data key, unless the tenant has one of this version already. Returns the stored one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such tenant.
    pub async fn add_data_key(
        &self,
        key: &DataKeyRow,
        now: Timestamp,
    ) -> Result<DataKeyRow, StoreError> {
        let mut tx = self.write(key.tenant).await?;
        query(
            "INSERT INTO data_keys (tenant_id, version, master_key, wrapped, created_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant_id, version) DO NOTHING",
        )
        .bind(key.tenant.to_string())
        .bind(i64::from(key.version))
        .bind(&key.master_key)
        .bind(key.wrapped.clone())
        .bind(now.as_micros())
        .execute(&mut tx)
        .await?;
        let stored = data_key(&mut tx, key.tenant, key.version).await?;
        tx.commit().await?;
        Ok(stored)
    }

    /// The data keys of all tenants, by tenant and version, `limit` at most, beginning behind that one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn data_keys_after(
        &self,
        after: Option<(TenantId, u32)>,
        limit: u32,
    ) -> Result<Vec<DataKeyRow>, StoreError> {
        let (tenant, version) = after.unzip();
        let rows = query_as(
            "SELECT tenant_id, version, master_key, wrapped FROM data_keys
             WHERE (tenant_id, version) > ($1, $2) ORDER BY tenant_id, version LIMIT $3",
        )
        .bind(tenant.map_or(String::new(), |tenant| tenant.to_string()))
        .bind(version.map_or(0, i64::from))
        .bind(page(limit))
        .fetch_all(
            &mut self
                .read_any("master keys are those of all tenants")
                .await?,
        )
        .await?;
        Ok(rows)
    }

    /// Replaces the wrapped form of a data key, if `from` is still the master key that wraps it. Returns false if
    /// another rotation was first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn rewrap_data_key(
        &self,
        rewrapped: &DataKeyRow,
        from: &str,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(rewrapped.tenant).await?;
        let changed = query(
            "UPDATE data_keys SET master_key = $4, wrapped = $5
             WHERE tenant_id = $1 AND version = $2 AND master_key = $3",
        )
        .bind(rewrapped.tenant.to_string())
        .bind(i64::from(rewrapped.version))
        .bind(from)
        .bind(&rewrapped.master_key)
        .bind(rewrapped.wrapped.clone())
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(changed > 0)
    }

    /// The master keys that wrap a data key of any tenant.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn master_keys_in_use(&self) -> Result<Vec<MasterKeyInUse>, StoreError> {
        let rows = query_as(
            "SELECT master_key, COUNT(*) AS data_keys FROM data_keys GROUP BY master_key
             ORDER BY master_key",
        )
        .fetch_all(
            &mut self
                .read_any("master keys are those of all tenants")
                .await?,
        )
        .await?;
        Ok(rows)
    }

    /// A data key of any tenant that this master key wraps, with which the master key is tried.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn data_key_of_master_key(&self, id: &str) -> Result<Option<DataKeyRow>, StoreError> {
        let row = query_as(
            "SELECT tenant_id, version, master_key, wrapped FROM data_keys WHERE master_key = $1
             ORDER BY tenant_id, version LIMIT 1",
        )
        .bind(id)
        .fetch_optional(
            &mut self
                .read_any("master keys are those of all tenants")
                .await?,
        )
        .await?;
        Ok(row)
    }

    /// Removes all secrets of all tenants that depend on this master key, and their data keys. Model accounts stay,
    /// without a key, and tool servers without their values; people have to sign in to tool servers again. Returns the
    /// number of secrets.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the master key wraps nothing.
    pub async fn forget_master_key(&self, id: &str) -> Result<u64, StoreError> {
        retried!({
            let why = "a lost master key is that of all tenants";
            let mut tx = self.write_any(why).await?;
            query(concat!(
                "UPDATE model_accounts SET secret_id = NULL
                 WHERE (tenant_id, secret_id) IN (SELECT tenant_id, id FROM secrets ",
                of_master_key!(),
                ")"
            ))
            .bind(id)
            .execute(&mut tx)
            .await?;
            for statement in [
                concat!(
                    "UPDATE extensions SET secret_id = NULL
                     WHERE (tenant_id, secret_id) IN (SELECT tenant_id, id FROM secrets ",
                    of_master_key!(),
                    ")"
                ),
                concat!(
                    "UPDATE tool_grants SET secret_id = NULL, wanted = scopes
                     WHERE (tenant_id, secret_id) IN (SELECT tenant_id, id FROM secrets ",
                    of_master_key!(),
                    ")"
                ),
                concat!(
                    "DELETE FROM tool_values
                     WHERE (tenant_id, secret_id) IN (SELECT tenant_id, id FROM secrets ",
                    of_master_key!(),
                    ")"
                ),
                concat!(
                    "DELETE FROM tool_sign_ins
                     WHERE (tenant_id, secret_id) IN (SELECT tenant_id, id FROM secrets ",
                    of_master_key!(),
                    ")"
                ),
            ] {
                query(statement).bind(id).execute(&mut tx).await?;
            }
            let secrets = query(concat!("DELETE FROM secrets ", of_master_key!()))
                .bind(id)
                .execute(&mut tx)
                .await?;
            let data_keys = query("DELETE FROM data_keys WHERE master_key = $1")
                .bind(id)
                .execute(&mut tx)
                .await?;
            if data_keys == 0 {
                return Err(StoreError::NotFound);
            }
            tx.commit().await?;
            Ok(secrets)
        })
    }

    /// Stores a secret, or a new text of one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if its version is not the next one; [`StoreError::NotFound`] if the tenant has no such
    /// data key; [`StoreError::TooLarge`] for more than [`MAX_SEALED_BYTES`].
    pub async fn put_secret(
        &self,
        tenant: TenantId,
        secret: &SealedSecret,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        put(&mut tx, tenant, secret, now).await?;
        tx.commit().await
    }

    /// Stores the first text of a secret, unless there is one of its id. Returns the stored one.
    ///
    /// # Errors
    /// Those of [`Store::put_secret`], but for the conflict.
    pub async fn secret_or_put(
        &self,
        tenant: TenantId,
        secret: &SealedSecret,
        now: Timestamp,
    ) -> Result<SealedSecret, StoreError> {
        let mut tx = self.write(tenant).await?;
        match put(&mut tx, tenant, secret, now).await {
            Ok(()) | Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
        // Here, because a reader does not see what is not committed yet.
        let stored = one(&mut tx, tenant, secret.id).await?;
        tx.commit().await?;
        Ok(stored)
    }

    /// One secret.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn secret(
        &self,
        tenant: TenantId,
        secret: SecretId,
    ) -> Result<SealedSecret, StoreError> {
        one(&mut self.read(tenant).await?, tenant, secret).await
    }

    /// Removes a secret that nothing refers to.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also where something refers to it.
    pub async fn remove_secret(
        &self,
        tenant: TenantId,
        secret: SecretId,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        remove(&mut tx, tenant, secret).await?;
        tx.commit().await
    }
}

/// Stores a secret, or a new text of one.
pub(crate) async fn put(
    tx: &mut Connection,
    tenant: TenantId,
    secret: &SealedSecret,
    now: Timestamp,
) -> Result<(), StoreError> {
    if secret.sealed.len() > MAX_SEALED_BYTES {
        return Err(StoreError::TooLarge {
            what: "the secret",
            max_bytes: MAX_SEALED_BYTES,
        });
    }
    // The first version meets no row, and each later one the version before it.
    let statement = match secret.version {
        1 => {
            "INSERT INTO secrets
                 (tenant_id, id, version, data_key_version, sealed, created_at, changed_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (tenant_id, id) DO NOTHING"
        }
        _ => {
            "UPDATE secrets SET version = $3, data_key_version = $4, sealed = $5, changed_at = $6
             WHERE tenant_id = $1 AND id = $2 AND version = $3 - 1"
        }
    };
    let put = query(statement)
        .bind(tenant.to_string())
        .bind(secret.id.to_string())
        .bind(i64::from(secret.version))
        .bind(i64::from(secret.data_key))
        .bind(secret.sealed.clone())
        .bind(now.as_micros())
        .execute(tx)
        .await?;
    match put {
        0 => Err(StoreError::Conflict(
            "another request has changed the secret, try again",
        )),
        _ => Ok(()),
    }
}

/// One secret.
pub(crate) async fn one(
    connection: &mut Connection,
    tenant: TenantId,
    secret: SecretId,
) -> Result<SealedSecret, StoreError> {
    let row = query_as(
        "SELECT id, version, data_key_version, sealed FROM secrets
         WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant.to_string())
    .bind(secret.to_string())
    .fetch_one(connection)
    .await?;
    Ok(row)
}

/// Removes a secret.
pub(crate) async fn remove(
    tx: &mut Connection,
    tenant: TenantId,
    secret: SecretId,
) -> Result<(), StoreError> {
    let removed = query("DELETE FROM secrets WHERE tenant_id = $1 AND id = $2")
        .bind(tenant.to_string())
        .bind(secret.to_string())
        .execute(tx)
        .await?;
    match removed {
        0 => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// Removes the secrets of rows that are gone, by their column `secret_id`.
pub(crate) async fn remove_of(
    tx: &mut Connection,
    tenant: TenantId,
    gone: &[Row],
) -> Result<(), StoreError> {
    for row in gone {
        if let Some(secret) = row.maybe_parsed("secret_id")? {
            remove(tx, tenant, secret).await?;
        }
    }
    Ok(())
}

async fn data_key(
    connection: &mut Connection,
    tenant: TenantId,
    version: u32,
) -> Result<DataKeyRow, StoreError> {
    let row = query_as(
        "SELECT tenant_id, version, master_key, wrapped FROM data_keys
         WHERE tenant_id = $1 AND version = $2",
    )
    .bind(tenant.to_string())
    .bind(i64::from(version))
    .fetch_one(connection)
    .await?;
    Ok(row)
}

/// Names the key without its bytes.
impl fmt::Debug for DataKeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tenant,
            version,
            master_key,
            ..
        } = self;
        write!(f, "DataKeyRow({tenant}, {version}, {master_key})")
    }
}

/// Names the secret without its bytes.
impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealedSecret({}, {})", self.id, self.version)
    }
}

impl FromRow for DataKeyRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            version: row.small("version")?,
            master_key: row.text("master_key")?,
            wrapped: row.bytes("wrapped")?,
        })
    }
}

impl FromRow for SealedSecret {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            version: row.small("version")?,
            data_key: row.small("data_key_version")?,
            sealed: row.bytes("sealed")?,
        })
    }
}

impl FromRow for MasterKeyInUse {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.text("master_key")?,
            data_keys: row.count("data_keys")?,
        })
    }
}
