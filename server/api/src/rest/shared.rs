//! Sessions that are shared by a link: making and revoking links, and the data that a link's bearer
//! may read.

mod page;

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use server_app::{AppError, SharedSession as Found};
use shared_api::{Events, LinksEnded, Problem, SessionLink, ShareSession, SharedSession};
use shared_types::{SessionId, limits::MAX_EVENTS_PAGE};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed, html,
    id::Id,
    page as pages,
    problem::{Body, Refused},
    sessions::{EventsQuery, to_page},
};
use crate::{Doors, edge::serve::ConnectionPermit, words};

/// The path of a shared session's page, before the link's secret.
const SHOWN_AT: &str = "/shared/";

/// Most events on one page for people.
const PAGE_EVENTS: u32 = MAX_EVENTS_PAGE;

/// The routes that need no credential but the link.
pub(super) fn unsigned() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(shared))
        .routes(routes!(events))
        .route("/shared/{link}", axum::routing::get(shown))
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(share, unshare))
}

/// Make a link that lets its readers read the session without signing in.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/links", params(("id" = inline(SessionId), Path)), request_body = ShareSession, responses(
    (status = 201, body = SessionLink), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn share(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<ShareSession>,
) -> Result<(StatusCode, Json<SessionLink>), Refused> {
    let valid_for = ask.valid_for_s.map(|s| Duration::from_secs(s.into()));
    let link = doors.app.sessions.share(&ctx, id, valid_for).await?;
    let made = SessionLink {
        path: format!("{SHOWN_AT}{}", link.token.reveal()),
        expires_at: link.expires_at,
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// End all links to a session.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}/links", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = LinksEnded), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn unshare(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<LinksEnded>, Refused> {
    let links = doors.app.sessions.unshare(&ctx, id).await?;
    Ok(Json(LinksEnded { links }))
}

/// The session to which a link leads.
#[utoipa::path(get, path = "/api/v1/shared/{link}", params(("link" = String, Path, description = "The secret of the link", max_length = 128)), security(()), responses(
    (status = 200, body = SharedSession), (status = 404, body = Problem)))]
pub(crate) async fn shared(
    State(doors): State<Doors>,
    link: SharedLink,
) -> Result<Json<SharedSession>, Refused> {
    let found = link.follow(&doors).await?;
    let session = found.session();
    Ok(Json(SharedSession {
        title: session.title.clone(),
        created_at: session.created_at,
        updated_at: session.updated_at,
        last_seq: session.last_seq,
    }))
}

/// A page of the log of the session to which a link leads.
#[utoipa::path(get, path = "/api/v1/shared/{link}/events", operation_id = "shared_events", params(("link" = String, Path, description = "The secret of the link", max_length = 128), EventsQuery), security(()), responses(
    (status = 200, body = Events), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn events(
    State(doors): State<Doors>,
    link: SharedLink,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Json<Events>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let limit = pages::limit(query.limit)?;
    let found = link.follow(&doors).await?;
    let events = doors.app.sessions.shared_events(&found, query.after, limit);
    let (events, more) = events.await?;
    Ok(Json(to_page(events, more)))
}

/// The session as a page for people, from that event on.
async fn shown(
    State(doors): State<Doors>,
    link: SharedLink,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let found = match link.follow(&doors).await {
        Err(AppError::NotFound(_)) => {
            let page = (
                StatusCode::NOT_FOUND,
                html::HEADERS,
                Html(page::not_found()),
            );
            return Ok(page.into_response());
        }
        found => found?,
    };
    let log = doors
        .app
        .sessions
        .shared_events(&found, query.after, PAGE_EVENTS);
    let (events, more) = log.await?;
    let page = page::session(found.session(), &events, more);
    Ok((html::HEADERS, Html(page)).into_response())
}

/// The secret of a link, from the address.
pub(crate) struct SharedLink {
    secret: String,
    place: Option<ConnectionPermit>,
}

impl SharedLink {
    async fn follow(&self, doors: &Doors) -> Result<Found, AppError> {
        let found = doors.app.sessions.shared(&self.secret).await?;
        if let Some(place) = &self.place {
            place.reads_by_link(found.session().id);
        }
        Ok(found)
    }
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for SharedLink {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, Refused> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(secret) = path.map_err(|_| AppError::NotFound("session"))?;
        let place = parts.extensions.get::<ConnectionPermit>().cloned();
        Ok(Self { secret, place })
    }
}
