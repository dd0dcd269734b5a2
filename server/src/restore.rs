//! `gantry-server restore`: a server from a backup, in an empty home and an empty database.
//!
//! The files are written into a folder of their own, `restoring`, and are put into place once the rows are
//! committed. While that folder is there, no server starts: either all of a backup is there or none.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::Path,
};

use anyhow::{Context as _, bail};
use rustix::fs::syncfs;
use server_store::{Backup, BackupContent};
use shared_program::say;

use crate::{
    backup::{require_empty_database, told},
    folder_lock::FolderLock,
    make_private_folder,
    schema::migrate,
    settings::{DatabaseChoice, MasterKeyChoice},
};

/// The folder of the files until the rows are committed.
const UNFINISHED: &str = "restoring";

/// The folders that a backup has.
const FOLDERS: [&str; 2] = ["output", "keys"];

/// Refuses a folder in which a restoration did not come to its end.
pub(crate) fn require_finished(folder: &Path) -> anyhow::Result<()> {
    if folder.join(UNFINISHED).exists() {
        bail!(
            "{} is half restored: run gantry-server restore FILE once more, which says what to do",
            folder.display()
        );
    }
    Ok(())
}

/// Restores a backup.
///
/// # Errors
/// Fails if the home or the database is not empty, a server runs, or the backup is incomplete.
pub(crate) async fn restore(
    database: &DatabaseChoice,
    master_key: &MasterKeyChoice,
    folder: &Path,
    file: &Path,
) -> anyhow::Result<()> {
    let schema = database
        .schema()
        .await
        .context("failed to open the database")?;
    let backup = Backup::open(file, schema.known).context("failed to restore")?;
    make_private_folder(folder)?;
    let _lock = FolderLock::in_folder(folder).await?;
    let staged = folder.join(UNFINISHED);
    if !staged.exists() {
        make_room(folder)?;
    }
    if schema.found.is_some_and(|found| found > backup.schema()) {
        bail!(
            "{database} has schema {} and the backup has {}: remove that database and make an empty one, in which restore makes the tables",
            schema.found.unwrap_or_default(),
            backup.schema()
        );
    }
    if let Err(error) = require_empty_database(database).await {
        return Err(match staged.exists() {
            true => error.context(format!(
                "a restoration ended half-way: remove {}, create {database} again, and restore again",
                folder.display()
            )),
            false => error,
        });
    }
    if staged.exists() {
        remove(&staged)?;
        make_room(folder)?;
    }
    make_private_folder(&staged)?;
    let restored = match fill(database, &backup, &staged).await {
        Ok(restored) => restored,
        Err(error) => {
            // If the answer to the commit was lost, the rows may be there.
            if require_empty_database(database).await.is_ok() {
                remove(&staged)?;
            }
            return Err(error);
        }
    };
    put_in_place(folder, &staged)?;
    let made = backup.made();
    say!(
        "restored {}, which version {} made at {:.0}: {}",
        file.display(),
        made.version,
        made.at,
        told(&restored)
    )?;
    say!("{}: {}", file.display(), master_key.needed_by(&restored))?;
    match backup.schema() < schema.known {
        true => migrate(database, folder, false).await,
        false => Ok(()),
    }
}

/// Writes the files to `staged`, and the rows into the database.
async fn fill(
    database: &DatabaseChoice,
    backup: &Backup,
    staged: &Path,
) -> anyhow::Result<BackupContent> {
    let opening = "failed to open the database";
    let store = database.open_at(backup.schema()).await.context(opening)?;
    // Committed rows must find their files, also after a loss of power.
    let restored = backup.restore(&store, staged, || sync(staged)).await;
    store.close().await;
    restored.context("failed to restore")
}

/// Takes the folders away in whose place those of the backup will be: they are empty, or not there.
fn make_room(folder: &Path) -> anyhow::Result<()> {
    for name in FOLDERS {
        let path = folder.join(name);
        match fs::remove_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => bail!(
                "{} is not empty: restore into an empty home, set with GANTRY_HOME, or move {} away",
                path.display(),
                folder.display()
            ),
            Err(error) => bail!(
                "{} cannot be replaced by that of the backup ({error}): it may be neither a link nor the root of a volume; mount the volume at {}",
                path.display(),
                folder.display()
            ),
        }
    }
    Ok(())
}

fn put_in_place(folder: &Path, staged: &Path) -> anyhow::Result<()> {
    for name in FOLDERS {
        let (from, to) = (staged.join(name), folder.join(name));
        if from.exists() {
            fs::rename(&from, &to).with_context(|| format!("{} cannot be made", to.display()))?;
        }
    }
    let wrote = || format!("{} cannot be written to its disk", folder.display());
    sync(folder).with_context(wrote)?;
    remove(staged)?;
    sync(folder).with_context(wrote)
}

/// Waits until the disk has everything that was written there.
fn sync(folder: &Path) -> io::Result<()> {
    Ok(syncfs(File::open(folder)?)?)
}

fn remove(staged: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(staged).with_context(|| format!("{} cannot be removed", staged.display()))
}
