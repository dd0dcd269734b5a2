//! Sessions: their log, messages to them, and stopping their turns.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::Deserialize;
use server_app::{AppError, GoBack, NewMessage, Page, SessionChange, SessionFilter, SessionTerms};
use shared_api::{
    CancelAccepted, ChangeSession, ContextChange, ContextPart, CreateSession, Events,
    MessageAccepted, PinnedRunner, Problem, Rewind, Rewound, RewoundFile, SendMessage, Session,
    SessionAgent, SessionContext, Sessions, Task, Tasks, UseRunner,
};
use shared_types::{SessionEvent, SessionId};

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
pub(crate) struct ListQuery {
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
    /// Only sessions with this text in their titles, in upper or lower case of the letters A to Z.
    /// Not together with `prefix`.
    #[serde(default)]
    #[param(max_length = 256)]
    search: String,
    /// Only sessions whose ids begin like this, such as `ses_01m8`; they are then sorted by id.
    #[serde(default)]
    prefix: String,
    /// Those that are archived, in place of those that are not. With `prefix` both are found.
    #[serde(default)]
    archived: bool,
    /// The agents that calls of this session began, in place of the sessions that the user began. Not together with
    /// `prefix`, which finds both.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    parent: Option<SessionId>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// The number of the last event that the client has; 0 for none.
    #[serde(default)]
    pub(super) after: u64,
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: u32,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TasksQuery {
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(sessions, create))
        .routes(routes!(session, change, delete))
        .routes(routes!(pin, unpin))
        .routes(routes!(events))
        .routes(routes!(send))
        .routes(routes!(cancel))
        .routes(routes!(rewind))
        .routes(routes!(tasks))
        .routes(routes!(context))
}

/// The user's sessions, the most recently used first.
#[utoipa::path(get, path = "/api/v1/sessions", params(ListQuery), responses((status = 200, body = Sessions), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn sessions(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<Sessions>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let limit = page::limit(query.limit)?;
    page::search(&query.search)?;
    let (sessions, after) = (&doors.app.sessions, query.after.as_deref());
    let (sessions, next) = match query.prefix.as_str() {
        "" => {
            let after = page::place("sessions", after)?;
            let page = Page { after, limit };
            let filter = SessionFilter {
                archived: query.archived,
                title: &query.search,
                agents_of: query.parent,
            };
            let (found, more) = sessions.list(&ctx, filter, page).await?;
            let last = found.last().filter(|_| more);
            let next = last.and_then(|last| cursor("sessions", &(last.updated_at, last.id)));
            (found, next)
        }
        _ if !query.search.is_empty() => {
            let message = "search and prefix were given; ask with one of them";
            return Err(AppError::Invalid(message.to_owned()).into());
        }
        prefix => {
            let after = page::place("sessions by id", after)?;
            let page = Page { after, limit };
            let (found, more) = sessions.beginning(&ctx, prefix, page).await?;
            let last = found.last().filter(|_| more);
            let next = last.and_then(|last| cursor("sessions by id", &last.id));
            (found, next)
        }
    };
    Ok(Json(Sessions {
        next,
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
    let terms = SessionTerms {
        title: &ask.title,
        runner: ask.runner.as_deref(),
        model: ask.model.as_deref(),
        directory: &ask.directory,
    };
    let session = doors.app.sessions.create(&ctx, &terms).await?;
    Ok((StatusCode::CREATED, Json(to_session(session))))
}

/// Pin a session to a runner, whatever the user's active runner is. It counts from the next turn. An alias of
/// `PATCH /api/v1/settings` with the layer `session` and the value `runner`.
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

/// Let a session work on the user's active runner. It counts from the next turn. An alias of `PATCH /api/v1/settings`
/// with the layer `session` and `null` for `runner`.
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

/// Rename a session, put it out of the list or back into it.
#[utoipa::path(patch, path = "/api/v1/sessions/{id}", operation_id = "change_session", params(("id" = inline(SessionId), Path)), request_body = ChangeSession, responses(
    (status = 200, body = Session), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn change(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<ChangeSession>,
) -> Result<Json<Session>, Refused> {
    let change = SessionChange {
        title: ask.title,
        archived: ask.archived,
    };
    let session = doors.app.sessions.change(&ctx, id, &change).await?;
    Ok(Json(to_session(session)))
}

/// Delete a session with its log and all output. Its running operations are stopped.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", operation_id = "delete_session", params(("id" = inline(SessionId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<StatusCode, Refused> {
    doors.app.sessions.delete(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
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
    let Query(query) = query.map_err(words::of_query)?;
    let limit = page::limit(query.limit)?;
    let (events, more) = doors
        .app
        .sessions
        .events(&ctx, id, query.after, limit)
        .await?;
    Ok(Json(to_page(events, more)))
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
    let message = NewMessage {
        client_id: ask.client_id,
        text: ask.text,
        images: ask.images,
        compacts: ask.compacts,
        terms: ask.terms,
        while_working: ask.while_working,
    };
    let message = doors.app.tool_servers.attached(&ctx, id, message).await?;
    let sent = doors.app.sessions.send(&ctx, id, message).await?;
    Ok((StatusCode::ACCEPTED, Json(to_accepted(&sent))))
}

/// Stop the running turn and its operations; if no turn runs, the next one that waits.
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

/// Go back to before a message: the conversation, the files that agents changed since, or both. No turn may work or wait.
/// The files go first. Sent again after it broke off in between, it goes on where it stopped.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/rewind", operation_id = "rewind_session", params(("id" = inline(SessionId), Path)), request_body = Rewind, responses(
    (status = 200, body = Rewound), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn rewind(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<Rewind>,
) -> Result<Json<Rewound>, Refused> {
    let back = GoBack {
        turn: ask.turn,
        conversation: ask.conversation,
        files: ask.files,
    };
    let went = doors.app.rewinds.go_back(&ctx, id, back).await?;
    let files = went.files.into_iter().map(|file| RewoundFile {
        path: file.path,
        runner: file.runner,
        restored: file.left.is_none(),
        reason: file.left,
    });
    Ok(Json(Rewound {
        text: went.text,
        files: files.collect(),
    }))
}

/// The commands of a session that went on in the background.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/tasks", params(("id" = inline(SessionId), Path), TasksQuery), responses(
    (status = 200, body = Tasks), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn tasks(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    query: Result<Query<TasksQuery>, QueryRejection>,
) -> Result<Json<Tasks>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let limit = page::limit(query.limit)? as usize;
    let after: Option<u32> = page::place("tasks", query.after.as_deref())?;
    let mut tasks = doors.app.sessions.tasks(&ctx, id).await?;
    tasks.retain(|task| after.is_none_or(|after| task.number > after));
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    let last = tasks.last().filter(|_| more);
    Ok(Json(Tasks {
        next: last.and_then(|last| cursor("tasks", &last.number)),
        tasks: tasks.into_iter().map(to_task).collect(),
    }))
}

/// The use of the model's window by a session: the categories, and the changes of what was sent before.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/context", operation_id = "session_context", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = SessionContext), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn context(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionContext>, Refused> {
    let report = doors.app.sessions.context(&ctx, id).await?;
    let parts = report.parts.into_iter().map(|(name, tokens)| ContextPart {
        name: name.to_owned(),
        tokens: tokens as u64,
    });
    let changes = report.changes.into_iter().map(|change| ContextChange {
        at: change.at,
        what: change.what,
    });
    Ok(Json(SessionContext {
        model: report.model,
        window: report.window.map(|window| window as u64),
        tokens: report.tokens as u64,
        parts: parts.collect(),
        last_input: report.last.map(|(input, _)| input),
        last_cached: report.last.map(|(_, cached)| cached),
        excerpts: report.excerpts as u64,
        changes: changes.collect(),
    }))
}

/// A page of a log.
pub(super) fn to_page(events: Vec<SessionEvent>, more: bool) -> Events {
    let last = events.last().filter(|_| more);
    Events {
        next: last.map(|last| last.seq.to_string()),
        events,
        more,
    }
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

pub(super) fn to_accepted(sent: &server_app::Sent) -> MessageAccepted {
    MessageAccepted {
        turn: sent.turn,
        steered: sent.steered,
        seq: sent.seq,
    }
}

pub(super) fn to_session(session: server_app::Session) -> Session {
    Session {
        id: session.id,
        title: session.title,
        directory: session.directory,
        created_at: session.created_at,
        updated_at: session.updated_at,
        last_seq: session.last_seq,
        running_turn: session.running_turn,
        runner: session.pin.map(|pin| PinnedRunner {
            id: pin.runner,
            name: pin.name,
            workspace: pin.workspace,
        }),
        archived_at: session.archived_at,
        links: session.links,
        waiting_approvals: session.waiting_approvals,
        agent: session.agent.map(|agent| SessionAgent {
            parent: agent.parent,
            name: agent.name,
            role: agent.role,
        }),
    }
}
