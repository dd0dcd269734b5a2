//! Lists of operations, for people.

use shared_types::{OperationId, RunnerId, TenantId, Timestamp, UserId};

use super::{Label, OperationRow};
use crate::{
    Store, StoreError,
    columns::Columns as _,
    database::{FromRow, Row, page, query},
    session,
};

/// Longest outcome in bytes of JSON that comes with a list: it excludes the content of a file that
/// was read.
const LISTED_OUTCOME_BYTES: i64 = 4096;

/// A choice of operations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Only those without an outcome.
    pub open_only: bool,
    /// Only those of this runner.
    pub runner: Option<RunnerId>,
    /// Only those whose ids begin with this text.
    pub prefix: String,
    /// Only those behind this place in the list: the time when an operation was placed, and its id.
    pub after: Option<(Timestamp, OperationId)>,
    /// The most rows.
    pub limit: u32,
}

/// An operation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedOperation {
    /// The operation. A long outcome comes with its time alone, without text.
    pub row: OperationRow,
    /// The request in brief.
    pub label: Label,
    /// The name of the runner that it was sent to.
    pub runner_name: String,
    /// The name of the user who asked; absent for a tool call.
    pub user_name: Option<String>,
    /// The request of a caller, as JSON; absent in a list.
    pub request: Option<String>,
}

macro_rules! select_listed {
    ($request:literal, $rest:literal) => {
        concat!(
            "SELECT operations.id, session_id, turn_id, step, ordinal, attempt, digest,
                 operations.epoch, runner_id, sandbox_id, operations.journal_id, operations.boot_id, effect,
                 start_by_boot, start_by_us, deadline_at, placed_at, cancel_requested_at, access_ended_at,
                 CASE WHEN length(outcome) > $4 THEN '' ELSE outcome END AS outcome, outcome_at,
                 closed_at, operations.user_id, request_key, traceparent, kind, operations.title,
                 stop_reason, (SELECT stoppers.name FROM users AS stoppers
                     WHERE stoppers.tenant_id = operations.tenant_id AND stoppers.id = stopped_by
                         AND stoppers.removed_at IS NULL) AS stopped_by_name,
                 runners.name AS runner_name, users.name AS user_name, ",
            $request,
            " AS request
             FROM operations
             JOIN runners ON runners.tenant_id = operations.tenant_id AND runners.id = runner_id
             LEFT JOIN users
                 ON users.tenant_id = operations.tenant_id AND users.id = operations.user_id
             LEFT JOIN sessions
                 ON sessions.tenant_id = operations.tenant_id AND sessions.id = session_id
             WHERE operations.tenant_id = $1
                 AND (operations.user_id = $2 OR sessions.user_id = $2 AND sessions.deleted_at IS NULL) ",
            $rest
        )
    };
}

impl Store {
    /// The operations that the user or the user's sessions asked for, the newest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn operations_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
        filter: &OperationFilter,
    ) -> Result<Vec<ListedOperation>, StoreError> {
        let (before, id) = filter.after.unzip();
        // Open operations have an index of their own.
        let listed = match filter.open_only {
            true => select_listed!(
                "NULL",
                "AND outcome IS NULL
                 AND operations.id >= $3 AND operations.id < $5
                 AND (placed_at, operations.id) < ($7, $8) AND ($9 = '' OR runner_id = $9)
                 ORDER BY placed_at DESC, operations.id DESC LIMIT $6"
            ),
            false => select_listed!(
                "NULL",
                "AND operations.id >= $3 AND operations.id < $5
                 AND (placed_at, operations.id) < ($7, $8) AND ($9 = '' OR runner_id = $9)
                 ORDER BY placed_at DESC, operations.id DESC LIMIT $6"
            ),
        };
        let rows: Vec<Row> = query(listed)
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(&filter.prefix)
            .bind(LISTED_OUTCOME_BYTES)
            .bind(session::past(&filter.prefix))
            .bind(page(filter.limit))
            .bind(before.map_or(i64::MAX, |before| before.as_micros()))
            .bind(id.map_or(String::new(), |id| id.to_string()))
            .bind(filter.runner.map_or(String::new(), |id| id.to_string()))
            .fetch_all(&mut self.read(tenant).await?)
            .await?;
        let listed = rows.iter().map(ListedOperation::from_row);
        Ok(listed.collect::<Result<_, _>>()?)
    }

    /// One of the operations that the user or the user's sessions asked for.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also if it is another user's.
    pub async fn operation_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
        operation: OperationId,
    ) -> Result<ListedOperation, StoreError> {
        let row: Row = query(select_listed!("request", "AND operations.id = $3"))
            .bind(tenant.to_string())
            .bind(user.to_string())
            .bind(operation.to_string())
            .bind(LISTED_OUTCOME_BYTES)
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(ListedOperation::from_row(&row)?)
    }
}

impl ListedOperation {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            label: Label {
                kind: row.text("kind")?,
                title: row.text("title")?,
            },
            runner_name: row.text("runner_name")?,
            user_name: row.maybe_text("user_name")?,
            request: row.maybe_text("request")?,
            row: OperationRow::from_row(row)?,
        })
    }
}
