//! Accounts at providers of models: of one user, or of the tenant for all of its users. The key of an account is a
//! secret, which is stored, replaced and removed together with it.

use serde_json::json;
use shared_types::{ModelAccountId, SecretId, TenantId, Timestamp, UserId, limits::MAX_NAME_BYTES};

use crate::{
    By, Full, SealedSecret, Store, StoreError, audit,
    columns::{Columns as _, json},
    database::{
        Connection, FromRow, MAX_PAGE, Row, lock_user, locking, page, query, query_as, retried,
    },
    error::bounded,
    secret,
};

/// Most accounts of a user, and most of a tenant.
pub const MODEL_ACCOUNTS_AT_MOST: u64 = 32;

/// Longest name of an account, in bytes.
pub const MAX_ACCOUNT_NAME_BYTES: usize = 64;

/// Longest address of a provider, in bytes.
pub const MAX_BASE_URL_BYTES: usize = 1024;

/// Most models that an account names.
pub const MODELS_OF_ACCOUNT_AT_MOST: usize = 64;

/// Longest name of a model, in bytes.
pub const MAX_MODEL_NAME_BYTES: usize = 128;

/// The owner of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccountOf {
    /// The tenant: all of its users may use the account.
    Tenant,
    /// One user.
    User(UserId),
}

/// The part of an account that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTerms {
    /// Its name, unique among those of its owner.
    pub name: String,
    /// The format of requests, where it is not that of the provider.
    pub format: Option<String>,
    /// The address, where it is not that of the provider.
    pub base_url: Option<String>,
    /// The names of its models; may be empty.
    pub models: Vec<String>,
}

/// An account to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewModelAccount {
    /// Its id.
    pub id: ModelAccountId,
    /// Its owner.
    pub of: AccountOf,
    /// The provider, such as `openai`.
    pub provider: String,
    /// The rest of it.
    pub terms: AccountTerms,
    /// Its key, if it has one.
    pub key: Option<SealedSecret>,
}

/// An account at a provider of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccountRow {
    /// Its id.
    pub id: ModelAccountId,
    /// Its owner.
    pub of: AccountOf,
    /// The provider, such as `openai`.
    pub provider: String,
    /// The part that can be changed.
    pub terms: AccountTerms,
    /// The secret with its key, if it has one.
    pub key: Option<SecretId>,
    /// The user who added it.
    pub created_by: UserId,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub changed_at: Timestamp,
}

impl AccountOf {
    fn user(self) -> Option<UserId> {
        match self {
            Self::Tenant => None,
            Self::User(user) => Some(user),
        }
    }
}

macro_rules! select_accounts {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, name, provider, format, base_url, models, secret_id, created_by,
                 created_at, changed_at FROM model_accounts ",
            $rest
        )
    };
}

impl Store {
    /// Adds an account, with its key.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if its owner has an account of this name; [`StoreError::Full`] if its owner has
    /// [`MODEL_ACCOUNTS_AT_MOST`]; [`StoreError::TooLarge`] for a text above its bound; [`StoreError::NotFound`] if
    /// the user is not in this tenant.
    pub async fn add_model_account(
        &self,
        tenant: TenantId,
        account: &NewModelAccount,
        by: &By,
        now: Timestamp,
    ) -> Result<ModelAccountRow, StoreError> {
        require_bounds(&account.terms)?;
        bounded("the provider's name", &account.provider, MAX_NAME_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            if let AccountOf::User(user) = account.of {
                lock_user(&mut tx, tenant, user).await?;
            }
            // It also locks the tenant, whose accounts are counted.
            let deed = AccountDeed {
                kind: "model_account.added",
                account: account.id,
                of: account.of,
                terms: &account.terms,
            };
            record(&mut tx, tenant, by, deed, now).await?;
            require_room(&mut tx, tenant, account.of).await?;
            if let Some(key) = &account.key {
                secret::put(&mut tx, tenant, key, now).await?;
            }
            insert(&mut tx, tenant, account, by.user, now).await?;
            let added = find(&mut tx, tenant, account.id).await?;
            tx.commit().await?;
            Ok(added)
        })
    }

    /// Changes an account. With a key, that one replaces the key before: a new version of its secret, or another
    /// secret.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] if its owner has another account of this name, or the key was
    /// changed in the meantime; [`StoreError::TooLarge`] for a text above its bound.
    pub async fn change_model_account(
        &self,
        tenant: TenantId,
        account: ModelAccountId,
        terms: &AccountTerms,
        key: Option<&SealedSecret>,
        by: &By,
        now: Timestamp,
    ) -> Result<ModelAccountRow, StoreError> {
        require_bounds(terms)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            let before = locked(&mut tx, tenant, account).await?;
            let deed = AccountDeed {
                kind: "model_account.changed",
                account,
                of: before.of,
                terms,
            };
            record(&mut tx, tenant, by, deed, now).await?;
            if let Some(key) = key {
                secret::put(&mut tx, tenant, key, now).await?;
            }
            let secret = key.map(|key| key.id).or(before.key);
            query(
                "UPDATE model_accounts SET name = $3, format = $4, base_url = $5, models = $6,
                     secret_id = $7, changed_at = $8 WHERE tenant_id = $1 AND id = $2",
            )
            .bind(tenant.to_string())
            .bind(account.to_string())
            .bind(&terms.name)
            .bind(terms.format.as_deref())
            .bind(terms.base_url.as_deref())
            .bind(json(&terms.models))
            .bind(secret.map(|secret| secret.to_string()))
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            if let Some(replaced) = before.key.filter(|key| Some(*key) != secret) {
                secret::remove(&mut tx, tenant, replaced).await?;
            }
            let changed = find(&mut tx, tenant, account).await?;
            tx.commit().await?;
            Ok(changed)
        })
    }

    /// Removes an account, with its key.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn remove_model_account(
        &self,
        tenant: TenantId,
        account: ModelAccountId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let before = locked(&mut tx, tenant, account).await?;
            let deed = AccountDeed {
                kind: "model_account.removed",
                account,
                of: before.of,
                terms: &before.terms,
            };
            record(&mut tx, tenant, by, deed, now).await?;
            query("DELETE FROM model_accounts WHERE tenant_id = $1 AND id = $2")
                .bind(tenant.to_string())
                .bind(account.to_string())
                .execute(&mut tx)
                .await?;
            if let Some(key) = before.key {
                secret::remove(&mut tx, tenant, key).await?;
            }
            tx.commit().await
        })
    }

    /// One account.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn model_account(
        &self,
        tenant: TenantId,
        account: ModelAccountId,
    ) -> Result<ModelAccountRow, StoreError> {
        find(&mut self.read(tenant).await?, tenant, account).await
    }

    /// The accounts that a user may use: the user's, then the tenant's, each by name.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn model_accounts(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<ModelAccountRow>, StoreError> {
        let rows = query_as(select_accounts!(
            "WHERE tenant_id = $1 AND (user_id = $2 OR user_id IS NULL)
             ORDER BY CASE WHEN user_id IS NULL THEN 1 ELSE 0 END, name LIMIT $3"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }
}

/// Removes the accounts of a user who leaves the tenant, with their keys.
pub(crate) async fn remove_of_user(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    let removed: Vec<Row> = query(
        "DELETE FROM model_accounts WHERE tenant_id = $1 AND user_id = $2 RETURNING secret_id",
    )
    .bind(tenant.to_string())
    .bind(user.to_string())
    .fetch_all(&mut *tx)
    .await?;
    secret::remove_of(tx, tenant, &removed).await
}

fn require_bounds(terms: &AccountTerms) -> Result<(), StoreError> {
    bounded("the account's name", &terms.name, MAX_ACCOUNT_NAME_BYTES)?;
    let format = terms.format.as_deref().unwrap_or_default();
    bounded("the format's name", format, MAX_NAME_BYTES)?;
    let base_url = terms.base_url.as_deref().unwrap_or_default();
    bounded("the address", base_url, MAX_BASE_URL_BYTES)?;
    for model in &terms.models {
        bounded("the model's name", model, MAX_MODEL_NAME_BYTES)?;
    }
    match terms.models.len() {
        ..=MODELS_OF_ACCOUNT_AT_MOST => Ok(()),
        named => Err(Full {
            has: "the account names",
            used: named as u64,
            at_most: MODELS_OF_ACCOUNT_AT_MOST as u64,
            what: "models",
            remedy: "name fewer",
        }
        .into()),
    }
}

async fn require_room(
    tx: &mut Connection,
    tenant: TenantId,
    of: AccountOf,
) -> Result<(), StoreError> {
    let row = match of.user() {
        Some(user) => query(
            "SELECT COUNT(*) AS accounts FROM model_accounts WHERE tenant_id = $1 AND user_id = $2",
        )
        .bind(tenant.to_string())
        .bind(user.to_string()),
        None => query(
            "SELECT COUNT(*) AS accounts FROM model_accounts
             WHERE tenant_id = $1 AND user_id IS NULL",
        )
        .bind(tenant.to_string()),
    };
    let row: Row = row.fetch_one(tx).await?;
    match row.count("accounts")? {
        used if used < MODEL_ACCOUNTS_AT_MOST => Ok(()),
        used => Err(Full {
            has: match of {
                AccountOf::Tenant => "the organisation has",
                AccountOf::User(_) => "you have",
            },
            used,
            at_most: MODEL_ACCOUNTS_AT_MOST,
            what: "model accounts",
            remedy: "remove one first",
        }
        .into()),
    }
}

async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    account: &NewModelAccount,
    by: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let NewModelAccount {
        id,
        of,
        provider,
        terms,
        key,
    } = account;
    query(
        "INSERT INTO model_accounts (tenant_id, id, user_id, name, provider, format, base_url,
             models, secret_id, created_by, created_at, changed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
    )
    .bind(tenant.to_string())
    .bind(id.to_string())
    .bind(of.user().map(|user| user.to_string()))
    .bind(&terms.name)
    .bind(provider)
    .bind(terms.format.as_deref())
    .bind(terms.base_url.as_deref())
    .bind(json(&terms.models))
    .bind(key.as_ref().map(|key| key.id.to_string()))
    .bind(by.to_string())
    .bind(now.as_micros())
    .execute(tx)
    .await?;
    Ok(())
}

async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    account: ModelAccountId,
) -> Result<ModelAccountRow, StoreError> {
    let row = query_as(select_accounts!("WHERE tenant_id = $1 AND id = $2"))
        .bind(tenant.to_string())
        .bind(account.to_string())
        .fetch_one(connection)
        .await?;
    Ok(row)
}

/// The account, which no other transaction changes until the end of this one.
async fn locked(
    tx: &mut Connection,
    tenant: TenantId,
    account: ModelAccountId,
) -> Result<ModelAccountRow, StoreError> {
    let of = find(tx, tenant, account).await?.of;
    if let AccountOf::User(user) = of {
        lock_user(tx, tenant, user).await?;
    }
    let row = query_as(locking!(
        select_accounts!("WHERE tenant_id = $1 AND id = $2"),
        "FOR UPDATE"
    ))
    .bind(tenant.to_string())
    .bind(account.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row)
}

/// A deed on a model account, as the audit log has it.
struct AccountDeed<'a> {
    kind: &'static str,
    account: ModelAccountId,
    of: AccountOf,
    terms: &'a AccountTerms,
}

async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    by: &By,
    deed: AccountDeed<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let entry = by.entry(
        deed.kind,
        deed.account,
        json!({
            "name": deed.terms.name,
            "user": deed.of.user(),
            "base_url": deed.terms.base_url,
        }),
    );
    audit::record(tx, tenant, &entry, now).await.map(drop)
}

impl FromRow for ModelAccountRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let user = row.maybe_parsed("user_id")?;
        Ok(Self {
            id: row.parsed("id")?,
            of: user.map_or(AccountOf::Tenant, AccountOf::User),
            provider: row.text("provider")?,
            terms: AccountTerms {
                name: row.text("name")?,
                format: row.maybe_text("format")?,
                base_url: row.maybe_text("base_url")?,
                models: row.json("models")?,
            },
            key: row.maybe_parsed("secret_id")?,
            created_by: row.parsed("created_by")?,
            created_at: row.time("created_at")?,
            changed_at: row.time("changed_at")?,
        })
    }
}
