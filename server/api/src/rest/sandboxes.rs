//! Sandboxes of pools: listing, making, starting, stopping, removing and limiting them.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use server_app::{AppError, Page, PooledSandbox, SandboxChange};
use shared_api::{
    ChangeSandbox, CreateSandbox, Problem, Sandbox, Sandboxes, StateChange, StateChanges,
};
use shared_types::SandboxId;

use super::{
    Signed,
    id::Id,
    page::{PageQuery, asked, cursor},
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::Doors;

/// The list that these cursors belong to.
const LIST: &str = "sandboxes";

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(sandboxes, create))
        .routes(routes!(sandbox, change, remove))
        .routes(routes!(changes))
        .routes(routes!(start))
        .routes(routes!(stop))
}

/// The sandboxes that the caller may see: the caller's own, and those of all users for admins.
#[utoipa::path(get, path = "/api/v1/sandboxes", operation_id = "list_sandboxes", params(PageQuery), responses(
    (status = 200, body = Sandboxes), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn sandboxes(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Sandboxes>, Refused> {
    let Page { after, limit } = asked::<SandboxId>(LIST, query)?;
    let after = after.map(|after| after.to_string()).unwrap_or_default();
    let (sandboxes, more) = doors.app.sandboxes.list(&ctx, &after, limit).await?;
    let last = sandboxes.last().filter(|_| more);
    Ok(Json(Sandboxes {
        next: last.and_then(|last| cursor(LIST, &last.id)),
        sandboxes: sandboxes.into_iter().map(to_sandbox).collect(),
    }))
}

/// Make the caller's own sandbox on a runner that makes sandboxes. Repeated requests make it once.
#[utoipa::path(post, path = "/api/v1/sandboxes", operation_id = "create_sandbox", request_body = CreateSandbox, responses(
    (status = 201, body = Sandbox), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "The runner makes no sandboxes."), (status = 422, body = Problem)))]
pub(crate) async fn create(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<CreateSandbox>,
) -> Result<(StatusCode, Json<Sandbox>), Refused> {
    let made = doors.app.sandboxes.create(&ctx, &ask.runner).await?;
    Ok((StatusCode::CREATED, Json(to_sandbox(made))))
}

/// One sandbox.
#[utoipa::path(get, path = "/api/v1/sandboxes/{id}", operation_id = "get_sandbox", params(("id" = inline(SandboxId), Path)), responses(
    (status = 200, body = Sandbox), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn sandbox(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
) -> Result<Json<Sandbox>, Refused> {
    Ok(Json(to_sandbox(doors.app.sandboxes.get(&ctx, id).await?)))
}

/// The recent changes of a sandbox's state, the newest last: 50 changes at most.
#[utoipa::path(get, path = "/api/v1/sandboxes/{id}/changes", operation_id = "list_sandbox_changes", params(("id" = inline(SandboxId), Path)), responses(
    (status = 200, body = StateChanges), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn changes(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
) -> Result<Json<StateChanges>, Refused> {
    let changes = doors.app.sandboxes.changes(&ctx, id).await?.into_iter();
    let changes = changes.map(|change| StateChange {
        at: change.at,
        state: change.state.to_string(),
        reason: Some(change.reason).filter(|reason| !reason.is_empty()),
    });
    Ok(Json(StateChanges {
        changes: changes.collect(),
    }))
}

/// Change a sandbox's template, limits and network from its next start on. Limits and network are for admins.
#[utoipa::path(patch, path = "/api/v1/sandboxes/{id}", operation_id = "change_sandbox", params(("id" = inline(SandboxId), Path)), request_body = ChangeSandbox, responses(
    (status = 200, body = Sandbox), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn change(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
    Body(ask): Body<ChangeSandbox>,
) -> Result<Json<Sandbox>, Refused> {
    let network = ask.network.map(|word| word.parse()).transpose();
    let change = SandboxChange {
        template: ask.template,
        memory_bytes: ask.memory_bytes,
        cpu_millis: ask.cpu_millis,
        processes: ask.processes,
        idle_for_ms: ask.idle_for_ms,
        network: network
            .map_err(|_| AppError::Invalid("network must be \"none\" or \"open\"".to_owned()))?,
    };
    let changed = doors.app.sandboxes.change(&ctx, id, change).await?;
    Ok(Json(to_sandbox(changed)))
}

/// Remove a sandbox with its files. A runner that is offline does so when it links again.
#[utoipa::path(delete, path = "/api/v1/sandboxes/{id}", operation_id = "remove_sandbox", params(("id" = inline(SandboxId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
) -> Result<StatusCode, Refused> {
    doors.app.sandboxes.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start a sandbox now instead of with its next operation. Its state shows the result.
#[utoipa::path(post, path = "/api/v1/sandboxes/{id}/start", operation_id = "start_sandbox", params(("id" = inline(SandboxId), Path)), responses(
    (status = 200, body = Sandbox), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "Its runner is offline.")))]
pub(crate) async fn start(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
) -> Result<Json<Sandbox>, Refused> {
    Ok(Json(to_sandbox(doors.app.sandboxes.start(&ctx, id).await?)))
}

/// Stop a sandbox and its operations. Its files stay, and the next operation starts it.
#[utoipa::path(post, path = "/api/v1/sandboxes/{id}/stop", operation_id = "stop_sandbox", params(("id" = inline(SandboxId), Path)), responses(
    (status = 200, body = Sandbox), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "Its runner is offline.")))]
pub(crate) async fn stop(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SandboxId>,
) -> Result<Json<Sandbox>, Refused> {
    Ok(Json(to_sandbox(doors.app.sandboxes.stop(&ctx, id).await?)))
}

fn to_sandbox(sandbox: PooledSandbox) -> Sandbox {
    let limits = sandbox.spec.limits;
    Sandbox {
        id: sandbox.id,
        runner: sandbox.runner,
        runner_name: sandbox.runner_name,
        owner: sandbox.owner_name,
        template: sandbox.spec.template,
        privilege: sandbox.privilege.to_string(),
        state: sandbox.state.to_string(),
        reason: Some(sandbox.reason).filter(|reason| !reason.is_empty()),
        since: sandbox.since,
        memory_bytes: limits.memory_bytes,
        cpu_millis: limits.cpu_millis,
        processes: limits.processes,
        idle_for_ms: limits.idle_for_ms,
        network: sandbox.spec.network.to_string(),
    }
}
