//! Approvals: questions to people (docs/internals/contracts.md#c5). A question is written with the event that asks it,
//! and gets its one outcome with the event that says so. The first outcome stands: both take the session's lock.

use serde_json::json;
use server_records::{AnswerRefused, ApprovalOutcome, ApprovalRow, NewAnswer};
use shared_consent::Decision;
use shared_types::{
    ApprovalId, Event, Mode, RuleId, SessionId, TenantId, Timestamp, TurnId, UserId,
    event::{Answer, Question, Unanswered},
};

use crate::{
    AuditEntry, By, Page, SettingChange, SettingName, SettingsOf, Store, StoreError, audit,
    columns::{self, Columns as _},
    database::{Connection, FromRow, Row, page, query, query_as, retried},
    event, rule, session, setting,
};

macro_rules! select_approvals {
    ($rest:literal) => {
        concat!(
            "SELECT approvals.id AS id, approvals.session_id, sessions.title, approvals.user_id, turn_id,
                 step, ordinal, question, asked_at, until_at, answer, answered_at, users.name AS answered_by
             FROM approvals
             JOIN sessions ON sessions.tenant_id = approvals.tenant_id AND sessions.id = approvals.session_id
                 AND sessions.deleted_at IS NULL
             LEFT JOIN users ON users.tenant_id = approvals.tenant_id AND users.id = approvals.answered_by ",
            $rest
        )
    };
}

impl Store {
    /// A page of the questions to a user, the newest first: those that wait for an answer, or all of them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn approvals(
        &self,
        tenant: TenantId,
        user: UserId,
        open_at: Option<Timestamp>,
        Page { limit, after }: Page<ApprovalId>,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let rows = query_as(select_approvals!(
            "WHERE approvals.tenant_id = $1 AND approvals.user_id = $2
                 AND ($3 IS NULL OR (answer IS NULL AND until_at > $3))
                 AND ($4 = '' OR (asked_at, approvals.id) < (
                     SELECT before.asked_at, before.id FROM approvals AS before
                     WHERE before.tenant_id = $1 AND before.id = $4))
             ORDER BY asked_at DESC, approvals.id DESC LIMIT $5"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(open_at.map(Timestamp::as_micros))
        .bind(after.map_or_else(String::new, |id| id.to_string()))
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// One question to a user.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; a question to another user is no different from none.
    pub async fn approval(
        &self,
        tenant: TenantId,
        user: UserId,
        id: ApprovalId,
    ) -> Result<ApprovalRow, StoreError> {
        find(&mut self.read(tenant).await?, tenant, user, id).await
    }

    /// Gives a question the user's answer. The rule that the answer makes, and the mode of a plan that is accepted, are
    /// set in the same transaction.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the user has no such question; [`StoreError::Full`] for more rules than a user may
    /// have.
    pub async fn answer(
        &self,
        tenant: TenantId,
        by: &By,
        rule: RuleId,
        new: &NewAnswer,
        now: Timestamp,
    ) -> Result<Result<ApprovalRow, AnswerRefused>, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let asked = find(&mut tx, tenant, by.user, new.approval).await?;
            let mode = mode(&new.answer);
            // In the order of database/lock.rs: the tenant before the session.
            if let Some(mode) = mode {
                let of = SettingsOf::Session(asked.session);
                let change = SettingChange {
                    name: SettingName::Mode,
                    value: Some(mode.to_string()),
                };
                setting::set(&mut tx, tenant, of, &change, by.user, now).await?;
            }
            if let Answer::Allowed {
                rule: Some(text), ..
            } = &new.answer
            {
                let new = rule::NewRuleRow {
                    id: rule,
                    user: Some(by.user),
                    decision: Decision::Allow,
                    rule: text,
                };
                rule::add(&mut tx, tenant, &new, by, now).await?;
            }
            // A refused answer rolls it back.
            audit::record(&mut tx, tenant, &entry(by, &asked, &new.answer), now).await?;
            let seq = session::next(&mut tx, tenant, asked.session, 1, now)
                .await?
                .seq;
            let asked = find(&mut tx, tenant, by.user, new.approval).await?;
            if let Err(refused) = fits(&asked, new, now) {
                return Ok(Err(refused));
            }
            set(&mut tx, tenant, asked.id, &new.answer, Some(by.user), now).await?;
            let asked = find(&mut tx, tenant, by.user, new.approval).await?;
            let answered = Event::ApprovalAnswered {
                turn: asked.turn,
                step: asked.step,
                ordinal: asked.ordinal,
                approval: asked.id,
                answer: new.answer.clone(),
                by: Some(by.user),
                name: asked
                    .outcome
                    .as_ref()
                    .and_then(|outcome| outcome.by.clone())
                    .unwrap_or_default(),
            };
            let event = event::insert(&mut tx, tenant, asked.session, seq, &answered, now).await?;
            tx.commit().await?;
            self.appended(tenant, asked.session, &[event]).await;
            self.waits_changed();
            Ok(Ok(asked))
        })
    }
}

/// The entry of the audit log about an answer. It has no command and no words of the person: admins read it.
fn entry(by: &By, asked: &ApprovalRow, answer: &Answer) -> AuditEntry {
    let tool = match &asked.question {
        Question::Call(call) => call.tool.as_str(),
        Question::Free { .. } => "question",
        Question::Plan { .. } => "plan",
    };
    let (outcome, rule) = match answer {
        Answer::Allowed {
            command: Some(_), ..
        } => ("allowed as changed", None),
        Answer::Allowed { rule, .. } => ("allowed", rule.as_ref()),
        Answer::Denied { .. } => ("denied", None),
        Answer::Said { .. } => ("answered", None),
        Answer::Unanswered { .. } => ("unanswered", None),
    };
    by.entry(
        "approval.answered",
        asked.id,
        json!({
            "session": asked.session,
            "tool": tool,
            "question": asked.question.digest(),
            "outcome": outcome,
            "rule": rule,
            "mode": mode(answer),
        }),
    )
}

/// Tells if this answer counts for the question.
fn fits(asked: &ApprovalRow, new: &NewAnswer, now: Timestamp) -> Result<(), AnswerRefused> {
    if let Some(outcome) = &asked.outcome {
        return Err(AnswerRefused::Answered(words(outcome)));
    }
    if asked.until <= now {
        return Err(AnswerRefused::Late);
    }
    if asked.question.digest() != new.shown {
        return Err(AnswerRefused::OtherQuestion);
    }
    match (&asked.question, &new.answer) {
        (_, Answer::Denied { .. }) | (Question::Free { .. }, Answer::Said { .. }) => Ok(()),
        (
            Question::Call(call),
            Answer::Allowed {
                command,
                mode: None,
                ..
            },
        ) => match command.is_none() || call.editable {
            true => Ok(()),
            false => Err(AnswerRefused::Unfit(
                "only a command can be changed; allow or deny it",
            )),
        },
        (
            Question::Plan { .. },
            Answer::Allowed {
                command: None,
                rule: None,
                ..
            },
        ) => Ok(()),
        (Question::Free { .. }, _) => Err(AnswerRefused::Unfit(
            "this question wants words as its answer",
        )),
        (Question::Call(_) | Question::Plan { .. }, _) => {
            Err(AnswerRefused::Unfit("this question wants a yes or a no"))
        }
    }
}

/// The outcome, and the person who gave it.
fn words(outcome: &ApprovalOutcome) -> String {
    let what = match &outcome.answer {
        Answer::Allowed { .. } => "allowed",
        Answer::Denied { .. } => "denied",
        Answer::Said { .. } => "answered",
        Answer::Unanswered { .. } => "closed without an answer",
    };
    match &outcome.by {
        Some(name) => format!("{what} by {name}"),
        None => what.to_owned(),
    }
}

/// The mode in which a plan is carried out.
fn mode(answer: &Answer) -> Option<Mode> {
    match answer {
        Answer::Allowed { mode, .. } => *mode,
        _ => None,
    }
}

/// Writes the question of an event.
pub(crate) async fn ask(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    event: &Event,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Event::ApprovalAsked {
        turn,
        step,
        ordinal,
        approval,
        question,
        until,
        ..
    } = event
    else {
        return Ok(());
    };
    query(
        "INSERT INTO approvals (tenant_id, id, session_id, user_id, turn_id, step, ordinal, question,
             asked_at, until_at)
         SELECT $1, $2, $3, user_id, $4, $5, $6, $7, $8, $9 FROM sessions
         WHERE tenant_id = $1 AND id = $3",
    )
    .bind(tenant.to_string())
    .bind(approval.to_string())
    .bind(session.to_string())
    .bind(turn.to_string())
    .bind(i64::from(*step))
    .bind(i64::from(*ordinal))
    .bind(columns::json(question))
    .bind(now.as_micros())
    .bind(until.as_micros())
    .execute(tx)
    .await?;
    Ok(())
}

/// Gives the question of an event the outcome that no person answered.
///
/// # Errors
/// [`StoreError::Conflict`] if it has an outcome: then a person's answer came first.
pub(crate) async fn close(
    tx: &mut Connection,
    tenant: TenantId,
    approval: ApprovalId,
    answer: &Answer,
    now: Timestamp,
) -> Result<(), StoreError> {
    match set(tx, tenant, approval, answer, None, now).await? {
        true => Ok(()),
        false => Err(StoreError::Conflict("the question is answered by now")),
    }
}

/// Closes the questions of a turn that has ended.
pub(crate) async fn close_of_turn(
    tx: &mut Connection,
    tenant: TenantId,
    turn: TurnId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let answer = Answer::Unanswered {
        because: Unanswered::Stopped,
    };
    query(
        "UPDATE approvals SET answer = $1, answered_at = $2
         WHERE tenant_id = $3 AND turn_id = $4 AND answer IS NULL",
    )
    .bind(columns::json(&answer))
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(turn.to_string())
    .execute(tx)
    .await?;
    Ok(())
}

/// Writes the outcome, unless there is one.
async fn set(
    tx: &mut Connection,
    tenant: TenantId,
    approval: ApprovalId,
    answer: &Answer,
    by: Option<UserId>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let set = query(
        "UPDATE approvals SET answer = $1, answered_by = $2, answered_at = $3
         WHERE tenant_id = $4 AND id = $5 AND answer IS NULL",
    )
    .bind(columns::json(answer))
    .bind(by.map(|user| user.to_string()))
    .bind(now.as_micros())
    .bind(tenant.to_string())
    .bind(approval.to_string())
    .execute(tx)
    .await?;
    Ok(set > 0)
}

async fn find(
    connection: &mut Connection,
    tenant: TenantId,
    user: UserId,
    id: ApprovalId,
) -> Result<ApprovalRow, StoreError> {
    let row = query_as(select_approvals!(
        "WHERE approvals.tenant_id = $1 AND approvals.user_id = $2 AND approvals.id = $3"
    ))
    .bind(tenant.to_string())
    .bind(user.to_string())
    .bind(id.to_string())
    .fetch_one(connection)
    .await?;
    Ok(row)
}

impl FromRow for ApprovalRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let answer = row.maybe_json("answer")?;
        let (by, at) = (
            row.maybe_text("answered_by")?,
            row.maybe_time("answered_at")?,
        );
        Ok(Self {
            id: row.parsed("id")?,
            session: row.parsed("session_id")?,
            session_title: row.text("title")?,
            user: row.parsed("user_id")?,
            turn: row.parsed("turn_id")?,
            step: row.small("step")?,
            ordinal: row.small("ordinal")?,
            question: row.json("question")?,
            asked_at: row.time("asked_at")?,
            until: row.time("until_at")?,
            outcome: answer
                .zip(at)
                .map(|(answer, at)| ApprovalOutcome { answer, by, at }),
        })
    }
}
