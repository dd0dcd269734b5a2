//! The input, terminal sizes and signals that a caller passes on to an operation.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{
        DefaultBodyLimit, Query, State,
        rejection::{BytesRejection, QueryRejection},
    },
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use serde::Deserialize;
use server_app::{AppError, OpContext};
use shared_api::{InputTaken, Problem, SendSignal, Signal, TerminalSize};
use shared_sandbox::{Control, Controls, Input};
use shared_types::{
    OperationId, Refusal,
    limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES, MAX_NUMBER},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    super::{
        Signed,
        id::Id,
        problem::{Body, Refused},
    },
    refused,
};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt as _},
    routes,
};

use crate::{
    Doors,
    edge::measured::Waited,
    edge::seats::{self, Seats},
    rest::{Code, respond},
    words,
};

/// Largest body with input, in bytes: a whole window.
pub(in crate::rest) const MAX_INPUT_BODY_BYTES: usize = INPUT_WINDOW_BYTES as usize;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct InputQuery {
    /// The offset of the body in the input, in bytes from 0.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    offset: u64,
    /// True if the input ends after the body.
    #[serde(default)]
    end: bool,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(input).layer(DefaultBodyLimit::max(MAX_INPUT_BODY_BYTES)))
        .routes(routes!(resize))
        .routes(routes!(signal))
}

/// Send input to an operation: raw bytes, at most 1 MiB. While the operation takes no more, the request
/// waits. Go on at the offset of the answer. Bytes that were taken before do no harm, so a request
/// without an answer can be sent again.
#[utoipa::path(post, path = "/api/v1/operations/{id}/input", operation_id = "send_input", params(("id" = inline(OperationId), Path), InputQuery),
    request_body(content = inline(Vec<u8>), content_type = "application/octet-stream"), responses(
    (status = 200, body = InputTaken), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn input(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    Id(id): Id<OperationId>,
    query: Result<Query<InputQuery>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<(Extension<Waited>, Result<Json<InputTaken>, Response>), Response> {
    let answer = |error: AppError| Refused::from(error).into_response();
    let Query(query) = query.map_err(words::of_query).map_err(answer)?;
    let data = body.map_err(too_large)?;
    if query.offset > MAX_NUMBER {
        let why = format!(
            "offset is {}; no input is longer than {MAX_NUMBER} bytes",
            query.offset
        );
        return Err(answer(AppError::Invalid(why)));
    }
    let _seat = seats
        .take(ctx.credential, seats::Kind::Operation)
        .map_err(|full| full.into_response())?;
    let operations = &doors.app.operations;
    let controls = operations.controls(&ctx, id).await.map_err(answer)?;
    let whole = Input {
        offset: query.offset,
        data,
        end: query.end,
    };
    let taken = pass(&*controls, whole, doors.limits.waits_at_most()).await;
    let taken = taken.map(Json).map_err(|refusal| answer(refused(refusal)));
    Ok((Extension(Waited), taken))
}

/// The body did not come, or is too large.
fn too_large(rejection: BytesRejection) -> Response {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        _ => Code::Invalid,
    };
    respond(code.problem(format!(
        "{}; send at most {MAX_INPUT_BODY_BYTES} bytes at once",
        words::of_bytes(&rejection)
    )))
}

/// Hands over as much as there is room for in this time.
async fn pass(
    controls: &dyn Controls,
    whole: Input,
    within: Duration,
) -> Result<InputTaken, Refusal> {
    let until = Instant::now() + within;
    let Input {
        mut offset,
        mut data,
        end,
    } = whole;
    loop {
        let piece = data.split_to(data.len().min(INPUT_CHUNK_BYTES));
        let piece_end = offset.saturating_add(piece.len() as u64);
        let piece = Input {
            offset,
            data: piece,
            end: end && data.is_empty(),
        };
        let Ok(taken) = timeout_at(until, hand_over(controls, piece)).await else {
            return Ok(InputTaken {
                offset,
                ended: false,
            });
        };
        let taken = taken?;
        if taken < piece_end || data.is_empty() {
            return Ok(InputTaken {
                offset: taken,
                ended: end && taken == piece_end,
            });
        }
        offset = piece_end;
    }
}

/// Hands over a piece of input, and waits until there is room for all of it. Returns the next offset, which is less
/// than the piece's end if bytes before the piece are missing.
///
/// # Errors
/// Fails if the operation refuses it.
pub(crate) async fn hand_over(controls: &dyn Controls, mut piece: Input) -> Result<u64, Refusal> {
    loop {
        let end = piece.offset.saturating_add(piece.data.len() as u64);
        let taken = controls.input(piece.clone()).await?;
        if taken <= piece.offset || taken >= end {
            return Ok(taken);
        }
        // In range: less than the piece's length.
        piece.data = piece.data.slice((taken - piece.offset) as usize..);
        piece.offset = taken;
    }
}

/// Tell an operation that its terminal has another size.
#[utoipa::path(post, path = "/api/v1/operations/{id}/resize", operation_id = "resize_terminal", params(("id" = inline(OperationId), Path)), request_body = TerminalSize, responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn resize(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    Id(id): Id<OperationId>,
    Body(size): Body<TerminalSize>,
) -> Result<StatusCode, Response> {
    let size = to_size(size).map_err(|error| Refused::from(error).into_response())?;
    control(&ctx, &doors, &seats, id, Control::Resize(size)).await
}

/// Send a signal to an operation's processes.
#[utoipa::path(post, path = "/api/v1/operations/{id}/signal", operation_id = "send_signal", params(("id" = inline(OperationId), Path)), request_body = SendSignal, responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn signal(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    Id(id): Id<OperationId>,
    Body(SendSignal { signal }): Body<SendSignal>,
) -> Result<StatusCode, Response> {
    control(&ctx, &doors, &seats, id, Control::Signal(to_signal(signal))).await
}

async fn control(
    ctx: &OpContext,
    doors: &Doors,
    seats: &Seats,
    id: OperationId,
    control: Control,
) -> Result<StatusCode, Response> {
    let answer = |error: AppError| Refused::from(error).into_response();
    let _seat = seats
        .take(ctx.credential, seats::Kind::Operation)
        .map_err(|full| full.into_response())?;
    let operations = &doors.app.operations;
    let controls = operations.controls(ctx, id).await.map_err(answer)?;
    match timeout(doors.limits.waits_at_most(), controls.control(control)).await {
        Ok(Ok(())) => Ok(StatusCode::NO_CONTENT),
        Ok(Err(refusal)) => Err(answer(refused(refusal))),
        Err(_) => Err(answer(AppError::Conflict(
            "the runner has not answered in time; it may still do this once it is back".to_owned(),
        ))),
    }
}

/// # Errors
/// Fails if a terminal cannot have this size.
pub(crate) fn to_size(size: TerminalSize) -> Result<shared_sandbox::TerminalSize, AppError> {
    let TerminalSize { rows, columns } = size;
    if rows == 0 || columns == 0 {
        let why = "a terminal has 1 to 65535 rows and columns";
        return Err(AppError::Invalid(why.to_owned()));
    }
    Ok(shared_sandbox::TerminalSize { rows, columns })
}

pub(crate) fn to_signal(signal: Signal) -> shared_sandbox::Signal {
    match signal {
        Signal::Hangup => shared_sandbox::Signal::Hangup,
        Signal::Interrupt => shared_sandbox::Signal::Interrupt,
        Signal::Quit => shared_sandbox::Signal::Quit,
        Signal::Kill => shared_sandbox::Signal::Kill,
        Signal::User1 => shared_sandbox::Signal::User1,
        Signal::User2 => shared_sandbox::Signal::User2,
        Signal::Terminate => shared_sandbox::Signal::Terminate,
        Signal::Continue => shared_sandbox::Signal::Continue,
        Signal::Stop => shared_sandbox::Signal::Stop,
    }
}
