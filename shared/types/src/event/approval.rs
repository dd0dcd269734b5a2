//! Approvals: a question to people with one deadline and one outcome.

use serde::{Deserialize, Serialize};

use crate::{Digest, FileDigest, Mode, Risk, RunnerId};

/// The thing that people are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Question {
    /// May this call run?
    Call(Box<PlannedCall>),
    /// The model asks something of its own.
    Free {
        /// The question.
        text: String,
        /// Answers to choose from; other words are an answer as well.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
    },
    /// The model, which only reads, proposes a plan. May it carry the plan out?
    Plan {
        /// The plan.
        text: String,
    },
}

/// A call that is to run, exactly as it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedCall {
    /// The tool.
    pub tool: String,
    /// The whole command, the edit as a diff, or the whole text that is written, for people.
    pub text: String,
    /// True if more of the text was left out; the call's arguments have all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The folder where a command starts, relative to the root of the sandbox; empty for the root itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The names of the variables that a command is given beside those of its runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// The files that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PlannedPath>,
    /// The runner where it is to run; absent if it runs on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerId>,
    /// The name of the runner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner_name: String,
    /// The isolation that is proved there, as people see it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub isolation: String,
    /// The risk.
    pub risk: Risk,
    /// The reasons for the risk, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The reason to ask: the mode, or the rule that says so.
    pub why: String,
    /// The rule that would allow it without a question; absent if no rule is good for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// True if the text is a command that the answer may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// A file that a planned call changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannedPath {
    /// Its path relative to the root of the sandbox.
    pub path: String,
    /// The digest that it must have for the change; absent if the change does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<FileDigest>,
}

/// The outcome of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Answer {
    /// A person allows it.
    Allowed {
        /// The command that runs in place of the planned one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// The rule that the answer made, which allows the like from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The mode in which a plan is carried out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
    },
    /// A person does not allow it.
    Denied {
        /// The person's words to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// A person answers the model's question.
    Said {
        /// The answer.
        text: String,
    },
    /// No person answered. That is never a grant.
    Unanswered {
        /// The reason.
        because: Unanswered,
    },
}

/// The reason why no person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Unanswered {
    /// The message was sent by a program, or from where no person can be asked.
    NobodyThere,
    /// The deadline has passed.
    Deadline,
    /// The call is not the one any more that people were asked about.
    Changed,
    /// The turn was stopped.
    Stopped,
}

impl Question {
    /// The digest of all that people are shown. An answer names it, so that it counts for no other question.
    pub fn digest(&self) -> Digest {
        // Its fields are texts and numbers, which always have a JSON form.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// The question on one line.
    pub fn title(&self) -> String {
        let (head, text) = match self {
            Self::Call(call) => (call.tool.as_str(), call.text.as_str()),
            Self::Free { text, .. } => ("Question", text.as_str()),
            Self::Plan { text } => ("Plan", text.as_str()),
        };
        let line = text.lines().find(|line| !line.trim().is_empty());
        format!("{head}: {}", line.unwrap_or_default().trim())
    }
}
