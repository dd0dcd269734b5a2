//! The messages about the tool servers of a session.

use serde::{Deserialize, Serialize};
use shared_types::event::Provenance;

/// The way in which a tool server speaks its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ToolServerEra {
    /// Versions up to 2025-11-25.
    Legacy,
    /// Version 2026-07-28.
    Modern,
}

messages! {
    /// The tool servers of a session.
    pub struct SessionToolServers {
        /// In the order of their names.
        pub servers: Vec<SessionToolServer>,
    }

    /// A tool server of a session, and what it has beside tools. All names are the server's words.
    pub struct SessionToolServer {
        /// Its name.
        pub name: String,
        /// The layer and the file or row that declares it. One that is not trusted is not started.
        pub from: Provenance,
        /// The server's own name and version; absent while it is not connected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server: Option<String>,
        /// Its prompts; empty while it is not connected.
        pub prompts: Vec<ToolServerPrompt>,
        /// Its resources; empty while it is not connected.
        pub resources: Vec<ToolServerResource>,
    }

    /// A prompt of a tool server: a message that people send by its name.
    pub struct ToolServerPrompt {
        /// The command that sends it, without its slash: `SERVER:PROMPT`.
        pub command: String,
        /// The words that go behind it, those in brackets optional; empty for none.
        pub arguments: String,
        /// Its purpose; may be empty.
        pub description: String,
    }

    /// A resource of a tool server.
    pub struct ToolServerResource {
        /// The word that attaches it to a message: `@SERVER:URI`.
        pub mention: String,
        /// Its name; may be empty.
        pub name: String,
    }

    /// A tool server that is to be looked at.
    #[serde(deny_unknown_fields)]
    pub struct TestToolServer {
        /// Its name.
        pub name: String,
    }

    /// A look at a tool server.
    pub struct ToolServerLook {
        /// Its findings; absent while it goes on. The same request again waits for its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub found: Option<TestedToolServer>,
    }

    /// The findings of a look at a tool server.
    pub struct TestedToolServer {
        /// Its name.
        pub name: String,
        /// The layer and the file or row that declares it.
        pub from: Provenance,
        /// The reason why it does not work, and what to do; absent if it works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub failed: Option<String>,
        /// The way in which it speaks; absent if it gave no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub era: Option<ToolServerEra>,
        /// The server's own name and version; may be empty.
        pub server: String,
        /// Its tools.
        pub tools: Vec<TestedTool>,
        /// Words on tools that are not offered, each with the reason.
        pub left_out: Vec<String>,
        /// Its prompts.
        pub prompts: Vec<ToolServerPrompt>,
        /// Its resources.
        pub resources: Vec<ToolServerResource>,
        /// The time from its start to its last answer, in milliseconds.
        pub took_ms: u64,
    }

    /// A tool, as a model would be offered it.
    pub struct TestedTool {
        /// The name by which the model asks for it.
        pub name: String,
        /// About as many tokens as its name, description and arguments take.
        pub tokens: u64,
    }
}
