//! The entries of the session's folder that fit what a person types behind an `@`.

use shared_api::{List, OperationEnd, Session, StartOperation};
use shared_client::{Attached, Client};

use crate::runners;

/// Most entries of a folder that are looked at.
const MAX_ENTRIES: u32 = 1000;

/// Most entries that are offered.
const MAX_OFFERED: usize = 50;

/// The longest wait of the runner, in milliseconds.
const WITHIN_MS: u64 = 5000;

/// The paths and resources that begin with this text, without the `@`.
pub(super) async fn beginning(client: &Client, session: &Session, prefix: &str) -> Vec<String> {
    let (mut offered, resources) = tokio::join!(
        paths(client, session, prefix),
        resources(client, session, prefix)
    );
    offered.extend(resources);
    offered
}

/// The resources of connected tool servers that begin with this text.
async fn resources(client: &Client, session: &Session, prefix: &str) -> Vec<String> {
    // A server of an earlier release has none.
    let servers = client
        .session_tool_servers(session.id)
        .await
        .unwrap_or_default();
    let resources = servers.into_iter().flat_map(|server| server.resources);
    let named = resources.filter_map(|one| one.mention.strip_prefix('@').map(str::to_owned));
    named
        .filter(|named| named.starts_with(prefix) && !named.contains(char::is_whitespace))
        .take(MAX_OFFERED)
        .collect()
}

/// The paths that begin with this one, relative to the session's folder; folders end with a slash. Empty where the runner
/// does not tell them.
async fn paths(client: &Client, session: &Session, prefix: &str) -> Vec<String> {
    let (folder, name) = match prefix.rsplit_once('/') {
        Some((folder, name)) => (Some(folder), name),
        None => (None, prefix),
    };
    let path = [session.directory.as_str(), folder.unwrap_or_default()];
    let path: Vec<_> = path.into_iter().filter(|part| !part.is_empty()).collect();
    let runner = session.runner.as_ref();
    let runner =
        runner.map(|pin| runners::with_workspace(&pin.id.to_string(), pin.workspace.as_deref()));
    let (mut attach, _controls) = client.start(StartOperation {
        runner,
        list: Some(List {
            path: path.join("/"),
            limit: Some(MAX_ENTRIES),
            tree: false,
            after: String::new(),
        }),
        timeout_ms: Some(WITHIN_MS),
        ..StartOperation::default()
    });
    while let Some(Ok(item)) = attach.next().await {
        let Attached::Ended(operation) = item else {
            continue;
        };
        let Some(OperationEnd::Done {
            listing: Some(listing),
            ..
        }) = operation.end
        else {
            return Vec::new();
        };
        let letters = name.to_lowercase();
        let fits = |name: &str| {
            // A hidden entry is offered to those who ask for it.
            name.to_lowercase().contains(&letters)
                && (letters.starts_with('.') || !name.starts_with('.'))
        };
        let mut found: Vec<_> = listing
            .entries
            .into_iter()
            .filter(|entry| !entry.is_replaced && fits(&entry.name))
            .collect();
        found.sort_by_key(|entry| {
            let begins = entry.name.to_lowercase().starts_with(&letters);
            (!begins, entry.name.clone())
        });
        let path = |entry: &shared_api::ListedEntry| {
            let slash = if entry.kind == "directory" { "/" } else { "" };
            match folder {
                Some(folder) => format!("{folder}/{}{slash}", entry.name),
                None => format!("{}{slash}", entry.name),
            }
        };
        return found.iter().take(MAX_OFFERED).map(path).collect();
    }
    Vec::new()
}
