//! `gantry agents` and `gantry hooks`: the extensions that are registered at the server.

use std::{fs, path::Path};

use anyhow::Context as _;
use shared_api::{Extension, ExtensionKind, PutExtension};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, event::Layer, human::ago};

use super::MAX_CELL;
use crate::{args::Registered, render::clean::clean_line, screen::Screen, table::Table};

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
        screen.note(&none_is_registered(kind));
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
        Some(_) => format!(
            "you have registered no {name}; gantry {} lists what there is",
            verb(kind)
        ),
        None => format!(
            "no {name} is registered: gantry {} lists what is, and gantry extensions what the project brings",
            verb(kind)
        ),
    })
}

/// The words for a list without rows: how one is added, and where those of a project are.
pub(crate) fn none_is_registered(kind: ExtensionKind) -> String {
    let verb = verb(kind);
    let how = match kind {
        ExtensionKind::Skill => "FOLDER",
        ExtensionKind::Mcp => "NAME https://ADDRESS",
        ExtensionKind::Agent | ExtensionKind::Hooks => "FILE",
    };
    format!(
        "none is registered; add one with: gantry {verb} add {how}\nwhat the project of a session brings: gantry extensions"
    )
}

/// The command about one kind.
fn verb(kind: ExtensionKind) -> &'static str {
    match kind {
        ExtensionKind::Skill => "skills",
        ExtensionKind::Agent => "agents",
        ExtensionKind::Hooks => "hooks",
        ExtensionKind::Mcp => "mcp",
    }
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
