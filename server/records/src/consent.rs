//! Consent: the rules about what agents may do, and the questions that people answer.

use shared_consent::{Decision, ProjectRules, Rule, Ruled};
use shared_sandbox::PROJECT_FILE;
use shared_types::{
    ApprovalId, Digest, Mode, RuleId, RunnerId, SandboxId, SessionId, Timestamp, TurnId, UserId,
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
    /// A file of a project, which the user trusts.
    Project {
        /// The file, relative to the root of its workspace.
        path: String,
        /// The name of the runner with the file.
        runner: String,
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
            Self::Project { path, runner } => format!("the project file {path} on {runner}"),
            Self::Message => "this message".to_owned(),
        }
    }
}

/// A rule and the one who set it.
pub type SetRule = Ruled<RuleBy>;

/// The bounds of a session's agent as they are now, whatever its turn began with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingRules {
    /// The rules that the tenant and the session's owner have set.
    pub rules: Vec<SetRule>,
    /// The most freedom that the tenant leaves; absent where it has set none.
    pub ceiling: Option<Mode>,
}

/// A rule as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// Its id.
    pub id: RuleId,
    /// Whose agents it is for; absent for all people of the tenant.
    pub user: Option<UserId>,
    /// The rule.
    pub rule: Rule,
    /// The decision that the rule gives.
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

/// A file with a project's rules that a user trusts, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFile {
    /// The id of the trust.
    pub id: RuleId,
    /// The runner with the file.
    pub runner: RunnerId,
    /// The name of that runner.
    pub runner_name: String,
    /// The workspace with the file.
    pub sandbox: SandboxId,
    /// The name of that workspace.
    pub workspace: String,
    /// The folder of the project, relative to the root of the workspace; empty for the root.
    pub folder: String,
    /// The digest of the text that is trusted.
    pub digest: Digest,
    /// The rules of that text.
    pub rules: ProjectRules,
    /// True if the last look found another text, or no file.
    pub changed: bool,
    /// The time since it is trusted.
    pub at: Timestamp,
}

impl TrustedFile {
    /// The file, relative to the root of the workspace.
    pub fn path(&self) -> String {
        project_path(&self.folder)
    }

    /// The rules that count: all of them only where the file was found as it is trusted.
    pub fn counting(&self, is_as_trusted: bool) -> impl Iterator<Item = SetRule> {
        let (path, runner) = (self.path(), self.runner_name.clone());
        let rules = self.rules.clone().counting(is_as_trusted);
        rules.map(move |(decision, rule)| Ruled {
            rule,
            decision,
            by: RuleBy::Project {
                path: path.clone(),
                runner: runner.clone(),
            },
        })
    }
}

/// The file with the rules of the project in this folder; both are relative to the root of the workspace.
pub fn project_path(folder: &str) -> String {
    match folder {
        "" => PROJECT_FILE.to_owned(),
        folder => format!("{folder}/{PROJECT_FILE}"),
    }
}

/// The folder of the project whose rules this file has; nothing if it is no such file.
pub fn project_folder(path: &str) -> Option<&str> {
    match path.strip_suffix(PROJECT_FILE)? {
        "" => Some(""),
        folder => folder.strip_suffix('/'),
    }
}

/// True if the directory is this folder or lies below it; both are relative to the root of the workspace.
pub fn is_in_folder(directory: &str, folder: &str) -> bool {
    let below = directory.strip_prefix(folder);
    folder.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
