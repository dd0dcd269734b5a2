//! The authentication of a request: its bearer token, cookie or ticket becomes an operation context before anything
//! else is checked.

use std::time::Duration;

use axum::{
    extract::{FromRequestParts, Query},
    http::{Extensions, HeaderMap, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use server_app::{AppError, OpContext};
use shared_types::OperationId;
use tokio::time::Instant;

use super::{id::Id, once::CheckedCredential, problem::Refused};
use crate::{
    Doors, Peer,
    edge::browser::{self, Fresh, OwnPage},
    edge::serve::ConnectionPermit,
    edge::traced::OfRequest,
};

/// A body that takes longer than this has its request's credential asked for once more.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A request with a credential that holds: a bearer token, or else a cookie that a page of the server's
/// own sends.
pub(crate) struct Signed(pub(crate) OpContext);

impl FromRequestParts<Doors> for Signed {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Response> {
        if let Some(CheckedCredential(ctx)) = parts.extensions.get() {
            return Ok(Self(ctx.clone()));
        }
        let refused = |error| Refused::from(error).into_response();
        let ctx = match (bearer(&parts.headers), browser::cookie(&parts.headers)) {
            (None, Some(cookie)) => {
                OwnPage::from_request_parts(parts, doors).await?;
                of_cookie(&cookie, parts, doors).await.map_err(refused)?
            }
            (bearer, _) => of_bearer(bearer, parts, doors).await.map_err(refused)?,
        };
        let ctx = let_in(ctx, parts);
        parts.extensions.insert(CheckedCredential(ctx.clone()));
        Ok(Self(ctx))
    }
}

/// A request of a program, with a bearer token that holds. No cookie counts.
pub(crate) struct SignedProgram(pub(crate) OpContext);

impl FromRequestParts<Doors> for SignedProgram {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Response> {
        let ctx = of_bearer(bearer(&parts.headers), parts, doors).await;
        let ctx = let_in(
            ctx.map_err(|error| Refused::from(error).into_response())?,
            parts,
        );
        parts.extensions.insert(CheckedCredential(ctx.clone()));
        Ok(Self(ctx))
    }
}

/// The time of the last check of a request's credential, and its result.
pub(super) struct CredentialCheck {
    at: Instant,
    ctx: Option<OpContext>,
}

impl CredentialCheck {
    /// Of a request whose body has yet to come.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let known = extensions.get::<CheckedCredential>();
        Self {
            at: Instant::now(),
            ctx: known.map(|CheckedCredential(ctx)| ctx.clone()),
        }
    }

    /// Refuses the request if its body was slow and the credential now stands for something else. A caller that holds
    /// back the last byte keeps no right by it.
    pub(super) async fn again(self, doors: &Doors) -> Result<(), Response> {
        let Some(before) = self.ctx.filter(|_| self.at.elapsed() > ASKED_AGAIN_AFTER) else {
            return Ok(());
        };
        let refused = |error| Refused::from(error).into_response();
        let now = doors.app.access.renewed(&before).await.map_err(refused)?;
        match now {
            Some(now) if (now.role, now.scopes) == (before.role, before.scopes) => Ok(()),
            _ => Err(refused(AppError::Unauthenticated(
                "your rights changed while the request came: send it again",
            ))),
        }
    }
}

/// A request for a WebSocket with a credential that holds: a bearer token, or else a ticket in the address.
/// No cookie counts, because the browser sends it along whichever page opens the WebSocket.
pub(crate) struct SignedStream(pub(crate) OpContext);

#[derive(Deserialize)]
struct Ticket {
    ticket: Option<String>,
}

impl FromRequestParts<Doors> for SignedStream {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Response> {
        let refused = |error| Refused::from(error).into_response();
        let ticket = Query::<Ticket>::try_from_uri(&parts.uri).ok();
        let ticket = ticket.and_then(|Query(Ticket { ticket })| ticket);
        let ctx = match (bearer(&parts.headers), ticket) {
            (None, Some(ticket)) => {
                OwnPage::from_request_parts(parts, doors).await?;
                // The stream of sessions has none in its path.
                let operation = Id::<OperationId>::from_request_parts(parts, doors)
                    .await
                    .ok();
                let operation = operation.map(|Id(id)| id);
                let access = &doors.app.access;
                let taken = access.take_ticket(&ticket, operation, from(parts)).await;
                taken.map_err(refused)?
            }
            (None, None) if browser::cookie(&parts.headers).is_some() => {
                return Err(refused(AppError::Unauthenticated(
                    "a page opens a stream with a ticket: POST /api/v1/stream-tickets, then ?ticket=TICKET \
                     behind this address",
                )));
            }
            (bearer, _) => of_bearer(bearer, parts, doors).await.map_err(refused)?,
        };
        Ok(Self(let_in(ctx, parts)))
    }
}

async fn of_bearer(
    bearer: Option<&str>,
    parts: &Parts,
    doors: &Doors,
) -> Result<OpContext, AppError> {
    let bearer = bearer.ok_or(AppError::Unauthenticated(
        "a bearer token is needed; run: gantry login",
    ))?;
    doors.app.access.authenticate(bearer, from(parts)).await
}

async fn of_cookie(cookie: &str, parts: &Parts, doors: &Doors) -> Result<OpContext, AppError> {
    let access = &doors.app.access;
    let session = access.authenticate_browser(cookie, from(parts)).await?;
    if let (Some((token, valid_for)), Some(fresh)) =
        (session.fresh, parts.extensions.get::<Fresh>())
    {
        fresh.set(browser::given(&token, valid_for));
    }
    Ok(session.ctx)
}

fn from(parts: &Parts) -> Option<std::net::IpAddr> {
    parts.extensions.get::<Peer>().map(|Peer(peer)| peer.ip())
}

/// From here on the connection is no stranger.
fn let_in(ctx: OpContext, parts: &Parts) -> OpContext {
    if let Some(place) = parts.extensions.get::<ConnectionPermit>() {
        place.let_in_as(ctx.credential);
    }
    let trace = parts.extensions.get::<OfRequest>();
    OpContext {
        trace: trace.map(|OfRequest(span)| *span),
        ..ctx
    }
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}
