//! Who asks: the bearer token becomes an operation context before anything else is looked at.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use server_app::{AppError, OpContext};

use super::problem::Refused;
use crate::{Doors, Peer, serve::Place};

/// A request with a credential that holds.
pub(crate) struct Signed(pub(crate) OpContext);

impl FromRequestParts<Doors> for Signed {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        let bearer = bearer(&parts.headers).ok_or(AppError::Unauthenticated(
            "a bearer token is needed; run: gantry login",
        ))?;
        let from = parts.extensions.get::<Peer>().map(|Peer(peer)| peer.ip());
        let ctx = doors.app.access.authenticate(bearer, from).await?;
        if let Some(place) = parts.extensions.get::<Place>() {
            place.let_in_as(ctx.credential);
        }
        Ok(Self(ctx))
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
