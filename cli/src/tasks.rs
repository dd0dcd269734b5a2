//! Listing and stopping a session's turn and background commands.

use anyhow::{Context as _, bail};
use shared_api::Task;
use shared_client::Client;
use shared_types::{Clock as _, SessionId, SystemClock, event::ToolCall, human::ago};

use crate::{
    render::{clean::clean_line, main_argument},
    screen::Screen,
    table::Table,
};

/// Longest name or ending that is shown, in characters.
const MAX_CELL: usize = 60;

pub(crate) async fn list(
    client: &Client,
    screen: Screen,
    session: SessionId,
    json: bool,
) -> anyhow::Result<()> {
    let tasks = client.tasks(session).await?;
    if json {
        return tasks.iter().try_for_each(|task| screen.json(task));
    }
    if tasks.is_empty() {
        screen.note("nothing went on in the background");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["TASK", "STATE", "BEGUN", "RUNNER", "COMMAND"]);
    for task in &tasks {
        table.row([
            task.number.to_string(),
            clean_line(task.ended.as_deref().unwrap_or("runs"), MAX_CELL),
            ago(now.since(task.started_at)),
            clean_line(&task.runner, MAX_CELL),
            clean_line(&command(task), MAX_CELL),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

/// Stops the running turn.
pub(crate) async fn cancel_turn(
    client: &Client,
    screen: Screen,
    session: SessionId,
) -> anyhow::Result<()> {
    let cancelled = client.cancel(session).await?;
    screen.line(match cancelled.turn {
        Some(_) => "stopping…",
        None => "nothing is under way",
    })
}

/// The command of a task, in few words.
pub(crate) fn command(task: &Task) -> String {
    main_argument(&ToolCall {
        vendor_id: String::new(),
        name: task.tool.clone(),
        arguments: task.arguments.clone(),
        opaque: Default::default(),
    })
}

pub(crate) async fn cancel(
    client: &Client,
    screen: Screen,
    session: SessionId,
    number: u32,
) -> anyhow::Result<()> {
    let tasks = client.tasks(session).await?;
    let Some(task) = tasks.iter().find(|task| task.number == number) else {
        bail!("failed to find task {number}: gantry tasks {session} lists them");
    };
    let cancelled = client.cancel_operation(task.operation).await;
    let cancelled = cancelled.with_context(|| format!("failed to stop task {number}"))?;
    screen.line(&match cancelled.answer.as_str() {
        "cancelled" => format!("task {number} is stopped"),
        "already_exited" => format!("task {number} had ended"),
        "recorded" => format!("task {number} is stopped when its runner is back"),
        _ => format!("task {number} had not started, and never will"),
    })
}
