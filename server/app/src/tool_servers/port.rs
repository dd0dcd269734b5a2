//! The tool servers of a session, as the engine asks for them.

use async_trait::async_trait;
use server_agent::{
    ListedTools, ServerCall, ServerContent, ServerFailure, ServerPlace, ToolServers,
};
use server_mcp::{CALL_USUALLY, McpError, model_names};
use server_records::SessionKey;
use shared_types::event::{OfferedTool, ToolServer};

use super::ToolServerPool;

pub(super) struct SessionToolServers {
    pub(super) pool: ToolServerPool,
    pub(super) session: SessionKey,
}

#[async_trait]
impl ToolServers for SessionToolServers {
    async fn list(
        &self,
        server: &ToolServer,
        place: Option<&ServerPlace>,
    ) -> Result<ListedTools, String> {
        let open = self.pool.open(self.session, server, place, true).await?;
        let listed = open
            .client
            .tools()
            .await
            .map_err(|error| error.to_string())?;
        let tools: Vec<_> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
        let names = model_names(&server.name, &tools);
        let tools = names
            .into_iter()
            .zip(listed.tools)
            .map(|(name, tool)| OfferedTool {
                name,
                tool: tool.name,
                description: tool.description,
                parameters: tool.schema,
                read_only: tool.annotations.read_only,
                destructive: tool.annotations.destructive,
            });
        Ok(ListedTools {
            tools: tools.collect(),
            left_out: listed.refused,
        })
    }

    fn has_changed(&self, server: &str) -> bool {
        let client = self.pool.known(self.session, server);
        client.is_some_and(|client| client.has_changed())
    }

    async fn call(
        &self,
        server: &ToolServer,
        place: Option<&ServerPlace>,
        call: &ServerCall<'_>,
    ) -> Result<ServerContent, ServerFailure> {
        let opened = self.pool.open(self.session, server, place, false).await;
        // Nothing was sent.
        let open = opened.map_err(|words| ServerFailure {
            words: format!("the tool server {} does not work: {words}", server.name),
            in_doubt: false,
            timed_out: false,
        })?;
        let called = open
            .client
            .call(call.tool, call.arguments, CALL_USUALLY)
            .await;
        let content = called.map_err(|error| ServerFailure {
            in_doubt: error.is_in_doubt(),
            timed_out: matches!(error, McpError::TimedOut(_)),
            words: error.to_string(),
        })?;
        let images = content.images.into_iter();
        Ok(ServerContent {
            text: content.text,
            images: images.map(|image| (image.format, image.bytes)).collect(),
            failed: content.failed,
        })
    }
}
