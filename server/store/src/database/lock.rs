//! The locks that a transaction takes before it decides, where others write at the same time.
//!
//! Locks are taken in this order, so that no two transactions wait for each other: user, credential, join token,
//! runner, tenant (its audit log), sandbox, session, turn, operation. A statement that changes a row locks it as well.
//! Where two wait for each other all the same, PostgreSQL ends one of them, and [`super::retry`] does its work again.
//! On SQLite a transaction that writes is alone and takes no lock here.

use shared_types::{RunnerId, TenantId, UserId};

use super::{Connection, query};
use crate::StoreError;

/// Locks the user. Until the end of the transaction no other one counts or changes the user's things that have a bound.
pub(crate) async fn lock_user(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        query("SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE")
            .bind(tenant.to_string())
            .bind(user.to_string())
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Locks the tenant. Until the end of the transaction no other one counts its turns.
pub(crate) async fn lock_tenant(tx: &mut Connection, tenant: TenantId) -> Result<(), StoreError> {
    if tx.is_shared() {
        query("SELECT 1 FROM tenants WHERE id = $1 FOR NO KEY UPDATE")
            .bind(tenant.to_string())
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Locks the runner. Until the end of the transaction it neither links, nor is revoked or locked.
pub(crate) async fn lock_runner(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        query("SELECT 1 FROM runners WHERE tenant_id = $1 AND id = $2 FOR SHARE")
            .bind(tenant.to_string())
            .bind(runner.to_string())
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Locks the table. Until the end of the transaction no other one adds to it or changes it.
pub(crate) async fn lock_table(
    tx: &mut Connection,
    statement: &'static str,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        query(statement).execute(tx).await?;
    }
    Ok(())
}
