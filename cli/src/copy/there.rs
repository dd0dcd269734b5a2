//! Entries on a runner.

use anyhow::{Context as _, bail};
use shared_api::{Entry, List, ListedEntry, OperationEnd, StartOperation, Stat};

use super::copying::{Copying, Nothing};

/// Most entries of a folder that are copied at once: their names are held in memory.
const MAX_ENTRIES: usize = 2_000_000;

/// The entry at a path, or the target of a link there; `None` if nothing is there.
pub(super) async fn look(copying: &Copying, path: &str) -> anyhow::Result<Option<Entry>> {
    let stat = StartOperation {
        stat: Some(Stat {
            path: path.to_owned(),
            follow: true,
        }),
        ..StartOperation::default()
    };
    match copying.perform(stat, &mut Nothing).await? {
        OperationEnd::Done { entry, .. } => Ok(Some(entry.context("the runner told nothing")?)),
        OperationEnd::Failed { reason, .. } if reason == "not_found" => Ok(None),
        end => bail!("{}", end.words().to_owned()),
    }
}

/// The entries beneath a folder; each folder comes before its content.
pub(super) async fn tree(copying: &Copying, path: &str) -> anyhow::Result<Vec<ListedEntry>> {
    let mut entries: Vec<ListedEntry> = Vec::new();
    loop {
        let after = entries
            .last()
            .map_or(String::new(), |last| last.name.clone());
        let list = StartOperation {
            list: Some(List {
                path: path.to_owned(),
                limit: None,
                tree: true,
                after,
            }),
            ..StartOperation::default()
        };
        let listing = match copying.perform(list, &mut Nothing).await? {
            OperationEnd::Done { listing, .. } => listing.context("the runner listed nothing")?,
            end => bail!("{}", end.words().to_owned()),
        };
        let is_stuck = listing.entries.is_empty();
        entries.extend(listing.entries);
        if !listing.more {
            return Ok(entries);
        }
        if is_stuck || entries.len() > MAX_ENTRIES {
            bail!("it has more entries than can be copied at once; copy it in parts");
        }
    }
}
