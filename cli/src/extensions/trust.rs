//! Trust in the files of runners that declare extensions.

use anyhow::bail;
use shared_client::Client;
use shared_types::event::{Extensions, Provenance};

use super::{MAX_CELL, MAX_WHOLE, action, way};
use crate::{
    agreed::says_yes,
    pick::{self, SessionName},
    render::clean::clean_line,
    screen::Screen,
};

/// Shows what files would do, and trusts them if the person agrees.
pub(super) async fn trust(
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
        show(screen, &found, &file.at)?;
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

/// Shows all that a file would do.
fn show(screen: Screen, found: &Extensions, at: &str) -> anyhow::Result<()> {
    screen.line(&clean_line(at, MAX_WHOLE))?;
    let here = |from: &Provenance| from.at == at;
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
        if !plugin.prompt.is_empty() {
            let told = clean_line(&plugin.prompt, MAX_WHOLE);
            screen.line(&format!("    tells the model: {told}"))?;
        }
    }
    Ok(())
}
