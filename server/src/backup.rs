//! `gantry-server backup` and `gantry-server move`: everything of a server in one file, and its rows in another
//! database.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use server_store::{BackupContent, BackupMade, CopiedTable, copy, require_empty, write_backup};
use shared_program::say;
use shared_types::{Clock as _, SystemClock};

use crate::{
    folder_lock::FolderLock,
    make_private_folder,
    settings::{DatabaseChoice, MasterKeyChoice},
};

/// Writes a backup, also while the server runs.
///
/// # Errors
/// Fails if the server's keys are not here, or the backup cannot be written.
pub(crate) async fn back_up(
    database: &DatabaseChoice,
    master_key: &MasterKeyChoice,
    folder: &Path,
    file: &Path,
) -> anyhow::Result<()> {
    let identity = folder.join("keys/identity.pem");
    if !identity.exists() {
        bail!(
            "{} does not exist, without which no runner trusts a restored server: back up where the server runs, with its GANTRY_HOME",
            identity.display()
        );
    }
    let store = database
        .open_beside()
        .await
        .context("failed to open the database")?;
    let made = BackupMade {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at: SystemClock::new().now(),
    };
    let content = write_backup(&store, folder, file, made)
        .await
        .context("failed to back up")?;
    store.close().await;
    say!("{}: {}", file.display(), told(&content))?;
    say!("{}: {}", file.display(), master_key.needed_by(&content))?;
    Ok(())
}

/// The content of a backup, in words.
pub(crate) fn told(content: &BackupContent) -> String {
    let rows: u64 = content.tables.iter().map(|table| table.rows).sum();
    format!(
        "schema {}, {rows} rows of {} tables, {} files of keys and output with {} KiB",
        content.schema,
        content.tables.len(),
        content.files,
        content.bytes.div_ceil(1024)
    )
}

/// Copies the database into the one that `to` names, and says what to set.
///
/// # Errors
/// Fails if a server runs, or a database cannot be used; then nothing was written.
pub(crate) async fn move_to(
    database: &DatabaseChoice,
    to: &str,
    home: &Path,
) -> anyhow::Result<()> {
    let target = DatabaseChoice::named(to, home).map_err(|error| anyhow!("--to {error}"))?;
    if target.to_string() == database.to_string() {
        bail!("--to names {database}, which the settings name already: name the new database");
    }
    // PostgreSQL's rows may come into a new home.
    make_private_folder(&home.join("server"))?;
    let lock = FolderLock::in_folder(&home.join("server")).await?;
    let opening = "failed to open the database that is to be moved";
    let source = database.open_beside().await.context(opening)?;
    let others = source
        .replicas_elsewhere(&lock.place(SystemClock::new().boot())?)
        .await;
    let others = others.context("failed to look for other servers")?;
    if source.is_shared() && others > 0 {
        bail!(
            "{others} servers in other folders use {database}: stop them; one that was killed is forgotten once another server has run on the database for 30 seconds"
        );
    }
    require_empty_database(&target).await?;
    let store = target
        .open()
        .await
        .context("failed to open the new database")?;
    let copied = copy(&source, &store).await.context("failed to move")?;
    source.close().await;
    store.close().await;
    say!("{}", listed(&copied))?;
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    say!(
        "{target} has the {rows} rows of {database}: the number and the digest of each table's are the same"
    )?;
    say!("{}", next(&target, to))?;
    Ok(())
}

/// Refuses a database with rows before its schema is changed.
pub(crate) async fn require_empty_database(database: &DatabaseChoice) -> anyhow::Result<()> {
    let opening = "failed to open the new database";
    let Some(found) = database.schema().await.context(opening)?.found else {
        return Ok(());
    };
    let store = database.open_at(found).await.context(opening)?;
    let empty = require_empty(&store).await;
    store.close().await;
    empty.with_context(|| format!("failed to use {database}"))
}

/// A line for each table.
fn listed(tables: &[CopiedTable]) -> String {
    let line = |table: &CopiedTable| {
        let digest = table.digest.to_string();
        format!("{:<16} {:>9}  {}", table.name, table.rows, &digest[..16])
    };
    let lines: Vec<String> = tables.iter().map(line).collect();
    format!(
        "{:<16} {:>9}  {}\n{}",
        "table",
        "rows",
        "SHA-256 of both",
        lines.join("\n")
    )
}

/// The settings that the operator has to change now.
fn next(target: &DatabaseChoice, to: &str) -> String {
    match target {
        DatabaseChoice::File(_) => {
            "Take url under [database] out of gantry.toml, or unset GANTRY_DATABASE_URL, and start the server.".to_owned()
        }
        DatabaseChoice::Postgres(_) => format!(
            "Set url = \"{to}\" under [database] in gantry.toml, or GANTRY_DATABASE_URL, with the password in it or in ~/.pgpass, and start the server. The database before stays as it is."
        ),
    }
}
