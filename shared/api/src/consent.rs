//! The messages about consent: questions of agents, answers, and rules.

use serde::{Deserialize, Serialize};
use shared_types::{
    ApprovalId, Digest, Mode, Risk, RuleId, SessionId, Timestamp, TurnId,
    event::{Answer, Question},
};

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Decision {
    /// It runs without a question.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run.
    Deny,
}

/// The party that set a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RuleSetBy {
    /// The operator, in the server's configuration.
    Operator,
    /// An admin, for all people of the tenant.
    Tenant,
    /// The person.
    User,
    /// A file of a project, which the person trusts.
    Project,
}

/// The thing that is done with the text of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TestedDeed {
    /// A shell runs it.
    #[default]
    Shell,
    /// The file is read.
    Read,
    /// The file is written.
    Write,
    /// The address is fetched.
    Fetch,
}

messages! {
    /// A question of an agent to a person.
    pub struct Approval {
        /// Its id.
        pub id: ApprovalId,
        /// The session of the agent.
        pub session: SessionId,
        /// The title of the session.
        pub session_title: String,
        /// The turn that waits for the answer.
        pub turn: TurnId,
        /// The model call, from 1.
        pub step: u32,
        /// The place of the call in the answer, from 0.
        pub ordinal: u32,
        /// The question.
        pub question: Question,
        /// The digest of the question. An answer names it.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
        pub digest: Digest,
        /// When it was asked.
        pub asked_at: Timestamp,
        /// After that no answer counts.
        pub until: Timestamp,
        /// Its outcome, once it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcome: Option<ApprovalOutcome>,
    }

    /// The outcome of a question.
    pub struct ApprovalOutcome {
        /// The answer.
        pub answer: Answer,
        /// The name of the person who answered; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub by: Option<String>,
        /// When.
        pub at: Timestamp,
    }

    /// A page of questions, the newest first.
    pub struct Approvals {
        /// The questions.
        pub approvals: Vec<Approval>,
        /// The value of `after` for the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub next: Option<String>,
    }

    /// Answers a question. The first answer counts.
    #[serde(deny_unknown_fields)]
    pub struct AnswerApproval {
        /// The digest of the question that the person was shown.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$", example = "0000000000000000000000000000000000000000000000000000000000000000"))]
        pub digest: Digest,
        /// The answer: `allowed`, `denied` or `said`.
        pub answer: Answer,
    }

    /// A rule about what agents may do.
    pub struct PermissionRule {
        /// Its id; absent for a rule of the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub id: Option<RuleId>,
        /// The rule, such as `Shell(cargo test *)`.
        pub rule: String,
        /// What it decides.
        pub decision: Decision,
        /// Who set it.
        pub set_by: RuleSetBy,
        /// The name of the person who set it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub who: Option<String>,
        /// Since when it counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub since: Option<Timestamp>,
        /// The file that set it; absent for a rule that no project has. The rule counts in the folder of that file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub file: Option<TrustedFile>,
    }

    /// The rules that count for the caller's agents.
    pub struct PermissionRules {
        /// The rules: the operator's, the tenant's, the caller's own, those of files of projects that the caller trusts.
        pub rules: Vec<PermissionRule>,
    }

    /// A file with a project's rules that the caller trusts.
    pub struct TrustedFile {
        /// The id of the trust.
        pub id: RuleId,
        /// The file, relative to the root of the workspace.
        pub path: String,
        /// The name of the runner with the file.
        pub runner: String,
        /// The name of the workspace.
        pub workspace: String,
        /// True if the last look found another text, or no file: then the text that is trusted asks and denies on, and
        /// allows nothing.
        pub changed: bool,
        /// Since when it is trusted.
        pub since: Timestamp,
    }

    /// The file with a project's rules that the last look of a session found.
    pub struct ProposedRules {
        /// The file, relative to the root of the workspace.
        pub path: String,
        /// The name of the runner with the file.
        pub runner: String,
        /// The digest of the text.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
        pub digest: Digest,
        /// The rules, with paths from the root of the workspace; empty if there is a problem.
        pub rules: Vec<ProposedRule>,
        /// The reason why the file cannot be trusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub problem: Option<String>,
        /// True if the caller trusts the file with this very text.
        pub trusted: bool,
    }

    /// A rule of a project's file.
    pub struct ProposedRule {
        /// The rule, such as `Write(src/**)`.
        pub rule: String,
        /// What it decides.
        pub decision: Decision,
    }

    /// Trusts the file with a project's rules that the last look of a session found.
    #[serde(deny_unknown_fields)]
    pub struct TrustProject {
        /// The session.
        pub session: SessionId,
        /// The digest of the text that the person was shown.
        #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$", example = "0000000000000000000000000000000000000000000000000000000000000000"))]
        pub digest: Digest,
    }

    /// Sets a rule.
    #[serde(deny_unknown_fields)]
    pub struct AddPermissionRule {
        /// The rule.
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
        pub rule: String,
        /// What it decides.
        pub decision: Decision,
        /// True for all people of the tenant; that takes an admin.
        #[serde(default)]
        pub for_everyone: bool,
    }

    /// Asks what would be decided about something that an agent might do.
    #[serde(deny_unknown_fields)]
    pub struct TestPermission {
        /// The command, the path or the address.
        #[cfg_attr(feature = "openapi", schema(max_length = 65536))]
        pub text: String,
        /// The thing that is done with it.
        #[serde(default)]
        pub deed: TestedDeed,
        /// The mode; absent for the caller's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub mode: Option<Mode>,
        /// The isolation of the place, such as `none`; absent for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_length = 128))]
        pub isolation: Option<String>,
    }

    /// The decision about something that an agent might do.
    pub struct PermissionVerdict {
        /// The decision.
        pub decision: Decision,
        /// The risk.
        pub risk: Risk,
        /// The reason for the decision, for people.
        pub why: String,
        /// The reasons for the risk.
        pub reasons: Vec<String>,
        /// The rule that decided; absent if the mode did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rule: Option<String>,
        /// The rule that would allow it without a question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub suggestion: Option<String>,
        /// The mode that was looked at.
        pub mode: Mode,
    }
}
