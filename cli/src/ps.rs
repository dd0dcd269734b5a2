//! Operations on runners: listing and stopping them.

use std::time::Duration;

use anyhow::bail;
use shared_api::{Operation, OperationEnd, OperationState, Signal};
use shared_client::Client;
use shared_types::{
    Clock as _, OperationId, SystemClock, Timestamp,
    human::{ago, duration},
};

use crate::{args, pick, render::clean::clean_line, screen::Screen, table::Table};

/// Longest title or end in a list, in characters.
const MAX_CELL: usize = 60;

/// The interval and the number of checks for the end of a command after a signal.
const ASK_EVERY: Duration = Duration::from_millis(100);
const ENDS_WITHIN: u32 = 20;

pub(crate) async fn list(client: &Client, screen: Screen, args: args::Ps) -> anyhow::Result<()> {
    let operations = client.operations(args.all, args.limit).await?;
    if args.json {
        return operations
            .iter()
            .try_for_each(|operation| screen.json(operation));
    }
    if operations.is_empty() {
        screen.note(match args.all {
            true => "nothing ran yet",
            false => "nothing runs; what has ended: gantry ps -a",
        });
        return Ok(());
    }
    let now = SystemClock::new().now();
    let ids: Vec<String> = operations
        .iter()
        .map(|found| found.id.to_string())
        .collect();
    let mut table =
        Table::new(["OPERATION", "RUNNER", "BY", "BEGUN", "STATE", "TITLE"]).whole(&[0]);
    for operation in &operations {
        let id = operation.id.to_string();
        table.row([
            pick::beginning(&id, &ids).to_owned(),
            clean_line(&operation.runner.name, MAX_CELL),
            clean_line(&by(operation), MAX_CELL),
            ago(now.since(operation.placed_at)),
            clean_line(&state(operation, now), MAX_CELL),
            clean_line(&operation.title, MAX_CELL),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

/// Sends a signal, or stops it with everything that it started.
pub(crate) async fn kill(client: &Client, screen: Screen, args: args::Kill) -> anyhow::Result<()> {
    let id = pick::operation(client, &args.operation).await?;
    if let Some(name) = args.signal {
        return signal(client, id, name).await;
    }
    let cancelled = client.cancel_operation(id).await?;
    screen.line(&match cancelled.answer.as_str() {
        "cancelled" => format!("{id} is stopped"),
        "already_exited" => format!("{id} had ended"),
        "recorded" => format!("{id} is stopped when its runner is back"),
        _ => format!("{id} had not started, and never will"),
    })
}

/// Sends a signal. A command that the signal ends may end before the answer comes.
async fn signal(client: &Client, id: OperationId, signal: Signal) -> anyhow::Result<()> {
    let before = client.operation(id).await?;
    if before.state == OperationState::Ended {
        bail!(
            "{id} has ended: {}",
            before.end.as_ref().map_or("", OperationEnd::words)
        );
    }
    let Err(refused) = client.signal_operation(id, signal).await else {
        return Ok(());
    };
    for _ in 0..ENDS_WITHIN {
        if client.operation(id).await?.state == OperationState::Ended {
            return Ok(());
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    Err(refused.into())
}

/// The user who started it, or the session whose agent did.
fn by(operation: &Operation) -> String {
    match (&operation.started_by, operation.session) {
        (Some(name), _) => name.clone(),
        (None, Some(session)) => session.to_string(),
        (None, None) => String::new(),
    }
}

fn state(operation: &Operation, now: Timestamp) -> String {
    let ran_until = operation.ended_at.unwrap_or(now);
    let ran = || duration(ran_until.since(operation.placed_at));
    match (operation.state, &operation.end) {
        (OperationState::Ended, Some(end)) => end.words().to_owned(),
        (OperationState::Ended, None) => "ended".to_owned(),
        (OperationState::Open, _) if operation.cancel_requested_at.is_some() => {
            "stopping".to_owned()
        }
        (OperationState::Open, _) => format!("runs, {}", ran()),
    }
}
