//! The tool servers of a session, as the engine asks for them.

use async_trait::async_trait;
use serde_json::{Value, json};
use server_agent::{
    AskedByServer, HookPost, HookPosts, ListedTools, ServerCall, ServerContent, ServerFailure,
    ServerPlace, ToolServers,
};
use server_mcp::{CALL_USUALLY, Client, Content, McpError, Tools, model_names};
use server_records::SessionKey;
use shared_types::event::{Hook, OfferedTool, ToolServer};

use super::ToolServerPool;
use crate::hook_posts;

/// Stands for the server's name of the tool that reads its resources. No tool of a server is offered under this name.
const RESOURCES: &str = "(resources)";

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
        let tools = open.client.tools().await;
        let tools = tools.map_err(|error| error.to_string())?;
        Ok(listed(&server.name, tools, open.client.has_resources()))
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
        people: &dyn AskedByServer,
    ) -> Result<ServerContent, ServerFailure> {
        let opened = self.pool.open(self.session, server, place, false).await;
        // Nothing was sent.
        let open = opened.map_err(|words| ServerFailure {
            words: format!("the tool server {} does not work: {words}", server.name),
            in_doubt: false,
            timed_out: false,
        })?;
        let mut asked = open.people.of_call();
        let calling = called(&open.client, call);
        let called = tokio::select! {
            called = calling => called,
            never = asked.pass_on(people) => match never {},
        };
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

#[async_trait]
impl HookPosts for SessionToolServers {
    async fn post(
        &self,
        hook: &Hook,
        place: Option<&ServerPlace>,
        post: HookPost,
    ) -> Result<String, String> {
        let (pool, tenant) = (&self.pool.0, self.session.tenant);
        let owner = pool
            .grants
            .store
            .session_owner(tenant, self.session.session);
        let owner = owner.await.map_err(|error| error.to_string())?;
        let (grants, operations) = (&pool.grants, pool.operations.get());
        hook_posts::post(grants, operations, (tenant, owner), (hook, place), post).await
    }
}

/// The tools of a server under the names by which a model asks for them. One more lists and reads its resources, where
/// it has some.
pub(super) fn listed(server: &str, listed: Tools, has_resources: bool) -> ListedTools {
    let mut tools = listed.tools;
    tools.retain(|tool| tool.name != RESOURCES);
    let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.push("resources");
    let mut names = model_names(server, &names);
    let resources = names.pop().filter(|_| has_resources);
    let tools = names
        .into_iter()
        .zip(tools)
        .map(|(name, tool)| OfferedTool {
            name,
            tool: tool.name,
            description: tool.description,
            parameters: tool.schema,
            read_only: tool.annotations.read_only,
            destructive: tool.annotations.destructive,
        });
    let resources = resources.map(|name| OfferedTool {
        name,
        tool: RESOURCES.to_owned(),
        description: format!(
            "Reads a resource of the tool server {server}. Without a uri it lists them."
        ),
        parameters: json!({ "type": "object", "properties": { "uri": { "type": "string" } } }),
        read_only: true,
        destructive: None,
    });
    ListedTools {
        tools: tools.chain(resources).collect(),
        left_out: listed.refused,
    }
}

/// The result of a call: of a tool, or of the one that reads resources.
async fn called(client: &Client, call: &ServerCall<'_>) -> Result<Content, McpError> {
    if call.tool != RESOURCES {
        return client.call(call.tool, call.arguments, CALL_USUALLY).await;
    }
    match call.arguments.get("uri").and_then(Value::as_str) {
        Some(uri) => client.read(uri, CALL_USUALLY).await,
        None => {
            let resources = client.resources().await?;
            let lines = resources
                .iter()
                .map(|one| format!("{}  {}", one.uri, one.name));
            let lines: Vec<_> = lines.collect();
            Ok(Content {
                text: lines.join("\n"),
                ..Content::default()
            })
        }
    }
}
