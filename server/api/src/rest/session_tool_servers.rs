//! The tool servers of a session.

use axum::{Json, extract::State};
use server_app::{Era, Prompt, Resource, TestedServer};
use shared_api::{
    Problem, SessionToolServer, SessionToolServers, TestToolServer, TestedTool, TestedToolServer,
    ToolServerEra, ToolServerLook, ToolServerPrompt, ToolServerResource,
};
use shared_types::SessionId;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    problem::{Body, Refused},
};
use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(list, test))
}

/// The tool servers of a session, with the prompts and resources of those that are connected.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/tool-servers", operation_id = "list_session_tool_servers", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = SessionToolServers), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn list(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionToolServers>, Refused> {
    let servers = doors.app.tool_servers.list(&ctx, id).await?.into_iter();
    let servers = servers.map(|server| SessionToolServer {
        prompts: prompts(&server.name, &server.prompts),
        resources: resources(&server.name, &server.resources),
        name: server.name,
        from: server.from,
        server: server.server,
    });
    Ok(Json(SessionToolServers {
        servers: servers.collect(),
    }))
}

/// Start a tool server of a session where it would run, and say what it has. It is stopped again. One that does not work
/// is no error: the answer says why. A look that takes long goes on: ask again.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/tool-servers", operation_id = "test_tool_server", params(("id" = inline(SessionId), Path)), request_body = TestToolServer, responses(
    (status = 200, body = ToolServerLook), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn test(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<TestToolServer>,
) -> Result<Json<ToolServerLook>, Refused> {
    let tested = doors.app.tool_servers.test(&ctx, id, &ask.name).await?;
    let found = tested.map(to_tested);
    Ok(Json(ToolServerLook { found }))
}

fn to_tested(tested: TestedServer) -> TestedToolServer {
    let tools = tested.tools.into_iter();
    let tools = tools.map(|(name, tokens)| TestedTool {
        name,
        tokens: tokens as u64,
    });
    TestedToolServer {
        prompts: prompts(&tested.name, &tested.prompts),
        resources: resources(&tested.name, &tested.resources),
        name: tested.name,
        from: tested.from,
        failed: tested.failed,
        era: tested.era.map(|era| match era {
            Era::Legacy => ToolServerEra::Legacy,
            Era::Modern => ToolServerEra::Modern,
        }),
        server: tested.server,
        tools: tools.collect(),
        left_out: tested.left_out,
        took_ms: u64::try_from(tested.took.as_millis()).unwrap_or(u64::MAX),
    }
}

fn prompts(server: &str, prompts: &[Prompt]) -> Vec<ToolServerPrompt> {
    let prompts = prompts.iter().map(|prompt| {
        let usage = prompt.usage(server);
        let (command, arguments) = usage.split_once(' ').unwrap_or((&usage, ""));
        ToolServerPrompt {
            command: command.to_owned(),
            arguments: arguments.to_owned(),
            description: prompt.description.clone(),
        }
    });
    prompts.collect()
}

fn resources(server: &str, resources: &[Resource]) -> Vec<ToolServerResource> {
    let resources = resources.iter().map(|resource| ToolServerResource {
        mention: format!("@{server}:{}", resource.uri),
        name: resource.name.clone(),
    });
    resources.collect()
}
