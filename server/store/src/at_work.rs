//! Work that is running or queued under rights that have ended.

use shared_types::{
    OperationId, SessionId, TenantId, Timestamp, TurnId, UserId, event::StopReason,
};

use crate::{
    Store, StoreError,
    columns::Columns as _,
    credential::{self, credential_until},
    database::{MAX_PAGE, Row, page, query},
    operation::access::its_user_may_use,
};

/// Work that has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToStop {
    /// Its tenant.
    pub tenant: TenantId,
    /// The turn or operation.
    pub work: WorkItem,
    /// The reason.
    pub why: StopReason,
    /// The user who ended the right; the work's own user where no other user did.
    pub by: UserId,
}

/// A turn, or an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkItem {
    /// A turn that is queued, runs or waits, of this session.
    Turn(SessionId, TurnId),
    /// An operation that a caller or a turn asked for.
    Operation(OperationId),
}

impl Store {
    /// Turns and operations to stop, a bounded number of each. They have not ended, and their stop was not requested
    /// yet.
    ///
    /// - Turns and operations whose credential was revoked or has expired.
    /// - Operations whose user may not use their runner any more.
    ///
    /// Without a tenant: credentials of all tenants expire with time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn work_to_stop(&self, now: Timestamp) -> Result<Vec<ToStop>, StoreError> {
        let mut connection = self.read_any("credentials end by themselves, too").await?;
        let turns = query(concat!(
            "SELECT turns.tenant_id, turns.session_id, turns.id, users.removed_at AS user_removed_at,
                 COALESCE(revoked_by, credentials.user_id) AS ended_by, ",
            credential_until!(),
            " AS credential_until
             FROM turns
             JOIN credentials ON credentials.tenant_id = turns.tenant_id
                 AND credentials.id = turns.credential_id
             JOIN users ON users.tenant_id = credentials.tenant_id AND users.id = credentials.user_id
             WHERE turns.state <> 'ended' AND turns.cancel_requested_at IS NULL AND ",
            credential_until!(),
            " <= $1 ORDER BY turns.id LIMIT $2"
        ))
        .bind(now.as_micros())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut connection)
        .await?;
        let operations = query(concat!(
            "SELECT operations.tenant_id, operations.id, users.removed_at AS user_removed_at,
                 COALESCE(revoked_by, credentials.user_id) AS ended_by, ",
            credential_until!(),
            " AS credential_until
             FROM operations
             LEFT JOIN turns ON turns.tenant_id = operations.tenant_id
                 AND turns.id = operations.turn_id
             JOIN credentials ON credentials.tenant_id = operations.tenant_id
                 AND credentials.id = COALESCE(operations.credential_id, turns.credential_id)
             JOIN users ON users.tenant_id = credentials.tenant_id AND users.id = credentials.user_id
             WHERE operations.outcome IS NULL AND operations.cancel_requested_at IS NULL AND ",
            credential_until!(),
            " <= $1 ORDER BY operations.id LIMIT $2"
        ))
        .bind(now.as_micros())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut connection)
        .await?;
        let without_access = query(concat!(
            "SELECT tenant_id, id, COALESCE(stopped_by, user_id,
                 (SELECT user_id FROM sessions WHERE sessions.tenant_id = operations.tenant_id
                     AND sessions.id = session_id)) AS ended_by
             FROM operations
             WHERE outcome IS NULL AND cancel_requested_at IS NULL AND (access_ended_at IS NOT NULL OR NOT ",
            its_user_may_use!(),
            ") ORDER BY id LIMIT $1"
        ))
        .bind(page(MAX_PAGE))
        .fetch_all(&mut connection)
        .await?;
        let turns = turns.iter().map(|row| {
            let turn = WorkItem::Turn(row.parsed("session_id")?, row.parsed("id")?);
            to_stop(row, turn, now)
        });
        let operations = operations.iter().map(|row| {
            let operation = WorkItem::Operation(row.parsed("id")?);
            to_stop(row, operation, now)
        });
        let without_access = without_access.iter().map(|row| {
            Ok(ToStop {
                tenant: row.parsed("tenant_id")?,
                work: WorkItem::Operation(row.parsed("id")?),
                why: StopReason::AccessEnded,
                by: row.parsed("ended_by")?,
            })
        });
        let found: Result<_, sqlx::Error> = turns.chain(operations).chain(without_access).collect();
        Ok(found?)
    }
}

fn to_stop(row: &Row, work: WorkItem, now: Timestamp) -> Result<ToStop, sqlx::Error> {
    let why = credential::ended(row.maybe_time("credential_until")?, now);
    Ok(ToStop {
        tenant: row.parsed("tenant_id")?,
        work,
        why: match row.maybe_time("user_removed_at")? {
            Some(_) => StopReason::PersonRemoved,
            None => why.unwrap_or(StopReason::CredentialExpired),
        },
        by: row.parsed("ended_by")?,
    })
}
