//! `/mcp`: the Model Context Protocol, so that other agents use the fleet of a person through Gantry.
//!
//! The transport is *streamable HTTP*: each message is a POST. The door speaks both eras of the protocol: 2025-11-25 and
//! older begin with `initialize`; 2026-07-28 has no beginning, and each request names its version.
//!
//! Rules:
//! - A server process keeps nothing of a client, so each request may come to another replica. The session id of the
//!   older era is a random name that no server stores. No request is refused for it.
//! - A credential is a bearer token alone. Use cases check the same rights as for REST.
//! - A command is an operation, so it goes on if the client leaves. A client of the older era stops it by
//!   `notifications/cancelled`, on any replica: the operation's key is made of the session id and the request's id. A
//!   client of 2026-07-28 stops it by closing the stream of the answer.
//!
//! The protocol is written here and not taken from the crate `rmcp`. That crate keeps sessions in one process, and
//! without sessions it cannot cancel.

mod answer;
mod calls;
mod era;
mod message;
mod methods;
mod tools;

#[cfg(test)]
mod tests;

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::from_fn_with_state,
    response::{IntoResponse as _, Response},
    routing::post,
};
use server_app::{AppError, OpContext};

use self::{
    answer::{answered, streamed},
    era::{Era, era},
    message::{Fault, Message, Notification, Request},
    methods::Answer,
};
use crate::{
    Doors,
    edge::seats::{Kind, Seats},
    oauth,
    rest::{Code, SignedProgram, WholeBody, no_such_method, respond},
};

/// Largest message, in bytes: a file of the largest size that `write` takes, as JSON.
const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024;

/// The header with the random name of a client of the older era.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

pub(crate) fn router(doors: Doors) -> Router<Doors> {
    let door = post(message)
        .fallback(no_such_method)
        .layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES))
        .layer(from_fn_with_state(doors, oauth::points_here));
    Router::new().route("/mcp", door)
}

/// A client, as one request shows it.
struct Client {
    ctx: OpContext,
    doors: Doors,
    era: Era,
}

async fn message(
    SignedProgram(ctx): SignedProgram,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Response {
    if let Err(refused) = media_types(&headers) {
        return refused;
    }
    let message = match message::read(&body) {
        Ok(message) => message,
        Err(fault) => return fault.into_response(),
    };
    match message {
        Message::Request(request) => {
            let id = request.id.clone();
            let era = match era(&headers, &request) {
                Ok(era) => era,
                Err(fault) => return fault.of(id).into_response(),
            };
            let client = Client { ctx, doors, era };
            let answer = client.request(request, &seats).await;
            answer.unwrap_or_else(|fault| fault.of(id).into_response())
        }
        Message::Notification(notification) => {
            match client_of(&headers).map(|era| Client { ctx, doors, era }) {
                Ok(client) => client.notification(notification).await,
                Err(fault) => fault.into_response(),
            }
        }
        // This server asks its clients for nothing.
        Message::Response => StatusCode::ACCEPTED.into_response(),
    }
}

/// The era of a notification. Clients of 2026-07-28 send none.
fn client_of(headers: &HeaderMap) -> Result<Era, Fault> {
    era::session(headers).map(|session| Era::Legacy { session })
}

impl Client {
    async fn request(self, request: Request, seats: &Seats) -> Result<Response, Fault> {
        let id = request.id.clone();
        match methods::carry_out(&self, request)? {
            Answer::Begun(result) => {
                let mut answer = answered(&self.era, self.doors.version, &id, result);
                let session = HeaderValue::try_from(self.new_session());
                if let Ok(session) = session {
                    answer.headers_mut().insert(SESSION_ID, session);
                }
                Ok(answer)
            }
            Answer::Result(result) => Ok(answered(&self.era, self.doors.version, &id, result)),
            Answer::Call(call) => {
                let seat = seats.take(self.ctx.credential, Kind::Operation);
                let seat = match seat {
                    Ok(seat) => seat,
                    Err(full) => return Ok(full.into_response()),
                };
                Ok(streamed(self, id, call, seat))
            }
        }
    }

    async fn notification(&self, notification: Notification) -> Response {
        if notification.method == "notifications/cancelled"
            && let Some(key) = self.era.key_of(notification.params.get("requestId"))
            && let Err(error) = self.stop(&key).await
        {
            tracing::debug!(%error, "a cancelled call was not stopped");
        }
        StatusCode::ACCEPTED.into_response()
    }

    /// Stops the operation of a call.
    async fn stop(&self, key: &str) -> Result<(), AppError> {
        let operations = &self.doors.app.operations;
        match operations.under_key(&self.ctx, key).await? {
            Some(operation) => operations.cancel(&self.ctx, operation).await.map(drop),
            None => Ok(()),
        }
    }

    fn new_session(&self) -> String {
        let mut random = [0; 16];
        self.doors.entropy.fill(&mut random);
        format!("{:032x}", u128::from_be_bytes(random))
    }
}

/// Checks that the client sends JSON, and takes JSON and a stream of events.
#[expect(clippy::result_large_err, reason = "it is made once for each request")]
fn media_types(headers: &HeaderMap) -> Result<(), Response> {
    let json = "application/json";
    let sent = headers.get(header::CONTENT_TYPE);
    let sent = sent.and_then(|sent| sent.to_str().ok()).unwrap_or_default();
    let kind = sent.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(json) {
        let why = "send a JSON-RPC message with the header Content-Type: application/json";
        return Err(respond(Code::Invalid.problem(why)));
    }
    let taken = headers.get_all(header::ACCEPT).iter();
    let taken: Vec<_> = taken.filter_map(|taken| taken.to_str().ok()).collect();
    let takes = |kind: &str| {
        let all = taken.iter().flat_map(|taken| taken.split(','));
        all.map(|one| one.split(';').next().unwrap_or_default().trim())
            .any(|one| one == "*/*" || one.eq_ignore_ascii_case(kind))
    };
    match takes(json) && takes("text/event-stream") {
        true => Ok(()),
        false => Err((
            StatusCode::NOT_ACCEPTABLE,
            "send the header Accept: application/json, text/event-stream\n",
        )
            .into_response()),
    }
}
