//! Operations: starting them, what became of them, and stopping them.

pub(super) mod input;
pub(super) mod output;
mod request;
mod view;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
};
use serde::Deserialize;
use server_app::{AppError, CancelAnswer, OperationFilter};
use shared_api::{Operation, OperationCancelled, Operations, Problem, StartOperation};
use shared_types::{OperationId, Refusal, RefusalCode, RunnerId};

use super::{
    Signed,
    id::Id,
    page::{self, cursor},
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Doors, words};

pub(crate) use self::{
    input::{hand_over, to_signal, to_size},
    view::to_operation,
};

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// `open`: only those that have not ended; `all`.
    #[serde(default)]
    #[param(inline)]
    state: WhichOperations,
    /// Only operations on the runner with this id.
    #[serde(default)]
    #[param(inline)]
    runner: Option<RunnerId>,
    /// Only operations whose ids begin like this, such as `op_3k`.
    #[serde(default)]
    prefix: String,
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
}

/// Which operations are listed.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum WhichOperations {
    Open,
    #[default]
    All,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .merge(output::routes())
        .merge(input::routes())
        .routes(routes!(operations, start))
        .routes(routes!(operation))
        .routes(routes!(cancel))
}

/// Start an operation on a runner. The caller need not stay connected: the server stores its output
/// and its end. The same `Idempotency-Key` with the same request is the same operation, however
/// often it is sent. Without a key, each request is a new operation.
#[utoipa::path(post, path = "/api/v1/operations", operation_id = "start_operation",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters, without spaces.", min_length = 1, max_length = 128, pattern = "^[!-~]+$")),
    request_body = StartOperation, responses(
    (status = 201, body = Operation, description = "It is new."), (status = 200, body = Operation, description = "It is known from an earlier request with this key."),
    (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem, description = "The key was used with another request, or the runner is offline."), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn start(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    headers: HeaderMap,
    Body(ask): Body<StartOperation>,
) -> Result<(StatusCode, Json<Operation>), Refused> {
    let start = request::checked(request::key(&headers)?, ask)?;
    let (view, is_new) = doors.app.operations.start(&ctx, start).await?;
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(to_operation(view))))
}

/// The user's operations and those of the user's sessions, the newest first.
#[utoipa::path(get, path = "/api/v1/operations", operation_id = "list_operations", params(ListQuery), responses(
    (status = 200, body = Operations), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn operations(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Operations>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let filter = OperationFilter {
        open_only: matches!(query.state, WhichOperations::Open),
        runner: query.runner,
        prefix: query.prefix,
        after: page::place("operations", query.after.as_deref())?,
        limit: page::limit(query.limit)?,
    };
    let (found, more) = doors.app.operations.list(&ctx, filter).await?;
    let last = found.last().filter(|_| more);
    Ok(Json(Operations {
        next: last.and_then(|last| cursor("operations", &(last.placed_at, last.id))),
        operations: found.into_iter().map(to_operation).collect(),
    }))
}

/// An operation.
#[utoipa::path(get, path = "/api/v1/operations/{id}", operation_id = "get_operation", params(("id" = inline(OperationId), Path)), responses(
    (status = 200, body = Operation), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn operation(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<OperationId>,
) -> Result<Json<Operation>, Refused> {
    let view = doors.app.operations.view(&ctx, id).await?;
    Ok(Json(to_operation(view)))
}

/// Stop an operation with everything that it started.
#[utoipa::path(post, path = "/api/v1/operations/{id}/cancel", operation_id = "cancel_operation", params(("id" = inline(OperationId), Path)), responses(
    (status = 202, body = OperationCancelled), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn cancel(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<OperationId>,
) -> Result<(StatusCode, Json<OperationCancelled>), Refused> {
    let answer = match doors.app.operations.cancel(&ctx, id).await? {
        CancelAnswer::NeverStarted => "never_started",
        CancelAnswer::AlreadyExited => "already_exited",
        CancelAnswer::Cancelled => "cancelled",
        CancelAnswer::Recorded => "recorded",
    };
    let answer = answer.to_owned();
    Ok((StatusCode::ACCEPTED, Json(OperationCancelled { answer })))
}

/// A refusal of an operation as an answer.
pub(crate) fn refused(refusal: Refusal) -> AppError {
    match refusal.code {
        RefusalCode::Invalid | RefusalCode::Unsupported => AppError::Invalid(refusal.message),
        _ => AppError::Conflict(refusal.message),
    }
}
