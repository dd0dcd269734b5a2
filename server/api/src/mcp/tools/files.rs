//! The tools that server and clients share: commands and files.

use serde_json::{Map, Value, json};
use server_app::{AppError, CallState, CallerTool, ToolCall};

use super::{Said, commands};
use crate::mcp::{Client, calls::Progress};

/// The time that a command is waited for, in milliseconds, where its caller names none. Many clients give a call up
/// after a minute.
const EXEC_WAITS_MS: u64 = 50_000;

/// The tool's own arguments, and the place and the key of the call.
pub(super) fn schema(tool: CallerTool) -> Value {
    let mut schema = tool.schema();
    let properties = &mut schema["properties"];
    if tool == CallerTool::Shell {
        properties["timeout_ms"]["description"] =
            "How long to wait for its end, in milliseconds; then it goes on in \
             the background. Default 50000, at most 600000."
                .into();
    }
    properties["runner"] = json!({
        "type": "string",
        "description": "The name of the runner, or RUNNER/WORKSPACE; default the active runner. See list_runners.",
    });
    if changes(tool) {
        properties["key"] = json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "A name of your choice for this call. A second call with the same key and arguments does \
                 nothing new and returns the result of the first: use it to repeat a call whose result was lost.",
        });
    }
    schema
}

fn changes(tool: CallerTool) -> bool {
    matches!(
        tool,
        CallerTool::Shell | CallerTool::Write | CallerTool::Edit
    )
}

/// Calls the tool and waits for its end, or until a command goes on in the background.
pub(super) async fn call(
    client: &Client,
    tool: CallerTool,
    mut arguments: Map<String, Value>,
    key: &str,
    progress: &Progress<'_>,
) -> Result<Said, AppError> {
    let runner = taken(&mut arguments, "runner")?;
    let own_key = match changes(tool) {
        true => taken(&mut arguments, "key")?,
        false => None,
    };
    if tool == CallerTool::Shell {
        let timeout = arguments.entry("timeout_ms").or_insert(Value::Null);
        if timeout.is_null() {
            *timeout = EXEC_WAITS_MS.into();
        }
    }
    let call = ToolCall {
        tool,
        arguments,
        runner,
        key: own_key.or_else(|| changes(tool).then(|| key.to_owned())),
    };
    let mut listened = client.doors.app.operations.call(&client.ctx, call).await?;
    let state = commands::listen(&mut listened, progress).await?;
    Ok(match state {
        CallState::Ended { rendered, failed } => Said {
            text: rendered.text,
            image: rendered.image,
            failed,
        },
        runs @ CallState::Runs { .. } => commands::goes_on(&listened, runs),
    })
}

/// Takes a text out of the arguments.
fn taken(arguments: &mut Map<String, Value>, name: &str) -> Result<Option<String>, AppError> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(AppError::Invalid(format!(
            "the argument \"{name}\" has to be text"
        ))),
    }
}
