//! People: listing, inviting and removing them, and their roles.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::Deserialize;
use server_app::{Page, Role, UserKind};
use shared_api::{ChangeRole, Invitation, InvitePerson, People, Person, Problem, RoleName};
use shared_types::UserId;

use super::{
    Signed,
    id::Id,
    page::{self, cursor},
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Doors, words};

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeopleQuery {
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
    /// Only people with this text in their names, in upper or lower case of the letters A to Z.
    #[serde(default)]
    #[param(max_length = 256)]
    search: String,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(people, invite))
        .routes(routes!(change_role))
        .routes(routes!(remove))
}

/// The people of the tenant, by name.
#[utoipa::path(get, path = "/api/v1/people", operation_id = "list_people", params(PeopleQuery), responses(
    (status = 200, body = People), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn people(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<PeopleQuery>, QueryRejection>,
) -> Result<Json<People>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    page::search(&query.search)?;
    let page = Page {
        limit: page::limit(query.limit)?,
        after: page::place("people", query.after.as_deref())?,
    };
    let (people, more) = doors.app.people.list(&ctx, &query.search, page).await?;
    let last = people.last().filter(|_| more);
    Ok(Json(People {
        next: last.and_then(|last| cursor("people", &last.row.user.name)),
        people: people.into_iter().map(to_person).collect(),
    }))
}

/// Invite a person, who signs in with the code of the answer. A person who has not signed in yet gets a new code, and
/// the earlier one no longer works.
#[utoipa::path(post, path = "/api/v1/people", operation_id = "invite_person", request_body = InvitePerson, responses(
    (status = 201, body = Invitation), (status = 401, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn invite(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<InvitePerson>,
) -> Result<(StatusCode, Json<Invitation>), Refused> {
    let invited = doors
        .app
        .people
        .invite(&ctx, &ask.name, of(ask.role))
        .await?;
    let invitation = Invitation {
        person: to_person(invited.person),
        code: invited.code,
        expires_at: invited.expires_at,
    };
    Ok((StatusCode::CREATED, Json(invitation)))
}

/// Change what a person may do.
#[utoipa::path(put, path = "/api/v1/people/{id}/role", operation_id = "change_role", params(("id" = inline(UserId), Path)), request_body = ChangeRole, responses(
    (status = 200, body = Person), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn change_role(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<UserId>,
    Body(ask): Body<ChangeRole>,
) -> Result<Json<Person>, Refused> {
    let changed = doors.app.people.change_role(&ctx, id, of(ask.role)).await?;
    Ok(Json(to_person(changed)))
}

/// Remove a person. Keys, sign-ins and join tokens end at once, and running operations of the person are stopped.
/// Sessions and runners stay.
#[utoipa::path(delete, path = "/api/v1/people/{id}", operation_id = "remove_person", params(("id" = inline(UserId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<UserId>,
) -> Result<StatusCode, Refused> {
    doors.app.people.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn to_person(person: server_app::Person) -> Person {
    let row = person.row;
    Person {
        id: row.user.id,
        name: row.user.name,
        role: match row.user.role {
            Role::Owner => RoleName::Owner,
            Role::Admin => RoleName::Admin,
            Role::Member => RoleName::Member,
            Role::Viewer => RoleName::Viewer,
        },
        is_you: person.is_asking,
        is_service: row.user.kind == UserKind::Service,
        joined: row.joined,
        invited_until: row.invited_until,
        last_used_at: row.last_used_at,
    }
}

pub(super) fn of(role: RoleName) -> Role {
    match role {
        RoleName::Owner => Role::Owner,
        RoleName::Admin => Role::Admin,
        RoleName::Member => Role::Member,
        RoleName::Viewer => Role::Viewer,
    }
}
