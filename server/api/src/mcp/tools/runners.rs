//! The runners of the fleet.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use server_app::{AppError, Runner};

use super::{Said, arguments, object};
use crate::mcp::Client;

/// Most runners in one answer.
const RUNNERS_AT_ONCE: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    after: String,
}

pub(super) fn list_schema() -> Value {
    object(
        json!({
            "after": {
                "type": "string",
                "description": "Only runners whose names come after this one; for lists of more than 50.",
            },
        }),
        &[],
    )
}

pub(super) async fn list(client: &Client, given: Map<String, Value>) -> Result<Said, AppError> {
    let ListArguments { after } = arguments(given)?;
    let runners = &client.doors.app.runners;
    let (found, more) = runners.list(&client.ctx, &after, RUNNERS_AT_ONCE).await?;
    if found.is_empty() {
        return Ok(Said::text(match after.is_empty() {
            true => "[there is no runner; add one: gantry runners add]",
            false => "[there are no more runners]",
        }));
    }
    let mut text: String = found.iter().map(line).collect();
    if let Some(last) = found.last().filter(|_| more) {
        text.push_str(&format!("[there are more: after {:?}]", last.name));
    }
    Ok(Said::text(text))
}

/// One runner as a line of JSON.
fn line(runner: &Runner) -> String {
    let workspaces = runner.sandboxes.iter().map(|sandbox| &sandbox.name);
    let line = json!({
        "name": runner.name,
        "online": runner.online,
        "active": runner.active,
        "draining": runner.drained_by.is_some(),
        "platform": runner.platform,
        "workspaces": workspaces.collect::<Vec<_>>(),
        "labels": runner.labels,
    });
    format!("{line}\n")
}
