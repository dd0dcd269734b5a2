//! Work that goes on without its caller: commands in the background, and agents in their sessions.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use server_app::{
    AppError, CallState, CancelAnswer, Keyed, NewMessage, RequestAnswer, SessionTerms,
    rights::Action,
};
use shared_types::{Digest, OperationId, SessionId};

use super::{Said, arguments, commands, object, sessions};
use crate::{
    mcp::{Client, calls::Progress},
    rest::to_operation,
};

/// The time for which a task is waited for, in milliseconds, where its caller names none.
const READ_WAITS_MS: u64 = 30_000;

/// The longest such time, in milliseconds.
const READ_WAITS_AT_MOST_MS: u64 = 600_000;

/// Longest key of a caller, in bytes.
const MAX_KEY_BYTES: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    message: String,
    session: Option<SessionId>,
    #[serde(default)]
    title: String,
    runner: Option<String>,
    #[serde(default)]
    directory: String,
    model: Option<String>,
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    id: String,
    wait_ms: Option<u64>,
    #[serde(default)]
    stdout_from: u64,
    #[serde(default)]
    stderr_from: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    id: String,
}

pub(super) fn start_schema() -> Value {
    object(
        json!({
            "message": { "type": "string", "minLength": 1, "description": "The work, in words." },
            "session": { "type": "string", "description": "The session (ses_…) whose agent gets the message; default a new one." },
            "title": { "type": "string", "description": "The title of the new session; default the beginning of the message." },
            "runner": { "type": "string", "description": "The runner to which the new session is pinned; default the active runner." },
            "directory": { "type": "string", "description": "The directory of the new session, relative to the workspace root; default the root." },
            "model": { "type": "string", "description": "The model of the new session; default that of the user." },
            "key": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_KEY_BYTES,
                "description": "A name of your choice for this call. A second call with the same key and arguments does \
                     nothing new and returns the result of the first.",
            },
        }),
        &["message"],
    )
}

pub(super) fn read_schema() -> Value {
    let offset = |stream: &str| {
        json!({
            "type": "integer",
            "minimum": 0,
            "description": format!("Of a command: the first byte of {stream} wanted; default 0."),
        })
    };
    object(
        json!({
            "id": { "type": "string", "description": "The id of the command (op_…) or of the session (ses_…)." },
            "wait_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": READ_WAITS_AT_MOST_MS,
                "description": "How long to wait for its end, in milliseconds; default 30000, at most 600000.",
            },
            "stdout_from": offset("stdout"),
            "stderr_from": offset("stderr"),
        }),
        &["id"],
    )
}

pub(super) fn stop_schema() -> Value {
    object(
        json!({
            "id": { "type": "string", "description": "The id of the command (op_…) or of the session (ses_…)." },
        }),
        &["id"],
    )
}

/// Gives an agent work; with a key once and no more.
pub(super) async fn start(client: &Client, given: Map<String, Value>) -> Result<Said, AppError> {
    let digest = Digest::of(Value::Object(given.clone()).to_string().as_bytes());
    let asked: StartArguments = arguments(given)?;
    let Some(key) = &asked.key else {
        return begin(client, &asked)
            .await
            .map(|(_, text)| Said::text(text));
    };
    if !(1..=MAX_KEY_BYTES).contains(&key.len()) {
        return Err(AppError::Invalid(format!(
            "a key has 1 to {MAX_KEY_BYTES} bytes"
        )));
    }
    let requests = &client.doors.app.requests;
    let name = format!("mcp start_task {}", Digest::of(key.as_bytes()));
    let action = Action::SendMessage;
    match requests.take(&client.ctx, action, name, digest).await? {
        Keyed::Once(taken) => {
            let begun = begin(client, &asked).await;
            let stored = match &begun {
                Ok((session, text)) => {
                    let answer = RequestAnswer {
                        status: 200,
                        made: Some(session.to_string()),
                        text: Some(text.clone()),
                    };
                    requests.answered(&taken, &answer).await
                }
                // It may have been done: the key stays without an answer.
                Err(AppError::Unavailable(_)) => Ok(()),
                Err(_) => requests.came_to_nothing(&taken).await,
            };
            if let Err(error) = stored {
                tracing::error!(%error, "the answer to a call with a key was not stored");
            }
            begun.map(|(_, text)| Said::text(text))
        }
        Keyed::Again(answer) => Ok(Said::text(answer.text.unwrap_or_default())),
        Keyed::OtherRequest => Err(AppError::Conflict(
            "this key was used with other arguments within the last 24 hours; choose a new key"
                .to_owned(),
        )),
        Keyed::UnderWay => Err(AppError::Conflict(
            "the call with this key is being carried out; call again in a second".to_owned(),
        )),
        Keyed::Unknown => Err(AppError::Conflict(
            "the server was cut off while it carried the call with this key out; look with list_sessions whether it \
             was done, and if not, call with another key"
                .to_owned(),
        )),
    }
}

async fn begin(client: &Client, asked: &StartArguments) -> Result<(SessionId, String), AppError> {
    let sessions = &client.doors.app.sessions;
    let session = match asked.session {
        Some(session) => session,
        None => {
            let terms = SessionTerms {
                title: &asked.title,
                runner: asked.runner.as_deref(),
                model: asked.model.as_deref(),
                directory: &asked.directory,
            };
            sessions.create(&client.ctx, &terms).await?.id
        }
    };
    let message = NewMessage::of(asked.message.clone());
    sessions.send(&client.ctx, session, message).await?;
    let text = format!(
        "an agent works on it in session {session}; wait for its answer with read_task {{\"id\":\"{session}\"}}"
    );
    Ok((session, text))
}

/// Waits for a command or an agent.
pub(super) async fn read(
    client: &Client,
    given: Map<String, Value>,
    progress: &Progress<'_>,
) -> Result<Said, AppError> {
    let asked: ReadArguments = arguments(given)?;
    let wait_ms = asked.wait_ms.unwrap_or(READ_WAITS_MS);
    if wait_ms > READ_WAITS_AT_MOST_MS {
        return Err(AppError::Invalid(format!(
            "wait_ms is {wait_ms}; give at most {READ_WAITS_AT_MOST_MS}"
        )));
    }
    let wait_for = Duration::from_millis(wait_ms);
    match task(&asked.id)? {
        Task::Agent(session) => sessions::answer(client, session, wait_for, progress).await,
        Task::Command(id) => {
            let operations = &client.doors.app.operations;
            let view = operations.view(&client.ctx, id).await?;
            if view.kind != "exec" {
                let end = to_operation(view).end;
                return Ok(Said::text(end.map_or_else(
                    || format!("[{id} has not ended]"),
                    |end| format!("[{}]", end.words()),
                )));
            }
            let from = [asked.stdout_from, asked.stderr_from];
            let listened = operations.listen(&client.ctx, id, from, wait_for);
            let mut listened = listened.await?;
            Ok(match commands::listen(&mut listened, progress).await? {
                CallState::Ended { rendered, failed } => Said {
                    failed,
                    ..Said::text(rendered.text)
                },
                runs @ CallState::Runs { .. } => commands::goes_on(&listened, runs),
            })
        }
    }
}

/// Stops a command or an agent.
pub(super) async fn stop(client: &Client, given: Map<String, Value>) -> Result<Said, AppError> {
    let StopArguments { id } = arguments(given)?;
    let app = &client.doors.app;
    let text = match task(&id)? {
        Task::Agent(session) => match app.sessions.cancel(&client.ctx, session).await? {
            Some(_) => "stop requested; read_task tells when the agent has stopped",
            None => "the agent of this session does not work now",
        },
        Task::Command(operation) => match app.operations.cancel(&client.ctx, operation).await? {
            CancelAnswer::NeverStarted => "it had not started, and does not start any more",
            CancelAnswer::AlreadyExited => "it had ended already",
            CancelAnswer::Cancelled => "stopped, with everything that it started",
            CancelAnswer::Recorded => {
                "stop requested; its runner cannot be reached now, and stops it when it is back"
            }
        },
    };
    Ok(Said::text(format!("[{text}]")))
}

enum Task {
    Command(OperationId),
    Agent(SessionId),
}

fn task(id: &str) -> Result<Task, AppError> {
    let command = id.parse().map(Task::Command);
    let task = command.or_else(|_| id.parse().map(Task::Agent));
    task.map_err(|_| {
        AppError::Invalid(format!(
            "{:?} is no task: give the id of a command (op_…) or of a session (ses_…)",
            id.chars().take(64).collect::<String>()
        ))
    })
}
