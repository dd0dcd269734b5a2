//! Turns: the choice of their runner, their settings, their limits and their ends.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Mode, RunnerId};

/// The runner on which a turn works, and where that choice comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Choice {
    /// No runner was chosen.
    #[default]
    None,
    /// The session is pinned to this runner.
    Session {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The session's user works on this runner.
    User {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// The session's user has chosen no runner, and this one is the tenant's default.
    Tenant {
        /// The runner.
        runner: RunnerId,
        /// Its name.
        name: String,
        /// The workspace that was chosen with it; absent for its first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
}

impl Choice {
    /// The runner and its name, where one is active.
    pub fn runner(&self) -> Option<(RunnerId, &str)> {
        match self {
            Self::None => None,
            Self::Session { runner, name, .. }
            | Self::User { runner, name, .. }
            | Self::Tenant { runner, name, .. } => Some((*runner, name)),
        }
    }

    /// The workspace that was chosen with the runner; absent for the runner's first one.
    pub fn workspace(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Session { workspace, .. }
            | Self::User { workspace, .. }
            | Self::Tenant { workspace, .. } => workspace.as_deref(),
        }
    }

    /// The choice as people write it: `RUNNER`, or `RUNNER/WORKSPACE`.
    pub fn words(&self) -> Option<String> {
        let (_, name) = self.runner()?;
        Some(match self.workspace() {
            None => name.to_owned(),
            Some(workspace) => format!("{name}/{workspace}"),
        })
    }
}

/// The settings of a turn, without its runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnSettings {
    /// The model that is asked, by its name.
    pub model: String,
    /// The language of the answers; absent where the model chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The most model calls in the turn.
    pub steps: u32,
    /// The runner's description of itself, such as `linux/x86_64`, or `a container on linux/x86_64`; absent where
    /// no runner was active or it had not linked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// True if the runner is the session user's own, or has a container for the user alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_runner: bool,
    /// The mode that is set; absent where the place decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The most freedom that the tenant leaves; absent where it leaves all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Mode>,
    /// The most freedom that the policy of the runner's machine leaves; absent where it leaves all. Below it no rule of
    /// the server allows a call: the machine wants a person to approve each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ceiling: Option<Mode>,
}

/// A limit of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TurnLimit {
    /// The most answers of the model.
    Steps {
        /// The number.
        most: u32,
    },
    /// The most tokens that were sent and came back.
    Tokens {
        /// The number.
        most: u64,
    },
    /// The most time that the model took for its answers.
    ModelTime {
        /// The time, in milliseconds.
        most_ms: u64,
    },
    /// A limit that a newer version has.
    #[serde(other)]
    Other,
}

/// A reason to stop something that its own user did not stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The key or sign-in under which it was asked for was revoked.
    CredentialRevoked,
    /// The key under which it was asked for has expired.
    CredentialExpired,
    /// Its user was removed.
    PersonRemoved,
    /// Its user may not use its runner any more: that was unshared or taken over, or the user's role lowered.
    AccessEnded,
    /// A newer message of its session took its place.
    InterruptedByMessage,
    /// The call for which it works was stopped.
    CallerStopped,
    /// A reason that a newer version gives.
    #[serde(other)]
    Other,
}

/// Writes the reason as it stands behind "stopped: ".
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CredentialRevoked => "its key or sign-in was revoked",
            Self::CredentialExpired => "its key has expired",
            Self::PersonRemoved => "its person was removed",
            Self::AccessEnded => "its person may not use its runner any more",
            Self::InterruptedByMessage => "a newer message takes its place",
            Self::CallerStopped => "the call that it works for was stopped",
            Self::Other => "a right that it needs has ended",
        })
    }
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TurnOutcome {
    /// The model had nothing more to do.
    Completed,
    /// It could not go on; the reason says why.
    Failed,
    /// Someone stopped it.
    Cancelled,
    /// A newer input took its place.
    Interrupted,
}
