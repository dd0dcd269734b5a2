//! What a transaction locks before it decides by it, where others write at the same time.
//!
//! In this order, so that no two wait for each other: user, credential, join token, runner, tenant (its audit log),
//! sandbox, session, turn, operation. A statement that changes a row locks it as well. Where two wait for each other
//! all the same, PostgreSQL ends one of them, and [`super::retry`] does its work again. On SQLite a
//! transaction that writes is alone, and nothing is asked.

use shared_types::{RunnerId, TenantId, UserId};

use super::{Connection, query};
use crate::StoreError;

/// Until the end of the transaction nobody else counts or changes what belongs to the user and is bounded.
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

/// Until the end of the transaction the runner neither links, nor is revoked or locked.
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

/// Until the end of the transaction nobody else adds to the table or changes it.
pub(crate) async fn lock_table(
    tx: &mut Connection,
    statement: &'static str,
) -> Result<(), StoreError> {
    if tx.is_shared() {
        query(statement).execute(tx).await?;
    }
    Ok(())
}
