//! Lists, and what is done with single entries of them.

use shared_api::{CreateKey, Key};
use shared_client::Client;
use shared_types::{
    Clock, SessionId, SystemClock, Timestamp,
    human::{ago, duration},
};

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
    let heading = [
        "",
        "KEY",
        "KIND",
        "SCOPES",
        "MADE",
        "LAST USED",
        "EXPIRES",
        "FROM",
        "NAME",
    ];
    let mut table = Table::new(heading);
    for key in &keys {
        let last_used = key.last_used_at.map(|at| ago(now.since(at)));
        table.row([
            if key.is_this { "this one" } else { "" }.to_owned(),
            key.id.to_string(),
            key.kind.replace('_', " "),
            scopes(key),
            ago(now.since(key.created_at)),
            last_used.unwrap_or_else(|| "never".to_owned()),
            expiry(key, now),
            key.from.clone().unwrap_or_default(),
            clean_line(&key.name, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

/// A sign-in is good for all that its person may do.
fn scopes(key: &Key) -> String {
    if key.kind == "sign_in" {
        return "all".to_owned();
    }
    let words = key
        .scopes
        .iter()
        .map(|scope| format!("{scope:?}").to_lowercase());
    words.collect::<Vec<_>>().join(",")
}

fn expiry(key: &Key, now: Timestamp) -> String {
    match key.expires_at {
        None => String::new(),
        Some(at) if at <= now => "expired".to_owned(),
        Some(at) => format!("in {}", duration(at.since(now))),
    }
}

pub(crate) async fn add_key(
    client: &Client,
    screen: Screen,
    terms: &CreateKey,
) -> anyhow::Result<()> {
    let created = client.create_key_with(terms).await?;
    screen.note(&format!(
        "this key is shown once; whoever has it acts as you, for: {}",
        scopes(&created.entry)
    ));
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
