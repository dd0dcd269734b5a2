//! The tools of tool servers, as the model is offered them.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A tool server of a session, and the tools that the model is offered of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferedServer {
    /// Its name.
    pub name: String,
    /// SHA-256 of its declaration. The tools of a server with another digest are listed again.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$"))]
    pub digest: Digest,
    /// The tools, in the order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OfferedTool>,
    /// Words on tools that are not offered, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The reason why none of its tools is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A tool of a tool server. All of it is the server's word, bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferedTool {
    /// The name by which the model asks for it: `mcp__SERVER__TOOL`.
    pub name: String,
    /// The name by which the server knows it.
    pub tool: String,
    /// Its purpose and use, for the model; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub parameters: serde_json::Value,
    /// True if the server says that it changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// The server's word on whether it may destroy something, if it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
}

impl OfferedServer {
    /// The news for people, a line each: the number of its tools or the reason why there are none, and what is left
    /// out.
    pub fn words(&self) -> Vec<String> {
        let first = match (&self.failed, self.tools.len()) {
            (Some(why), _) => format!("tool server {} does not work: {why}", self.name),
            (None, 1) => format!("tool server {}: 1 tool", self.name),
            (None, tools) => format!("tool server {}: {tools} tools", self.name),
        };
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|why| format!("tool server {}: {why}", self.name));
        std::iter::once(first).chain(left_out).collect()
    }
}
