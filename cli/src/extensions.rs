//! `gantry extensions`: what people bring to a session, where it comes from, and trust in files on runners.

mod registered;
mod trust;

use std::collections::BTreeMap;

use shared_client::Client;
use shared_types::event::{Hook, Provenance, ShownValue, ToolServer, ToolServerTransport};

pub(crate) use registered::{
    described, find, list_registered, none_is_registered, registered, remove,
};

use crate::{
    args::Extensions,
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest text of a cell, in characters.
pub(crate) const MAX_CELL: usize = 100;

/// Longest action that is shown whole before it is trusted, in characters.
pub(crate) const MAX_WHOLE: usize = 8 * 1024;

/// Carries out a command about the extensions of a session; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    command: Option<Extensions>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Extensions::List {
        session: SessionName::Last,
        json: false,
    }) {
        Extensions::List { session, json } => list(client, screen, &session, json).await,
        Extensions::Trust { file, session, yes } => {
            trust::trust(client, screen, &session, file.as_deref(), yes).await
        }
        Extensions::Untrust { file, session } => {
            let session = pick::session(client, &session).await?;
            client.trust_extension(session.id, &file, None).await?;
            screen.line(&format!("trusted no more: {}", clean_line(&file, MAX_CELL)))
        }
    }
}

async fn list(
    client: &Client,
    screen: Screen,
    session: &SessionName,
    json: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let found = client.found_extensions(session.id).await?;
    if json {
        return screen.json(&found);
    }
    if found.is_none() {
        screen.note(
            "the last turn of this session found no extension; a turn looks when it begins, where the runner is online",
        );
        return Ok(());
    }
    let mut table = Table::new(["KIND", "NAME", "FOR", "FROM", ""]).whole(&[0]);
    let mut row = |kind: &str, name: &str, what: &str, from: &Provenance| {
        let state = if from.trusted {
            ""
        } else {
            "does nothing: not trusted"
        };
        table.row([
            kind.to_owned(),
            clean_line(name, MAX_CELL),
            clean_line(what, MAX_CELL),
            whence(from),
            state.to_owned(),
        ]);
    };
    for skill in &found.skills {
        row("skill", &skill.name, &skill.description, &skill.from);
    }
    for role in &found.roles {
        if let Some(from) = &role.from {
            row("agent", &role.name, &role.description, from);
        }
    }
    for hook in &found.hooks {
        row("hook", hook.on.word(), &action(hook), &hook.from);
    }
    for server in &found.servers {
        row("tool server", &server.name, &way(server), &server.from);
    }
    for plugin in &found.plugins {
        row(
            "plugin",
            &plugin.name,
            &plugin.command.join(" "),
            &plugin.from,
        );
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    for why in &found.unread {
        screen.note(&format!("not used: {}", clean_line(why, 300)));
    }
    Ok(())
}

pub(crate) fn whence(from: &Provenance) -> String {
    match from.layer.is_on_runner() {
        true => clean_line(&from.at, MAX_CELL),
        false => from.layer.word().to_owned(),
    }
}

fn action(hook: &Hook) -> String {
    hook.handler.details()
}

fn way(server: &ToolServer) -> String {
    match &server.transport {
        ToolServerTransport::Stdio { command, args, env } => {
            let words = std::iter::once(command).chain(args);
            let words: Vec<_> = words.map(String::as_str).collect();
            words.join(" ") + &given(env)
        }
        ToolServerTransport::Http { url, headers, .. } => url.clone() + &given(headers),
    }
}

/// The variables or headers that a tool server is given.
fn given(values: &BTreeMap<String, ShownValue>) -> String {
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from(value.clone())))
        .collect();
    match values.is_empty() {
        true => String::new(),
        false => format!("  with {}", values.join(" ")),
    }
}
