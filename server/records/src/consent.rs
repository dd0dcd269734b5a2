//! Consent: the rules about what agents may do, and the questions that people answer.

use shared_consent::{Decision, Rule, Ruled};
use shared_types::{
    ApprovalId, Digest, RuleId, SessionId, Timestamp, TurnId, UserId,
    event::{Answer, Question},
};

/// The one who set a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleBy {
    /// The operator of the server, for everybody.
    Operator,
    /// An admin, for all people of the tenant.
    Tenant {
        /// The rule.
        id: RuleId,
        /// The name of the admin.
        name: String,
    },
    /// The user, for the agents that work for the user.
    User {
        /// The rule.
        id: RuleId,
    },
    /// The message, for its own turn.
    Message,
}

impl RuleBy {
    /// The one who set it, in a few words for people.
    pub fn words(&self) -> String {
        match self {
            Self::Operator => "the operator".to_owned(),
            Self::Tenant { name, .. } => format!("{name}, for everybody here"),
            Self::User { .. } => "you".to_owned(),
            Self::Message => "this message".to_owned(),
        }
    }
}

/// A rule and the one who set it.
pub type SetRule = Ruled<RuleBy>;

/// A rule as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// Its id.
    pub id: RuleId,
    /// Whose agents it is for; absent for all people of the tenant.
    pub user: Option<UserId>,
    /// The rule.
    pub rule: Rule,
    /// What it decides.
    pub decision: Decision,
    /// The person who set it.
    pub by: UserId,
    /// The name of that person.
    pub by_name: String,
    /// The time since it counts.
    pub at: Timestamp,
}

impl RuleRow {
    /// The rule for those who judge by it.
    pub fn set(self) -> SetRule {
        let by = match self.user {
            Some(_) => RuleBy::User { id: self.id },
            None => RuleBy::Tenant {
                id: self.id,
                name: self.by_name,
            },
        };
        Ruled {
            rule: self.rule,
            decision: self.decision,
            by,
        }
    }
}

/// A question to people, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Its id.
    pub id: ApprovalId,
    /// The session.
    pub session: SessionId,
    /// The title of the session in lists.
    pub session_title: String,
    /// The person who may answer: the session's own.
    pub user: UserId,
    /// The turn whose call waits for the answer.
    pub turn: TurnId,
    /// The model call, from 1.
    pub step: u32,
    /// The place of the call in the answer, from 0.
    pub ordinal: u32,
    /// The thing that people are asked.
    pub question: Question,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// After that no answer counts.
    pub until: Timestamp,
    /// Its outcome, once it has one.
    pub outcome: Option<ApprovalOutcome>,
}

/// The outcome of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalOutcome {
    /// The answer.
    pub answer: Answer,
    /// The name of the person who answered; absent if none did.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// An answer that a person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    /// The approval.
    pub approval: ApprovalId,
    /// The digest of the question that the person was shown ([`Question::digest`]).
    pub shown: Digest,
    /// The answer.
    pub answer: Answer,
}

/// The reason why an answer does not count. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    /// Another answer came first.
    #[error("it is answered already: {0}")]
    Answered(String),
    /// The deadline has passed.
    #[error("its deadline has passed; ask the agent again")]
    Late,
    /// The question is another one than the person was shown.
    #[error("the question is not the one that was shown; look at it again")]
    OtherQuestion,
    /// The answer does not fit the question.
    #[error("{0}")]
    Unfit(&'static str),
}
