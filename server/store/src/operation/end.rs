//! The end of an operation: its outcome as it is stored, and the line of the audit log about one that may have changed
//! something. That line has its user, its place and its end. The request is not in it: a command line may hold a secret.

use serde_json::json;
use shared_sandbox::{ExitStatus, Outcome, Surveyed};
use shared_types::{
    Effect, OperationId, RefusalCode, SessionEvent, SessionId, TenantId, Timestamp, UserId,
    clean::clean_line,
};

use super::{MAX_OUTCOME_BYTES, Ran, StoredOutcome};
use crate::{
    Actor, AuditEntry, AuditOrigin, Late, Store, StoreError, audit,
    columns::{Columns as _, damaged, json as as_json, word},
    database::{Connection, Row, query},
    error::bounded,
};

/// Longest summary of an operation's end, in bytes.
const MAX_SUMMARY_BYTES: usize = 1024;

/// The end of an operation as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct OperationEnding<'a> {
    pub(crate) outcome: &'a Outcome,
    /// The outcome as JSON.
    pub(crate) json: String,
}

/// The figures of an end, for counters, logs and traces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndFigures {
    pub(crate) cause: &'static str,
    pub(crate) exit_code: Option<i32>,
    /// The time that it ran.
    pub(crate) wall_ms: Option<u64>,
}

impl<'a> OperationEnding<'a> {
    /// # Errors
    /// [`StoreError::TooLarge`] for an outcome of more than [`MAX_OUTCOME_BYTES`].
    pub(crate) fn of(outcome: &'a Outcome) -> Result<Self, StoreError> {
        let json = match outcome {
            Outcome::Surveyed(seen) => as_json(&Outcome::Surveyed(without_texts(seen))),
            outcome => as_json(outcome),
        };
        bounded("the outcome", &json, MAX_OUTCOME_BYTES)?;
        Ok(Self { outcome, json })
    }

    pub(crate) fn figures(&self) -> EndFigures {
        let (exit_code, wall_ms) = match self.outcome {
            Outcome::Exited(record) => {
                let code = match record.status {
                    ExitStatus::Code(code) => Some(code),
                    _ => None,
                };
                (code, Some(record.wall_ms))
            }
            _ => (None, None),
        };
        EndFigures {
            cause: self.outcome.cause(),
            exit_code,
            wall_ms,
        }
    }

    /// The outcome for people, and for the model if the call had ended before. It is one line of bounded length,
    /// because some of its words are the runner's.
    pub(crate) fn summary(&self) -> String {
        let words = match self.outcome {
            Outcome::Exited(record) => format!(
                "it ran for {} ms and ended {}: {}",
                record.wall_ms, record.cause, record.status
            ),
            Outcome::Failed(failure) => format!("it failed: {failure}"),
            // It may have run or not.
            Outcome::Refused(refusal) if refusal.code == RefusalCode::Lost => {
                format!("it is lost: {refusal}")
            }
            Outcome::Refused(refusal) => format!("it was not run: {refusal}"),
            _ => "it was done".to_owned(),
        };
        let end = words.floor_char_boundary(MAX_SUMMARY_BYTES);
        clean_line(&words[..end], MAX_SUMMARY_BYTES)
    }

    /// The outcome in a few words, for the audit log.
    fn exit(&self) -> String {
        match self.outcome {
            Outcome::Exited(record) => match record.status {
                ExitStatus::Code(code) => format!("exit {code}"),
                ExitStatus::Signal(signal) => format!("signal {signal}"),
                ExitStatus::NotStarted(_) => "not started".to_owned(),
                ExitStatus::Unknown => "unknown".to_owned(),
            },
            other => other.cause().to_owned(),
        }
    }
}

impl StoredOutcome {
    /// The outcome.
    ///
    /// # Errors
    /// If another version of this program has written it in words that this one does not know.
    pub fn decode(&self) -> Result<Outcome, StoreError> {
        let outcome = serde_json::from_str(&self.json);
        outcome.map_err(|error| damaged("outcome", error).into())
    }
}

/// An operation whose end a transaction stores. [`Store::operations_ended`] takes it once that is committed.
#[derive(Debug)]
#[must_use = "its end is to be told once the transaction is committed"]
pub(crate) struct StoredEnd {
    pub(super) tenant: TenantId,
    pub(crate) ran: Ran,
    pub(super) figures: EndFigures,
    pub(super) at: Timestamp,
    /// The session and the event in its log, if its call had ended before.
    pub(super) late: Option<Box<(SessionId, SessionEvent)>>,
}

impl Store {
    /// The ends of these operations are committed. Returns those whose call had ended before, and their sessions, whose
    /// logs have grown.
    pub(crate) async fn operations_ended(&self, ended: Vec<StoredEnd>) -> Late {
        if !ended.is_empty() {
            self.waits_changed();
        }
        let mut all = Late::new();
        for one in ended {
            one.ran.ended(one.figures, one.at);
            if let Some((session, event)) = one.late.map(|late| *late) {
                all.push((one.ran.id, session));
                self.appended(one.tenant, session, &[event]).await;
            }
        }
        all
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
pub(crate) async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    operation: OperationId,
    ending: &OperationEnding<'_>,
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
            "exit": ending.exit(),
            "session": session,
        }),
        origin: AuditOrigin::default(),
    };
    audit::record(tx, tenant, &entry, now).await.map(drop)
}

/// A look without the texts of what the project brings: declarations of tool servers and hooks may hold secrets, which no
/// row has. The event that names them is made before the end is stored. Where the server dies in between, the turn looks
/// again.
fn without_texts(seen: &Surveyed) -> Surveyed {
    let mut seen = seen.clone();
    for file in &mut seen.extensions {
        file.text.clear();
        file.cut = true;
    }
    seen
}

#[cfg(test)]
mod tests {
    use shared_sandbox::{ExitCause, ExitRecord, StreamEnd};
    use shared_types::Refusal;

    use super::*;

    #[test]
    fn people_are_told_a_late_outcome_in_words_and_that_a_lost_one_is_not_known() {
        let summary =
            |outcome: &Outcome| OperationEnding::of(outcome).expect("it is short").summary();
        let refused = |code| Outcome::Refused(Refusal::new(code, "the host restarted"));
        let not_run = summary(&refused(RefusalCode::Expired));
        assert!(not_run.starts_with("it was not run: "), "{not_run}");
        let lost = summary(&refused(RefusalCode::Lost));
        assert_eq!(lost, "it is lost: the host restarted");
        let end = StreamEnd {
            offset: 0,
            checksum: None,
        };
        let exited = Outcome::Exited(ExitRecord {
            status: ExitStatus::Code(0),
            cause: ExitCause::Exited,
            stdout: end,
            stderr: end,
            wall_ms: 1,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        });
        assert!(summary(&exited).ends_with(" ms and ended by itself: exit code 0"));
    }
}
