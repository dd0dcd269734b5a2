//! Extensions that people registered, those that a session found, and the trust in them.

use axum::{Json, extract::State, http::StatusCode};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use server_app::{AppError, NewRegistered, RegisteredExtension, RegisteredKind};
use shared_api::{
    DownloadExtension, DownloadedExtension, Extension, ExtensionKind, ExtensionList, Problem,
    PutExtension, TrustExtension,
};
use shared_types::{ExtensionId, SessionId, event::Extensions};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    problem::{Body, Refused},
};
use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(list, put))
        .routes(routes!(show, remove))
        .routes(routes!(download))
        .routes(routes!(found, trust))
}

/// The extensions that are registered for the caller: the tenant's, then the caller's own.
#[utoipa::path(get, path = "/api/v1/extensions", operation_id = "list_extensions", responses(
    (status = 200, body = ExtensionList), (status = 401, body = Problem)))]
pub(crate) async fn list(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<ExtensionList>, Refused> {
    let rows = doors.app.extensions.list(&ctx).await?;
    let extensions = rows
        .into_iter()
        .map(|row| to_extension(row, None))
        .collect();
    Ok(Json(ExtensionList { extensions }))
}

/// Register an extension, for the caller or for everyone. It takes the place of the one of the same kind and name.
#[utoipa::path(put, path = "/api/v1/extensions", operation_id = "put_extension", request_body = PutExtension, responses(
    (status = 200, body = Extension), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn put(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<PutExtension>,
) -> Result<Json<Extension>, Refused> {
    let packed = ask
        .packed
        .as_deref()
        .map(|packed| STANDARD.decode(packed))
        .transpose();
    let packed = packed.map_err(|_| AppError::Invalid("packed is no base64".to_owned()))?;
    let new = NewRegistered {
        kind: of_kind(ask.kind),
        name: ask.name,
        text: ask.text,
        packed: Bytes::from(packed.unwrap_or_default()),
        source: ask.source,
        for_everyone: ask.for_everyone,
        replaces: ask.replaces,
    };
    let row = doors.app.extensions.put(&ctx, new).await?;
    Ok(Json(to_extension(row, None)))
}

/// The bytes of a skill at an address of the web, as the server reads it: a `SKILL.md`, or a `.tar.gz`. It registers nothing.
#[utoipa::path(post, path = "/api/v1/extension-downloads", operation_id = "download_extension", request_body = DownloadExtension, responses(
    (status = 200, body = DownloadedExtension), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn download(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<DownloadExtension>,
) -> Result<Json<DownloadedExtension>, Refused> {
    let bytes = doors.app.extensions.download(&ctx, &ask.address).await?;
    let content = STANDARD.encode(&bytes);
    Ok(Json(DownloadedExtension { content }))
}

/// An extension with all of its files.
#[utoipa::path(get, path = "/api/v1/extensions/{id}", operation_id = "show_extension", params(("id" = inline(ExtensionId), Path)), responses(
    (status = 200, body = Extension), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn show(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<ExtensionId>,
) -> Result<Json<Extension>, Refused> {
    let (row, packed) = doors.app.extensions.show(&ctx, id).await?;
    let packed = (!packed.is_empty()).then(|| STANDARD.encode(&packed));
    Ok(Json(to_extension(row, packed)))
}

/// Remove an extension.
#[utoipa::path(delete, path = "/api/v1/extensions/{id}", operation_id = "remove_extension", params(("id" = inline(ExtensionId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<ExtensionId>,
) -> Result<StatusCode, Refused> {
    doors.app.extensions.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The extensions that the last turn of a session found, each with the layer that it comes from and with the trust as it
/// is now. Hooks, tool servers and plugins of files do nothing until the caller trusts the file.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/extensions", operation_id = "found_extensions", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = Extensions), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn found(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<Extensions>, Refused> {
    Ok(Json(doors.app.extensions.found(&ctx, id).await?))
}

/// Trust a file with hooks, tool servers or plugins that the last turn of a session found, if its text has this digest;
/// or trust it no more. It counts from the next turn on, until it changes.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/extensions", operation_id = "trust_extension", params(("id" = inline(SessionId), Path)), request_body = TrustExtension, responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn trust(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<TrustExtension>,
) -> Result<StatusCode, Refused> {
    let extensions = &doors.app.extensions;
    match ask.digest {
        Some(digest) => extensions.trust(&ctx, id, &ask.path, digest).await?,
        None => extensions.untrust(&ctx, id, &ask.path).await?,
    }
    Ok(StatusCode::NO_CONTENT)
}

fn to_extension(row: RegisteredExtension, packed: Option<String>) -> Extension {
    Extension {
        id: row.id,
        kind: match row.kind {
            RegisteredKind::Skill => ExtensionKind::Skill,
            RegisteredKind::Agent => ExtensionKind::Agent,
            RegisteredKind::Hooks => ExtensionKind::Hooks,
            RegisteredKind::Mcp => ExtensionKind::Mcp,
        },
        layer: row.layer(),
        name: row.name,
        digest: row.digest,
        text: row.text,
        source: row.source,
        packed_bytes: row.packed_bytes,
        packed,
        set_by: row.by_name,
        since: row.at,
    }
}

fn of_kind(kind: ExtensionKind) -> RegisteredKind {
    match kind {
        ExtensionKind::Skill => RegisteredKind::Skill,
        ExtensionKind::Agent => RegisteredKind::Agent,
        ExtensionKind::Hooks => RegisteredKind::Hooks,
        ExtensionKind::Mcp => RegisteredKind::Mcp,
    }
}
