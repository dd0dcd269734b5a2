//! The right of an operation's user to use its runner, while the operation runs.
//!
//! A transaction that ends the right marks the operations that run there, so no output can be read between the two. On
//! PostgreSQL, an operation that is placed while a role is lowered may escape the mark. The sweep finds it
//! ([`Store::work_to_stop`]).

use shared_types::{OperationId, RunnerId, TenantId, Timestamp, UserId, event::StopReason};

use crate::{
    Store, StoreError,
    columns::{Columns as _, word},
    database::{Connection, Row, query},
};

/// A user may use a runner, by the SQL that names their tenant and ids: the line "to use a runner" of docs/rights.md.
/// It is also true of a revoked runner and of a removed person: their work is ended for those reasons.
macro_rules! may_use {
    ($tenant:literal, $user:literal, $runner:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM users, runners AS used
                 WHERE users.tenant_id = ", $tenant, " AND users.id = ", $user, "
                     AND used.tenant_id = ", $tenant, " AND used.id = ", $runner, "
                     AND (used.revoked_at IS NOT NULL OR users.removed_at IS NOT NULL
                         OR users.role IN ('owner', 'admin')
                         OR users.role = 'member' AND (used.owner_id = users.id
                             OR used.shared_with_everyone_at IS NOT NULL
                             OR EXISTS (SELECT 1 FROM runner_shares AS shares
                                 WHERE shares.tenant_id = used.tenant_id AND shares.runner_id = used.id
                                     AND shares.user_id = users.id))))"
        )
    };
}
pub(crate) use may_use;

/// True where the user of an operation may use its runner.
macro_rules! its_user_may_use {
    () => {
        crate::operation::access::may_use!(
            "operations.tenant_id",
            "COALESCE(operations.user_id, (SELECT sessions.user_id FROM sessions
                 WHERE sessions.tenant_id = operations.tenant_id AND sessions.id = operations.session_id))",
            "operations.runner_id"
        )
    };
}
pub(crate) use its_user_may_use;

/// The right of an operation's user to see its current output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationAccess {
    /// The name of its runner.
    pub runner_name: String,
    /// True if the user has the right; for an operation that has ended, true if the user had it to the end.
    pub holds: bool,
}

impl Store {
    /// The right of an operation's user to see its current output.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn operation_access(
        &self,
        tenant: TenantId,
        operation: OperationId,
    ) -> Result<OperationAccess, StoreError> {
        let row: Row = query(concat!(
            "SELECT (SELECT name FROM runners WHERE runners.tenant_id = operations.tenant_id
                     AND runners.id = operations.runner_id) AS runner_name,
                 CAST(CASE WHEN access_ended_at IS NULL AND (outcome_at IS NOT NULL OR ",
            its_user_may_use!(),
            ") THEN 1 ELSE 0 END AS BIGINT) AS holds
             FROM operations WHERE tenant_id = $1 AND id = $2"
        ))
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(OperationAccess {
            runner_name: row.text("runner_name")?,
            holds: row.count("holds")? == 1,
        })
    }
}

/// Marks the running operations of the tenant whose user has no right any more, within the transaction that has ended
/// such a right.
pub(crate) async fn end_access(
    tx: &mut Connection,
    tenant: TenantId,
    by: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(concat!(
        "UPDATE operations SET access_ended_at = $1, stop_reason = COALESCE(stop_reason, $2),
             stopped_by = COALESCE(stopped_by, $3)
         WHERE tenant_id = $4 AND outcome IS NULL AND access_ended_at IS NULL AND NOT ",
        its_user_may_use!()
    ))
    .bind(now.as_micros())
    .bind(word(&StopReason::AccessEnded))
    .bind(by.to_string())
    .bind(tenant.to_string())
    .execute(tx)
    .await?;
    Ok(())
}

/// Tells if a user may use a runner, as a transaction sees it.
pub(super) async fn is_allowed(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
    runner: RunnerId,
) -> Result<bool, StoreError> {
    let row: Row = query(concat!(
        "SELECT CAST(CASE WHEN ",
        may_use!("$1", "$2", "$3"),
        " THEN 1 ELSE 0 END AS BIGINT) AS holds"
    ))
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(runner.to_string())
    .fetch_one(tx)
    .await?;
    Ok(row.count("holds")? == 1)
}
