//! Commands: lines behind a slash that a person writes in a conversation.

use axum::{Json, extract::State};
use server_app::{CommandLine, Shown as Said};
use shared_api::{Command, CommandDone, CommandTable, Commands, Problem, RunCommand, Shown};
use shared_types::SessionId;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    problem::{Body, Refused},
    sessions::{to_accepted, to_session},
};
use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(commands))
        .routes(routes!(run))
}

/// The commands of conversations, the same on every surface.
#[utoipa::path(get, path = "/api/v1/commands", operation_id = "list_commands", responses(
    (status = 200, body = Commands), (status = 401, body = Problem)))]
pub(crate) async fn commands(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<Commands>, Refused> {
    let commands = doors.app.commands.list(&ctx)?.iter();
    let commands = commands.map(|command| Command {
        name: command.name.to_owned(),
        arguments: command.arguments.to_owned(),
        summary: command.summary.to_owned(),
        between_turns: command.between_turns,
    });
    Ok(Json(Commands {
        commands: commands.collect(),
    }))
}

/// Run a command in a session. Each is an action that this API has also, with its rights.
#[utoipa::path(post, path = "/api/v1/sessions/{id}/commands", operation_id = "run_command", params(("id" = inline(SessionId), Path)), request_body = RunCommand, responses(
    (status = 200, body = CommandDone), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn run(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    Body(ask): Body<RunCommand>,
) -> Result<Json<CommandDone>, Refused> {
    let line = CommandLine {
        line: ask.line,
        terms: ask.terms,
        client_id: ask.client_id,
    };
    let done = doors.app.commands.run(&ctx, id, line).await?;
    Ok(Json(CommandDone {
        shown: done.shown.into_iter().map(to_shown).collect(),
        session: done.session.map(to_session),
        message: done.message.map(|sent| to_accepted(&sent)),
        sets_mode: done.sets_mode,
        draft: done.draft,
    }))
}

fn to_shown(shown: Said) -> Shown {
    match shown {
        Said::Text(text) => Shown::Text(text),
        Said::Table { columns, rows } => Shown::Table(CommandTable {
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows,
        }),
    }
}
