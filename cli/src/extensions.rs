//! `gantry extensions`, `gantry agents`, `gantry mcp` and `gantry hooks`: what people bring, where it comes from, and trust in files on
//! runners.

use std::{fs, path::Path};

use anyhow::{Context as _, bail};
use shared_api::{Extension, ExtensionKind, PutExtension};
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock,
    event::{Hook, HookHandler, Layer, Provenance, ToolServer, ToolServerTransport},
    human::ago,
};

use crate::{
    agreed::says_yes,
    args::{Extensions, Mcp, Registered},
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
    table::Table,
};

/// Longest text of a cell, in characters.
const MAX_CELL: usize = 100;

/// Longest action that is shown whole before it is trusted, in characters.
const MAX_WHOLE: usize = 8 * 1024;

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
            trust(client, screen, &session, file.as_deref(), yes).await
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
        screen.note("the last turn of this session found no extension");
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

/// Shows what files would do, and trusts them if the person agrees.
async fn trust(
    client: &Client,
    screen: Screen,
    session: &SessionName,
    only: Option<&str>,
    yes: bool,
) -> anyhow::Result<()> {
    let session = pick::session(client, session).await?;
    let found = client.found_extensions(session.id).await?;
    let mut files = found.untrusted();
    files.retain(|file| only.is_none_or(|only| only == file.at));
    if files.is_empty() {
        bail!(
            "the last turn of session {} found no such file that you do not trust; each turn looks when it begins",
            session.id
        );
    }
    for file in files {
        screen.line(&clean_line(&file.at, MAX_WHOLE))?;
        let here = |from: &Provenance| from.at == file.at;
        for hook in found.hooks.iter().filter(|hook| here(&hook.from)) {
            let shown = clean_line(&action(hook), MAX_WHOLE);
            let of = if hook.matcher.is_empty() {
                "all"
            } else {
                &hook.matcher
            };
            screen.line(&format!(
                "  at {} of {}: {shown}",
                hook.on.word(),
                clean_line(of, MAX_CELL)
            ))?;
        }
        for server in found.servers.iter().filter(|server| here(&server.from)) {
            let shown = clean_line(&way(server), MAX_WHOLE);
            screen.line(&format!(
                "  tool server {}: {shown}",
                clean_line(&server.name, MAX_CELL)
            ))?;
        }
        for plugin in found.plugins.iter().filter(|plugin| here(&plugin.from)) {
            let shown = clean_line(&plugin.command.join(" "), MAX_WHOLE);
            screen.line(&format!(
                "  plugin {}: {shown}",
                clean_line(&plugin.name, MAX_CELL)
            ))?;
        }
        if !yes && !says_yes("trust this file as it is now?", "trust it")? {
            screen.line("  not trusted")?;
            continue;
        }
        client
            .trust_extension(session.id, &file.at, Some(file.digest))
            .await?;
        screen.line("  trusted from the next turn on, until the file changes")?;
    }
    Ok(())
}

/// Carries out a command about registered agents or hooks; without one, lists them.
pub(crate) async fn registered(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    command: Option<Registered>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Registered::List { json: false }) {
        Registered::List { json } => list_registered(client, screen, kind, json).await,
        Registered::Show { name } => {
            let row = find(client, kind, &name, None).await?;
            screen.print(&client.extension(row.id).await?.text)
        }
        Registered::Add { file, name, tenant } => {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            let name = match name {
                Some(name) => name,
                None => stem(&file)?,
            };
            let new = PutExtension {
                kind,
                name,
                text,
                packed: None,
                source: file.display().to_string(),
                for_everyone: tenant,
                replaces: None,
            };
            let put = client.put_extension(&new).await?;
            screen.line(&format!("registered: {}", described(&put)))
        }
        Registered::Remove { name, tenant } => remove(client, screen, kind, &name, tenant).await,
    }
}

/// Carries out a command about tool servers; without one, lists them.
pub(crate) async fn mcp(
    client: &Client,
    screen: Screen,
    command: Option<Mcp>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Mcp::List { json: false }) {
        Mcp::List { json } => list_registered(client, screen, ExtensionKind::Mcp, json).await,
        Mcp::Add {
            name,
            url,
            env,
            tenant,
            command,
        } => {
            let mut variables = serde_json::Map::new();
            for pair in &env {
                let (name, value) = pair
                    .split_once('=')
                    .with_context(|| format!("{pair:?} is no NAME=VALUE"))?;
                variables.insert(name.to_owned(), value.into());
            }
            let server = match (url, command.split_first()) {
                (Some(url), None) => serde_json::json!({ "type": "http", "url": url }),
                (None, Some((program, args))) => {
                    serde_json::json!({ "command": program, "args": args, "env": variables })
                }
                _ => bail!("name --url URL, or a command behind --"),
            };
            let text = serde_json::json!({ "mcpServers": { (name.as_str()): server } });
            let new = PutExtension {
                kind: ExtensionKind::Mcp,
                name,
                text: text.to_string(),
                packed: None,
                source: String::new(),
                for_everyone: tenant,
                replaces: None,
            };
            let put = client.put_extension(&new).await?;
            screen.line(&format!("registered: {}", described(&put)))
        }
        Mcp::Remove { name, tenant } => {
            remove(client, screen, ExtensionKind::Mcp, &name, tenant).await
        }
    }
}

/// Lists the registered extensions of one kind.
pub(crate) async fn list_registered(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    json: bool,
) -> anyhow::Result<()> {
    let mut rows = client.extensions().await?;
    rows.retain(|row| row.kind == kind);
    if json {
        return rows.iter().try_for_each(|row| screen.json(row));
    }
    if rows.is_empty() {
        screen.note("none is registered");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table =
        Table::new(["NAME", "LAYER", "DIGEST", "SOURCE", "SET BY", "SINCE"]).whole(&[0]);
    for row in &rows {
        table.row([
            clean_line(&row.name, MAX_CELL),
            row.layer.word().to_owned(),
            row.digest.to_string()[..12].to_owned(),
            clean_line(&row.source, MAX_CELL),
            clean_line(&row.set_by, MAX_CELL),
            ago(now.since(row.since)),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))
}

/// Removes the registered extension of this name: the person's own, or the tenant's.
pub(crate) async fn remove(
    client: &Client,
    screen: Screen,
    kind: ExtensionKind,
    name: &str,
    tenant: bool,
) -> anyhow::Result<()> {
    let layer = if tenant { Layer::Tenant } else { Layer::User };
    let row = find(client, kind, name, Some(layer)).await?;
    client.remove_extension(row.id).await?;
    screen.line(&format!("removed: {}", described(&row)))
}

/// The registered extension of this name; of two layers the narrower one, unless one is named.
pub(crate) async fn find(
    client: &Client,
    kind: ExtensionKind,
    name: &str,
    layer: Option<Layer>,
) -> anyhow::Result<Extension> {
    let rows = client.extensions().await?;
    let is_it = |row: &Extension| {
        row.kind == kind && row.name == name && layer.is_none_or(|layer| layer == row.layer)
    };
    let found = rows.into_iter().filter(is_it).max_by_key(|row| row.layer);
    found.with_context(|| match layer {
        Some(Layer::Tenant) => {
            format!("the tenant has no {name}; for your own one leave out --tenant")
        }
        Some(_) => format!("you have registered no {name}; for the tenant's one add --tenant"),
        None => format!("no {name} is registered"),
    })
}

/// An extension in a few words.
pub(crate) fn described(row: &Extension) -> String {
    let digest = &row.digest.to_string()[..12];
    let name = clean_line(&row.name, MAX_CELL);
    match row.layer {
        Layer::Tenant => format!("{name} for everyone ({digest})"),
        _ => format!("{name} ({digest})"),
    }
}

fn stem(file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.map(str::to_owned).with_context(|| {
        format!(
            "{} has no name that can be used; add --name",
            file.display()
        )
    })
}

fn whence(from: &Provenance) -> String {
    match from.layer.is_on_runner() {
        true => clean_line(&from.at, MAX_CELL),
        false => from.layer.word().to_owned(),
    }
}

fn action(hook: &Hook) -> String {
    match &hook.handler {
        HookHandler::Command { command } => command.clone(),
        HookHandler::Http { url, .. } => format!("POST {url}"),
        HookHandler::BuiltIn { name } => format!("built-in {name}"),
    }
}

fn way(server: &ToolServer) -> String {
    match &server.transport {
        ToolServerTransport::Stdio { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            words.map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        ToolServerTransport::Http { url, .. } => url.clone(),
    }
}
