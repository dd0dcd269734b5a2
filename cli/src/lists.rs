//! Lists, and what is done with single entries of them.

use shared_client::Client;
use shared_types::{Clock, SessionId, SystemClock, human::ago};

use crate::{pick, render::clean::clean_line, screen::Screen, table::Table};

/// Longest title in a list, in characters.
const MAX_TITLE: usize = 60;

pub(crate) async fn sessions(
    client: &Client,
    screen: Screen,
    limit: u32,
    json: bool,
) -> anyhow::Result<()> {
    let sessions = client.sessions(limit).await?;
    if json {
        return sessions.iter().try_for_each(|session| screen.json(session));
    }
    if sessions.is_empty() {
        screen.note("no sessions yet; begin one with: gantry chat \"…\"");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["SESSION", "LAST USED", "", "TITLE"]);
    for session in &sessions {
        let state = session.running_turn.map_or("", |_| "working");
        table.row([
            session.id.to_string(),
            ago(now.since(session.updated_at)),
            state.to_owned(),
            clean_line(&session.title, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

pub(crate) async fn keys(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let keys = client.keys().await?;
    if json {
        return keys.iter().try_for_each(|key| screen.json(key));
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["KEY", "KIND", "MADE", "NAME"]);
    for key in &keys {
        table.row([
            key.id.to_string(),
            key.kind.replace('_', " "),
            ago(now.since(key.created_at)),
            clean_line(&key.name, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

pub(crate) async fn add_key(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let created = client.create_key(name).await?;
    screen.note("this key is shown once; whoever has it acts as you:");
    screen.line(&created.key)?;
    screen.note(&format!(
        "revoke it with: gantry keys remove {}",
        created.entry.id
    ));
    Ok(())
}

pub(crate) async fn remove_key(client: &Client, screen: Screen, id: &str) -> anyhow::Result<()> {
    let keys = client.keys().await?;
    let key = pick::key(&keys, id)?;
    client.remove_key(key.id).await?;
    let name = clean_line(&key.name, MAX_TITLE);
    screen.line(&format!("removed {} ({name})", key.id))
}

pub(crate) async fn cancel(
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
