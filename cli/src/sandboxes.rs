//! Sandboxes: listing, starting, stopping, limiting and removing them.

use shared_api::{ChangeSandbox, Sandbox};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, human::ago};

use crate::{
    agreed::agreed,
    args::{Sandboxes, SetSandbox},
    pick,
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest reason in a log, in characters.
const MAX_REASON: usize = 500;

/// Longest words about why a sandbox is as it is, in characters.
const MAX_WORDS: usize = 120;

/// Carries out a command about sandboxes; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<Sandboxes>,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, json).await,
        Some(Sandboxes::List { json: also }) => list(client, screen, json || also).await,
        Some(Sandboxes::Logs { sandbox }) => logs(client, screen, json, &sandbox).await,
        Some(Sandboxes::Start { sandbox }) => {
            let found = find(client, &sandbox).await?;
            let started = client.start_sandbox(found.id).await?;
            screen.note(&format!("{} starts", named(&started)));
            Ok(())
        }
        Some(Sandboxes::Stop { sandbox }) => {
            let found = find(client, &sandbox).await?;
            let stopped = client.stop_sandbox(found.id).await?;
            screen.note(&format!("{} stops; its files stay", named(&stopped)));
            Ok(())
        }
        Some(Sandboxes::Remove { sandbox, yes }) => {
            let found = find(client, &sandbox).await?;
            if !yes && !agreed(&format!("remove {} with its files", named(&found)))? {
                screen.note("nothing was removed");
                return Ok(());
            }
            client.remove_sandbox(found.id).await?;
            screen.note(&format!("{} is removed with its files", named(&found)));
            Ok(())
        }
        Some(Sandboxes::Set(set)) => change(client, screen, set).await,
    }
}

async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let sandboxes = client.sandboxes().await?;
    if json {
        return sandboxes
            .iter()
            .try_for_each(|sandbox| screen.json(sandbox));
    }
    if sandboxes.is_empty() {
        screen.note(
            "no sandboxes yet; one is made with your first command on a runner that makes them",
        );
        return Ok(());
    }
    let now = SystemClock::new().now();
    let heading = [
        "SANDBOX",
        "RUNNER",
        "OWNER",
        "TEMPLATE",
        "PRIVILEGE",
        "STATE",
        "SINCE",
        "LIMITS",
        "NETWORK",
        "WHY",
    ];
    // The limits of each sandbox are shown with `--json`, too.
    let mut table = Table::new(heading).whole(&[0]).spare(&[4, 3, 8, 7]);
    let ids: Vec<_> = sandboxes.iter().map(|known| known.id.to_string()).collect();
    for sandbox in &sandboxes {
        table.row([
            pick::beginning(&sandbox.id.to_string(), &ids).to_owned(),
            sandbox.runner_name.clone(),
            sandbox.owner.clone(),
            sandbox.template.clone(),
            sandbox.privilege.clone(),
            sandbox.state.clone(),
            ago(now.since(sandbox.since)),
            limits(sandbox),
            sandbox.network.clone(),
            clean_line(sandbox.reason.as_deref().unwrap_or_default(), MAX_WORDS),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    Ok(())
}

async fn logs(client: &Client, screen: Screen, json: bool, asked: &str) -> anyhow::Result<()> {
    let found = find(client, asked).await?;
    let changes = client.sandbox_changes(found.id).await?.changes;
    if json {
        return changes.iter().try_for_each(|change| screen.json(change));
    }
    if changes.is_empty() {
        screen.note(&format!("{} was not started yet", named(&found)));
        return Ok(());
    }
    let mut table = Table::new(["WHEN", "STATE", "WHY"]);
    for change in &changes {
        table.row([
            format!("{:.0}", change.at),
            change.state.clone(),
            clean_line(change.reason.as_deref().unwrap_or_default(), MAX_REASON),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    Ok(())
}

async fn change(client: &Client, screen: Screen, set: SetSandbox) -> anyhow::Result<()> {
    let found = find(client, &set.sandbox).await?;
    let changes = set.changes;
    let change = ChangeSandbox {
        template: changes.template,
        memory_bytes: changes.memory,
        cpu_millis: changes.cpus,
        processes: changes.processes,
        idle_for_ms: changes
            .idle_for
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        network: changes.network,
    };
    let changed = client.change_sandbox(found.id, &change).await?;
    screen.note(&format!(
        "{}: template {}, {}, network {}; it counts from its next start",
        named(&changed),
        changed.template,
        limits(&changed),
        changed.network
    ));
    Ok(())
}

/// The sandbox of this id, or of a unique beginning of it, or one's own on the runner of this name.
async fn find(client: &Client, asked: &str) -> anyhow::Result<Sandbox> {
    let all = client.sandboxes().await?;
    let me = client.me().await?.user.name;
    let own = all
        .iter()
        .find(|one| one.runner_name == asked && one.owner == me);
    if let Some(own) = own {
        return Ok(own.clone());
    }
    pick::sandbox(&all, asked)
}

fn named(sandbox: &Sandbox) -> String {
    format!(
        "the sandbox of {} on {}",
        sandbox.owner, sandbox.runner_name
    )
}

fn limits(sandbox: &Sandbox) -> String {
    let memory = sandbox.memory_bytes >> 20;
    let processors = f64::from(sandbox.cpu_millis) / 1000.0;
    format!(
        "{memory} MiB, {processors} cpu, {} processes",
        sandbox.processes
    )
}
