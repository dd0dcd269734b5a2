//! Operations that a caller of the API asked for. The sandbox owns them, and no session's log tells of them. The
//! caller's key finds them again, so a repeated request places no second operation.

use shared_types::{
    CredentialId, Digest, Effect, Epoch, Incarnation, OperationId, Owner, ReplicaId, TenantId,
    Timestamp, TraceContext, UserId, clock::BootMoment, event::Place, limits::MAX_NAME_BYTES,
};

use super::{
    Label, MAX_OUTCOME_BYTES, OperationEnding, OperationRow, Placed, Ran, StoredEnd, StoredOutcome,
    access::may_use, end, find, micros, ran, why_not_there,
};
use crate::{
    Store, StoreError,
    columns::{Columns as _, integer, word},
    database::{Connection, FromRow, MAX_PAGE, Row, lock_runner, page, query, query_as, retried},
    error::bounded,
};

/// Longest key of a caller's in bytes.
pub const MAX_REQUEST_KEY_BYTES: usize = 128;

/// An operation of a caller's, about to be sent.
#[derive(Debug, Clone)]
pub struct NewCallerOperation {
    /// Its id, derived from the sandbox, the user and the key.
    pub id: OperationId,
    /// The user who asks.
    pub user: UserId,
    /// The credential of the request: the operation ends with it.
    pub credential: Option<CredentialId>,
    /// The caller's name for it.
    pub key: String,
    /// The request: JSON.
    pub request: String,
    /// True if its output is kept here. If not, its runner keeps it until the operation is closed.
    pub kept: bool,
    /// The digest of the canonical request.
    pub digest: Digest,
    /// The place where it runs. Its sandbox owns it.
    pub place: Place,
    /// The runner's incarnation that it is sent to.
    pub incarnation: Incarnation,
    /// The effect that a second run would have.
    pub effect: Effect,
    /// The moment by which it must have started; later it does not start at all.
    pub start_by: BootMoment,
    /// About the same moment, for people.
    pub deadline_at: Timestamp,
    /// The request in brief, for lists.
    pub label: Label,
    /// The span that it is part of.
    pub trace: Option<TraceContext>,
}

/// An open operation of a caller's, with all that a server needs to continue it.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCallerOperation {
    /// Its tenant.
    pub tenant: TenantId,
    /// The operation.
    pub row: OperationRow,
    /// The request: JSON.
    pub request: String,
    /// The epoch of its sandbox now.
    pub epoch: Epoch,
}

impl Store {
    /// Stores the intent under the sandbox's epoch, before the operation is sent.
    ///
    /// # Errors
    /// [`StoreError::StaleEpoch`]; [`StoreError::Conflict`] if the user has another operation with
    /// this key; [`StoreError::NotFound`] if runner or sandbox is not in this tenant;
    /// [`StoreError::TooLarge`].
    pub async fn place_caller_operation(
        &self,
        tenant: TenantId,
        epoch: Epoch,
        operation: &NewCallerOperation,
        now: Timestamp,
    ) -> Result<Placed, StoreError> {
        bounded("the boot id", &operation.incarnation.boot, MAX_NAME_BYTES)?;
        bounded("the key", &operation.key, MAX_REQUEST_KEY_BYTES)?;
        bounded("the request", &operation.request, MAX_OUTCOME_BYTES)?;
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_runner(&mut tx, tenant, operation.place.runner).await?;
            if insert(&mut tx, tenant, epoch, operation, now).await? {
                tx.commit().await?;
                return Ok(Placed::New { event: None });
            }
            why_not_placed(&mut tx, tenant, epoch, operation).await
        })
    }

    /// The user's operation with this key.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn operation_by_key(
        &self,
        tenant: TenantId,
        user: UserId,
        key: &str,
    ) -> Result<OperationRow, StoreError> {
        let row = query_as(select_operations!(
            "WHERE tenant_id = $1 AND user_id = $2 AND request_key = $3"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(key)
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(row)
    }

    /// A caller's operation, with all that a server needs to continue it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if a tool call asked for it.
    pub async fn caller_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
    ) -> Result<OpenCallerOperation, StoreError> {
        let row: Row = query(select_operations!(
            ", tenant_id, request, (SELECT epoch FROM sandboxes
                 WHERE sandboxes.tenant_id = operations.tenant_id AND sandboxes.id = sandbox_id)
                 AS epoch_now",
            "WHERE tenant_id = $1 AND id = $2 AND request IS NOT NULL"
        ))
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(OpenCallerOperation::from_row(&row)?)
    }

    /// Open operations of callers behind this id, by id, a bounded number of them: those whose runner is linked to this
    /// replica, or to none. Without a tenant: a server that starts continues those of all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn open_caller_operations(
        &self,
        here: ReplicaId,
        after: Option<OperationId>,
    ) -> Result<Vec<OpenCallerOperation>, StoreError> {
        let rows: Vec<Row> = query(select_operations!(
            ", tenant_id, request, (SELECT epoch FROM sandboxes
                 WHERE sandboxes.tenant_id = operations.tenant_id AND sandboxes.id = sandbox_id)
                 AS epoch_now",
            "WHERE outcome IS NULL AND request IS NOT NULL AND id > $1
                 AND NOT EXISTS (SELECT 1 FROM runners WHERE runners.tenant_id = operations.tenant_id
                     AND runners.id = runner_id AND replica_id <> $3)
             ORDER BY id LIMIT $2"
        ))
        .bind(after.map(|id| id.to_string()).unwrap_or_default())
        .bind(page(MAX_PAGE))
        .bind(here.to_string())
        .fetch_all(
            &mut self
                .read_any("a server that starts goes on with all of them")
                .await?,
        )
        .await?;
        let open = rows.iter().map(OpenCallerOperation::from_row);
        Ok(open.collect::<Result<_, _>>()?)
    }
}

impl Store {
    /// Closes an operation that has ended, because its reader has all of its output: its runner may forget it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn close_caller_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "UPDATE operations SET closed_at = $1
             WHERE tenant_id = $2 AND id = $3 AND outcome IS NOT NULL AND closed_at IS NULL",
        )
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }

    /// Closes operations that ended before this moment and were not read to their end since. Without a tenant:
    /// operations of all tenants end with time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn close_unread(
        &self,
        ended_before: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_any("it is about time").await?;
        query(
            "UPDATE operations SET closed_at = $1
             WHERE kept = 0 AND closed_at IS NULL AND outcome_at < $2",
        )
        .bind(now.as_micros())
        .bind(ended_before.as_micros())
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}

impl Store {
    /// Operations of callers that ended before this moment and are closed, the oldest first, a bounded number of them.
    /// Without a tenant: operations of all tenants are removed with time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn ended_caller_operations(
        &self,
        ended_before: Timestamp,
    ) -> Result<Vec<(TenantId, OperationId)>, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT tenant_id, id FROM operations
             WHERE request IS NOT NULL AND outcome_at < $1 AND closed_at IS NOT NULL
             ORDER BY outcome_at LIMIT $2",
        )
        .bind(ended_before.as_micros())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read_any("it is about time").await?)
        .await?;
        let ended = rows
            .iter()
            .map(|row| Ok((row.parsed("tenant_id")?, row.parsed("id")?)));
        ended.collect()
    }

    /// Removes an operation of a caller that has ended, and with it the meaning of its idempotency key. Remove its
    /// output before ([`crate::Outputs::remove`]).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_caller_operation(
        &self,
        tenant: TenantId,
        operation: OperationId,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "DELETE FROM operations
             WHERE tenant_id = $1 AND id = $2 AND request IS NOT NULL AND closed_at IS NOT NULL",
        )
        .bind(tenant.to_string())
        .bind(operation.to_string())
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}

impl OpenCallerOperation {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            request: row.text("request")?,
            epoch: Epoch(row.count("epoch_now")?),
            row: OperationRow::from_row(row)?,
        })
    }
}

/// Stores the outcome. No call waits for it, so the operation is closed with it, and its runner may forget it. It stays
/// open if its runner alone keeps the output.
pub(super) async fn settle(
    tx: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
    is_told: bool,
    ending: &OperationEnding<'_>,
    now: Timestamp,
) -> Result<Result<StoredEnd, StoredOutcome>, StoreError> {
    let set = query(concat!(
        "UPDATE operations SET outcome = $1, outcome_at = $2,
                 closed_at = CASE WHEN kept = 1 THEN $2 END
             WHERE tenant_id = $3 AND id = $4 AND outcome IS NULL RETURNING ",
        ran!()
    ))
    .bind(&ending.json)
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(operation.to_string())
    .fetch_optional(&mut *tx)
    .await?;
    match set {
        None => {
            let row = find(tx, tenant, operation).await?;
            Ok(Err(row.outcome.ok_or(StoreError::NotFound)?))
        }
        Some(row) => {
            if is_told {
                end::record(tx, tenant, operation, ending, now).await?;
            }
            Ok(Ok(StoredEnd {
                tenant,
                ran: Ran::from_row(&row)?,
                figures: ending.figures(),
                at: now,
                late: None,
            }))
        }
    }
}

/// Writes the intent. Writes nothing if the id or the key is known, the runner has another incarnation or drains, the
/// user may not use it, or the sandbox has another epoch.
async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    epoch: Epoch,
    operation: &NewCallerOperation,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let inserted = query(concat!(
        "INSERT INTO operations (tenant_id, id, owner, epoch, digest, runner_id, sandbox_id,
             journal_id, boot_id, effect, deadline_at, placed_at, start_by_boot, start_by_us, kind,
             title, user_id, request_key, request, kept, traceparent, credential_id)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
             $20, $21, $22
         WHERE EXISTS (SELECT 1 FROM runners
                 WHERE tenant_id = $1 AND id = $6 AND journal_id = $8 AND boot_id = $9
                     AND revoked_at IS NULL AND locked_at IS NULL AND drained_at IS NULL)
             AND EXISTS (SELECT 1 FROM sandboxes WHERE tenant_id = $1 AND id = $7 AND epoch = $4)
             AND ",
        may_use!("$1", "$17", "$6"),
        " ON CONFLICT DO NOTHING"
    ))
    .bind(tenant.to_string())
    .bind(operation.id.to_string())
    .bind(Owner::Sandbox(operation.place.sandbox).to_string())
    .bind(integer(epoch.0))
    .bind(operation.digest.to_string())
    .bind(operation.place.runner.to_string())
    .bind(operation.place.sandbox.to_string())
    .bind(operation.incarnation.journal.to_string())
    .bind(&operation.incarnation.boot)
    .bind(word(&operation.effect))
    .bind(operation.deadline_at.as_micros())
    .bind(now.as_micros())
    .bind(&operation.start_by.boot)
    .bind(micros(&operation.start_by))
    .bind(&operation.label.kind)
    .bind(&operation.label.title)
    .bind(operation.user.to_string())
    .bind(&operation.key)
    .bind(&operation.request)
    .bind(i64::from(operation.kept))
    .bind(operation.trace.map(|trace| trace.to_string()))
    .bind(operation.credential.map(|credential| credential.to_string()))
    .execute(tx)
    .await?;
    Ok(inserted == 1)
}

async fn why_not_placed(
    tx: &mut Connection,
    tenant: TenantId,
    held: Epoch,
    operation: &NewCallerOperation,
) -> Result<Placed, StoreError> {
    let known: Option<OperationRow> = query_as(select_operations!(
        "WHERE tenant_id = $1 AND (id = $2 OR user_id = $3 AND request_key = $4)"
    ))
    .bind(tenant.to_string())
    .bind(operation.id.to_string())
    .bind(operation.user.to_string())
    .bind(&operation.key)
    .fetch_optional(&mut *tx)
    .await?;
    match known {
        Some(known) if known.id == operation.id && known.digest == operation.digest => {
            return Ok(Placed::Known(Box::new(known)));
        }
        Some(_) => return Err(StoreError::Conflict("the key belongs to another request")),
        None => {}
    }
    let row: Row = query("SELECT epoch FROM sandboxes WHERE tenant_id = $1 AND id = $2")
        .bind(tenant.to_string())
        .bind(operation.place.sandbox.to_string())
        .fetch_one(&mut *tx)
        .await?;
    let newest = Epoch(row.count("epoch")?);
    if newest != held {
        return Err(StoreError::StaleEpoch { held, newest });
    }
    why_not_there(tx, tenant, operation.user, operation.place.runner).await
}
