//! The line of the audit log about an operation that may have changed something: its user, its place and its end. The
//! request is not in it: a command line may hold a secret.

use serde_json::json;
use shared_types::{Effect, OperationId, SessionId, TenantId, Timestamp, UserId};

use crate::{
    Actor, AuditEntry, Origin, StoreError, audit,
    columns::{Columns as _, word},
    database::{Connection, Row, query},
};

/// The end of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The outcome, as JSON that this crate does not read.
    pub outcome: &'a str,
    /// The outcome for people, and for the model if its call had ended before.
    pub summary: &'a str,
    /// The outcome in a few words, for the audit log.
    pub exit: &'a str,
}

impl<'a> From<(&'a str, &'a str)> for Ending<'a> {
    fn from((outcome, summary): (&'a str, &'a str)) -> Self {
        Self {
            outcome,
            summary,
            exit: summary,
        }
    }
}

/// Tells if the log will record its end. If so, the log is locked here, because the order of locks puts it before
/// sessions, turns and operations.
pub(crate) async fn lock(
    tx: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
) -> Result<bool, StoreError> {
    let told: Option<Row> = query(
        "SELECT 1 FROM operations
         WHERE tenant_id = $1 AND id = $2 AND outcome IS NULL AND effect <> $3",
    )
    .bind(tenant.to_string())
    .bind(operation.to_string())
    .bind(word(&Effect::Pure))
    .fetch_optional(&mut *tx)
    .await?;
    if told.is_none() {
        return Ok(false);
    }
    audit::lock(tx, tenant).await?;
    Ok(true)
}

/// Records its end in the log.
pub(crate) async fn tell(
    tx: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
    exit: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row: Row = query(
        "SELECT operations.kind AS kind, session_id, COALESCE(operations.user_id, sessions.user_id) AS asked_by,
             runners.name AS runner, CASE WHEN sandboxes.owner_id IS NULL THEN sandboxes.name END AS workspace
         FROM operations
         JOIN runners ON runners.tenant_id = operations.tenant_id AND runners.id = operations.runner_id
         LEFT JOIN sandboxes
             ON sandboxes.tenant_id = operations.tenant_id AND sandboxes.id = operations.sandbox_id
         LEFT JOIN sessions
             ON sessions.tenant_id = operations.tenant_id AND sessions.id = operations.session_id
         WHERE operations.tenant_id = $1 AND operations.id = $2",
    )
    .bind(tenant.to_string())
    .bind(operation.to_string())
    .fetch_one(&mut *tx)
    .await?;
    let (runner, workspace) = (row.text("runner")?, row.maybe_text("workspace")?);
    let place = workspace.map_or(runner.clone(), |workspace| format!("{runner}/{workspace}"));
    let session: Option<SessionId> = row.maybe_parsed("session_id")?;
    let user: Option<UserId> = row.maybe_parsed("asked_by")?;
    let entry = AuditEntry {
        actor: user.map_or(Actor::System, Actor::User),
        kind: "operation.ended",
        subject: operation.to_string(),
        detail: json!({
            "operation": row.text("kind")?,
            "place": place,
            "exit": exit,
            "session": session,
        }),
        origin: Origin::default(),
    };
    audit::record(tx, tenant, &entry, now).await.map(drop)
}
