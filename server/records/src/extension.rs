//! Extensions that people registered at the server, and the trust in those that lie on runners.

use bytes::Bytes;
use shared_types::{Digest, ExtensionId, SandboxId, SecretId, Timestamp, UserId, event::Layer};

/// The kind of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionKind {
    /// A folder with a `SKILL.md`.
    Skill,
    /// A role of subagents.
    Agent,
    /// A file with hooks.
    Hooks,
    /// A tool server.
    Mcp,
}

impl ExtensionKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Skill, Self::Agent, Self::Hooks, Self::Mcp];

    /// The kind in one word, as it is stored and as people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Agent => "agent",
            Self::Hooks => "hooks",
            Self::Mcp => "mcp",
        }
    }
}

impl std::str::FromStr for ExtensionKind {
    type Err = UnknownExtensionKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut kinds = Self::ALL.into_iter();
        kinds
            .find(|kind| kind.word() == word)
            .ok_or(UnknownExtensionKind)
    }
}

/// A word that names no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the kinds of extensions are skill, agent, hooks and mcp")]
pub struct UnknownExtensionKind;

/// An extension that is registered at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredExtension {
    /// Its id.
    pub id: ExtensionId,
    /// Its kind.
    pub kind: ExtensionKind,
    /// Whose it is; absent for all people of the tenant.
    pub user: Option<UserId>,
    /// Its name, unique among the owner's extensions of the kind.
    pub name: String,
    /// Its file: `SKILL.md`, the Markdown of an agent, or JSON. Of a skill only the beginning, with its head.
    pub text: String,
    /// SHA-256 of the file, or of the packed folder where it has one.
    pub digest: Digest,
    /// Its source: a path or an address; may be empty.
    pub source: String,
    /// The size of the other files of its folder, packed, in bytes; 0 without any.
    pub packed_bytes: u64,
    /// The secrets that belong to it, sealed.
    pub secret: Option<SecretId>,
    /// The person who set it.
    pub by: UserId,
    /// The name of that person.
    pub by_name: String,
    /// The time at which it was set.
    pub at: Timestamp,
}

impl RegisteredExtension {
    /// Its layer.
    pub fn layer(&self) -> Layer {
        match self.user {
            Some(_) => Layer::User,
            None => Layer::Tenant,
        }
    }
}

/// A file with extensions on a runner that a user trusts with this very text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedExtension {
    /// The workspace with the file.
    pub sandbox: SandboxId,
    /// The file, relative to the root of the workspace.
    pub path: String,
    /// The digest of its text.
    pub digest: Digest,
    /// The time since it is trusted.
    pub at: Timestamp,
}

/// The extensions that are registered for a session, and the trust of its owner, as they are now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingExtensions {
    /// Those of the tenant, then those of the session's owner, by kind and name.
    pub registered: Vec<RegisteredExtension>,
    /// The files that the session's owner trusts.
    pub trusted: Vec<TrustedExtension>,
}

/// A skill with all of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeSkill {
    /// Its `SKILL.md`.
    pub text: String,
    /// The other files of its folder, as a tar archive.
    pub packed: Option<Bytes>,
}
