//! The images of a session.

use axum::{
    Json,
    extract::{DefaultBodyLimit, FromRequestParts, Path, State, rejection::BytesRejection},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use server_app::AppError;
use shared_api::{Problem, SessionImage};
use shared_types::{SessionId, limits::MAX_IMAGE_BYTES};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt as _},
    routes,
};

use super::{Code, Signed, id::Id, problem::Refused, respond};
use crate::{Doors, words};

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(add).layer(DefaultBodyLimit::max(MAX_IMAGE_BYTES)))
        .routes(routes!(image))
}

/// The bytes of an image.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct ImageBytes(
    #[expect(dead_code, reason = "describes the bytes in the document")] Vec<u8>,
);

/// Add an image to a session, for a message that names it: the bytes of a PNG, JPEG, GIF or WebP, at most 5 MiB. The
/// session keeps it once, however often it is added.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/images", operation_id = "add_image", params(("id" = inline(SessionId), Path)),
    request_body(content = inline(ImageBytes), content_type = "application/octet-stream"), responses(
    (status = 200, body = SessionImage), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn add(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<SessionImage>, Response> {
    let bytes = body.map_err(too_large)?;
    let added = doors.app.sessions.add_image(&ctx, id, bytes).await;
    let added = added.map_err(|error| Refused::from(error).into_response())?;
    Ok(Json(SessionImage {
        digest: added.digest,
        media_type: added.format.media_type().to_owned(),
        bytes: added.bytes,
    }))
}

/// An image of a session: its bytes.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/images/{digest}", operation_id = "image", params(("id" = inline(SessionId), Path), ("digest" = String, Path, description = "The SHA-256 of its bytes, in hexadecimal", max_length = 64)), responses(
    (status = 200, content((inline(ImageBytes) = "image/png"), (inline(ImageBytes) = "image/jpeg"), (inline(ImageBytes) = "image/gif"), (inline(ImageBytes) = "image/webp"))), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn image(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    ImageOf(session, digest): ImageOf,
) -> Result<Response, Refused> {
    let (media_type, bytes) = doors.app.sessions.image(&ctx, session, &digest).await?;
    // The bytes of a digest never change. They come from a stranger: no browser may take them for anything else.
    let headers = [
        (header::CONTENT_TYPE, media_type.as_str()),
        (
            header::CACHE_CONTROL,
            "private, max-age=31536000, immutable",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox",
        ),
    ];
    Ok((headers, bytes).into_response())
}

/// The session and the digest in an address.
pub(crate) struct ImageOf(SessionId, String);

impl<S: Send + Sync> FromRequestParts<S> for ImageOf {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (session, digest) = path.map_or_else(|_| Default::default(), |Path(named)| named);
        let session = session.parse().map_err(|_| AppError::NotFound("session"))?;
        Ok(Self(session, digest))
    }
}

/// The body did not come, or is too large.
fn too_large(rejection: BytesRejection) -> Response {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        _ => Code::Invalid,
    };
    let why = words::of_bytes(&rejection);
    respond(code.problem(format!(
        "{why}; an image has at most {MAX_IMAGE_BYTES} bytes"
    )))
}
