//! The places where operations run, and the instructions that people left there.

use serde::{Deserialize, Serialize};

use crate::{Digest, Isolation, RunnerId, SandboxId};

/// The place where an operation runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Place {
    /// The runner.
    pub runner: RunnerId,
    /// Its name at that time.
    pub runner_name: String,
    /// The sandbox on it.
    pub sandbox: SandboxId,
    /// The isolation that is proved for the sandbox.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub isolation: Isolation,
}

/// A file with instructions for agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InstructionFile {
    /// The file: relative to the workspace, or beginning with `~/` for one of the user of the machine.
    pub path: String,
    /// Its text, or the beginning of it.
    pub text: String,
    /// The size of the whole file, in bytes.
    pub bytes: u64,
    /// True if more of it was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A file with a project's rules for agents, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProjectFile {
    /// The file, relative to the workspace.
    pub path: String,
    /// The digest of its text.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
    pub digest: Digest,
    /// Its text; absent if it is as in the last such event that has this path and digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the session's user trusted it with this very text when it was found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
}
