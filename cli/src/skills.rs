//! `gantry skills`: the skills that are registered at the server.

mod source;

use anyhow::bail;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_api::{Extension, ExtensionKind, PutExtension};
use shared_client::Client;
use shared_types::event::Layer;

use crate::{
    agreed::says_yes,
    args::Skills,
    extensions::{described, find, list_registered, remove},
    render::clean::clean,
    screen::Screen,
};
use source::SkillSource;

/// Most lines of a difference that are shown.
const MAX_LINES: usize = 400;

/// Carries out a command about skills; without one, lists them.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    command: Option<Skills>,
) -> anyhow::Result<()> {
    match command.unwrap_or(Skills::List { json: false }) {
        Skills::List { json } => list_registered(client, screen, ExtensionKind::Skill, json).await,
        Skills::Show { name } => show(client, screen, &name).await,
        Skills::Add { source, tenant } => {
            let read = SkillSource::read(&source).await?;
            let put = client.put_extension(&read.put(tenant, None)).await?;
            let files = match read.files.len() {
                0 => String::new(),
                1 => ", with 1 file beside it".to_owned(),
                files => format!(", with {files} files beside it"),
            };
            screen.line(&format!("registered: {}{files}", described(&put)))
        }
        Skills::Update { name, tenant, yes } => update(client, screen, &name, tenant, yes).await,
        Skills::Publish { name } => publish(client, screen, &name).await,
        Skills::Remove { name, tenant } => {
            remove(client, screen, ExtensionKind::Skill, &name, tenant).await
        }
    }
}

async fn show(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let row = find(client, ExtensionKind::Skill, name, None).await?;
    let whole = client.extension(row.id).await?;
    screen.print(&clean(&whole.text))?;
    for (path, bytes) in source::unpacked(&packed(&whole)?)? {
        screen.line(&format!("[{}: {} bytes]", clean(&path), bytes.len()))?;
    }
    Ok(())
}

/// Reads the source again, shows what is different, and takes it if the person agrees.
async fn update(
    client: &Client,
    screen: Screen,
    name: &str,
    tenant: bool,
    yes: bool,
) -> anyhow::Result<()> {
    let layer = if tenant { Layer::Tenant } else { Layer::User };
    let row = find(client, ExtensionKind::Skill, name, Some(layer)).await?;
    if row.source.is_empty() {
        bail!("nothing tells where {name} comes from; add it anew with: gantry skills add FOLDER");
    }
    let known = client.extension(row.id).await?;
    let read = SkillSource::read(&known.source).await?;
    if read.name != name {
        bail!(
            "{} has the skill {} now; add that one by itself",
            known.source,
            read.name
        );
    }
    let (old, new) = (source::unpacked(&packed(&known)?)?, &read.files);
    let mut changes = diff("SKILL.md", &known.text, &read.text);
    for (path, bytes) in new {
        match old.get(path) {
            Some(before) if before == bytes => {}
            Some(before) => changes.push_str(&diff(
                path,
                &String::from_utf8_lossy(before),
                &String::from_utf8_lossy(bytes),
            )),
            None => changes.push_str(&format!("+++ {path} ({} bytes, new)\n", bytes.len())),
        }
    }
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        changes.push_str(&format!("--- {path} (removed)\n"));
    }
    if changes.is_empty() {
        return screen.line(&format!("{} is as it was", described(&row)));
    }
    screen.print(&clean(&changes))?;
    if !yes && !says_yes("take this?", "take it")? {
        return screen.line("nothing was changed");
    }
    let put = client
        .put_extension(&read.put(tenant, Some(known.digest)))
        .await?;
    screen.line(&format!("updated: {}", described(&put)))
}

async fn publish(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let row = find(client, ExtensionKind::Skill, name, Some(Layer::User)).await?;
    let whole = client.extension(row.id).await?;
    let new = PutExtension {
        kind: ExtensionKind::Skill,
        name: whole.name.clone(),
        text: whole.text.clone(),
        packed: whole.packed.clone(),
        source: whole.source.clone(),
        for_everyone: true,
        replaces: None,
    };
    let put = client.put_extension(&new).await?;
    screen.line(&format!("published: {}", described(&put)))
}

fn packed(of: &Extension) -> anyhow::Result<Vec<u8>> {
    let packed = of.packed.as_deref().map(|packed| STANDARD.decode(packed));
    Ok(packed.transpose()?.unwrap_or_default())
}

/// The lines of a file that go and come.
fn diff(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let changes = similar::TextDiff::from_lines(old, new);
    let mut text = format!("--- {path}\n");
    for (shown, change) in changes
        .iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal)
        .enumerate()
    {
        if shown == MAX_LINES {
            text.push_str("… and more\n");
            break;
        }
        let mark = match change.tag() {
            similar::ChangeTag::Delete => '-',
            _ => '+',
        };
        text.push(mark);
        text.push_str(change.value().trim_end_matches('\n'));
        text.push('\n');
    }
    text
}
