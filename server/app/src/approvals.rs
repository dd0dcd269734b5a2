//! Approvals: the questions of a person's agents, and the answers.

use std::sync::Arc;

use server_agent::Turns;
use server_records::{ApprovalRow, NewAnswer, SessionKey};
use server_store::{Page, Store};
use shared_types::{
    ApprovalId, Clock, Digest, Entropy, Mode, RuleId,
    event::{Answer, Question},
};

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    pages::{and_one, cut},
    permissions,
    rights::Action,
    shielded::shielded,
};

/// Longest words of an answer, in bytes.
const MAX_WORDS_BYTES: usize = 16 * 1024;

/// An answer of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The digest of the question that the person was shown.
    pub shown: Digest,
    /// The answer.
    pub answer: Answer,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Approvals {
    store: Store,
    gate: Gate,
    turns: Turns,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Approvals {
    pub(crate) fn of(parts: &Parts, gate: &Gate, turns: &Turns) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            turns: turns.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        }
    }

    /// A page of the questions to the user, the newest first, and whether there are more: those that wait for an
    /// answer, or all of them.
    ///
    /// # Errors
    /// If the user may not see them.
    pub async fn list(
        &self,
        ctx: &OpContext,
        all: bool,
        page: Page<ApprovalId>,
    ) -> Result<(Vec<ApprovalRow>, bool), AppError> {
        self.gate.own(ctx, Action::SeeApprovals)?;
        let open_at = (!all).then(|| self.clock.now());
        let (limit, page) = (page.limit, and_one(page));
        let rows = self.store.approvals(ctx.tenant, ctx.user, open_at, page);
        Ok(cut(rows.await?, limit))
    }

    /// One question to the user.
    ///
    /// # Errors
    /// If there is none; another person's is no different from none.
    pub async fn get(&self, ctx: &OpContext, id: ApprovalId) -> Result<ApprovalRow, AppError> {
        self.gate.own(ctx, Action::SeeApprovals)?;
        self.found(ctx, id).await
    }

    /// Answers a question. The first answer counts, and none after the deadline.
    ///
    /// # Errors
    /// If the user has no such question, it is answered or late, the user was shown another one, or the answer does
    /// not fit it; the text says which.
    pub async fn answer(
        &self,
        ctx: &OpContext,
        id: ApprovalId,
        given: GivenAnswer,
    ) -> Result<ApprovalRow, AppError> {
        self.gate.own(ctx, Action::AnswerApproval)?;
        let answer = checked(given.answer)?;
        let asked = self.found(ctx, id).await?;
        let answer = match (&asked.question, answer) {
            // A plan is carried out in a mode that is freer than reading.
            (
                Question::Plan { .. },
                Answer::Allowed {
                    command,
                    rule,
                    mode,
                },
            ) => Answer::Allowed {
                command,
                rule,
                mode: mode.filter(|mode| *mode != Mode::Plan).or(Some(Mode::Ask)),
            },
            (_, answer) => answer,
        };
        let new = NewAnswer {
            approval: id,
            shown: given.shown,
            answer,
        };
        let rule = RuleId::generate(&*self.clock, &*self.entropy);
        let (this, tenant, by, now) = (self.clone(), ctx.tenant, ctx.by(), self.clock.now());
        shielded(async move {
            let answered = this.store.answer(tenant, &by, rule, &new, now).await?;
            let row = answered.map_err(|refused| AppError::Conflict(refused.to_string()))?;
            let session = row.session;
            this.turns.wake(SessionKey { tenant, session }).await;
            Ok(row)
        })
        .await
    }

    async fn found(&self, ctx: &OpContext, id: ApprovalId) -> Result<ApprovalRow, AppError> {
        match self.store.approval(ctx.tenant, ctx.user, id).await {
            Err(server_store::StoreError::NotFound) => Err(AppError::NotFound("approval")),
            found => Ok(found?),
        }
    }
}

/// The answer with its rule in one form, refused if a person cannot give it.
fn checked(answer: Answer) -> Result<Answer, AppError> {
    let words = match &answer {
        Answer::Allowed { command, .. } => command.as_deref(),
        Answer::Denied { words } => words.as_deref(),
        Answer::Said { text } => Some(text.as_str()),
        Answer::Unanswered { .. } => {
            return Err(AppError::Invalid(
                "an answer allows, denies or says something".to_owned(),
            ));
        }
    };
    let is_empty = words.is_some_and(|words| words.trim().is_empty());
    let bytes = words.map_or(0, str::len);
    if is_empty || bytes > MAX_WORDS_BYTES {
        return Err(AppError::Invalid(format!(
            "the words of an answer have 1 to {MAX_WORDS_BYTES} bytes; these have {bytes}"
        )));
    }
    Ok(match answer {
        Answer::Allowed {
            command,
            rule: Some(rule),
            mode,
        } => Answer::Allowed {
            command,
            rule: Some(permissions::rule(&rule)?.to_string()),
            mode,
        },
        other => other,
    })
}
