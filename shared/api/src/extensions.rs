//! The messages about extensions: skills, agents, hooks and tool servers that people registered, and what a session
//! found.

use serde::{Deserialize, Serialize};
use shared_types::{Digest, ExtensionId, Timestamp, event::Layer};

/// The kind of a registered extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ExtensionKind {
    /// A folder with a `SKILL.md`.
    Skill,
    /// A role of subagents, as Markdown.
    Agent,
    /// Hooks, as JSON.
    Hooks,
    /// A tool server, as JSON.
    Mcp,
}

messages! {
    /// An extension that is registered at the server.
    pub struct Extension {
        /// Its id.
        pub id: ExtensionId,
        /// Its kind.
        pub kind: ExtensionKind,
        /// Its layer: `tenant` for all people, or `user`.
        pub layer: Layer,
        /// Its name.
        pub name: String,
        /// The digest of its files.
        pub digest: Digest,
        /// Its text. In a list, of a skill only the beginning.
        pub text: String,
        /// The path or address that it was added from; may be empty.
        pub source: String,
        /// The size of the other files of its folder, packed, in bytes.
        pub packed_bytes: u64,
        /// The other files of its folder, as a tar archive in base64; absent in lists, and where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub packed: Option<String>,
        /// The name of the person who set it.
        pub set_by: String,
        /// The time at which it was set.
        pub since: Timestamp,
    }

    /// The extensions that are registered for the caller.
    pub struct ExtensionList {
        /// The tenant's, then the caller's own.
        pub extensions: Vec<Extension>,
    }

    /// An extension to be registered. It takes the place of the one of the same kind, layer and name.
    #[serde(deny_unknown_fields)]
    pub struct PutExtension {
        /// Its kind.
        pub kind: ExtensionKind,
        /// Its name.
        pub name: String,
        /// Its file: `SKILL.md`, the Markdown of an agent, or JSON.
        pub text: String,
        /// The other files of a skill's folder, as a tar archive in base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub packed: Option<String>,
        /// The path or address that it comes from.
        #[serde(default)]
        pub source: String,
        /// True for all people of the tenant.
        #[serde(default)]
        pub for_everyone: bool,
        /// The digest of the one in whose place it is put; absent to replace whatever there is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replaces: Option<Digest>,
    }

    /// A skill of the web that is to be read.
    #[serde(deny_unknown_fields)]
    pub struct DownloadExtension {
        /// The address of its `SKILL.md`, or of a `.tar.gz` with it. It begins with `https://`.
        pub address: String,
    }

    /// A skill of the web as it was read.
    pub struct DownloadedExtension {
        /// The bytes at the address, at most 4 MiB, in base64.
        pub content: String,
    }

    /// A file with hooks, tool servers or plugins on a runner that is to be trusted, or trusted no more.
    #[serde(deny_unknown_fields)]
    pub struct TrustExtension {
        /// The file, relative to the root of the workspace.
        pub path: String,
        /// The digest of the text that the person has seen; absent to trust it no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub digest: Option<Digest>,
    }
}
