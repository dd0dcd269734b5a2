//! Tickets with which a page opens a WebSocket.

use axum::{Json, extract::State, http::StatusCode};
use shared_api::{CreateStreamTicket, Problem, StreamTicket};

use super::{
    Signed,
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Make a ticket that opens one WebSocket, once, within 30 s: as `?ticket=` behind its address. For pages,
/// which can send no header along.
#[utoipa::path(post, path = "/api/v1/stream-tickets", operation_id = "create_stream_ticket", request_body = CreateStreamTicket, responses(
    (status = 201, body = StreamTicket), (status = 401, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn create(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<CreateStreamTicket>,
) -> Result<(StatusCode, Json<StreamTicket>), Refused> {
    let made = doors.app.access.create_ticket(&ctx, ask.operation).await?;
    let ticket = StreamTicket {
        ticket: made.token.reveal(),
        expires_at: made.expires_at,
    };
    Ok((StatusCode::CREATED, Json(ticket)))
}
