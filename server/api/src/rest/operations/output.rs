//! Reading what an operation wrote, page by page.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use server_app::{AppError, MAX_OUTPUT_PAGE_BYTES, OutputStream};
use shared_api::{Output, Problem, StreamName};
use shared_types::OperationId;

use super::super::{Signed, id::Id, page::within, problem::Refused};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    Doors,
    edge::measured::Waited,
    edge::seats::{self, Seats},
    words,
};

/// Longest time that a request waits for output, in milliseconds.
const MAX_WAIT_MS: u64 = 60_000;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    /// `stdout` or `stderr`.
    #[serde(default = "stdout")]
    #[param(inline, value_type = StreamName)]
    stream: OutputStream,
    /// The first byte to read, from 0; a negative number counts from the end.
    #[serde(default)]
    offset: i64,
    /// At most this many bytes, from 1 to 1048576.
    #[serde(default = "a_page")]
    #[param(minimum = 1, maximum = 1048576)]
    limit: usize,
    /// The longest wait for output, in milliseconds from 0 to 60000, if there is none at the offset
    /// and the operation has not ended. The answer may come earlier without output.
    #[serde(default)]
    #[param(minimum = 0, maximum = 60000)]
    wait_ms: u64,
}

fn stdout() -> OutputStream {
    OutputStream::Stdout
}

fn a_page() -> usize {
    MAX_OUTPUT_PAGE_BYTES
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(output))
}

/// The output of an operation on one of its streams, from an offset on, while it runs and
/// afterwards.
#[utoipa::path(get, path = "/api/v1/operations/{id}/output", operation_id = "read_output", params(("id" = inline(OperationId), Path), OutputQuery), responses(
    (status = 200, body = Output), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn output(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    Id(id): Id<OperationId>,
    query: Result<Query<OutputQuery>, QueryRejection>,
) -> Result<(Option<Extension<Waited>>, Json<Output>), Response> {
    let (query, limit, wait) =
        checked(query).map_err(|error| Refused::from(error).into_response())?;
    let _seat = match wait.is_zero() {
        true => None,
        false => Some(
            seats
                .take(ctx.credential, seats::Kind::Operation)
                .map_err(|full| full.into_response())?,
        ),
    };
    let wait = wait.min(doors.limits.waits_at_most());
    let operations = &doors.app.operations;
    let page = operations.output(&ctx, id, query.stream, query.offset, limit, wait);
    let page = page
        .await
        .map_err(|error| Refused::from(error).into_response())?;
    let waited = (!wait.is_zero()).then_some(Extension(Waited));
    let output = Output {
        operation: id,
        stream: query.stream.to_string(),
        base: page.base,
        bytes: page.data.len() as u64,
        data: STANDARD.encode(&page.data),
        end: page.end,
        ended: page.ended,
    };
    Ok((waited, Json(output)))
}

fn checked(
    query: Result<Query<OutputQuery>, QueryRejection>,
) -> Result<(OutputQuery, usize, Duration), AppError> {
    let Query(query) = query.map_err(words::of_query)?;
    let limit = within(query.limit, MAX_OUTPUT_PAGE_BYTES)?;
    if query.wait_ms > MAX_WAIT_MS {
        return Err(AppError::Invalid(format!(
            "wait_ms is {}; wait at most {MAX_WAIT_MS} ms and ask again",
            query.wait_ms
        )));
    }
    let wait = Duration::from_millis(query.wait_ms);
    Ok((query, limit, wait))
}
