//! Operations: what they wrote, and stopping them.

use std::time::Duration;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use server_app::{AppError, CancelAnswer, MAX_OUTPUT_PAGE_BYTES, OperationFilter, OutputStream};
use shared_api::{
    OperationCancelled, Output, Problem, SessionOperation, SessionOperations, StreamName,
};
use shared_types::OperationId;

use super::{Signed, id::Id, page::page, problem::Refused};
use crate::Doors;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    /// `stdout` or `stderr`.
    #[serde(default = "stdout")]
    #[param(inline, value_type = StreamName)]
    stream: OutputStream,
    /// Where to begin, in bytes from 0; a negative number counts from the end.
    #[serde(default)]
    offset: i64,
    /// At most this many bytes, from 1 to 1048576.
    #[serde(default = "a_page")]
    #[param(minimum = 1, maximum = 1048576)]
    limit: usize,
}

fn stdout() -> OutputStream {
    OutputStream::Stdout
}

fn a_page() -> usize {
    MAX_OUTPUT_PAGE_BYTES
}

/// Most operations that one list carries.
const MAX_OPERATIONS: u32 = 200;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only those whose ids begin so, such as `op_3k`.
    #[serde(default)]
    prefix: String,
    /// At most this many, from 1 to 200.
    #[serde(default = "all_operations")]
    #[param(minimum = 1, maximum = 200)]
    limit: u32,
}

fn all_operations() -> u32 {
    MAX_OPERATIONS
}

/// The user's operations, by id.
#[utoipa::path(get, path = "/api/v1/operations", operation_id = "list_operations", params(ListQuery), responses(
    (status = 200, body = SessionOperations), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn operations(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<SessionOperations>, Refused> {
    let Query(query) = query.map_err(|rejection| AppError::Invalid(rejection.body_text()))?;
    let limit = page(query.limit, MAX_OPERATIONS)?;
    let filter = OperationFilter {
        open_only: false,
        prefix: query.prefix,
        limit,
    };
    let found = doors.app.operations.list(&ctx, filter).await?;
    Ok(Json(SessionOperations {
        operations: found
            .into_iter()
            .filter_map(|found| {
                let (id, session) = (found.id, found.session?);
                Some(SessionOperation { id, session })
            })
            .collect(),
    }))
}

/// What an operation wrote to one of its streams, from an offset on, while it runs and afterwards.
#[utoipa::path(get, path = "/api/v1/operations/{id}/output", operation_id = "read_output", params(("id" = inline(OperationId), Path), OutputQuery), responses(
    (status = 200, body = Output), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn output(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<OperationId>,
    query: Result<Query<OutputQuery>, QueryRejection>,
) -> Result<Json<Output>, Refused> {
    let Query(query) = query.map_err(|rejection| AppError::Invalid(rejection.body_text()))?;
    let limit = page(query.limit, MAX_OUTPUT_PAGE_BYTES)?;
    let page = doors
        .app
        .operations
        .output(&ctx, id, query.stream, query.offset, limit, Duration::ZERO)
        .await?;
    Ok(Json(Output {
        operation: id,
        stream: query.stream.to_string(),
        base: page.base,
        bytes: page.data.len() as u64,
        data: STANDARD.encode(&page.data),
        end: page.end,
        ended: page.ended,
    }))
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
