//! Service accounts and their keys. They are listed, get another role and are removed like people.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use shared_api::{AddServiceAccount, CreateKey, CreatedKey, Keys, Person, Problem};
use shared_types::UserId;

use super::{
    Signed,
    access::{terms, to_key, to_keys},
    id::{Id, ServiceAccountId},
    page::{PageQuery, asked},
    people::{of, to_person},
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::Doors;

/// The list that cursors of a service account's keys belong to.
const LIST: &str = "service_keys";

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(add))
        .routes(routes!(keys, create_key))
}

/// Add a service account: a user that is no person, has keys, and never signs in.
#[utoipa::path(post, path = "/api/v1/service-accounts", operation_id = "add_service_account", request_body = AddServiceAccount, responses(
    (status = 201, body = Person), (status = 401, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn add(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<AddServiceAccount>,
) -> Result<(StatusCode, Json<Person>), Refused> {
    let role = of(ask.role);
    let added = doors.app.people.add_service_account(&ctx, &ask.name, role);
    Ok((StatusCode::CREATED, Json(to_person(added.await?))))
}

/// The keys of a service account, the newest first.
#[utoipa::path(get, path = "/api/v1/service-accounts/{id}/keys", operation_id = "list_service_keys", params(("id" = inline(UserId), Path), PageQuery), responses(
    (status = 200, body = Keys), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn keys(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(ServiceAccountId(id)): Id<ServiceAccountId>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Keys>, Refused> {
    let page = asked(LIST, query)?;
    let (keys, more) = doors.app.access.service_keys(&ctx, id, page).await?;
    Ok(Json(to_keys(LIST, keys, more)))
}

/// Make an API key of a service account. It ends like any other: `DELETE /api/v1/keys/{id}`.
#[utoipa::path(post, path = "/api/v1/service-accounts/{id}/keys", operation_id = "create_service_key", params(("id" = inline(UserId), Path)), request_body = CreateKey, responses(
    (status = 201, body = CreatedKey), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn create_key(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(ServiceAccountId(id)): Id<ServiceAccountId>,
    Body(ask): Body<CreateKey>,
) -> Result<(StatusCode, Json<CreatedKey>), Refused> {
    let terms = terms(ask)?;
    let made = doors.app.access.create_service_key(&ctx, id, &terms);
    let (key, entry) = made.await?;
    let created = CreatedKey {
        key: key.reveal(),
        entry: to_key(entry),
    };
    Ok((StatusCode::CREATED, Json(created)))
}
