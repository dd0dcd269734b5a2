//! `gantry-server migrate`: brings the database to the schema of this version before a start needs it.

use std::path::Path;

use anyhow::{Context as _, bail};
use shared_program::say;

use crate::{make_private_folder, settings::DatabaseChoice};

/// Migrates the database under the lock of a start; with `check` only says whether that is to be done.
///
/// # Errors
/// Fails if the database cannot be used, or, with `check`, if something is to be done.
pub(crate) async fn migrate(
    database: &DatabaseChoice,
    folder: &Path,
    check: bool,
) -> anyhow::Result<()> {
    let opening = "failed to open the database";
    let before = database.schema().await.context(opening)?;
    let known = before.known;
    if before.is_current() {
        say!("{database} is at schema {known}; nothing is to be done")?;
        return Ok(());
    }
    let found = match before.found {
        Some(found) => format!("is at schema {found}"),
        None => "has no schema yet".to_owned(),
    };
    if check {
        bail!("{database} {found}, and this version needs {known}: run gantry-server migrate");
    }
    make_private_folder(folder)?;
    database.open().await.context(opening)?.close().await;
    say!(
        "{database} {}, and is now at schema {known}",
        found.replace("is ", "was ").replace("has ", "had ")
    )?;
    Ok(())
}
