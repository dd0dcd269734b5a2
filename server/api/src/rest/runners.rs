//! Runners: listing, choosing, removing, and the tokens with which they enrol.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use proto::PROTOCOL_VERSION;
use server_app::{AppError, JoinTerms, JoinTokenRow, Page, RunnerChange};
use shared_api::{
    ChangeRunner, CreateJoinToken, JoinToken, JoinTokens, ListedJoinToken, Pool, Problem, Runner,
    RunnerFigures, Runners, ShareRunner, UnshareRunner, UseRunner, Workspace,
};
use shared_types::{JoinTokenId, RunnerId, address::NotARange};

use super::{
    Signed,
    id::Id,
    page::{PageQuery, asked, cursor},
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(use_runner, use_none))
        .routes(routes!(runners))
        .routes(routes!(change, remove))
        .routes(routes!(share))
        .routes(routes!(unshare))
        .routes(routes!(take))
        .routes(routes!(trust))
        .routes(routes!(distrust))
        .routes(routes!(join_tokens, create_join_token))
        .routes(routes!(end_join_token))
}

/// The runners that the user may choose, by name.
#[utoipa::path(get, path = "/api/v1/runners", params(PageQuery), responses(
    (status = 200, body = Runners), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn runners(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Runners>, Refused> {
    let Page { after, limit } = asked::<String>("runners", query)?;
    let after = after.unwrap_or_default();
    let (runners, more) = doors.app.runners.list(&ctx, &after, limit).await?;
    let last = runners.last().filter(|_| more);
    Ok(Json(Runners {
        next: last.and_then(|last| cursor("runners", &last.name)),
        runners: runners.into_iter().map(to_runner).collect(),
    }))
}

/// Choose the runner where the user's tools run from the next message on. An alias of `PATCH /api/v1/settings` with the
/// layer `user` and the value `runner`.
#[utoipa::path(put, path = "/api/v1/me/runner", request_body = UseRunner, responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn use_runner(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<UseRunner>,
) -> Result<Json<Runner>, Refused> {
    Ok(Json(to_runner(
        doors.app.runners.choose(&ctx, &ask.runner).await?,
    )))
}

/// Take the user's choice of a runner back: the tenant's runner counts, if there is one. An alias of
/// `PATCH /api/v1/settings` with the layer `user` and `null` for `runner`.
#[utoipa::path(delete, path = "/api/v1/me/runner", responses((status = 204), (status = 401, body = Problem)))]
pub(crate) async fn use_none(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<StatusCode, Refused> {
    doors.app.runners.choose_none(&ctx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Rename a runner, let it drain, or give it work again. While it drains, the server places nothing new on it; what runs
/// there goes on, and can be read, signalled and stopped.
#[utoipa::path(patch, path = "/api/v1/runners/{id}", operation_id = "change_runner", params(("id" = inline(RunnerId), Path)), request_body = ChangeRunner, responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "Another runner has the name."), (status = 422, body = Problem)))]
pub(crate) async fn change(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
    Body(ask): Body<ChangeRunner>,
) -> Result<Json<Runner>, Refused> {
    let change = RunnerChange {
        name: ask.name,
        draining: ask.draining,
    };
    let changed = doors.app.runners.change(&ctx, id, &change).await?;
    Ok(Json(to_runner(changed)))
}

/// Remove a runner: its link ends, and it cannot come back without a new token.
#[utoipa::path(delete, path = "/api/v1/runners/{id}", operation_id = "remove_runner", params(("id" = inline(RunnerId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
) -> Result<StatusCode, Refused> {
    doors.app.runners.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Let a person, or everyone, use a runner.
#[utoipa::path(post, path = "/api/v1/runners/{id}/share", operation_id = "share_runner", params(("id" = inline(RunnerId), Path)), request_body = ShareRunner, responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn share(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
    Body(ask): Body<ShareRunner>,
) -> Result<Json<Runner>, Refused> {
    let shared = doors.app.runners.share(&ctx, id, &ask.with).await?;
    Ok(Json(to_runner(shared)))
}

/// Stop sharing a runner. Streams from it end within five seconds.
#[utoipa::path(post, path = "/api/v1/runners/{id}/unshare", operation_id = "unshare_runner", params(("id" = inline(RunnerId), Path)), request_body = UnshareRunner, responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is shared with everyone."), (status = 422, body = Problem)))]
pub(crate) async fn unshare(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
    Body(ask): Body<UnshareRunner>,
) -> Result<Json<Runner>, Refused> {
    let runners = &doors.app.runners;
    let unshared = runners.unshare(&ctx, id, ask.with.as_deref()).await?;
    Ok(Json(to_runner(unshared)))
}

/// Become the owner of a runner.
#[utoipa::path(post, path = "/api/v1/runners/{id}/take", operation_id = "take_runner", params(("id" = inline(RunnerId), Path)), responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn take(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
) -> Result<Json<Runner>, Refused> {
    let taken = doors.app.runners.take(&ctx, id).await?;
    Ok(Json(to_runner(taken)))
}

/// Let what a runner reports of its isolation count: the server cannot check it.
#[utoipa::path(post, path = "/api/v1/runners/{id}/trust", operation_id = "trust_runner", params(("id" = inline(RunnerId), Path)), responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn trust(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
) -> Result<Json<Runner>, Refused> {
    let trusted = doors.app.runners.trust(&ctx, id, true).await?;
    Ok(Json(to_runner(trusted)))
}

/// Let what a runner reports of its isolation count no longer.
#[utoipa::path(post, path = "/api/v1/runners/{id}/distrust", operation_id = "distrust_runner", params(("id" = inline(RunnerId), Path)), responses(
    (status = 200, body = Runner), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn distrust(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RunnerId>,
) -> Result<Json<Runner>, Refused> {
    let distrusted = doors.app.runners.trust(&ctx, id, false).await?;
    Ok(Json(to_runner(distrusted)))
}

/// Make a token with which one runner, or a fleet of them, may enrol.
#[utoipa::path(post, path = "/api/v1/join-tokens", request_body = CreateJoinToken, responses(
    (status = 201, body = JoinToken), (status = 401, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn create_join_token(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<CreateJoinToken>,
) -> Result<(StatusCode, Json<JoinToken>), Refused> {
    let made = doors
        .app
        .runners
        .create_join_token(&ctx, terms(ask)?)
        .await?;
    Ok((
        StatusCode::CREATED,
        Json(JoinToken {
            id: made.id,
            token: made.token.reveal(),
            expires_at: made.expires_at,
            archives: doors.archives.list(),
        }),
    ))
}

/// The list that cursors of join tokens belong to.
const JOIN_TOKENS: &str = "join-tokens";

/// The user's join tokens with which runners can still enrol, the newest first.
#[utoipa::path(get, path = "/api/v1/join-tokens", params(PageQuery), responses(
    (status = 200, body = JoinTokens), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn join_tokens(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<JoinTokens>, Refused> {
    let page = asked(JOIN_TOKENS, query)?;
    let (tokens, more) = doors.app.runners.join_tokens(&ctx, page).await?;
    let last = tokens.last().filter(|_| more);
    Ok(Json(JoinTokens {
        next: last.and_then(|last| cursor(JOIN_TOKENS, &(last.created_at, last.id))),
        join_tokens: tokens.into_iter().map(to_join_token).collect(),
    }))
}

/// End a join token: no runner enrols with it any more. Those that did stay.
#[utoipa::path(delete, path = "/api/v1/join-tokens/{id}", params(("id" = inline(JoinTokenId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn end_join_token(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<JoinTokenId>,
) -> Result<StatusCode, Refused> {
    doors.app.runners.end_join_token(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn to_join_token(token: JoinTokenRow) -> ListedJoinToken {
    ListedJoinToken {
        id: token.id,
        name: token.name,
        created_at: token.created_at,
        expires_at: token.expires_at,
        uses: token.uses,
        used: token.used,
        ephemeral: token.ephemeral,
        labels: token.labels,
        from: token.from.map(|range| range.to_string()),
    }
}

fn terms(ask: CreateJoinToken) -> Result<JoinTerms, AppError> {
    let usual = JoinTerms::default();
    let from = ask.from.map(|text| text.parse()).transpose();
    Ok(JoinTerms {
        name: ask.name,
        valid_for_s: ask.valid_for_s.unwrap_or(usual.valid_for_s),
        uses: ask.uses.unwrap_or(usual.uses),
        ephemeral: ask.ephemeral,
        labels: ask.labels,
        from: from.map_err(|error: NotARange| AppError::Invalid(error.to_string()))?,
    })
}

/// Short enough for a column of a list.
fn too_old(version: u32) -> String {
    format!("it speaks version {version}, this server {PROTOCOL_VERSION}: upgrade gantry-runner")
}

fn to_workspace(sandbox: server_app::SandboxRow) -> Workspace {
    Workspace {
        id: sandbox.id,
        name: sandbox.name,
        root: sandbox.root,
        isolation: sandbox.isolation.to_string(),
        problem: Some(sandbox.problem).filter(|problem| !problem.is_empty()),
    }
}

fn to_runner(runner: server_app::Runner) -> Runner {
    Runner {
        id: runner.id,
        name: runner.name,
        online: runner.online,
        last_seen: runner.last_seen,
        active: runner.active,
        locked: runner.locked,
        server_went_back: runner.server_went_back,
        refused: runner.refused_version.map(too_old),
        draining: runner.drained_by.is_some(),
        drained_by: runner.drained_by,
        ephemeral: runner.ephemeral,
        isolation: runner.isolation.to_string(),
        isolation_believed: runner.believed,
        isolation_granted_by: runner.trusted_by,
        workspace: runner
            .sandboxes
            .first()
            .map_or_else(String::new, |first| first.root.clone()),
        sandboxes: runner.sandboxes.into_iter().map(to_workspace).collect(),
        pool: runner.pool.map(|pool| Pool {
            backend: pool.backend,
            templates: pool.templates,
            sudo_templates: pool.sudo_templates,
            isolation: pool.isolation.to_string(),
            problem: Some(pool.problem).filter(|problem| !problem.is_empty()),
        }),
        ceiling: runner.ceiling,
        hostname: runner.hostname,
        platform: runner.platform,
        version: runner.version,
        figures: runner.figures.map(|figures| RunnerFigures {
            operations_running: figures.operations_running,
            spool_bytes: figures.spool_bytes,
            disk_free_bytes: figures.disk_free_bytes,
        }),
        labels: runner.labels,
        owner: runner.shares.owner,
        shared_with_everyone: runner.shares.everyone,
        shared_with: runner.shares.people,
    }
}
