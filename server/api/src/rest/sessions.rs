//! Sessions: their log, messages to them, and stopping what they do.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::Deserialize;
use server_app::AppError;
use shared_api::{
    CancelAccepted, CreateSession, Events, MessageAccepted, PinnedRunner, Problem, SendMessage,
    Session, Sessions, Task, Tasks, UseRunner,
};
use shared_types::{SessionId, limits::MAX_EVENTS_PAGE};

use super::{
    Signed,
    id::Id,
    page::page,
    problem::{Body, Refused},
};
use crate::Doors;

/// Most sessions that one list carries.
const MAX_SESSIONS: u32 = 200;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// At most this many, from 1 to 200.
    #[serde(default = "all_sessions")]
    #[param(minimum = 1, maximum = 200)]
    limit: u32,
    /// Only those whose ids begin so, such as `ses_01m8`; then by id.
    #[serde(default)]
    prefix: String,
}

fn all_sessions() -> u32 {
    MAX_SESSIONS
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// The number of the last event that the client has; 0 for none.
    #[serde(default)]
    after: u64,
    /// At most this many, from 1 to 500.
    #[serde(default = "a_page")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
}

fn a_page() -> u32 {
    MAX_EVENTS_PAGE
}

/// The user's sessions, the most recently used first.
#[utoipa::path(get, path = "/api/v1/sessions", params(ListQuery), responses((status = 200, body = Sessions), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn sessions(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Sessions>, Refused> {
    let Query(query) = query.map_err(invalid_query)?;
    let limit = page(query.limit, MAX_SESSIONS)?;
    let sessions = &doors.app.sessions;
    let sessions = match query.prefix.as_str() {
        "" => sessions.list(&ctx, limit).await?,
        prefix => sessions.beginning(&ctx, prefix, limit).await?,
    };
    Ok(Json(Sessions {
        sessions: sessions.into_iter().map(to_session).collect(),
    }))
}

/// Begin a session.
#[utoipa::path(post, path = "/api/v1/sessions", operation_id = "create_session", request_body = CreateSession, responses(
    (status = 201, body = Session), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn create(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<CreateSession>,
) -> Result<(StatusCode, Json<Session>), Refused> {
    let session = doors
        .app
        .sessions
        .create(&ctx, &ask.title, ask.runner.as_deref())
        .await?;
    Ok((StatusCode::CREATED, Json(to_session(session))))
}

/// Pin a session to a runner, whatever runner the user chose. It counts from the next turn.
#[utoipa::path(put, path = "/api/v1/sessions/{id}/runner", params(("id" = inline(SessionId), Path)), request_body = UseRunner, responses(
    (status = 200, body = Session), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn pin(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<UseRunner>,
) -> Result<Json<Session>, Refused> {
    let pinned = doors.app.sessions.pin(&ctx, id, Some(&ask.runner)).await?;
    Ok(Json(to_session(pinned)))
}

/// Let a session work on the runner that the user chose. It counts from the next turn.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}/runner", params(("id" = inline(SessionId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn unpin(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<StatusCode, Refused> {
    doors.app.sessions.pin(&ctx, id, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One session.
#[utoipa::path(get, path = "/api/v1/sessions/{id}", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = Session), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn session(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<Session>, Refused> {
    Ok(Json(to_session(doors.app.sessions.get(&ctx, id).await?)))
}

/// A page of a session's log.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/events", params(("id" = inline(SessionId), Path), EventsQuery), responses(
    (status = 200, body = Events), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn events(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Json<Events>, Refused> {
    let Query(query) = query.map_err(invalid_query)?;
    let limit = page(query.limit, MAX_EVENTS_PAGE)?;
    let (events, more) = doors
        .app
        .sessions
        .events(&ctx, id, query.after, limit)
        .await?;
    Ok(Json(Events { events, more }))
}

/// Send a message. It will be worked on, whatever happens to the client.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/messages", operation_id = "send_message", params(("id" = inline(SessionId), Path)), request_body = SendMessage, responses(
    (status = 202, body = MessageAccepted), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn send(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<SendMessage>,
) -> Result<(StatusCode, Json<MessageAccepted>), Refused> {
    let sent = doors
        .app
        .sessions
        .send(&ctx, id, ask.client_id, ask.text)
        .await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(MessageAccepted {
            turn: sent.turn,
            seq: sent.seq,
        }),
    ))
}

/// Stop the turn that is under way, and what it runs; where there is none, the next that waits.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/cancel", operation_id = "cancel_session", params(("id" = inline(SessionId), Path)), responses(
    (status = 202, body = CancelAccepted), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn cancel(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<(StatusCode, Json<CancelAccepted>), Refused> {
    let turn = doors.app.sessions.cancel(&ctx, id).await?;
    Ok((StatusCode::ACCEPTED, Json(CancelAccepted { turn })))
}

/// The commands of a session that went on in the background.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/tasks", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = Tasks), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn tasks(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<Tasks>, Refused> {
    let tasks = doors.app.sessions.tasks(&ctx, id).await?;
    Ok(Json(Tasks {
        tasks: tasks.into_iter().map(to_task).collect(),
    }))
}

fn to_task(task: server_app::Task) -> Task {
    Task {
        number: task.number,
        operation: task.placed.operation,
        tool: task.asked.name,
        arguments: task.asked.arguments,
        runner: task.placed.place.runner_name,
        started_at: task.placed.at,
        ended: task.ended,
    }
}

fn invalid_query(rejection: QueryRejection) -> AppError {
    AppError::Invalid(rejection.body_text())
}

fn to_session(session: server_app::Session) -> Session {
    Session {
        id: session.id,
        title: session.title,
        created_at: session.created_at,
        updated_at: session.updated_at,
        last_seq: session.last_seq,
        running_turn: session.running_turn,
        runner: session.pin.map(|pin| PinnedRunner {
            id: pin.runner,
            name: pin.name,
        }),
    }
}
