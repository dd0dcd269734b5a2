//! The tools of tool servers. A server describes them; the engine only carries their calls.

use std::sync::Arc;

use serde_json::{Map, Value};
use shared_types::{
    Effect,
    event::{OfferedServer, OfferedTool},
};

use super::{Arguments, Ask, BadArguments, Parameter, Tool};

/// The beginning of the name of each of these tools.
pub(crate) const PREFIX: &str = "mcp__";

/// Longest arguments of a call, in bytes.
const MAX_ARGUMENTS_BYTES: usize = 256 * 1024;

/// A call of a tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAsk {
    /// The server.
    pub server: String,
    /// The name by which the model asks for the tool.
    pub name: String,
    /// The name by which the server knows it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The server's word on whether the tool changes nothing.
    pub read_only: bool,
    /// The server's word on whether it may destroy something.
    pub destructive: Option<bool>,
}

/// A tool of a server, as it was offered.
pub(crate) struct ServerTool {
    server: String,
    offered: OfferedTool,
}

impl ServerTool {
    /// The tools of these servers.
    pub(crate) fn all(servers: &[OfferedServer]) -> impl Iterator<Item = Arc<dyn Tool>> + '_ {
        servers.iter().flat_map(|server| {
            server.tools.iter().map(|offered| {
                let tool: Arc<dyn Tool> = Arc::new(Self {
                    server: server.name.clone(),
                    offered: offered.clone(),
                });
                tool
            })
        })
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.offered.name
    }

    fn description(&self) -> &str {
        &self.offered.description
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn schema(&self) -> Value {
        self.offered.parameters.clone()
    }

    fn can_be_found(&self) -> bool {
        true
    }

    /// The server checks them. Its objections are the result of the call.
    fn check(&self, written: &str) -> Result<Arguments, BadArguments> {
        if written.len() > MAX_ARGUMENTS_BYTES {
            return Err(BadArguments::new(format!(
                "the arguments have {} bytes; at most {MAX_ARGUMENTS_BYTES} fit",
                written.len()
            )));
        }
        Arguments::free(written)
    }

    /// A server's word that a tool only reads is no reason to send a call twice.
    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Server(ServerAsk {
            server: self.server.clone(),
            name: self.offered.name.clone(),
            tool: self.offered.tool.clone(),
            arguments: arguments.object().clone(),
            read_only: self.offered.read_only,
            destructive: self.offered.destructive,
        }))
    }
}
