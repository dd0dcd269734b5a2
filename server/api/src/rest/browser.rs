//! Browsers: signing in and out.

use axum::{
    Extension, Json,
    extract::{DefaultBodyLimit, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use shared_api::{BrowserSignedIn, Problem, SignIn};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    access::{UNSIGNED_BODY_BYTES, to_user},
    problem::{Body, Refused},
};
use crate::{
    Doors, Peer,
    edge::browser::{OwnPage, Private, given, taken_away},
};

/// The route that needs no credential.
pub(super) fn unsigned() -> OpenApiRouter<Doors> {
    let routes = OpenApiRouter::new().routes(routes!(sign_in));
    routes.layer(DefaultBodyLimit::max(UNSIGNED_BODY_BYTES))
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(sign_out))
}

/// Exchange a one-time code for a cookie, `__Host-gantry`, which signs in the requests of this server's own
/// pages. Over HTTPS, or on the server's own machine at localhost.
#[utoipa::path(post, path = "/api/v1/browser/sign-in", operation_id = "browser_sign_in", request_body = SignIn, security(()), responses(
    (status = 200, body = BrowserSignedIn, headers(("Set-Cookie" = String, description = "The cookie; each later answer may replace it."))),
    (status = 401, body = Problem, description = "the code is wrong, spent or expired"), (status = 429, body = Problem, description = "too many wrong codes")))]
pub(crate) async fn sign_in(
    State(doors): State<Doors>,
    Extension(Peer(peer)): Extension<Peer>,
    page: Result<OwnPage, Response>,
    private: Result<Private, Response>,
    Body(ask): Body<SignIn>,
) -> Result<Response, Response> {
    // Without these checks, a page of another site could sign its reader in as another person.
    page.and(private)?;
    let access = &doors.app.access;
    // On the heap, so that a stranger whose body does not come takes no room for it.
    let signed_in = Box::pin(access.sign_in_browser(&ask.code, &ask.device, peer.ip())).await;
    let signed_in = signed_in.map_err(|error| Refused::from(error).into_response())?;
    let cookie = given(&signed_in.cookie, signed_in.valid_for);
    let answer = BrowserSignedIn {
        user: to_user(signed_in.user),
        expires_at: signed_in.expires_at,
    };
    Ok(([(header::SET_COOKIE, cookie)], Json(answer)).into_response())
}

/// Sign the asking browser out. Its streams end within five seconds.
#[utoipa::path(post, path = "/api/v1/browser/sign-out", operation_id = "browser_sign_out", responses(
    (status = 204), (status = 401, body = Problem), (status = 422, body = Problem, description = "no browser asks")))]
pub(crate) async fn sign_out(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<(StatusCode, [(HeaderName, HeaderValue); 1]), Refused> {
    doors.app.access.sign_out(&ctx).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, taken_away())]))
}
